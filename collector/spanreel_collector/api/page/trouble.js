// What went wrong in a session, and where: for who has ten seconds.

import { element, link } from "./dom.js";
import { line, plural } from "./format.js";
import { placeOf } from "./outline.js";
import { STATUS, STATUS_MEANS } from "./words.js";

const MOST = 3;

/** Why runs did not end well, each with the call that it came from; and how many calls failed on the way. */
export function trouble(view) {
  const { rows } = view.outline;
  const runs = rows.filter((row) => row.kind === "run" && !row.parent && row.status !== "ok");
  const origins = new Map(runs.map((run) => [run, originOf(rows, run)]));
  const known = new Set(origins.values());
  const others = rows.filter((row) => isCall(row) && row.value.error && !known.has(row));
  if (!runs.length && !others.length) return null;
  return element(
    "div",
    { class: "trouble", role: "group", "aria-label": "What went wrong" },
    runs.slice(0, MOST).map((run) => cause(view, run, origins.get(run))),
    runs.length > MOST && element("p", { class: "dim" }, `${plural(runs.length - MOST, "run")} more did not end well.`),
    others.length > 0 &&
      element(
        "p",
        { class: "dim" },
        `${plural(others.length, "call")} failed on the way, the first at `,
        link(placeOf(view, others[0]), { dir: "auto" }, line(others[0].title, 60)),
        ".",
      ),
  );
}

const isCall = (row) => row.kind !== "run" && row.kind !== "turn";

function cause(view, run, origin) {
  const { error } = run.value;
  const why = error && [error.category, error.type, error.message].filter(Boolean).join(" \u00b7 ");
  return element(
    "p",
    { class: run.status === "error" ? "bad" : "warn" },
    element("strong", { dir: "auto" }, line(run.title, 60)),
    ` ${STATUS.get(run.status) ?? run.status}: `,
    element("span", { dir: "auto" }, line(why || STATUS_MEANS.get(run.status) || "", 300)),
    " ",
    link(placeOf(view, origin ?? run), {}, origin ? `at ${line(origin.title, 60)}` : "open the run"),
  );
}

// The last call in a run that failed as the run did, or that like the run has no end.
function originOf(rows, run) {
  const { error } = run.value;
  const alike = ({ status, value }) =>
    error && value.error
      ? value.error.message === error.message || value.error.type === error.type
      : !error && status === run.status;
  return rows.slice(run.number + 1, run.end).findLast((row) => isCall(row) && alike(row));
}
