// The rows of a session along time. Only rows on the screen are in the document; times when nothing happened are cut.

import { button, element, replace } from "./dom.js";
import { compact, duration, exact } from "./format.js";
import { sign } from "./marks.js";
import { STATUS } from "./words.js";

const HEIGHT = 26;
const BEYOND = 8;
const IDLE = 0.12; // A pause of more than this share of all that was done is cut.
const CUT = 0.025;

/** `{element, draw(), select(row, move), beside(row, step), fold(row, shut, go), zoom()}`. */
export function waterfall(view, choose) {
  const { rows } = view.outline;
  const fall = {
    view,
    rows,
    choose: (row) => choose(row, { from: "waterfall" }),
    folded: new Set(),
    drawn: new Map(),
    chosen: null,
    scale: scaleOf(rows),
    zoomed: null,
    sums: sumsOf(rows),
  };
  fall.list = element("div", {
    class: "fall-rows",
    role: "tree",
    tabindex: "0",
    "aria-label": "Runs, turns and calls along time",
  });
  fall.inner = element("div", { class: "fall-inner", role: "presentation" });
  fall.list.append(fall.inner);
  fall.count = element("span", { class: "dim", role: "status" });
  fall.list.addEventListener("scroll", () => requestAnimationFrame(() => drawRows(fall)), { passive: true });
  new ResizeObserver(() => drawRows(fall)).observe(fall.list);
  listen(fall);
  arrange(fall);
  fall.axis = element("span", { class: "area" });
  fall.zoomer = button("Zoom", () => zoom(fall), { class: "small", hidden: true });
  const head = element(
    "div",
    { class: "fall-head" },
    element("span", { class: "fall-count" }, fall.count, fall.zoomer),
    element("span", { class: "track", "aria-hidden": "true" }, fall.axis),
    element("span", { class: "column" }, "tokens"),
  );
  drawAxis(fall);
  const whole = element("section", { class: "fall", "aria-label": "Waterfall" }, head, fall.list);
  return {
    element: whole,
    draw: () => drawRows(fall),
    select: (row, move) => select(fall, row, move),
    beside: (row, step) => beside(fall, row, step),
    fold: (row, shut, go) => fold(fall, row, shut, go),
    zoom: () => zoom(fall),
  };
}

function listen(fall) {
  const rowOf = (event) => {
    const node = event.target.closest(".fall-row");
    return node && fall.rows[Number(node.dataset.number)];
  };
  fall.list.addEventListener("click", (event) => {
    const row = rowOf(event);
    if (!row) return;
    if (event.target.closest(".twist") && row.end - row.number > 1) return toggle(fall, row);
    fall.choose(row);
  });
  fall.list.addEventListener("dblclick", (event) => {
    const row = rowOf(event);
    if (row && row.end - row.number > 1) toggle(fall, row);
  });
}

// -- which rows ------------------------------------------------------------------------------------------------------

function arrange(fall) {
  forget(fall, fall.rows);
  fall.visible = [];
  for (let number = 0; number < fall.rows.length; number += 1) {
    const row = fall.rows[number];
    row.line = fall.visible.length;
    fall.visible.push(row);
    if (fall.folded.has(row)) {
      for (const inside of fall.rows.slice(number + 1, row.end)) inside.line = null;
      number = row.end - 1;
    }
  }
  fall.inner.style.height = `${fall.visible.length * HEIGHT}px`;
  replace(
    fall.count,
    fall.visible.length === fall.rows.length
      ? `${exact(fall.rows.length)} rows`
      : `${exact(fall.visible.length)} of ${exact(fall.rows.length)} rows`,
  );
}

function toggle(fall, row) {
  if (!fall.folded.delete(row)) fall.folded.add(row);
  arrange(fall);
  drawRows(fall);
}

function fold(fall, row, shut, go) {
  const folds = row.end - row.number > 1;
  const isShut = fall.folded.has(row);
  if (shut && (!folds || isShut)) {
    if (row.parent) go(row.parent);
    return true;
  }
  if (!shut && folds && !isShut) {
    go(fall.rows[row.number + 1]);
    return true;
  }
  if (folds) toggle(fall, row);
  return true;
}

function beside(fall, row, step) {
  if (!row) return fall.visible[step > 0 ? 0 : fall.visible.length - 1] ?? null;
  return fall.visible[Math.min(Math.max((row.line ?? 0) + step, 0), fall.visible.length - 1)];
}

