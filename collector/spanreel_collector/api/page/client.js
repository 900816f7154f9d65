// The HTTP API, as decision 0014 describes it. The token travels in a header, and is kept for this tab alone.

import { ask, element } from "./dom.js";

const BASE = new URL("/api/v1/", location.href);
const TOKEN = "spanreel.token";
const LONGEST_WAIT = 30_000;

class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** The answer as JSON. `query` without what is null or empty. */
export async function read(path, { query = {}, signal, method = "GET" } = {}) {
  const response = await send(path, { query, signal, method, accept: "application/json" });
  return response.status === 204 ? null : parseJson(await response.text());
}

let known = { token: undefined, scopes: null };

/** What the token of this tab may do: a list of scopes, asked for once. */
export async function readScopes(signal) {
  const token = sessionStorage.getItem(TOKEN);
  if (known.scopes === null || known.token !== token) {
    const { scopes } = await read("me", { signal });
    known = { token: sessionStorage.getItem(TOKEN), scopes };
  }
  return known.scopes;
}

/** Whether a token was asked for. */
export const asksForToken = () => sessionStorage.getItem(TOKEN) !== null;

// Ids of eighteen digits are common in tools' arguments; as numbers their last digits would be others.
function parseJson(text) {
  if (!/\d{16}/.test(text)) return JSON.parse(text);
  return JSON.parse(text, (key, value, { source } = {}) =>
    typeof value === "number" && !Number.isSafeInteger(value) && /^-?\d+$/.test(source ?? "") ? BigInt(source) : value,
  );
}

/** The answer as it comes, for files and streams. */
export async function send(path, { query = {}, signal, method = "GET", accept = "*/*" } = {}) {
  const url = new URL(path, BASE);
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "") url.searchParams.set(name, value);
  }
  for (;;) {
    const token = sessionStorage.getItem(TOKEN);
    const headers = { Accept: accept, ...(token && { Authorization: `Bearer ${token}` }) };
    let response;
    try {
      response = await fetch(url, { method, headers, signal, credentials: "omit", redirect: "error" });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new ApiError(0, "The service does not answer.");
    }
    if (response.ok) return response;
    if (response.status !== 401) throw new ApiError(response.status, await reason(response));
    await newToken(token);
  }
}

/** The path of a session, and below it. Ids are anybody's text. */
export const sessionPath = (id, rest = "") => `sessions/${encodeURIComponent(id)}${rest}`;

async function reason(response) {
  const text = (await response.text()).slice(0, 2000);
  try {
    const body = JSON.parse(text);
    if (typeof body.detail === "string") return body.advice ? `${body.detail} \u2013 ${body.advice}` : body.detail;
  } catch {
    // Not JSON: then what it says is the status.
  }
  return `The service answered ${response.status} ${response.statusText}`.trim();
}

let asking = null;

// One dialog, however many requests were refused at once.
function newToken(refused) {
  if (sessionStorage.getItem(TOKEN) !== refused) return Promise.resolve();
  asking ??= ask("Token", (close) => tokenForm(refused, close)).then((token) => {
    asking = null;
    if (token === null) throw new ApiError(401, "This service answers only who has a token.");
    sessionStorage.setItem(TOKEN, token);
  });
  return asking;
}

function tokenForm(refused, close) {
  const field = element("input", {
    type: "password",
    id: "token",
    autocomplete: "off",
    spellcheck: "false",
    required: true,
  });
  return element(
    "form",
    {
      method: "dialog",
      on: {
        submit: (event) => {
          event.preventDefault();
          close(field.value.trim());
        },
      },
    },
    element("h2", {}, "This service asks for a token"),
    refused && element("p", { class: "bad" }, "The token that this tab had was not accepted."),
    element("label", { for: "token" }, "A token with the scope \u201cread\u201d"),
    field,
    element(
      "p",
      { class: "dim" },
      "It is kept in this tab alone, until the tab is closed, and is sent nowhere but here.",
    ),
    element(
      "p",
      { class: "actions" },
      element("button", { type: "button", on: { click: () => close(null) } }, "Cancel"),
      element("button", { class: "primary" }, "Go on"),
    ),
  );
}

/** Follow what changes, for good: `tell({id, revision})` for each, `tell(null)` where some were missed. `state` is told
 * "live" or "away". */
export async function follow(tell, state) {
  for (let wait = 1000, again = false; ; wait = Math.min(wait * 2, LONGEST_WAIT), again = true) {
    try {
      const response = await send("events", { accept: "text/event-stream" });
      state("live");
      if (again) tell(null);
      for await (const event of eventsOf(response.body)) {
        wait = 1000;
        if (event.name === "session") tell(event.data);
        if (event.name === "missed") tell(null);
      }
    } catch (error) {
      if (error.status === 401 || error.status === 403) return state("away");
    }
    state("away");
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}

async function* eventsOf(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let left = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (left + value).replaceAll("\r\n", "\n").split("\n\n");
    left = blocks.pop();
    for (const block of blocks) {
      const event = eventOf(block);
      if (event) yield event;
    }
  }
}

function eventOf(block) {
  const lines = block
    .split("\n")
    .map((line) => /^(\w+): ?(.*)$/.exec(line))
    .filter(Boolean);
  const data = lines
    .filter(([, name]) => name === "data")
    .map(([, , value]) => value)
    .join("\n");
  if (!data) return null;
  try {
    return { name: lines.find(([, name]) => name === "event")?.[2] ?? "message", data: JSON.parse(data) };
  } catch {
    return null;
  }
}
