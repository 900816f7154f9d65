// The conversation of a session: what was said and done, in order, drawn in portions as it is scrolled to.

import { button, element, reducedMotion, replace } from "./dom.js";
import { brief, duration, exact, line, tokens } from "./format.js";
import { failure, kindOf, marks, sign, state } from "./marks.js";
import { jsonTree, longText } from "./json_tree.js";
import { folding, messageOf, textOf } from "./messages.js";

const PORTION = 40;
const EAGER = 160; // So many rows are drawn at once, so that the browser's own search finds what is in them.
const HEIGHTS = { run: 130, turn: 34, model: 98, side: 60, tool: 84 }; // Of rows that were never drawn, in pixels.
const NEAR = "1500px";

/** `{element, select(row, move), find()}`. `select(row, {from})` is told what is chosen here. */
export function conversation(view, choose) {
  const talk = { view, choose: (row) => choose(row, { from: "conversation" }), items: itemsOf(view.outline), chosen: null, opened: new Set() };
  talk.body = element("div", { class: "talk-body" });
  talk.finder = finder(talk);
  talk.element = element("section", { class: "talk", "aria-label": "Conversation", tabindex: "-1" }, talk.finder.element, talk.body);
  portions(talk);
  return { element: talk.element, select: (row, move) => select(talk, row, move), find: talk.finder.open };
}

// What a run gave back stands behind all that is in it.
function itemsOf({ rows }) {
  const items = [];
  const open = [];
  const close = (number) => { while (open.length && open.at(-1).end <= number) items.push({ row: open.pop(), ending: true }); };
  for (const row of rows) {
    close(row.number);
    row.item = items.length;
    items.push({ row });
    const ends = row.kind === "run" && ((row.ending.length && row.value.fidelity?.output !== "reconstructed") || row.value.error);
    if (ends) open.push(row);
  }
  close(Infinity);
  return items;
}

function portions(talk) {
  talk.portions = [];
  for (let from = 0; from < talk.items.length; from += PORTION) {
    const box = element("div", { class: "portion" });
    box.dataset.from = from;
    talk.portions.push(box);
    talk.body.append(box);
  }
  if (!talk.items.length) replace(talk.body, element("p", { class: "empty" }, "No run was recorded in this session."));
  if (talk.items.length <= EAGER) return talk.portions.forEach((box) => fillPortion(talk, box));
  talk.portions.forEach((box, number) => { box.style.minHeight = `${guess(talk.items.slice(number * PORTION, (number + 1) * PORTION))}px`; });
  const watcher = new IntersectionObserver((seen) => seen.forEach(({ target, isIntersecting }) => (isIntersecting ? fillPortion(talk, target) : emptyPortion(target))),
    { rootMargin: NEAR, scrollMargin: NEAR });
  talk.portions.forEach((box) => watcher.observe(box));
}

const guess = (items) => items.reduce((sum, { row }) => sum + HEIGHTS[row.kind], 0);

function fillPortion(talk, box) {
  if (box.firstChild) return;
  const from = Number(box.dataset.from);
  box.append(...talk.items.slice(from, from + PORTION).map((item) => blockOf(talk, item)));
  box.style.minHeight = "";
}

function emptyPortion(box) {
  if (!box.firstChild || box.contains(document.activeElement)) return;
  box.style.minHeight = `${box.offsetHeight}px`;
  box.replaceChildren();
}

function select(talk, row, move) {
  talk.chosen?.classList.remove("chosen");
  talk.chosen = null;
  talk.row = row;
  if (!row) return;
  const at = Math.floor(row.item / PORTION);
  const box = talk.portions[at];
  for (const near of talk.portions.slice(Math.max(0, at - 1), at + 2)) fillPortion(talk, near);
  talk.chosen = box.children[row.item % PORTION];
  talk.chosen.classList.add("chosen");
  if (move) show(talk, talk.chosen);
}

