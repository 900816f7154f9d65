// The blocks of a conversation: a run, a turn, a model call, a tool call, and what a run gave back.

import { element } from "./dom.js";
import { duration, line, tokens } from "./format.js";
import { jsonTree, longText, peek } from "./json_tree.js";
import { failure, kindOf, marks, sign, state } from "./marks.js";
import { folding, messageOf } from "./messages.js";

/** The block of a row, or (`ending`) of what it gave back. `talk` is what `conversation` keeps. */
export function blockOf(talk, { row, ending }) {
  const made = element(
    "div",
    {
      class: `block ${row.kind} ${row.status !== "ok" ? row.status : ""} ${ending ? "ending" : ""} ${talk.row === row && !ending ? "chosen" : ""}`,
    },
    ending ? endingBlock(talk, row) : BLOCKS[row.kind](talk, row),
  );
  made.style.setProperty("--depth", Math.min(nesting(row), 8));
  if (!ending && row.kind !== "turn")
    made.addEventListener("click", (event) => {
      if (!event.target.closest("button, a, summary, details[open] > *") && !getSelection().toString())
        talk.choose(row);
    });
  return made;
}

// Turns do not move what is in them to the right; runs inside runs do.
const nesting = (row) => {
  let depth = 0;
  for (let run = row.runRow; run?.parent; run = run.parent.runRow) depth += 1;
  return depth;
};

const pick = (talk, row, label) =>
  element(
    "button",
    { class: "pick", type: "button", on: { click: () => talk.choose(row) } },
    sign(row),
    element("span", { class: "name", dir: "auto" }, label),
  );

const said = (talk, indexes, options) => indexes.map((index) => messageOf(talk.view.document.messages[index], options));

const took = (row) =>
  row.started !== null &&
  row.ended !== null &&
  element("span", { class: "fact" }, duration(Math.max(0, row.ended - row.started)));

function runBlock(talk, row) {
  const { value: run } = row;
  const inside =
    row.parent &&
    element(
      "span",
      { class: "fact" },
      row.parent.kind === "tool" ? `made by ${line(row.parent.title, 40)}` : "inside the run above",
    );
  return [
    element(
      "div",
      { class: "line" },
      pick(talk, row, row.title),
      run.agent?.version && element("span", { class: "fact" }, line(run.agent.version, 30)),
      element("span", { class: "fact mono" }, line(run.path, 60)),
      inside,
      took(row),
      state(row.status),
      marks(run.fidelity),
    ),
    said(talk, row.fresh),
  ];
}

const turnBlock = (talk, row) => [
  element("button", { class: "turn-line", type: "button", on: { click: () => talk.choose(row) } }, row.title),
];

function modelBlock(talk, row) {
  const { value: call } = row;
  const messages = talk.view.document.messages;
  const parts = (call.output ?? []).flatMap((index) => messages[index]?.parts ?? []);
  const asks = parts.filter((part) => part.type === "tool_call").map((part) => line(part.name ?? "a tool", 40));
  const spoken = (call.output ?? []).filter((index) =>
    (messages[index]?.parts ?? []).some((part) => part.type !== "tool_call"),
  );
  const attempts = (call.attempts ?? []).length;
  return [
    said(talk, row.fresh),
    element(
      "div",
      { class: "line" },
      pick(talk, row, row.title),
      row.kind === "side" && element("span", { class: "fact" }, call.operation ?? "side call"),
      took(row),
      tokens(call.usage) && element("span", { class: "fact" }, tokens(call.usage)),
      attempts > 1 && element("span", { class: "fact warn" }, `${attempts} attempts`),
      call.complete === false && element("span", { class: "fact warn" }, "cut off"),
      odd(call.finish_reasons),
      state(row.status),
      marks(call.fidelity),
    ),
    said(talk, spoken, { folded: false }),
    asks.length > 0 && element("p", { class: "asks" }, "asks for ", element("strong", {}, asks.join(", "))),
    failure(call.error),
  ];
}

const ORDINARY = new Set(["stop", "tool_call", "tool_calls", "end_turn", "tool_use"]);
const odd = (reasons) =>
  (reasons ?? [])
    .filter((reason) => !ORDINARY.has(reason))
    .map((reason) => element("span", { class: "fact warn" }, `ended by ${line(reason, 40)}`));

function toolBlock(talk, row) {
  const { value: call } = row;
  const has = (name) => call[name] !== undefined && call.fidelity?.[name] !== "absent";
  const open = (name) => ({
    open: talk.opened.has(`${row.pointer}/${name}`),
    remember: (now) => talk.opened[now ? "add" : "delete"](`${row.pointer}/${name}`),
  });
  const given = has("arguments") ? call.arguments : call.requested;
  return [
    element(
      "div",
      { class: "line" },
      pick(talk, row, row.title),
      call.kind && call.kind !== "function" && element("span", { class: "fact" }, kindOf(row)),
      call.target && element("span", { class: "fact" }, `to ${line(call.target, 60)}`),
      call.side_effect && element("span", { class: "fact warn" }, "side effect"),
      call.executed === false &&
        call.kind !== "provider" &&
        element("span", { class: "fact" }, "only seen in messages"),
      took(row),
      state(row.status),
      marks(call.fidelity),
    ),
    given !== undefined && valueLine("arguments", given, open("arguments")),
    call.error ? failure(call.error) : resultLine(row, has, open),
  ];
}

const LOST = new Map([
  ["absent", "The result was not recorded."],
  ["redacted", "The result is redacted."],
  ["truncated", "The result was cut off as a whole."],
]);

function resultLine(row, has, open) {
  if (row.status === "unfinished") return element("p", { class: "dim" }, "No result was recorded: it has not ended.");
  if (!has("result") && LOST.has(row.value.fidelity?.result))
    return element("p", { class: "dim" }, LOST.get(row.value.fidelity.result));
  // The document leaves null out: a result that is not marked absent was null.
  return valueLine("result", has("result") ? row.value.result : null, open("result"));
}

function valueLine(label, value, { open, remember }) {
  const box = folding(
    "value",
    [
      element("span", { class: "role" }, label),
      peek(value, 200),
    ],
    () => (typeof value === "string" ? longText(value, "said mono") : jsonTree(value, label)),
    open,
  );
  box.addEventListener("toggle", () => remember(box.open));
  return box;
}

const endingBlock = (talk, row) => [
  element("div", { class: "line dim" }, `${row.title} `, row.value.error ? "failed" : "gives back"),
  failure(row.value.error),
  row.value.fidelity?.output === "reconstructed" ? null : said(talk, row.ending),
];

const BLOCKS = { run: runBlock, turn: turnBlock, model: modelBlock, side: modelBlock, tool: toolBlock };
