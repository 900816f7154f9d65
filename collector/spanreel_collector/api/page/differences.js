// What became different, side by side: where it is, what was recorded, what is there now.

import { element, link } from "./dom.js";
import { line, toJson } from "./format.js";
import { longText } from "./json_tree.js";
import { placeOf } from "./outline.js";
import { apart } from "./words_apart.js";

const LONGEST = 20_000; // Letters of a text that are compared word by word.

/** One difference: `{pointer, recorded?, live?, text?}`; a side that has nothing there is absent. */
export function differenceOf(one, { titles = ["recorded", "now"], place = null } = {}) {
  const [before, after] = [shown(one, "recorded"), shown(one, "live")];
  const [left, right] = sides(before, after);
  const side = (title, kind, content) =>
    element("div", { class: `side-of ${kind}` }, element("h4", {}, title), content);
  return element(
    "figure",
    { class: "difference" },
    element("figcaption", {}, one.pointer ? element("code", { class: "pointer" }, one.pointer) : null, place),
    element("div", { class: "sides" }, side(titles[0], "was", left), side(titles[1], "is", right)),
  );
}

const shown = (one, side) =>
  Object.hasOwn(one, side) ? (typeof one[side] === "string" ? one[side] : toJson(one[side], 2)) : null;

const nothing = () => element("p", { class: "dim" }, "nothing there");

function sides(before, after) {
  if (before === null || after === null || before.length + after.length > LONGEST) {
    return [before, after].map((text) => (text === null ? nothing() : longText(text, "said mono")));
  }
  const pieces = apart(before, after);
  const side = (own, tag) =>
    element(
      "div",
      { class: "said mono", dir: "auto" },
      pieces
        .filter(([kind]) => kind === "same" || kind === own)
        .map(([kind, text]) => (kind === "same" ? text : element(tag, {}, text))),
    );
  return [side("gone", "del"), side("new", "ins")];
}

/** A link to the row that a report means by path and number (`model call 2 of root`); null where there is none. */
export function calledLink(view, { subject, path, number }, label) {
  const row = calledRow(view, subject, path, number);
  return row && link(placeOf(view, row), {}, label ?? line(`${subject} ${number} of ${path}`, 80));
}

function calledRow(view, subject, path, number) {
  const run = view.outline.rows.find((row) => row.kind === "run" && row.value.path === path);
  if (!run || subject === "run") return run ?? null;
  const kinds = subject === "tool call" ? ["tool"] : ["model", "side"];
  return (
    view.outline.rows.slice(run.number + 1, run.end).filter((row) => row.runRow === run && kinds.includes(row.kind))[
      number - 1
    ] ?? run
  );
}
