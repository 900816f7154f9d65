// A session as rows in the order in which people read it: runs, their turns, the calls in them, the runs inside those.
// Each row is known by its JSON pointer in the document. Nothing is drawn here.

import { line, moment, toJson } from "./format.js";

/** `{rows, at}`: the rows, and a function from a pointer to the row that it points into (or null). */
export function outlineOf(session) {
  const context = { session, rows: [], seen: new Set(), keys: [], childrenOf: children(session.runs) };
  for (const index of session.runs.keys()) {
    if (!context.childrenOf.inside.has(index)) addRun(context, index, 0, null);
  }
  // Runs that name each other as parents have no root among them; they are shown all the same.
  for (const index of session.runs.keys()) if (!context.seen.has(index)) addRun(context, index, 0, null);
  const { rows } = context;
  rows.forEach((row, number) => {
    row.number = number;
  });
  for (const row of rows) if (row.kind === "turn") spread(rows, row);
  const byPointer = new Map(rows.map((row) => [row.pointer, row]));
  return { rows, at: (pointer) => find(byPointer, pointer), again: (row) => sameRow(rows, byPointer, row) };
}

/** The address of a row in the session that a view shows. */
export const placeOf = (view, row) => ({ session: view.id, revision: view.asked.revision, at: row.pointer });

function children(runs) {
  const numbers = new Map(runs.map((run, index) => [run.id, index]));
  const ofCall = new Map();
  const ofRun = new Map();
  const inside = new Set();
  const put = (map, key, index) => map.set(key, [...(map.get(key) ?? []), index]);
  const callsOf = (run) => [...run.turns.flatMap((turn) => turn.tool_calls ?? []), ...(run.loose_tool_calls ?? [])];
  const named = new Set();
  for (const [index, run] of runs.entries()) {
    for (const call of callsOf(run)) {
      const child = call.run === undefined ? undefined : numbers.get(call.run);
      if (child === undefined || child === index || inside.has(child)) continue;
      put(ofCall, call, child);
      inside.add(child);
      named.add(call.id);
    }
  }
  for (const [index, run] of runs.entries()) {
    const parent = run.parent ? numbers.get(run.parent.run) : undefined;
    if (parent === undefined || parent === index || inside.has(index)) continue;
    const call = run.parent.tool_call && callsOf(runs[parent]).find((one) => one.id === run.parent.tool_call);
    if (call) put(ofCall, call, index);
    else put(ofRun, parent, index);
    inside.add(index);
  }
  return { ofCall, ofRun, inside };
}

function addRun(context, index, depth, parent) {
  if (context.seen.has(index)) return;
  context.seen.add(index);
  const run = context.session.runs[index];
  const pointer = `/runs/${index}`;
  const title = run.agent?.name || (run.implicit ? "calls without an agent" : "agent");
  const row = add(context, { kind: "run", value: run, pointer, depth, parent, title });
  const left = [...(context.childrenOf.ofRun.get(index) ?? [])];
  const known = { indexes: new Set(run.input ?? []), said: new Set(), calls: new Set(), shown: [] };
  for (const message of run.input ?? []) known.said.add(content(context, message));
  row.fresh = run.input ?? [];
  for (const [number, turn] of run.turns.entries()) {
    addEarlier(context, left, turn, depth + 1, row);
    addTurn(context, turn, `${pointer}/turns/${number}`, depth + 1, { row, known });
  }
  for (const [number, call] of (run.side_calls ?? []).entries()) {
    addModel(context, call, `${pointer}/side_calls/${number}`, depth + 1, { row, known, kind: "side" });
  }
  for (const [number, call] of (run.loose_tool_calls ?? []).entries()) {
    addTool(context, call, `${pointer}/loose_tool_calls/${number}`, depth + 1, row);
  }
  for (const child of left) addRun(context, child, depth + 1, row);
  // What the run gave back is the last answer said again, most times.
  row.ending = (run.output ?? []).filter((message) => !known.said.has(content(context, message)));
  row.end = context.rows.length;
}

