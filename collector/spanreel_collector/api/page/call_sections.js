// What is known of a model call or a tool call, in sections.

import { button, element, inPortions } from "./dom.js";
import { compact, exact, money, plural, precisely, toJson } from "./format.js";
import { jsonTree } from "./json_tree.js";
import { failure, kindOf } from "./marks.js";
import { folding, messageOf } from "./messages.js";
import { facts, objectSection, section, valueSection } from "./sections.js";

/** Of a model call. */
export function modelSections(view, row) {
  const { value: call } = row;
  const messages = view.document.messages;
  const chunks = call.chunks?.length;
  return [
    facts([
      ["Model", call.model],
      ["Answered by", call.response_model !== call.model ? call.response_model : null],
      ["Provider", call.provider],
      ["Protocol", call.protocol],
      ["Ended by", (call.finish_reasons ?? []).join(", ")],
      ["Streamed", call.streamed && (chunks ? plural(chunks, "chunk") : "yes")],
      ["HTTP status", call.http_status],
      ["Cost", call.cost?.usd !== undefined ? money(call.cost.usd) : null],
      ["Call", call.id],
      ["Answer\u2019s id", call.response_id],
      ["Operation", call.operation !== "chat" ? call.operation : null],
    ]),
    usageSection(call.usage),
    call.complete === false && element("p", { class: "failure" }, "The stream was cut off before its end."),
    (call.warnings ?? []).length > 0 &&
      section(
        "Warnings",
        element(
          "ul",
          {},
          call.warnings.map((one) => element("li", {}, one)),
        ),
      ),
    section("Answer", answerOf(call, messages)),
    askedSection(call, messages),
    objectSection("Settings", call.settings),
    toolsSection(view, call),
    attemptsSection(call),
    call.guardrails?.length > 0 && valueSection("Guardrails", call.guardrails),
    objectSection("Other fields of the request", call.request_fields),
    objectSection("Other fields of the answer", call.provider_fields),
  ];
}

function answerOf(call, messages) {
  if (call.output?.length)
    return call.output.map((index) => messageOf(messages[index], { calls: true, folded: false }));
  return element(
    "p",
    { class: "dim" },
    call.fidelity?.output === "absent" ? "The answer was not recorded." : "There is no answer.",
  );
}

function askedSection(call, messages) {
  const count = call.input?.length ?? 0;
  if (!count) return null;
  return section(
    `Asked with ${plural(count, "message")}`,
    folding("valued", ["All that this request held, oldest first"], () =>
      inPortions(
        element("div", {}),
        call.input,
        (index) => messageOf(messages[index], { calls: true, folded: true }),
        50,
      ),
    ),
  );
}

function toolsSection(view, call) {
  const count = call.tools?.length ?? 0;
  const tools = (call.tools ?? []).map((index) => view.document.tools?.[index]).filter(Boolean);
  return (
    count > 0 &&
    section(
      `${plural(count, "tool")} on offer`,
      inPortions(
        element("div", {}),
        tools,
        (tool) =>
          folding(
            "valued",
            [
              element("strong", {}, tool.name ?? tool.type ?? "tool"),
              element("span", { class: "peek" }, ` ${tool.description ?? ""}`),
            ],
            () => jsonTree(tool, "tool definition"),
          ),
        50,
      ),
    )
  );
}

const USAGE = [
  ["input_tokens", "in"],
  ["cache_read_tokens", "of these from cache"],
  ["cache_write_tokens", "of these into cache"],
  ["output_tokens", "out"],
  ["reasoning_tokens", "of these reasoning"],
];

function usageSection(usage) {
  const known = USAGE.filter(([name]) => typeof usage?.[name] === "number");
  return (
    known.length > 0 &&
    section(
      "Tokens",
      element(
        "dl",
        { class: "facts" },
        known.map(([name, label]) =>
          element(
            "div",
            {},
            element("dt", {}, label),
            element(
              "dd",
              { title: exact(usage[name]) },
              usage[name] > 99_999 ? compact(usage[name]) : exact(usage[name]),
            ),
          ),
        ),
      ),
    )
  );
}

function attemptsSection(call) {
  const attempts = call.attempts ?? [];
  if (attempts.length < 2) return null;
  return section(
    `${attempts.length} attempts`,
    inPortions(
      element("ol", { class: "attempts" }),
      attempts,
      (one) =>
        element(
          "li",
          {},
          `${one.status ?? "no answer"}`,
          one.started_at ? `, ${precisely(one.started_at)}` : "",
          one.error && failure(one.error),
        ),
      50,
    ),
  );
}

// -- tool calls ------------------------------------------------------------------------------------------------------

/** Of a tool call; `go` selects another row. */
export function toolSections(view, row, go) {
  const { value: call } = row;
  const asker =
    call.requested_by &&
    view.outline.rows.find(
      (one) => (one.kind === "model" || one.kind === "side") && one.value.id === call.requested_by.model_call,
    );
  const inside = view.outline.rows[row.number + 1];
  const [requested, given] = [call.requested, call.arguments];
  const differ = requested !== undefined && given !== undefined && toJson(requested) !== toJson(given);
  const ended = row.status !== "unfinished" && !call.error;
  return [
    facts([
      ["Kind", kindOf(row)],
      ["To", call.target],
      ["Side effect", call.side_effect === true ? "yes" : call.side_effect === false ? "none" : null],
      ["Seen", call.executed === false ? "only in messages: no span tells of it" : null],
      ["Call", call.id],
      ["Model\u2019s id for it", call.call_id],
      ["Asked for by", asker && button(`model call ${asker.title}`, () => go(asker), { class: "small" })],
      ["Made", inside?.parent === row && button(`run ${inside.title}`, () => go(inside), { class: "small" })],
    ]),
    differ && valueSection("Asked for by the model", requested, "What ran had other arguments: see below."),
    (given ?? requested) !== undefined &&
      valueSection(
        "Arguments",
        given ?? requested,
        given === undefined ? "As the model asked; what ran is not recorded." : null,
      ),
    ended &&
      (call.result !== undefined || !["absent", "redacted", "truncated"].includes(call.fidelity?.result)) &&
      valueSection("Result", call.result ?? null),
    objectSection("Other fields", rest(call)),
  ];
}

const KNOWN = new Set([
  "id",
  "call_id",
  "name",
  "kind",
  "requested",
  "arguments",
  "result",
  "status",
  "error",
  "requested_by",
  "run",
  "target",
  "side_effect",
  "executed",
  "started_at",
  "ended_at",
  "fidelity",
  "evaluations",
]);
const rest = (call) => {
  const left = Object.entries(call).filter(([name]) => !KNOWN.has(name));
  return left.length ? left.map(([name, value]) => ({ field: name, value })) : null;
};