// The time of the run or turn around what is chosen, over the whole width; once more, and all is there again.
function zoom(fall) {
  const { chosen } = fall;
  const around = fall.zoomed || !chosen ? null : chosen.end - chosen.number > 1 ? chosen : chosen.parent;
  fall.zoomed = around;
  fall.scale = scaleOf(around ? fall.rows.slice(around.number, around.end) : fall.rows);
  forget(fall, fall.rows);
  drawAxis(fall);
  select(fall, chosen, false);
}

function select(fall, row, move) {
  forget(fall, [fall.chosen, row]);
  fall.chosen = row;
  fall.zoomer.hidden = !row && !fall.zoomed;
  replace(fall.zoomer, fall.zoomed ? `Whole time` : "Zoom");
  fall.zoomer.title = fall.zoomed ? `Now: ${fall.zoomed.title} (z)` : "The time of the run or turn around it (z)";
  if (row) {
    let opened = false;
    for (let around = row.parent; around; around = around.parent) opened = fall.folded.delete(around) || opened;
    if (opened) arrange(fall);
    const top = row.line * HEIGHT;
    const { scrollTop, clientHeight } = fall.list;
    if ((move || opened) && (top < scrollTop || top + HEIGHT > scrollTop + clientHeight))
      fall.list.scrollTop = top - clientHeight / 3;
  }
  drawRows(fall);
}

function drawRows(fall) {
  const from = Math.max(0, Math.floor(fall.list.scrollTop / HEIGHT) - BEYOND);
  const to = Math.min(fall.visible.length, Math.ceil((fall.list.scrollTop + fall.list.clientHeight) / HEIGHT) + BEYOND);
  const rows = new Set(fall.visible.slice(from, to));
  forget(fall, [...fall.drawn.keys()].filter((row) => !rows.has(row)));
  let before = null;
  for (const row of rows) {
    let node = fall.drawn.get(row);
    if (!node) {
      node = rowElement(fall, row);
      fall.drawn.set(row, node);
      if (before) before.after(node);
      else fall.inner.prepend(node);
    }
    before = node;
  }
  if (fall.chosen) fall.list.setAttribute("aria-activedescendant", `row-${fall.chosen.number}`);
  else fall.list.removeAttribute("aria-activedescendant");
}

// A row that stays as it is stays the same element: a click that has begun on it is not lost.
function forget(fall, rows) {
  for (const row of rows) {
    fall.drawn.get(row)?.remove();
    fall.drawn.delete(row);
  }
}

function rowElement(fall, row) {
  const folds = row.end - row.number > 1;
  const length = row.started !== null && row.ended !== null ? duration(Math.max(0, row.ended - row.started)) : "";
  const sum = fall.sums.get(row);
  const said = [row.title, row.status !== "ok" && STATUS.get(row.status), length].filter(Boolean).join(", ");
  const made = element(
    "div",
    {
      class: `fall-row ${row.kind} ${row.status !== "ok" ? row.status : ""} ${fall.chosen === row ? "chosen" : ""}`,
      id: `row-${row.number}`,
      role: "treeitem",
      "aria-level": row.depth + 1,
      "aria-selected": String(fall.chosen === row),
      "aria-expanded": folds ? String(!fall.folded.has(row)) : null,
      "aria-label": said,
      "data-number": row.number,
    },
    element(
      "span",
      { class: "name" },
      element(
        "span",
        { class: "twist", "aria-hidden": "true" },
        folds ? (fall.folded.has(row) ? "\u25b8" : "\u25be") : "",
      ),
      sign(row),
      element("span", { class: "text", dir: "auto", title: row.title }, row.title),
    ),
    track(fall, row, length),
    element(
      "span",
      { class: "column", title: sum ? `${exact(sum.input)} in, ${exact(sum.output)} out` : null },
      sum ? `${compact(sum.input)} \u203a ${compact(sum.output)}` : "",
    ),
  );
  made.style.top = `${row.line * HEIGHT}px`;
  made.style.setProperty("--depth", Math.min(row.depth, 10));
  return made;
}