// A run that no call is known to have made stands before the first turn that began after it.
function addEarlier(context, left, turn, depth, row) {
  const began = moment(turn.model_call?.started_at);
  while (left.length && began !== null) {
    const child = moment(context.session.runs[left[0]].started_at);
    if (child === null || child >= began) return;
    addRun(context, left.shift(), depth, row);
  }
}

function addTurn(context, turn, pointer, depth, { row: parent, known }) {
  const row = add(context, { kind: "turn", value: turn, pointer, depth, parent, title: `turn ${turn.index}` });
  if (turn.model_call)
    addModel(context, turn.model_call, `${pointer}/model_call`, depth + 1, { row, known, kind: "model" });
  for (const [number, call] of (turn.tool_calls ?? []).entries()) {
    addTool(context, call, `${pointer}/tool_calls/${number}`, depth + 1, row);
    if (call.call_id) known.calls.add(call.call_id);
  }
  row.end = context.rows.length;
}

function addModel(context, call, pointer, depth, { row: parent, known, kind }) {
  const title = call.model ?? call.response_model ?? call.operation ?? "model";
  const row = add(context, { kind, value: call, pointer, depth, parent, title });
  row.fresh = [];
  for (const index of call.input ?? []) {
    if (known.indexes.has(index)) continue;
    known.indexes.add(index);
    const text = content(context, index);
    const told = context.session.messages[index];
    if (known.said.has(text) || answers(told, known.calls)) continue;
    known.said.add(text);
    if (told) row.fresh.push(index);
  }
  for (const index of call.output ?? []) known.said.add(content(context, index));
  row.end = context.rows.length;
}

function addTool(context, call, pointer, depth, parent) {
  const row = add(context, { kind: "tool", value: call, pointer, depth, parent, title: call.name ?? "tool" });
  for (const child of context.childrenOf.ofCall.get(call) ?? []) addRun(context, child, depth + 1, row);
  row.end = context.rows.length;
}

function add(context, { kind, value, pointer, depth, parent, title }) {
  const row = {
    kind,
    value,
    pointer,
    depth,
    parent,
    title: line(title, 200),
    status: value.status ?? "ok",
    fresh: [],
    ending: [],
  };
  row.started = moment(value.started_at);
  row.ended = moment(value.ended_at);
  row.runRow = kind === "run" ? row : parent.kind === "run" ? parent : parent.runRow;
  context.rows.push(row);
  return row;
}

// A turn says no times of its own.
function spread(rows, row) {
  const inside = rows.slice(row.number + 1, row.end);
  const starts = inside.map((one) => one.started).filter((at) => at !== null);
  const ends = inside.map((one) => one.ended).filter((at) => at !== null);
  row.started = starts.length ? starts.reduce((a, b) => Math.min(a, b)) : null;
  row.ended = ends.length ? ends.reduce((a, b) => Math.max(a, b)) : null;
  const bad = inside.find((one) => one.status === "unfinished") ?? inside.find((one) => one.status !== "ok");
  row.status = bad?.status === "unfinished" ? "unfinished" : "ok";
}

// Equal messages stand in the document twice where one carries what the other does not (ids of the provider).
function content(context, index) {
  if (context.keys[index] === undefined) {
    const message = context.session.messages[index];
    const parts = (message?.parts ?? []).map((part) => toJson({ ...part, provider_fields: undefined }));
    context.keys[index] = `${message?.role} ${parts.join(" ")}`;
  }
  return context.keys[index];
}

function answers(message, calls) {
  const parts = message?.parts ?? [];
  return parts.length > 0 && parts.every((part) => part.type === "tool_call_response" && calls.has(part.id));
}

function find(byPointer, pointer) {
  for (let place = pointer ?? ""; place; place = place.slice(0, place.lastIndexOf("/"))) {
    if (byPointer.has(place)) return byPointer.get(place);
  }
  return null;
}

// In a later revision a call may stand elsewhere; it is known by its id.
function sameRow(rows, byPointer, row) {
  const there = byPointer.get(row.pointer);
  if (!row.value.id || there?.value.id === row.value.id) return there ?? null;
  return rows.find((one) => one.kind === row.kind && one.value.id === row.value.id) ?? there ?? null;
}
