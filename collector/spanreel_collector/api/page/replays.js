// What replays of a session found, each beside its baseline; and two sessions beside each other.

import { read, sessionPath } from "./client.js";
import { calledLink, differenceOf } from "./differences.js";
import { element, link, replace } from "./dom.js";
import { brief, duration, exact, line, plural, when } from "./format.js";
import { jsonTree } from "./json_tree.js";
import { sign, state } from "./marks.js";
import { textOf } from "./messages.js";
import { outlineOf, placeOf } from "./outline.js";
import { OUTCOME } from "./words.js";

const SHOWN = 200;

// -- reports ---------------------------------------------------------------------------------------------------------

/** Draws the list of reports, and the one that the address names (else the newest). */
export function showReplays(content, view) {
  const { reports } = view;
  if (!reports.length) {
    replace(content, element("div", { class: "empty" }, element("p", {}, "No replay of this session was reported yet."),
      element("p", { class: "dim" }, "Replay it with --report FILE, and send the file to ", element("code", {}, `POST /api/v1/sessions/${view.id}/reports`), ".")));
    return;
  }
  const opened = reports.find((one) => String(one.id) === view.asked.report) ?? reports[0];
  replace(content, element("div", { class: "replays" },
    element("nav", { class: "reports", "aria-label": "Replays" }, reports.map((one) => {
      const report = documentOf(one);
      return link({ ...view.asked, view: "replays", report: one.id }, { class: "report-link", "aria-current": one === opened ? "true" : null },
        verdict(one.verdict ?? report.verdict), element("span", {}, when(one.at)), element("span", { class: "dim" }, line(report.reasons?.[0] ?? "every call was answered", 90)));
    })),
    reportOf(view, documentOf(opened), opened)));
}

const documentOf = (one) => one.report;

const verdict = (word) => element("span", { class: `verdict-pill ${{ PASS: "good", FAIL: "bad", INCONCLUSIVE: "unsure" }[word] ?? "bad"}` }, word ?? "?");

function reportOf(view, report, entry) {
  const first = report.first_divergence;
  const differing = (report.runs ?? []).filter((run) => run.difference);
  return element("section", { class: "report", "aria-label": "The replay\u2019s report" },
    element("h2", {}, verdict(report.verdict), " ", headline(report)),
    element("p", { class: "dim" }, [`reported ${when(entry.at)}`, report.run ? `run ${report.run}` : "all runs", `of revision ${report.revision ?? "?"}`].join(" \u00b7 ")),
    first && element("section", {}, element("h3", {}, "What became different first"), element("p", {}, line(`${first.subject} ${first.number || ""} of ${first.path}`, 120), first.name ? ` (${line(first.name, 60)})` : "", ": ", MISSED.get(first.reason) ?? first.reason),
      differenceOf(first, { titles: ["recorded", "in the replay"], place: calledLink(view, nearest(first), "open the recorded call") })),
    differing.length > 0 && element("section", {}, element("h3", {}, "Outcomes that differ"), differing.slice(0, SHOWN).map((run) => differenceOf(run.difference, { titles: ["recorded", "in the replay"], place: runLink(view, run) }))),
    listed("Why", report.reasons?.length > 1 || !first ? report.reasons : []),
    runsTable(view, report), countsTable(report),
    listed("What was changed", report.changed), listed("Ran for real", report.live_tools), listed("Recorded and not made again", report.unused, (text) => named(view, text)), listed("Order", report.order),
    listed("Could be one or the other", report.ambiguous), listed("Answered after a write that was not as recorded", report.stale), listed("Answered with placeholders", report.redacted),
    listed("Not whole in the recording, so not compared", Object.entries(report.uncompared ?? {}).map(([name, count]) => `${name}: ${exact(count)}`)), listed("Notes", report.notes),
    element("details", {}, element("summary", {}, "The report as it is"), jsonTree(report, "report")));
}

const MISSED = new Map([
  ["diverged", "what was asked is not what was recorded"],
  ["outcome", "it ended with something else"],
  ["exhausted", "it was asked once more than was recorded"],
  ["unknown", "nothing like it was recorded"],
  ["forbidden", "it would have changed something in the world, and may not run"],
  ["lossy", "the recording lacks what it takes to answer"],
]);

