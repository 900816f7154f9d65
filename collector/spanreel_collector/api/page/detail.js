// All that is known of one row: settings, values, error, usage, what did not come whole, what a replay would do with it.

import { button, copy, element, link, notify, replace } from "./dom.js";
import { compact, duration, exact, money, plural, precisely, toJson } from "./format.js";
import { copyButton, jsonTree, longText } from "./json_tree.js";
import { failure, kindOf, sign, state } from "./marks.js";
import { folding, messageOf } from "./messages.js";
import { placeOf } from "./outline.js";
import { rawSpan } from "./raw_spans.js";
import { FORECAST, STATUS_MEANS, fidelity, losses } from "./words.js";

/** The content of the panel: nodes. `go` selects another row. */
export function detailOf(view, row, close, go) {
  const { value } = row;
  const sections = { run: runSections, turn: turnSections, model: modelSections, side: modelSections, tool: toolSections }[row.kind](view, row, go);
  return [element("header", { class: "detail-head" }, sign(row), element("h2", { dir: "auto" }, row.title), element("span", { class: "dim" }, kindOf(row)), state(row.status),
    link(placeOf(view, row), { class: "small", title: "The address of this call" }, "#"), button("\u2715", close, { class: "quiet", "aria-label": "Close the details" })),
  STATUS_MEANS.has(row.status) && row.kind !== "turn" && element("p", { class: "dim" }, STATUS_MEANS.get(row.status)),
  failure(value.error), lossList(value), forecastOf(view, row), facts(timing(row)), sections.filter(Boolean),
  row.kind !== "turn" && rawSection(view, value)];
}

function timing(row) {
  const length = row.started !== null && row.ended !== null ? duration(Math.max(0, row.ended - row.started)) : null;
  return [["Took", length], ["Started", clock(row.value.started_at)], ["Ended", clock(row.value.ended_at) ?? (row.kind === "turn" || row.started === null ? null : "no end was recorded")]];
}

const clock = (text) => (text ? element("time", { title: text }, precisely(text)) : null);

const facts = (pairs) => {
  const known = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== false);
  return known.length > 0 && element("dl", { class: "facts stacked" }, known.map(([name, value]) => element("div", {}, element("dt", {}, name),
    element("dd", { dir: "auto" }, value instanceof Node || Array.isArray(value) ? value : typeof value === "object" ? toJson(value) : String(value)))));
};

const section = (title, ...content) => element("section", {}, element("h3", {}, title), ...content);

function lossList(value) {
  const lost = losses(value.fidelity);
  return lost.length > 0 && element("ul", { class: "losses" }, lost.map(([name, how]) => element("li", { class: how }, fidelity(name, how))));
}

function forecastOf(view, row) {
  const found = view.forecast.get(row.pointer);
  return found && element("p", { class: `forecast ${found.outcome === "answered" || found.outcome === "inside" ? "good" : "bad"}` },
    element("strong", {}, "In a replay: "), FORECAST.get(found.outcome) ?? found.outcome, found.reason ? ` (${found.reason})` : "", ".");
}

/** A value of any size with its name and a button that copies it. */
function valueSection(title, value, note) {
  return element("section", {}, element("h3", {}, title, " ", copyButton(value)), note && element("p", { class: "dim" }, note),
    typeof value === "string" ? longText(value, "said mono boxed") : element("div", { class: "boxed" }, jsonTree(value, title)));
}

const objectSection = (title, value) => value && Object.keys(value).length > 0 && valueSection(title, value);

// -- runs, turns -----------------------------------------------------------------------------------------------------

