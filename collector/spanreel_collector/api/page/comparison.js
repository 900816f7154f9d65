// Two sessions beside each other: what differs, and then step by step.

import { read, sessionPath } from "./client.js";
import { differenceOf } from "./differences.js";
import { element, inPortions, link, replace } from "./dom.js";
import { brief, duration, line, plural, when } from "./format.js";
import { sign, state } from "./marks.js";
import { textOf } from "./messages.js";
import { outlineOf, placeOf } from "./outline.js";

const SHOWN = 200;

/** Draws another session beside this one: what differs, and then step by step. */
export async function showComparison(content, view) {
  const other = view.asked.with;
  const field = element("input", {
    name: "with",
    value: other ?? view.document.baseline ?? "",
    placeholder: "s-\u2026",
    size: 24,
    spellcheck: "false",
    autocomplete: "off",
    id: "with",
  });
  const form = element(
    "form",
    {
      class: "compare-form",
      on: {
        submit: (event) => {
          event.preventDefault();
          view.ask({ view: "compare", with: idIn(field.value.trim()) });
        },
      },
    },
    element("label", { for: "with" }, "Compare with the session"),
    field,
    element("button", { class: "primary" }, "Compare"),
    element("span", { class: "dim" }, " its id, or the address of its page"),
  );
  const box = element("div", {}, other && element("p", { class: "dim", role: "status" }, "Comparing"));
  replace(content, element("section", { class: "comparison", "aria-label": "Comparison" }, form, box));
  if (!other) {
    await offer(box, view);
    return;
  }
  try {
    const { signal } = view.aborter;
    const [answer, found] = await Promise.all([
      read(sessionPath(view.id, "/compare"), { query: { with: other }, signal }),
      read(sessionPath(other), { signal }),
    ]);
    const { differences } = answer;
    const beside = { id: other, document: found, outline: outlineOf(found), asked: {} };
    replace(
      box,
      element(
        "h2",
        {},
        differences.length
          ? `${answer.cut ? "More than " : ""}${plural(differences.length, "difference")}`
          : "Nothing differs",
      ),
      inPortions(element("div", { class: "differences" }), differences, (one) => differing(view, beside, one), 20),
      element("h2", {}, "Step by step"),
      steps(view, beside),
    );
  } catch (error) {
    if (error.name !== "AbortError")
      replace(box, element("p", { class: "bad" }, error.status === 404 ? "There is no such session." : error.message));
  }
}

/** The id of a session in what somebody wrote: itself, or the address of its page or document. */
function idIn(text) {
  if (!URL.canParse(text) || !/^https?:/.test(text)) return text;
  const { searchParams, pathname } = new URL(text);
  const inPath = /\/api\/v1\/sessions\/([^/]+)/.exec(pathname)?.[1];
  return searchParams.get("session") ?? (inPath === undefined ? text : decodeURIComponent(inPath));
}

// Ids are nobody's to remember: what was made of this session, what this was made of, and the last of its agent.
async function offer(box, view) {
  const { id, baseline, runs } = view.document;
  const agent = runs?.[0]?.agent?.name;
  const asked = [{ baseline: id }, ...(baseline ? [{ baseline }] : []), agent ? { agent } : {}];
  try {
    const { signal } = view.aborter;
    const pages = await Promise.all(asked.map((query) => read("sessions", { query: { ...query, limit: 20 }, signal })));
    const found = new Map(pages.flatMap(({ sessions }) => sessions).map((session) => [session.id, session]));
    found.delete(view.id);
    if (!found.size) return;
    replace(
      box,
      element("h2", {}, "Or with one of these"),
      element("ul", { class: "candidates" }, ...[...found.values()].slice(0, 20).map((one) => candidate(view, one))),
    );
  } catch (error) {
    if (error.name !== "AbortError") replace(box);
  }
}

function candidate(view, one) {
  const { id, baseline } = view.document;
  const kin = one.id === baseline ? "its baseline" : one.baseline === id ? "a replay of it" : null;
  return element(
    "li",
    {},
    link(
      { session: id, view: "compare", with: one.id },
      { class: "words", dir: "auto" },
      line(one.opening || one.name || one.id, 120),
    ),
    kin && element("span", { class: "tag replay" }, kin),
    element("span", { class: "dim" }, [when(one.started), one.agents?.length && line(one.agents[0], 60)].filter(Boolean).join(" \u00b7 ")),
    state(one.status),
  );
}

function differing(view, beside, one) {
  const [here, there] = [view, beside].map((side, number) => [side, side.outline.at(one.places?.[number])]);
  const links = [here, there].map(
    ([side, row], number) => row && link(placeOf(side, row), {}, number ? "open the other" : "open this one"),
  );
  const what = element(
    "strong",
    {},
    line(`${one.subject} ${one.number || ""} of ${one.path}`, 120),
    one.name ? ` (${line(one.name, 60)})` : "",
  );
  if (one.difference)
    return differenceOf(one.difference, { titles: ["this session", "the other"], place: [what, links] });
  return element(
    "figure",
    { class: "difference" },
    element("figcaption", {}, what, one.places?.[1] ? "only in the other session" : "only in this session", links),
  );
}

// Rows stand beside each other that are at the same place of the same run; both sides go through in their own order.
function steps(view, beside) {
  const [left, right] = [view, beside].map(
    (side) => new Map(side.outline.rows.filter((row) => row.kind !== "turn").map((row) => [placeKey(row), row])),
  );
  const keys = [...new Set([...left.keys(), ...right.keys()])];
  const box = element(
    "div",
    { class: "steps" },
    element(
      "div",
      { class: "step top" },
      element("strong", {}, line(view.id, 40)),
      link({ session: beside.id }, {}, line(beside.id, 40)),
    ),
  );
  return inPortions(
    box,
    keys,
    (key) => {
      const [a, b] = [left.get(key), right.get(key)];
      const same = a && b && summary(view, a) === summary(beside, b);
      return element("div", { class: `step ${same ? "" : "differs"}` }, cellOf(view, a), cellOf(beside, b));
    },
    SHOWN,
  );
}

const placeKey = (row) => `${row.runRow.value.path} ${row.pointer.replace(/^\/runs\/\d+/, "")}`;

const cellOf = (side, row) =>
  row
    ? element(
        "div",
        { class: "cell" },
        element(
          "div",
          { class: "line" },
          link(placeOf(side, row), {}, sign(row), " ", line(row.title, 60)),
          state(row.status),
          row.started !== null &&
            row.ended !== null &&
            element("span", { class: "fact" }, duration(row.ended - row.started)),
        ),
        element("p", { class: "peek", dir: "auto" }, line(summary(side, row), 300)),
      )
    : element("div", { class: "cell dim" }, "nothing here");

function summary(side, row) {
  const { value } = row;
  const messages = (indexes) => (indexes ?? []).map((index) => textOf(side.document.messages[index])).join(" ");
  if (row.kind === "tool")
    return `${row.title} ${brief(value.arguments ?? value.requested ?? null, 2000)} \u2192 ${value.error ? (value.error.message ?? value.error.type) : brief(value.result ?? null, 2000)}`;
  return row.kind === "run" ? `${messages(value.input)} \u2192 ${messages(value.output)}` : messages(value.output);
}