function headline(report) {
  const answered = (report.model_calls?.matched ?? 0) + (report.tool_calls?.matched ?? 0);
  const live = (report.model_calls?.live ?? 0) + (report.tool_calls?.live ?? 0);
  const said = `${plural(answered, "call")} answered from the recording${live ? `, ${exact(live)} live` : ""}`;
  return { PASS: `Nothing became different: ${said}`, FAIL: `It became different: ${said}`, INCONCLUSIVE: "Nothing differs, but the recording cannot vouch for it" }[report.verdict]
    ?? "Something went past the replay";
}

// A report says which recorded call was most alike; that is the one to look at.
function nearest(first) {
  const found = /^(model call|tool call) (\d+) of (\S+)/.exec(first.nearest ?? "");
  return found ? { subject: found[1], number: Number(found[2]), path: found[3] } : { subject: first.subject, number: first.number, path: first.path };
}

function named(view, text) {
  const found = /^(model call|tool call) (\d+) of (\S+)/.exec(text);
  return (found && calledLink(view, { subject: found[1], number: Number(found[2]), path: found[3] }, line(text, 160))) || text;
}

function runLink(view, run) {
  const row = view.outline.rows.find((one) => one.kind === "run" && one.value.id === run.id);
  return row ? link(placeOf(view, row), {}, line(`${run.agent ?? "run"} ${run.path}`, 80)) : line(run.path, 80);
}

const listed = (title, items, draw = (text) => String(text)) => items?.length > 0 && element("section", {}, element("h3", {}, title),
  element("ul", {}, items.slice(0, SHOWN).map((one) => element("li", { dir: "auto" }, draw(one)))), items.length > SHOWN && element("p", { class: "dim" }, `${SHOWN} of ${exact(items.length)} shown; the report below has all`));

const runsTable = (view, report) => report.runs?.length > 0 && element("section", {}, element("h3", {}, "Runs"), element("table", { class: "plain-table" },
  element("thead", {}, element("tr", {}, ["Run", "Outcome"].map((label) => element("th", { scope: "col" }, label)))),
  element("tbody", {}, report.runs.slice(0, SHOWN).map((run) => element("tr", {}, element("td", {}, runLink(view, run)), element("td", { class: run.outcome === "same" ? "good" : run.outcome === "differs" ? "bad" : "" }, OUTCOME.get(run.outcome) ?? run.outcome))))),
report.runs.length > SHOWN && element("p", { class: "dim" }, `${SHOWN} of ${exact(report.runs.length)} shown`));

const COUNTS = [["recorded", "recorded"], ["matched", "answered"], ["missed", "not found"], ["unused", "not made again"], ["not_reached", "not reached"], ["covered", "inside answered tools"], ["live", "live"], ["replaced", "replaced by live"]];

function countsTable(report) {
  const kinds = [["model calls", report.model_calls], ["tool calls", report.tool_calls]].filter(([, counts]) => counts);
  const columns = COUNTS.filter(([name]) => name === "recorded" || name === "matched" || kinds.some(([, counts]) => counts[name]));
  const { recorded, served, live } = report.tokens ?? {};
  const sum = (side) => (side ? `${exact(side.input_tokens)} in, ${exact(side.output_tokens)} out` : "\u2013");
  return element("section", {}, element("h3", {}, "Calls and tokens"), element("table", { class: "plain-table" },
    element("thead", {}, element("tr", {}, element("td", {}), columns.map(([, label]) => element("th", { scope: "col" }, label)))),
    element("tbody", {}, kinds.map(([label, counts]) => element("tr", {}, element("th", { scope: "row" }, label), columns.map(([name]) => element("td", { class: "number" }, exact(counts[name] ?? 0))))))),
  report.tokens && element("p", { class: "dim" }, `Tokens: recorded ${sum(recorded)}; answered from the recording ${sum(served)}${live?.input_tokens || live?.output_tokens ? `; live ${sum(live)}` : ""}`));
}

// -- two sessions ----------------------------------------------------------------------------------------------------