function runSections(view, row, go) {
  const { value: run } = row;
  const messages = view.document.messages;
  const list = (title, indexes) => indexes?.length > 0 && section(title, indexes.map((index) => messageOf(messages[index], { calls: true, folded: false })));
  const models = view.outline.rows.slice(row.number + 1, row.end).filter((one) => one.kind === "model" || one.kind === "side").length;
  const tools = view.outline.rows.slice(row.number + 1, row.end).filter((one) => one.kind === "tool").length;
  return [facts([["Agent", run.agent?.name], ["Agent id", run.agent?.id], ["Version", run.agent?.version], ["Path", run.path], ["Run", run.id], ["Trace", run.trace_id],
    ["Inside", `${plural(models, "model call")}, ${plural(tools, "tool call")}`], ["Ordered by", { cause: "cause", start: "start times", arrival: "arrival" }[run.order]],
    ["Made by", row.parent && button(`${kindOf(row.parent)} ${row.parent.title}`, () => go(row.parent), { class: "small" })]]),
  list("Asked", run.input), list("Gave back", run.output),
  run.result !== undefined && typeof run.result === "object" && valueSection("Result, as the program got it", run.result),
  run.entrypoint && objectSection("How it was called", run.entrypoint)];
}

function turnSections(view, row, go) {
  const inside = view.outline.rows.slice(row.number + 1, row.end).filter((one) => one.parent === row);
  return [section("In this turn", element("ul", { class: "plain" }, inside.map((one) => element("li", {}, button([sign(one), ` ${one.title}`], () => go(one), { class: "small" }), " ", state(one.status)))))];
}

// -- model calls -----------------------------------------------------------------------------------------------------

function modelSections(view, row, go) {
  const { value: call } = row;
  const messages = view.document.messages;
  const chunks = call.chunks?.length;
  return [facts([["Model", call.model], ["Answered by", call.response_model !== call.model ? call.response_model : null], ["Provider", call.provider], ["Protocol", call.protocol],
    ["Ended by", (call.finish_reasons ?? []).join(", ")], ["Streamed", call.streamed && (chunks ? plural(chunks, "chunk") : "yes")], ["HTTP status", call.http_status],
    ["Cost", call.cost?.usd !== undefined ? money(call.cost.usd) : null], ["Call", call.id], ["Answer\u2019s id", call.response_id], ["Operation", call.operation !== "chat" ? call.operation : null]]),
  usageSection(call.usage),
  call.complete === false && element("p", { class: "failure" }, "The stream was cut off before its end."),
  (call.warnings ?? []).length > 0 && section("Warnings", element("ul", {}, call.warnings.map((one) => element("li", {}, one)))),
  section("Answer", answerOf(call, messages)),
  askedSection(call, messages), objectSection("Settings", call.settings), toolsSection(view, call), attemptsSection(call),
  call.guardrails?.length > 0 && valueSection("Guardrails", call.guardrails),
  objectSection("Other fields of the request", call.request_fields), objectSection("Other fields of the answer", call.provider_fields)];
}

function answerOf(call, messages) {
  if (call.output?.length) return call.output.map((index) => messageOf(messages[index], { calls: true, folded: false }));
  return element("p", { class: "dim" }, call.fidelity?.output === "absent" ? "The answer was not recorded." : "There is no answer.");
}

function askedSection(call, messages) {
  const count = call.input?.length ?? 0;
  if (!count) return null;
  return section(`Asked with ${plural(count, "message")}`, folding("valued", ["All that this request held, oldest first"], () => portion(call.input, (index) => messageOf(messages[index], { calls: true, folded: true }))));
}

function toolsSection(view, call) {
  const count = call.tools?.length ?? 0;
  return count > 0 && section(`${plural(count, "tool")} on offer`, element("div", {}, call.tools.slice(0, 100).map((index) => view.document.tools?.[index]).filter(Boolean).map((tool) =>
    folding("valued", [element("strong", {}, tool.name ?? tool.type ?? "tool"), element("span", { class: "peek" }, ` ${tool.description ?? ""}`)], () => jsonTree(tool, "tool definition")))),
  count > 100 && element("p", { class: "dim" }, `100 of ${exact(count)} shown`));
}

const USAGE = [["input_tokens", "in"], ["cache_read_tokens", "of these from cache"], ["cache_write_tokens", "of these into cache"], ["output_tokens", "out"], ["reasoning_tokens", "of these reasoning"]];