function track(fall, row, length) {
  const box = element("span", { class: "track" });
  const area = element("span", { class: "area" });
  box.append(area);
  for (const cut of fall.scale.cuts) {
    const gap = element("span", { class: "cut" });
    gap.style.left = percent(cut.from);
    gap.style.width = percent(cut.width);
    area.append(gap);
  }
  if (row.started === null) return box;
  if (row.started > fall.scale.last || (row.ended ?? Infinity) < fall.scale.first) return box;
  const [left, right] = [fall.scale.place(row.started), fall.scale.place(row.ended ?? openEnd(fall, row))];
  const bar = element("span", { class: `extent ${row.ended === null ? "open" : ""}` });
  bar.style.left = percent(left);
  bar.style.width = percent(Math.max(right - left, 0));
  const label = element("span", { class: "took" }, row.ended === null ? "no end" : length);
  label.style.left = percent(right);
  area.append(bar, label);
  return box;
}

const percent = (share) => `${(share * 100).toFixed(3)}%`;

// Where no end was recorded, the bar goes on as far as anything in the run does.
const openEnd = (fall, row) => row.runRow.ended ?? fall.scale.last;

// -- time ------------------------------------------------------------------------------------------------------------

/** `{place(moment) -> 0..1, cuts, spans, share, first, last}`. */
function scaleOf(rows) {
  const timed = rows
    .filter((row) => row.started !== null)
    .map((row) => [row.started, Math.max(row.ended ?? row.started, row.started)])
    .sort((a, b) => a[0] - b[0]);
  if (!timed.length) return { place: () => 0, cuts: [], spans: [], first: 0, last: 0 };
  const merged = merge(timed, 0);
  const done = merged.reduce((sum, [from, to]) => sum + to - from, 0);
  const spans = merge(merged, Math.max(done * IDLE, 1));
  const width = Math.min(CUT, 0.3 / spans.length);
  const total = spans.reduce((sum, [from, to]) => sum + to - from, 0) || 1;
  const share = (1 - width * (spans.length - 1)) / total;
  let left = 0;
  const placed = spans.map(([from, to]) => {
    const span = { from, to, left };
    left += (to - from) * share + width;
    return span;
  });
  const place = (at) => {
    const span = placed.findLast((one) => one.from <= at) ?? placed[0];
    return Math.min(Math.max(span.left + (Math.min(at, span.to) - span.from) * share, 0), 1);
  };
  const cuts = placed
    .slice(1)
    .map((span, number) => ({ from: span.left - width, width, pause: span.from - placed[number].to }));
  return { place, cuts, spans: placed, share, first: placed[0].from, last: placed.at(-1).to };
}

function merge(spans, pause) {
  const found = [];
  for (const [from, to] of spans) {
    const last = found.at(-1);
    if (last && from - last[1] <= pause) last[1] = Math.max(last[1], to);
    else found.push([from, to]);
  }
  return found;
}

function drawAxis(fall) {
  const area = replace(fall.axis);
  const { spans, cuts, share } = fall.scale;
  const tick = (left, text) => {
    const made = element("span", { class: "tick" }, text);
    made.style.left = percent(left);
    area.append(made);
  };
  // Of each stretch between pauses its own time, where there is room for it; what a pause says stands after it.
  for (const [number, span] of spans.entries()) {
    const room = (span.to - span.from) * share;
    if (number > 0 || room < 0.15) continue;
    const step = niceStep((span.to - span.from) / Math.max(1, Math.round(room * 4)));
    const most = spans.length === 1 ? 0.94 : room - 0.12;
    for (let at = 0; at * share <= most; at += step) tick(at * share, at ? duration(at) : "0");
  }
  if (cuts.length <= 6) for (const cut of cuts) tick(cut.from, `\u2026 ${duration(cut.pause)}`);
  else tick(0, `${exact(cuts.length)} pauses are cut`);
}

const STEPS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 15000, 30000, 60000, 120000, 300000, 600000, 1800000,
  3600000, 7200000, 21600000, 86400000,
];
const niceStep = (wanted) => STEPS.find((step) => step >= wanted) ?? wanted;

function sumsOf(rows) {
  const sums = new Map();
  for (const row of rows) {
    const usage = (row.kind === "model" || row.kind === "side") && row.value.usage;
    if (!usage || (usage.input_tokens ?? usage.output_tokens ?? null) === null) continue;
    for (let at = row; at; at = at.parent) {
      const sum = sums.get(at) ?? { input: 0, output: 0 };
      sum.input += usage.input_tokens ?? 0;
      sum.output += usage.output_tokens ?? 0;
      sums.set(at, sum);
    }
  }
  return sums;
}
