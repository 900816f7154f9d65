// A session as a row of the list.

import { element, link } from "./dom.js";
import { compact, duration, exact, lengthOf, line, money, plural, when } from "./format.js";
import { pill } from "./marks.js";

export const COLUMNS = [
  ["Opening words", "opening"],
  ["Agent", "agent"],
  ["Status", "status"],
  ["Started", "started"],
  ["Took", "number lasted"],
  ["Model", "model"],
  ["Calls", "number calls"],
  ["Tokens", "number"],
  ["Cost", "number"],
  ["Rev.", "number"],
];

/** The row; `fresh` where it has just changed. */
export function rowOf(session, fresh) {
  const agents = session.agents ?? [];
  const calls = `${plural(session.model_calls, "model call")}, ${plural(session.tool_calls, "tool call")}, ${plural(session.runs, "run")}`;
  const tokens =
    session.input_tokens === null && session.output_tokens === null
      ? null
      : (session.input_tokens ?? 0) + (session.output_tokens ?? 0);
  const cell = (kind, label, ...children) => element("td", { class: kind, "data-label": label }, ...children);
  return element(
    "tr",
    { class: fresh ? "fresh" : "" },
    element(
      "td",
      { class: "opening" },
      element(
        "div",
        { class: "first" },
        link(
          { session: session.id },
          { class: "words", dir: "auto" },
          line(session.opening || session.name || session.id, 220),
        ),
        element(
          "span",
          { class: "tags" },
          session.origin === "replay" && element("span", { class: "tag replay" }, "replay"),
          !session.eligible &&
            element(
              "span",
              { class: "tag faint", title: "An offline replay cannot be exact; the session says why" },
              "not exact",
            ),
          (session.tags ?? []).slice(0, 6).map((tag) => element("span", { class: "tag" }, line(tag, 40))),
          (session.tags ?? []).length > 6 &&
            element("span", { class: "tag faint" }, `${session.tags.length - 6} more tags`),
          session.user && element("span", { class: "user", title: `user ${session.user}` }, line(session.user, 40)),
          (session.users ?? []).length > 1 &&
            element(
              "span",
              { class: "tag faint", title: session.users.slice(0, 20).join(", ") },
              `${session.users.length - 1} more users`,
            ),
        ),
      ),
      session.failure && element("div", { class: "why", dir: "auto" }, line(session.failure, 200)),
    ),
    cell(
      "agent",
      "Agent",
      several(agents),
      session.versions?.length ? element("span", { class: "dim" }, ` ${line(session.versions.join(", "), 24)}`) : null,
    ),
    cell("status", "Status", pill(session.status)),
    cell(
      "started",
      "Started",
      element("time", { datetime: session.started, title: session.started }, when(session.started)),
    ),
    cell("number lasted", "Took", lasted(session)),
    cell("model", "Model", several(session.models ?? [])),
    cell(
      "number calls",
      "Calls",
      element(
        "span",
        { title: calls },
        `${compact(session.model_calls)} model`,
        session.tool_calls > 0 && `, ${compact(session.tool_calls)} tool`,
      ),
    ),
    cell(
      `number ${tokens === null ? "none" : ""}`,
      "Tokens",
      element(
        "span",
        {
          title:
            tokens === null ? "nobody said" : `${exact(session.input_tokens)} in, ${exact(session.output_tokens)} out`,
        },
        compact(tokens),
      ),
    ),
    cell(`number ${session.cost === null || session.cost === undefined ? "none" : ""}`, "Cost", money(session.cost)),
    cell(`number revision ${session.revision === 1 ? "none" : ""}`, "Revision", String(session.revision)),
  );
}

// The end of a session is the last that a run of it had; a run without one may have begun later.
const lasted = (session) => {
  const length = lengthOf(session.started, session.ended);
  if (length === null || session.status !== "unfinished") return duration(length);
  return element("span", { title: "Or longer: a run of it has no end" }, `> ${duration(length)}`);
};

const several = (names) =>
  names.length > 0
    ? element(
        "span",
        { title: names.join(", ") },
        line(names[0], 48),
        names.length > 1 && element("span", { class: "dim" }, ` +${names.length - 1}`),
      )
    : "\u2013";
