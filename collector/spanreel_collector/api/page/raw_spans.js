// The spans of a session as they came over OTLP, read once a session and looked through by id.

import { send, sessionPath } from "./client.js";

const MOST = 64_000_000; // Bytes that are read into this tab; above it, exports are for that.

/** The span with this id, with its resource, scope and log records; null where there is none. */
export async function rawSpan(view, id) {
  view.raw ??= readSpans(view).catch((error) => {
    view.raw = null;
    throw error;
  });
  return (await view.raw).get(id) ?? null;
}

async function readSpans(view) {
  const response = await send(sessionPath(view.id, "/spans"), { signal: view.aborter.signal });
  const found = new Map();
  for (const request of requestsOf(await bounded(response))) {
    for (const { resource, scopeSpans } of request.resourceSpans ?? []) {
      for (const { scope, spans } of scopeSpans ?? [])
        for (const span of spans ?? []) found.set(idOf(span), { ...found.get(idOf(span)), span, scope, resource });
    }
    for (const { scopeLogs } of request.resourceLogs ?? []) {
      for (const { logRecords } of scopeLogs ?? [])
        for (const record of logRecords ?? []) {
          const one = found.get(idOf(record)) ?? {};
          found.set(idOf(record), { ...one, logs: [...(one.logs ?? []), record] });
        }
    }
  }
  return found;
}

async function bounded(response) {
  const parts = [];
  let size = 0;
  const reader = response.body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return new Blob(parts).text();
    size += value.length;
    if (size > MOST) {
      await reader.cancel();
      throw new Error("The raw spans of this session are too many to show: export them");
    }
    parts.push(value);
  }
}

// One request, or one a line.
function* requestsOf(text) {
  try {
    yield JSON.parse(text);
  } catch {
    for (const row of text.split("\n")) if (row.trim()) yield JSON.parse(row);
  }
}

// Hexadecimal by the specification; base64 from writers that take protobuf's JSON as it is.
function idOf(span) {
  const id = span.spanId ?? "";
  if (/^[0-9a-f]{16}$/i.test(id)) return id.toLowerCase();
  try {
    return Array.from(atob(id), (letter) => letter.charCodeAt(0).toString(16).padStart(2, "0")).join("");
  } catch {
    return id;
  }
}
