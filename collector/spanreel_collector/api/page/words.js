// What the closed sets of the session document are called where people read them.

export const STATUS = new Map([
  ["ok", "ok"],
  ["error", "failed"],
  ["cancelled", "cancelled"],
  ["interrupted", "interrupted"],
  ["unfinished", "unfinished"],
  ["blocked", "blocked"],
]);

export const STATUS_MEANS = new Map([
  ["error", "It ended with an error."],
  ["cancelled", "It was cancelled from outside before it was done."],
  ["interrupted", "It stopped to wait for somebody: an approval, or an answer."],
  ["unfinished", "No end was recorded: it is still running, or its process ended first."],
  ["blocked", "It was asked for and not let through: a guardrail, or an approval that was refused."],
]);

export const ORIGIN = new Map([
  ["recorded", "recorded by spanreel"],
  ["imported", "imported from another recorder"],
  ["replay", "a replay"],
]);

const FIELDS = new Map([
  ["input", "What was asked"],
  ["output", "What was answered"],
  ["instructions", "The instructions"],
  ["arguments", "The arguments"],
  ["requested", "What the model asked for"],
  ["result", "The result"],
  ["tools", "The tools on offer"],
  ["settings", "The settings"],
  ["usage", "The token counts"],
  ["error", "The error"],
]);

const field = (name) => FIELDS.get(name) ?? `The field \u201c${name}\u201d`;

const FIDELITY = new Map([
  ["truncated", ["cut off", "cut off; a limit of the recorder left only the beginning"]],
  ["redacted", ["redacted", "redacted; placeholders stand where something secret or personal stood"]],
  ["reconstructed", ["worked out", "not recorded by itself, but worked out from what was recorded around it"]],
  ["absent", ["not recorded", "not recorded"]],
]);

export const mark = (state) => FIDELITY.get(state)?.[0] ?? String(state);

export const fidelity = (name, state) => `${field(name)}: ${FIDELITY.get(state)?.[1] ?? state}.`;

/** The fields that did not come whole, as [field, state]. */
export const losses = (states) =>
  Object.entries(states ?? {})
    .filter(([, state]) => state !== "whole")
    .sort();

export const TOOL_KIND = new Map([
  ["function", "tool"],
  ["mcp", "MCP tool"],
  ["provider", "tool run by the provider"],
  ["agent", "agent as a tool"],
  ["handoff", "handoff"],
  ["retriever", "retriever"],
]);

export const OUTCOME = new Map([
  ["same", "same outcome"],
  ["differs", "another outcome"],
  ["reworded", "same in other words"],
  ["stopped", "stopped before its end"],
  ["not compared", "outcome not compared"],
  ["not started", "did not run"],
]);

export const FORECAST = new Map([
  ["answered", "will be answered from the recording"],
  ["inside", "runs again, and meets recorded answers inside"],
  ["in doubt", "may not be answered: the recording lacks something that it takes"],
  ["live", "would really run, so that an offline replay is refused"],
]);

export const COST = new Map([
  ["reported", "as the recorder reported it"],
  ["calculator", "calculated from tokens and list prices"],
  ["estimated", "estimated"],
]);
