// All that is known of one row: settings, values, errors, usage, what did not come whole, and what a replay would do.

import { modelSections, toolSections } from "./call_sections.js";
import { button, copy, element, link, notify, replace } from "./dom.js";
import { evaluationsSection } from "./evaluations.js";
import { duration, plural, precisely } from "./format.js";
import { jsonTree } from "./json_tree.js";
import { failure, kindOf, sign, state } from "./marks.js";
import { messageOf } from "./messages.js";
import { placeOf } from "./outline.js";
import { rawSpan } from "./raw_spans.js";
import { facts, objectSection, section, valueSection } from "./sections.js";
import { FORECAST, STATUS_MEANS, fidelity, losses } from "./words.js";

/** The content of the panel: nodes. `go` selects another row. */
export function detailOf(view, row, close, go) {
  const { value } = row;
  const sections = {
    run: runSections,
    turn: turnSections,
    model: modelSections,
    side: modelSections,
    tool: toolSections,
  }[row.kind](view, row, go);
  return [
    element(
      "header",
      { class: "detail-head" },
      sign(row),
      element("h2", { dir: "auto" }, row.title),
      element("span", { class: "dim" }, kindOf(row)),
      state(row.status),
      link(placeOf(view, row), { class: "small", title: "The address of this call" }, "#"),
      button("\u2715", close, { class: "quiet", "aria-label": "Close the details" }),
    ),
    STATUS_MEANS.has(row.status) && row.kind !== "turn" && element("p", { class: "dim" }, STATUS_MEANS.get(row.status)),
    failure(value.error),
    lossList(value),
    foretell(view, row, element("p", { class: "forecast" })),
    facts(timing(row)),
    evaluationsSection(value.evaluations),
    sections.filter(Boolean),
    row.kind !== "turn" && rawSection(view, value),
  ];
}

function timing(row) {
  const length = row.started !== null && row.ended !== null ? duration(Math.max(0, row.ended - row.started)) : null;
  return [
    ["Took", length],
    ["Started", clock(row.value.started_at)],
    [
      "Ended",
      clock(row.value.ended_at) ?? (row.kind === "turn" || row.started === null ? null : "no end was recorded"),
    ],
  ];
}

const clock = (text) => (text ? element("time", { title: text }, precisely(text)) : null);

function lossList(value) {
  const lost = losses(value.fidelity);
  return (
    lost.length > 0 &&
    element(
      "ul",
      { class: "losses" },
      lost.map(([name, how]) => element("li", { class: how }, fidelity(name, how))),
    )
  );
}

/** What a replay would do at this row, into its line; what stands around it in the panel stays as somebody has it. */
export function foretell(view, row, line) {
  const found = view.forecast.get(row.pointer);
  line.hidden = !found;
  if (!found) return line;
  line.classList.add(found.outcome === "answered" || found.outcome === "inside" ? "good" : "bad");
  const reason = found.reason ? ` (${found.reason})` : "";
  return replace(line, element("strong", {}, "In a replay: "), FORECAST.get(found.outcome) ?? found.outcome, reason, ".");
}

// -- runs, turns -----------------------------------------------------------------------------------------------------

function runSections(view, row, go) {
  const { value: run } = row;
  const messages = view.document.messages;
  const list = (title, indexes) =>
    indexes?.length > 0 &&
    section(
      title,
      indexes.map((index) => messageOf(messages[index], { calls: true, folded: false })),
    );
  const models = view.outline.rows
    .slice(row.number + 1, row.end)
    .filter((one) => one.kind === "model" || one.kind === "side").length;
  const tools = view.outline.rows.slice(row.number + 1, row.end).filter((one) => one.kind === "tool").length;
  return [
    facts([
      ["Agent", run.agent?.name],
      ["Agent id", run.agent?.id],
      ["Version", run.agent?.version],
      ["Asked by", run.user_id],
      ["Path", run.path],
      ["Run", run.id],
      ["Trace", run.trace_id],
      ["Inside", `${plural(models, "model call")}, ${plural(tools, "tool call")}`],
      ["Ordered by", { cause: "cause", start: "start times", arrival: "arrival" }[run.order]],
      [
        "Made by",
        row.parent && button(`${kindOf(row.parent)} ${row.parent.title}`, () => go(row.parent), { class: "small" }),
      ],
    ]),
    list("Asked", run.input),
    list("Gave back", run.output),
    run.result !== undefined &&
      typeof run.result === "object" &&
      valueSection("Result, as the program got it", run.result),
    run.entrypoint && objectSection("How it was called", run.entrypoint),
  ];
}

function turnSections(view, row, go) {
  const inside = view.outline.rows.slice(row.number + 1, row.end).filter((one) => one.parent === row);
  return [
    section(
      "In this turn",
      element(
        "ul",
        { class: "plain" },
        inside.map((one) =>
          element(
            "li",
            {},
            button([sign(one), ` ${one.title}`], () => go(one), { class: "small" }),
            " ",
            state(one.status),
          ),
        ),
      ),
    ),
  ];
}

// -- raw spans -------------------------------------------------------------------------------------------------------

function rawSection(view, value) {
  const box = element("div", {});
  const open = button(
    "Show the raw span",
    async () => {
      open.disabled = true;
      try {
        const found = await rawSpan(view, value.id);
        replace(
          box,
          found
            ? element("div", { class: "boxed" }, jsonTree(found, "raw span", 2))
            : element(
                "p",
                { class: "dim" },
                "No span has this id: the call was put together from what other spans tell. \u201cActions\u201d export all raw spans of the session.",
              ),
        );
        open.remove();
      } catch (error) {
        open.disabled = false;
        if (error.name !== "AbortError") notify(error.message, "bad");
      }
    },
    { class: "small" },
  );
  return section(
    "As it came",
    element(
      "p",
      {},
      open,
      " ",
      button("Copy the id", () => copy(value.id ?? ""), { class: "small" }),
    ),
    box,
  );
}
