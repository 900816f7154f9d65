// Small signs that stand at many places: how something ended, what did not come whole, what kind of call it is.

import { element } from "./dom.js";
import { STATUS, STATUS_MEANS, TOOL_KIND, fidelity, losses, mark } from "./words.js";

export const pill = (status) =>
  element(
    "span",
    { class: `pill ${STATUS.has(status) ? status : ""}`, title: STATUS_MEANS.get(status) },
    STATUS.get(status) ?? status,
  );

/** Nothing where all is well: then there is nothing to say. */
export const state = (status) => (status && status !== "ok" ? pill(status) : null);

/** The fields that did not come whole, in two words each. */
export const marks = (states) =>
  losses(states).map(([name, how]) =>
    element(
      "span",
      { class: `mark ${how === "reconstructed" ? "faint" : ""}`, title: fidelity(name, how) },
      `${name} ${mark(how)}`,
    ),
  );

const SIGNS = new Map([
  ["run", "\u25b7"],
  ["turn", "\u00b7"],
  ["model", "\u25c6"],
  ["side", "\u25c7"],
  ["tool", "\u2692"],
]);

/** The sign of a row's kind; colours say the same. */
export function sign(row) {
  const shown =
    row.value.kind === "handoff" ? "\u21aa" : row.value.kind === "retriever" ? "\u2315" : SIGNS.get(row.kind);
  return element("span", { class: `sign ${row.kind}`, "aria-hidden": "true" }, shown);
}

/** What a row is, in words. */
export const kindOf = (row) =>
  row.kind === "tool"
    ? (TOOL_KIND.get(row.value.kind) ?? "tool")
    : { run: "run", turn: "turn", model: "model call", side: "side call" }[row.kind];

/** Why something failed, as one line. */
export const failure = (error) =>
  error &&
  element(
    "p",
    { class: "failure" },
    element("strong", {}, error.category ?? "error"),
    error.type ? ` \u00b7 ${error.type}` : "",
    error.message ? `: ${error.message}` : "",
  );
