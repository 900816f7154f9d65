// What replays of a session found, each beside its baseline.

import { calledLink, differenceOf } from "./differences.js";
import { element, inPortions, link, replace } from "./dom.js";
import { replayCommands } from "./eligibility.js";
import { exact, line, plural, when } from "./format.js";
import { jsonTree } from "./json_tree.js";
import { placeOf } from "./outline.js";
import { OUTCOME } from "./words.js";

const SHOWN = 200;

/** Draws the list of reports, and the one that the address names (else the newest). */
export function showReplays(content, view) {
  const { reports } = view;
  if (!reports.length) {
    replace(
      content,
      element(
        "div",
        { class: "empty" },
        element("p", {}, "No replay of this session was reported yet."),
        element(
          "p",
          { class: "dim" },
          "This replays it and brings the report here, where the agent\u2019s code is:",
        ),
        replayCommands(view.document, " --post-report"),
      ),
    );
    return;
  }
  const opened = reports.find((one) => String(one.id) === view.asked.report) ?? reports[0];
  replace(
    content,
    element(
      "div",
      { class: "replays" },
      element(
        "nav",
        { class: "reports", "aria-label": "Replays" },
        reports.map((one) => {
          const report = documentOf(one);
          return link(
            { ...view.asked, view: "replays", report: one.id },
            { class: "report-link", "aria-current": one === opened ? "true" : null },
            verdict(one.verdict ?? report.verdict),
            element("span", {}, when(one.at)),
            element("span", { class: "dim" }, line(report.reasons?.[0] ?? "every call was answered", 90)),
          );
        }),
      ),
      reportOf(view, documentOf(opened), opened),
    ),
  );
}

const documentOf = (one) => one.report;

const verdict = (word) =>
  element(
    "span",
    { class: `verdict-pill ${{ PASS: "good", FAIL: "bad", INCONCLUSIVE: "unsure" }[word] ?? "bad"}` },
    word ?? "?",
  );

function reportOf(view, report, entry) {
  const first = report.first_divergence;
  const differing = (report.runs ?? []).filter((run) => run.difference);
  return element(
    "section",
    { class: "report", "aria-label": "The replay\u2019s report" },
    element("h2", {}, verdict(report.verdict), " ", headline(report)),
    element(
      "p",
      { class: "dim" },
      [
        `reported ${when(entry.at)}`,
        report.run ? `run ${report.run}` : "all runs",
        `of revision ${report.revision ?? "?"}`,
      ].join(" \u00b7 "),
    ),
    first &&
      element(
        "section",
        {},
        element("h3", {}, "What became different first"),
        element(
          "p",
          {},
          line(`${first.subject} ${first.number || ""} of ${first.path}`, 120),
          first.name ? ` (${line(first.name, 60)})` : "",
          ": ",
          MISSED.get(first.reason) ?? first.reason,
        ),
        differenceOf(first, {
          titles: ["recorded", "in the replay"],
          place: calledLink(view, nearest(first), "open the recorded call"),
        }),
      ),
    differing.length > 0 &&
      element(
        "section",
        {},
        element("h3", {}, "Outcomes that differ"),
        inPortions(
          element("div", { class: "differences" }),
          differing,
          (run) => differenceOf(run.difference, { titles: ["recorded", "in the replay"], place: runLink(view, run) }),
          20,
        ),
      ),
    listed("Why", report.reasons?.length > 1 || !first ? report.reasons : []),
    runsTable(view, report),
    countsTable(report),
    listed("What was changed", report.changed),
    listed("Ran for real", report.live_tools),
    listed("Recorded and not made again", report.unused, (text) => named(view, text)),
    listed("Order", report.order),
    listed("Could be one or the other", report.ambiguous),
    listed("Answered after a write that was not as recorded", report.stale),
    listed("Answered with placeholders", report.redacted),
    listed(
      "Not whole in the recording, so not compared",
      Object.entries(report.uncompared ?? {}).map(([name, count]) => `${name}: ${exact(count)}`),
    ),
    listed("Notes", report.notes),
    element("details", {}, element("summary", {}, "The report as it is"), jsonTree(report, "report")),
  );
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
  return (
    {
      PASS: `Nothing became different: ${said}`,
      FAIL: `It became different; ${said}`,
      INCONCLUSIVE: "Nothing differs, but the recording cannot vouch for it",
    }[report.verdict] ?? "Something went past the replay"
  );
}

