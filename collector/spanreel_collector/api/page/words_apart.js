// Two texts, word by word: what only one of them has.

const MOST = 4_000_000; // Cells of the table of longest common parts.

/** `[[kind, text], ...]` with the kinds "same", "gone" and "new". */
export function apart(before, after) {
  const [a, b] = [before, after].map((text) => text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? []);
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  const middle = between(a.slice(start, a.length - end), b.slice(start, b.length - end));
  return joined([["same", a.slice(0, start).join("")], ...middle, ["same", a.slice(a.length - end).join("")]]);
}

function between(a, b) {
  if ((a.length + 1) * (b.length + 1) > MOST)
    return [
      ["gone", a.join("")],
      ["new", b.join("")],
    ];
  const width = b.length + 1;
  const table = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      table[i * width + j] =
        a[i] === b[j]
          ? table[(i + 1) * width + j + 1] + 1
          : Math.max(table[(i + 1) * width + j], table[i * width + j + 1]);
    }
  }
  const found = [];
  let [i, j] = [0, 0];
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) {
      found.push(["same", a[i]]);
      i += 1;
      j += 1;
    } else if (table[(i + 1) * width + j] >= table[i * width + j + 1]) {
      found.push(["gone", a[i]]);
      i += 1;
    } else {
      found.push(["new", b[j]]);
      j += 1;
    }
  }
  return [...found, ["gone", a.slice(i).join("")], ["new", b.slice(j).join("")]];
}

// Blanks that both have, between words of which they have none in common, are no sign of likeness.
function joined(pieces) {
  const kept = pieces.filter(([, text]) => text);
  const found = [];
  const changed = { gone: "", new: "" };
  const flush = () => {
    for (const kind of ["gone", "new"]) if (changed[kind]) found.push([kind, changed[kind]]);
    changed.gone = changed.new = "";
  };
  for (const [number, [kind, text]] of kept.entries()) {
    if (kind !== "same") changed[kind] += text;
    else if (!text.trim() && changed.gone && changed.new && kept[number + 1] && kept[number + 1][0] !== "same") {
      changed.gone += text;
      changed.new += text;
    } else {
      flush();
      if (found.at(-1)?.[0] === "same") found.at(-1)[1] += text;
      else found.push(["same", text]);
    }
  }
  flush();
  return found;
}
