// Any JSON value as a tree that opens step by step, so that a large one costs what is looked at.

import { button, copy, element, inPortions, replace } from "./dom.js";
import { brief, entries, exact, toJson } from "./format.js";

const PORTION = 100;
const LONGEST = 4000;
const OPEN = 40; // Values of up to so many items come opened.

/** A tree, with what it is called; of a large one so many levels are opened. */
export function jsonTree(value, label, opened = 1) {
  return element(
    "div",
    { class: "tree", "aria-label": label, role: "group" },
    node(null, value, 0, count(value, OPEN + 1) <= OPEN ? Infinity : opened),
  );
}

/** Text as it is, however long: beyond some thousands of letters the rest comes when asked for. */
export function longText(text, className = "said") {
  const whole = String(text);
  const box = element("div", { class: className, dir: "auto" }, whole.slice(0, LONGEST));
  if (whole.length <= LONGEST) return box;
  const more = button(
    `${exact(LONGEST)} of ${exact(whole.length)} characters shown: show all`,
    () => {
      replace(box, whole);
      more.remove();
    },
    { class: "more" },
  );
  return element("div", {}, box, more);
}

/** A value on one line, its strings each in a direction of their own: brackets and colons stay where they stand. */
export function peek(value, most) {
  const text = brief(value, most);
  if (typeof value === "string") return element("span", { class: "peek mono", dir: "auto" }, text);
  const pieces = RIGHT_TO_LEFT.test(text) ? text.split(/("(?:[^"\\]|\\.)*"?)/) : [text];
  return element(
    "span",
    { class: "peek mono", dir: "ltr" },
    pieces.map((piece, number) => (number % 2 ? element("bdi", {}, piece) : piece)),
  );
}
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

/** A button that copies a value as text. */
export const copyButton = (value, label = "Copy") =>
  button(label, () => copy(typeof value === "string" ? value : toJson(value, 2)), { class: "small" });

function count(value, most) {
  if (value === null || typeof value !== "object") return 1;
  let found = 0;
  for (const [, item] of entries(value)) {
    found += count(item, most - found);
    if (found >= most) return found;
  }
  return found + 1;
}

function node(key, value, depth, openTo) {
  if (value === null || typeof value !== "object") return element("div", { class: "leaf" }, named(key), scalar(value));
  const items = entries(value);
  const [left, right] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  if (!items.length)
    return element("div", { class: "leaf" }, named(key), element("span", { class: "dim" }, left + right));
  const body = element("div", { class: "branch" });
  const fill = () => inPortions(body, items, ([name, item]) => node(name, item, depth + 1, openTo), PORTION);
  const box = element(
    "details",
    {
      class: "node",
      on: {
        toggle: () => {
          if (box.open && !body.firstChild) fill();
        },
      },
    },
    element(
      "summary",
      {},
      named(key),
      element(
        "span",
        { class: "dim" },
        left,
        element("span", { class: "peek" }, ` ${brief(value, 90).slice(1, -1)} `),
        right,
      ),
      element("span", { class: "count" }, ` ${exact(items.length)}`),
    ),
    body,
  );
  if (depth < openTo) {
    fill();
    box.open = true;
  }
  return box;
}

const named = (key) =>
  key !== null && [element("span", { class: typeof key === "number" ? "index" : "key" }, String(key)), ": "];

function scalar(value) {
  if (typeof value !== "string") return element("span", { class: "literal" }, String(value));
  return value.length > 200 || value.includes("\n")
    ? longText(value, "string block")
    : element("span", { class: "string", dir: "auto" }, value === "" ? '""' : value);
}