// A report says which recorded call was most alike; that is the one to look at.
function nearest(first) {
  const found = /^(model call|tool call) (\d+) of (\S+)/.exec(first.nearest ?? "");
  return found
    ? { subject: found[1], number: Number(found[2]), path: found[3] }
    : { subject: first.subject, number: first.number, path: first.path };
}

function named(view, text) {
  const found = /^(model call|tool call) (\d+) of (\S+)/.exec(text);
  return (
    (found && calledLink(view, { subject: found[1], number: Number(found[2]), path: found[3] }, line(text, 160))) ||
    text
  );
}

function runLink(view, run) {
  const row = view.outline.rows.find((one) => one.kind === "run" && one.value.id === run.id);
  return row ? link(placeOf(view, row), {}, line(`${run.agent ?? "run"} ${run.path}`, 80)) : line(run.path, 80);
}

const listed = (title, items, draw = (text) => String(text)) =>
  items?.length > 0 &&
  element(
    "section",
    {},
    element("h3", {}, title),
    inPortions(element("ul", {}), items, (one) => element("li", { dir: "auto" }, draw(one)), SHOWN),
  );

const runsTable = (view, report) =>
  report.runs?.length > 0 &&
  element(
    "section",
    {},
    element("h3", {}, "Runs"),
    element(
      "table",
      { class: "plain-table" },
      element(
        "thead",
        {},
        element(
          "tr",
          {},
          ["Run", "Outcome"].map((label) => element("th", { scope: "col" }, label)),
        ),
      ),
      inPortions(
        element("tbody", {}),
        report.runs,
        (run) =>
          element(
            "tr",
            {},
            element("td", {}, runLink(view, run)),
            element(
              "td",
              { class: run.outcome === "same" ? "good" : run.outcome === "differs" ? "bad" : "" },
              OUTCOME.get(run.outcome) ?? run.outcome,
            ),
          ),
        SHOWN,
      ),
    ),
  );

const COUNTS = [
  ["recorded", "recorded"],
  ["matched", "answered"],
  ["missed", "not found"],
  ["unused", "not made again"],
  ["not_reached", "not reached"],
  ["covered", "inside answered tools"],
  ["live", "live"],
  ["replaced", "replaced by live"],
];

function countsTable(report) {
  const kinds = [
    ["model calls", report.model_calls],
    ["tool calls", report.tool_calls],
  ].filter(([, counts]) => counts);
  const columns = COUNTS.filter(
    ([name]) => name === "recorded" || name === "matched" || kinds.some(([, counts]) => counts[name]),
  );
  const { recorded, served, live } = report.tokens ?? {};
  const sum = (side) => (side ? `${exact(side.input_tokens)} in, ${exact(side.output_tokens)} out` : "\u2013");
  return element(
    "section",
    {},
    element("h3", {}, "Calls and tokens"),
    element(
      "table",
      { class: "plain-table" },
      element(
        "thead",
        {},
        element(
          "tr",
          {},
          element("td", {}),
          columns.map(([, label]) => element("th", { scope: "col" }, label)),
        ),
      ),
      element(
        "tbody",
        {},
        kinds.map(([label, counts]) =>
          element(
            "tr",
            {},
            element("th", { scope: "row" }, label),
            columns.map(([name]) => element("td", { class: "number" }, exact(counts[name] ?? 0))),
          ),
        ),
      ),
    ),
    report.tokens &&
      element(
        "p",
        { class: "dim" },
        `Tokens: recorded ${sum(recorded)}; answered from the recording ${sum(served)}${live?.input_tokens || live?.output_tokens ? `; live ${sum(live)}` : ""}`,
      ),
  );
}