// What is drawn meanwhile above it moves it: it is looked after once more.
function show(talk, block) {
  const still = reducedMotion() || talk.items.length > EAGER;
  block.scrollIntoView({ block: "nearest", behavior: still ? "auto" : "smooth" });
  if (still) setTimeout(() => { if (talk.chosen === block) block.scrollIntoView({ block: "nearest" }); }, 120);
}

// -- blocks ----------------------------------------------------------------------------------------------------------

function blockOf(talk, { row, ending }) {
  const made = element("div", { class: `block ${row.kind} ${row.status !== "ok" ? row.status : ""} ${ending ? "ending" : ""} ${talk.row === row && !ending ? "chosen" : ""}` },
    ending ? endingBlock(talk, row) : BLOCKS[row.kind](talk, row));
  made.style.setProperty("--depth", Math.min(nesting(row), 8));
  if (!ending && row.kind !== "turn") made.addEventListener("click", (event) => { if (!event.target.closest("button, a, summary, details[open] > *") && !getSelection().toString()) talk.choose(row); });
  return made;
}

// Turns do not move what is in them to the right; runs inside runs do.
const nesting = (row) => { let depth = 0; for (let run = row.runRow; run?.parent; run = run.parent.runRow) depth += 1; return depth; };

const pick = (talk, row, label) => element("button", { class: "pick", type: "button", on: { click: () => talk.choose(row) } }, sign(row), element("span", { class: "name", dir: "auto" }, label));

const said = (talk, indexes, options) => indexes.map((index) => messageOf(talk.view.document.messages[index], options));

const took = (row) => row.started !== null && row.ended !== null && element("span", { class: "fact" }, duration(Math.max(0, row.ended - row.started)));

function runBlock(talk, row) {
  const { value: run } = row;
  const inside = row.parent && element("span", { class: "fact" }, row.parent.kind === "tool" ? `made by ${line(row.parent.title, 40)}` : "inside the run above");
  return [element("div", { class: "line" }, pick(talk, row, row.title), run.agent?.version && element("span", { class: "fact" }, line(run.agent.version, 30)),
    element("span", { class: "fact mono" }, line(run.path, 60)), inside, took(row), state(row.status), marks(run.fidelity)),
  said(talk, row.fresh)];
}

const turnBlock = (talk, row) => [element("button", { class: "turn-line", type: "button", on: { click: () => talk.choose(row) } }, row.title)];

function modelBlock(talk, row) {
  const { value: call } = row;
  const messages = talk.view.document.messages;
  const parts = (call.output ?? []).flatMap((index) => messages[index]?.parts ?? []);
  const asks = parts.filter((part) => part.type === "tool_call").map((part) => line(part.name ?? "a tool", 40));
  const spoken = (call.output ?? []).filter((index) => (messages[index]?.parts ?? []).some((part) => part.type !== "tool_call"));
  const attempts = (call.attempts ?? []).length;
  return [said(talk, row.fresh),
    element("div", { class: "line" }, pick(talk, row, row.title), row.kind === "side" && element("span", { class: "fact" }, call.operation ?? "side call"), took(row),
      tokens(call.usage) && element("span", { class: "fact" }, tokens(call.usage)), attempts > 1 && element("span", { class: "fact warn" }, `${attempts} attempts`),
      call.complete === false && element("span", { class: "fact warn" }, "cut off"), odd(call.finish_reasons), state(row.status), marks(call.fidelity)),
    said(talk, spoken, { folded: false }),
    asks.length > 0 && element("p", { class: "asks" }, "asks for ", element("strong", {}, asks.join(", "))),
    failure(call.error)];
}

const ORDINARY = new Set(["stop", "tool_call", "tool_calls", "end_turn", "tool_use"]);
const odd = (reasons) => (reasons ?? []).filter((reason) => !ORDINARY.has(reason)).map((reason) => element("span", { class: "fact warn" }, `ended by ${line(reason, 40)}`));

