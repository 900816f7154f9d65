// Words looked for in one session, also in what is not drawn.

import { button, element, replace } from "./dom.js";
import { brief, exact } from "./format.js";
import { textOf } from "./messages.js";

/** `{element, open()}`; `show(row)` is told what was found. */
export function finder(talk, show) {
  const field = element("input", {
    type: "search",
    placeholder: "Find in this session",
    "aria-label": "Find in this session",
    autocomplete: "off",
    spellcheck: "false",
  });
  const count = element("span", { class: "dim", role: "status" });
  let found = [];
  let at = -1;
  const step = (by) => {
    if (!found.length) return;
    at = (at + by + found.length) % found.length;
    replace(count, `${exact(at + 1)} of ${exact(found.length)}`);
    talk.choose(found[at]);
    show(found[at]);
  };
  const look = () => {
    const words = field.value.toLowerCase().trim();
    found = words ? talk.view.outline.rows.filter((row) => haystack(talk, row).includes(words)) : [];
    at = -1;
    replace(count, words ? (found.length ? `${exact(found.length)} found` : "nothing found") : "");
  };
  field.addEventListener("input", look);
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") step(event.shiftKey ? -1 : 1);
  });
  const bar = element(
    "div",
    { class: "finder", role: "search" },
    field,
    count,
    button("\u2191", () => step(-1), { "aria-label": "The one before" }),
    button("\u2193", () => step(1), { "aria-label": "The next" }),
  );
  return { element: bar, open: () => field.select() };
}

function haystack(talk, row) {
  if (row.haystack === undefined) {
    const { value } = row;
    const messages = [
      ...row.fresh,
      ...(row.kind === "model" || row.kind === "side" ? (value.output ?? []) : []),
      ...row.ending,
    ];
    const values =
      row.kind === "tool"
        ? [value.arguments, value.result].map((one) => (one === undefined ? "" : brief(one, 4000)))
        : [];
    const error = value.error ? Object.values(value.error).join(" ") : "";
    row.haystack = [
      row.title,
      row.kind === "turn" ? "" : value.id,
      error,
      ...values,
      ...messages.map((index) => textOf(talk.view.document.messages[index])),
    ]
      .join(" ")
      .toLowerCase();
  }
  return row.haystack;
}
