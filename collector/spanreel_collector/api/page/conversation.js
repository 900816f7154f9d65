// The conversation of a session: what was said and done, in order, drawn in portions as it is scrolled to.

import { blockOf } from "./blocks.js";
import { element, reducedMotion, replace } from "./dom.js";
import { finder } from "./finder.js";

const PORTION = 40;
const EAGER = 160; // So many rows are drawn at once, so that the browser's own search finds what is in them.
const HEIGHTS = { run: 130, turn: 34, model: 98, side: 60, tool: 84 }; // Of rows that were never drawn, in pixels.
const NEAR = "1500px";

/** `{element, select(row, move), find()}`. `select(row, {from})` is told what is chosen here. */
export function conversation(view, choose) {
  const talk = {
    view,
    choose: (row) => choose(row, { from: "conversation" }),
    items: itemsOf(view.outline),
    chosen: null,
    opened: new Set(),
  };
  talk.body = element("div", { class: "talk-body" });
  talk.finder = finder(talk, (row) => select(talk, row, true));
  talk.element = element(
    "section",
    { class: "talk", "aria-label": "Conversation", tabindex: "-1" },
    talk.finder.element,
    talk.body,
  );
  portions(talk);
  return { element: talk.element, select: (row, move) => select(talk, row, move), find: talk.finder.open };
}

// What a run gave back stands behind all that is in it.
function itemsOf({ rows }) {
  const items = [];
  const open = [];
  const close = (number) => {
    while (open.length && open.at(-1).end <= number) items.push({ row: open.pop(), ending: true });
  };
  for (const row of rows) {
    close(row.number);
    row.item = items.length;
    items.push({ row });
    const ends =
      row.kind === "run" && ((row.ending.length && row.value.fidelity?.output !== "reconstructed") || row.value.error);
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
  talk.portions.forEach((box, number) => {
    box.style.minHeight = `${guess(talk.items.slice(number * PORTION, (number + 1) * PORTION))}px`;
  });
  const whole = () => talk.element.isConnected && talk.portions.forEach((box) => fillPortion(talk, box));
  addEventListener("beforeprint", whole, { signal: talk.view.aborter.signal });
  const watcher = new IntersectionObserver(
    (seen) =>
      seen.forEach(({ target, isIntersecting }) => (isIntersecting ? fillPortion(talk, target) : emptyPortion(target))),
    { rootMargin: NEAR, scrollMargin: NEAR },
  );
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
  if (still)
    setTimeout(() => {
      if (talk.chosen === block) block.scrollIntoView({ block: "nearest" });
    }, 120);
}