function toolBlock(talk, row) {
  const { value: call } = row;
  const has = (name) => call[name] !== undefined && call.fidelity?.[name] !== "absent";
  const open = (name) => ({ open: talk.opened.has(`${row.pointer}/${name}`), remember: (now) => talk.opened[now ? "add" : "delete"](`${row.pointer}/${name}`) });
  const given = has("arguments") ? call.arguments : call.requested;
  return [element("div", { class: "line" }, pick(talk, row, row.title), call.kind && call.kind !== "function" && element("span", { class: "fact" }, kindOf(row)),
    call.target && element("span", { class: "fact" }, `to ${line(call.target, 60)}`), call.side_effect && element("span", { class: "fact warn" }, "side effect"),
    call.executed === false && call.kind !== "provider" && element("span", { class: "fact" }, "only seen in messages"), took(row), state(row.status), marks(call.fidelity)),
  given !== undefined && valueLine("arguments", given, open("arguments")),
  call.error ? failure(call.error) : resultLine(row, has, open)];
}

const LOST = new Map([["absent", "The result was not recorded."], ["redacted", "The result is redacted."], ["truncated", "The result was cut off as a whole."]]);

function resultLine(row, has, open) {
  if (row.status === "unfinished") return element("p", { class: "dim" }, "No result was recorded: it has not ended.");
  if (!has("result") && LOST.has(row.value.fidelity?.result)) return element("p", { class: "dim" }, LOST.get(row.value.fidelity.result));
  // The document leaves null out: a result that is not marked absent was null.
  return valueLine("result", has("result") ? row.value.result : null, open("result"));
}

function valueLine(label, value, { open, remember }) {
  const box = folding("value", [element("span", { class: "role" }, label), element("span", { class: "peek mono", dir: "auto" }, brief(value, 200))],
    () => (typeof value === "string" ? longText(value, "said mono") : jsonTree(value, label)), open);
  box.addEventListener("toggle", () => remember(box.open));
  return box;
}

const endingBlock = (talk, row) => [element("div", { class: "line dim" }, `${row.title} `, row.value.error ? "failed" : "gives back"),
  failure(row.value.error), row.value.fidelity?.output === "reconstructed" ? null : said(talk, row.ending)];

// -- finding ---------------------------------------------------------------------------------------------------------

function finder(talk) {
  const field = element("input", { type: "search", placeholder: "Find in this session", "aria-label": "Find in this session", autocomplete: "off", spellcheck: "false" });
  const count = element("span", { class: "dim", role: "status" });
  let found = [];
  let at = -1;
  const step = (by) => {
    if (!found.length) return;
    at = (at + by + found.length) % found.length;
    replace(count, `${exact(at + 1)} of ${exact(found.length)}`);
    talk.choose(found[at]);
    select(talk, found[at], true);
  };
  const look = () => {
    const words = field.value.toLowerCase().trim();
    found = words ? talk.view.outline.rows.filter((row) => haystack(talk, row).includes(words)) : [];
    at = -1;
    replace(count, words ? (found.length ? `${exact(found.length)} found` : "nothing found") : "");
  };
  field.addEventListener("input", look);
  field.addEventListener("keydown", (event) => { if (event.key === "Enter") step(event.shiftKey ? -1 : 1); });
  const bar = element("div", { class: "finder", role: "search" }, field, count, button("\u2191", () => step(-1), { "aria-label": "The one before" }), button("\u2193", () => step(1), { "aria-label": "The next" }));
  return { element: bar, open: () => field.select() };
}

function haystack(talk, row) {
  if (row.haystack === undefined) {
    const { value } = row;
    const messages = [...row.fresh, ...(row.kind === "model" || row.kind === "side" ? value.output ?? [] : []), ...row.ending];
    const values = row.kind === "tool" ? [value.arguments, value.result].map((one) => (one === undefined ? "" : brief(one, 4000))) : [];
    const error = value.error ? Object.values(value.error).join(" ") : "";
    row.haystack = [row.title, row.kind === "turn" ? "" : value.id, error, ...values, ...messages.map((index) => textOf(talk.view.document.messages[index]))].join(" ").toLowerCase();
  }
  return row.haystack;
}

const BLOCKS = { run: runBlock, turn: turnBlock, model: modelBlock, side: modelBlock, tool: toolBlock };