function usageSection(usage) {
  const known = USAGE.filter(([name]) => typeof usage?.[name] === "number");
  return known.length > 0 && section("Tokens", element("dl", { class: "facts" }, known.map(([name, label]) => element("div", {}, element("dt", {}, label), element("dd", { title: exact(usage[name]) }, usage[name] > 99_999 ? compact(usage[name]) : exact(usage[name]))))));
}

function attemptsSection(call) {
  const attempts = call.attempts ?? [];
  if (attempts.length < 2) return null;
  return section(`${attempts.length} attempts`, element("ol", { class: "attempts" }, attempts.slice(0, 100).map((one) =>
    element("li", {}, `${one.status ?? "no answer"}`, one.started_at ? `, ${one.started_at}` : "", one.error && failure(one.error)))));
}

function portion(items, draw, from = 0, most = 50) {
  const box = element("div", {});
  const more = (start) => {
    box.append(...items.slice(start, start + most).map(draw));
    if (start + most >= items.length) return;
    const next = button(`${exact(start + most)} of ${exact(items.length)} shown: more`, () => { next.remove(); more(start + most); }, { class: "more" });
    box.append(next);
  };
  more(from);
  return box;
}

// -- tool calls ------------------------------------------------------------------------------------------------------

function toolSections(view, row, go) {
  const { value: call } = row;
  const asker = call.requested_by && view.outline.rows.find((one) => (one.kind === "model" || one.kind === "side") && one.value.id === call.requested_by.model_call);
  const inside = view.outline.rows[row.number + 1];
  const [requested, given] = [call.requested, call.arguments];
  const differ = requested !== undefined && given !== undefined && toJson(requested) !== toJson(given);
  const ended = row.status !== "unfinished" && !call.error;
  return [facts([["Kind", kindOf(row)], ["To", call.target], ["Side effect", call.side_effect === true ? "yes" : call.side_effect === false ? "none" : null],
    ["Seen", call.executed === false ? "only in messages: no span tells of it" : null], ["Call", call.id], ["Model\u2019s id for it", call.call_id],
    ["Asked for by", asker && button(`model call ${asker.title}`, () => go(asker), { class: "small" })],
    ["Made", inside?.parent === row && button(`run ${inside.title}`, () => go(inside), { class: "small" })]]),
  differ && valueSection("Asked for by the model", requested, "What ran had other arguments: see below."),
  (given ?? requested) !== undefined && valueSection("Arguments", given ?? requested, given === undefined ? "As the model asked; what ran is not recorded." : null),
  ended && (call.result !== undefined || !["absent", "redacted", "truncated"].includes(call.fidelity?.result)) && valueSection("Result", call.result ?? null),
  objectSection("Other fields", rest(call))];
}

const KNOWN = new Set(["id", "call_id", "name", "kind", "requested", "arguments", "result", "status", "error", "requested_by", "run", "target", "side_effect", "executed", "started_at", "ended_at", "fidelity"]);
const rest = (call) => { const left = Object.entries(call).filter(([name]) => !KNOWN.has(name)); return left.length ? left.map(([name, value]) => ({ field: name, value })) : null; };

// -- raw spans -------------------------------------------------------------------------------------------------------

function rawSection(view, value) {
  const box = element("div", {});
  const open = button("Show the raw span", async () => {
    open.disabled = true;
    try {
      const found = await rawSpan(view, value.id);
      replace(box, found ? element("div", { class: "boxed" }, jsonTree(found, "raw span", 2)) : element("p", { class: "dim" }, "No span has this id: the call was put together from what other spans tell. \u201cExport\u201d has all raw spans of the session."));
      open.remove();
    } catch (error) {
      open.disabled = false;
      if (error.name !== "AbortError") notify(error.message, "bad");
    }
  }, { class: "small" });
  return section("As it came", element("p", {}, open, " ", button("Copy the id", () => copy(value.id ?? ""), { class: "small" })), box);
}