/** Draws another session beside this one: what differs, and then step by step. */
export async function showComparison(content, view) {
  const other = view.asked.with;
  const field = element("input", { name: "with", value: other ?? view.document.baseline ?? "", placeholder: "s-\u2026", size: 24, spellcheck: "false", autocomplete: "off", id: "with" });
  const form = element("form", { class: "compare-form", on: { submit: (event) => { event.preventDefault(); view.ask({ view: "compare", with: field.value.trim() }); } } },
    element("label", { for: "with" }, "Compare with the session"), field, element("button", { class: "primary" }, "Compare"),
    element("span", { class: "dim" }, " its id, as in the address of its page"));
  const box = element("div", {}, other && element("p", { class: "dim", role: "status" }, "Comparing"));
  replace(content, element("section", { class: "comparison", "aria-label": "Comparison" }, form, box));
  if (!other) return;
  try {
    const { signal } = view.aborter;
    const [answer, found] = await Promise.all([read(sessionPath(view.id, "/compare"), { query: { with: other }, signal }), read(sessionPath(other), { signal })]);
    const { differences } = answer;
    const beside = { id: other, document: found, outline: outlineOf(found), asked: {} };
    replace(box, element("h2", {}, differences.length ? `${plural(differences.length, "difference")}` : "Nothing differs"),
      differences.slice(0, SHOWN).map((one) => differing(view, beside, one)),
      (differences.length > SHOWN || answer.cut) && element("p", { class: "dim" }, `${exact(Math.min(SHOWN, differences.length))} of ${answer.cut ? "more than " : ""}${exact(differences.length)} shown`),
      element("h2", {}, "Step by step"), steps(view, beside));
  } catch (error) {
    if (error.name !== "AbortError") replace(box, element("p", { class: "bad" }, error.status === 404 ? "There is no such session." : error.message));
  }
}

function differing(view, beside, one) {
  const [here, there] = [view, beside].map((side, number) => [side, side.outline.at(one.places?.[number])]);
  const links = [here, there].map(([side, row], number) => row && link(placeOf(side, row), {}, number ? "open the other" : "open this one"));
  const what = element("strong", {}, line(`${one.subject} ${one.number || ""} of ${one.path}`, 120), one.name ? ` (${line(one.name, 60)})` : "");
  if (one.difference) return differenceOf(one.difference, { titles: ["this session", "the other"], place: [what, links] });
  return element("figure", { class: "difference" }, element("figcaption", {}, what, one.places?.[1] ? "only in the other session" : "only in this session", links));
}

// Rows stand beside each other that are at the same place of the same run; both sides go through in their own order.
function steps(view, beside) {
  const [left, right] = [view, beside].map((side) => new Map(side.outline.rows.filter((row) => row.kind !== "turn").map((row) => [placeKey(row), row])));
  const keys = [...new Set([...left.keys(), ...right.keys()])];
  const box = element("div", { class: "steps" }, element("div", { class: "step top" }, element("strong", {}, line(view.id, 40)), link({ session: beside.id }, {}, line(beside.id, 40))));
  const draw = (from) => {
    box.append(...keys.slice(from, from + SHOWN).map((key) => {
      const [a, b] = [left.get(key), right.get(key)];
      const same = a && b && summary(view, a) === summary(beside, b);
      return element("div", { class: `step ${same ? "" : "differs"}` }, cellOf(view, a), cellOf(beside, b));
    }));
    if (from + SHOWN >= keys.length) return;
    const more = element("button", { type: "button", class: "more", on: { click: () => { more.remove(); draw(from + SHOWN); } } }, `${exact(from + SHOWN)} of ${exact(keys.length)} steps shown: more`);
    box.append(more);
  };
  draw(0);
  return box;
}

const placeKey = (row) => `${row.runRow.value.path} ${row.pointer.replace(/^\/runs\/\d+/, "")}`;

const cellOf = (side, row) => (row ? element("div", { class: "cell" }, element("div", { class: "line" }, link(placeOf(side, row), {}, sign(row), " ", line(row.title, 60)), state(row.status),
  row.started !== null && row.ended !== null && element("span", { class: "fact" }, duration(row.ended - row.started))), element("p", { class: "peek", dir: "auto" }, line(summary(side, row), 300))) : element("div", { class: "cell dim" }, "nothing here"));

function summary(side, row) {
  const { value } = row;
  const messages = (indexes) => (indexes ?? []).map((index) => textOf(side.document.messages[index])).join(" ");
  if (row.kind === "tool") return `${row.title} ${brief(value.arguments ?? value.requested ?? null, 2000)} \u2192 ${value.error ? value.error.message ?? value.error.type : brief(value.result ?? null, 2000)}`;
  return row.kind === "run" ? `${messages(value.input)} \u2192 ${messages(value.output)}` : messages(value.output);
}
