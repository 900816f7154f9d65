// The list of sessions: what is asked for stands in the address, and the rows follow what happens meanwhile.

import { read, sessionPath } from "./client.js";
import { button, element, link, notify, replace } from "./dom.js";
import { compact, duration, exact, lengthOf, line, money, plural, when } from "./format.js";
import { pill } from "./marks.js";
import { ORIGIN, STATUS } from "./words.js";

const PAGE = 50;
const FACETS = [
  ["agent", "Agent"], ["model", "Model"], ["tool", "Tool"], ["status", "Status"],
  ["version", "Version"], ["tag", "Tag"], ["origin", "Origin"],
];
const SPANS = [["1h", "last hour", 3600], ["1d", "last 24 hours", 86400], ["7d", "last 7 days", 604800], ["30d", "last 30 days", 2592000]];
const ORDERS = [["started", "newest first"], ["updated", "last changed"], ["duration", "longest"], ["tokens", "most tokens"], ["cost", "most expensive"]];
const PASSED = ["text", "agent", "version", "user", "model", "tool", "tag", "origin", "status", "key", "baseline", "eligible",
  "least_tokens", "most_tokens", "least_cost", "most_cost", "order", "since", "until"];
const ASKED = [...PASSED.filter((name) => name !== "text" && name !== "order"), "within"];

/** Draws the list into `main` for what the address asks. Returns what `main.js` tells it: keys, changes, another address. */
export function showSessions(main, asked, go) {
  const view = { asked, go, rows: new Map(), cursor: null, more: false, waiting: new Set(), facets: new Map() };
  view.ask = (changes, typing = false) => go({ ...view.asked, ...changes }, typing);
  view.body = element("tbody", {});
  view.foot = element("p", { class: "foot", role: "status" });
  view.news = element("div", { class: "news", role: "status" });
  view.filters = element("div", { class: "filters", id: "filters" });
  view.opener = opener(view);
  view.order = element("div", {});
  replace(main, element("section", { class: "list", "aria-label": "Sessions" },
    element("div", { class: "ask" }, search(view), view.opener, view.order), view.filters, view.news, table(view), view.foot));
  const close = () => { clearTimeout(view.timer); view.aborter?.abort(); };
  const update = (now) => { close(); view.aborter = new AbortController(); view.asked = now; draw(view); load(view); };
  update(asked);
  readFacets(view);
  return { key: (event) => key(view, event), changed: (one) => changed(view, one), missed: () => refresh(view, true), close, update };
}

async function readFacets(view) {
  try {
    view.facets = new Map(Object.entries(await read("facets", { signal: view.aborter.signal })));
    draw(view);
  } catch (error) {
    unlessGone(error);
  }
}

// What is redrawn under somebody's fingers has the focus again afterwards.
function draw(view) {
  const name = document.activeElement?.name;
  const count = ASKED.filter((one) => view.asked[one] && !["since", "until"].includes(one)).length;
  replace(view.opener, count ? `Filters (${count})` : "Filters");
  drawFilters(view);
  replace(view.order, choice("order", "Order", ORDERS, view.asked.order ?? "started", (value) => view.ask({ order: value === "started" ? null : value }), false));
  if (name) view.filters.parentElement.querySelector(`[name="${CSS.escape(name)}"]`)?.focus();
}

const unlessGone = (error) => { if (error.name !== "AbortError") notify(error.message, "bad"); };

function search(view) {
  const field = element("input", { type: "search", id: "search", value: view.asked.text ?? "", placeholder: "Words in messages, tools, results",
    "aria-label": "Search sessions", autocomplete: "off", spellcheck: "false", enterkeyhint: "search" });
  const ask = (typing) => { clearTimeout(view.typing); view.ask({ text: field.value.trim() || null }, typing); };
  field.addEventListener("input", () => { clearTimeout(view.typing); view.typing = setTimeout(() => ask(true), 350); });
  return element("form", { class: "search", role: "search", on: { submit: (event) => { event.preventDefault(); ask(false); } } },
    field, element("kbd", { "aria-hidden": "true" }, "/"));
}

function opener(view) {
  const made = button("Filters", () => {
    made.setAttribute("aria-expanded", String(view.filters.classList.toggle("open")));
  }, { class: "opener", "aria-expanded": "false", "aria-controls": "filters" });
  return made;
}

function drawFilters(view) {
  const { asked, ask, facets } = view;
  const found = FACETS.map(([name, label]) => {
    const counted = facets.get(name) ?? [];
    const values = counted.map(([value, count]) => [value, `${shownValue(name, value)} (${exact(count)})`]);
    if (asked[name] && !counted.some(([value]) => value === asked[name])) values.unshift([asked[name], shownValue(name, asked[name])]);
    return values.length > 0 && choice(name, label, [["", "any"], ...values], asked[name] ?? "", (value) => ask({ [name]: value }));
  });
  const eligible = choice("eligible", "Replay", [["", "any"], ["true", "can be exact"], ["false", "cannot be exact"]], asked.eligible ?? "", (value) => ask({ eligible: value }));
  const spans = [["", "any time"], ...SPANS.map(([name, label]) => [name, label]), ["own", "from \u2013 to"]];
  const chosen = asked.within ?? (asked.since || asked.until ? "own" : "");
  const time = choice("within", "Started", spans, chosen, (value) => ask({ within: value, since: null, until: null }));
  const user = typed("user", "User", { value: asked.user ?? "", size: 10, placeholder: "any", spellcheck: "false", autocomplete: "off" }, (value) => ask({ user: value.trim() }));
  const clear = ASKED.some((name) => asked[name]) && link({ text: asked.text, order: asked.order }, { class: "clear" }, "Clear filters");
  const held = asked.key && element("span", { class: "choice set" }, element("span", {}, "Conversation"), line(asked.key, 40));
  replace(view.filters, found, eligible, time, chosen === "own" && [bound("From", "since", asked, ask), bound("To", "until", asked, ask)], user, held, clear);
}

const shownValue = (name, value) => line(name === "status" ? STATUS.get(value) ?? value : name === "origin" ? ORIGIN.get(value) ?? value : value, 60);

function choice(name, label, options, value, choose, marked = true) {
  const made = element("select", { name, "aria-label": label, on: { change: () => choose(made.value || null) } },
    options.map(([one, text]) => element("option", { value: one }, text)));
  made.value = value;
  return element("label", { class: `choice ${value && marked ? "set" : ""}` }, element("span", {}, label), made);
}

const typed = (name, label, properties, choose) => element("label", { class: `choice ${properties.value ? "set" : ""}` }, element("span", {}, label),
  element("input", { name, "aria-label": label, ...properties, on: { change: (event) => choose(event.target.value) } }));

function bound(label, name, asked, ask) {
  const local = asked[name] ? new Date(Date.parse(asked[name]) - new Date().getTimezoneOffset() * 60000).toISOString().slice(0, 16) : "";
  return typed(name, label, { type: "datetime-local", value: local }, (value) => ask({ within: "own", [name]: value ? new Date(value).toISOString() : null }));
}

const COLUMNS = [["Opening words", "opening"], ["Agent", "agent"], ["Status", "status"], ["Started", "started"], ["Took", "number"], ["Model", "model"],
  ["Calls", "number"], ["Tokens", "number"], ["Cost", "number"], ["Rev.", "number"]];

const table = (view) => element("table", { class: "sessions" },
  element("thead", {}, element("tr", {}, COLUMNS.map(([label, kind]) => element("th", { scope: "col", class: kind }, label)))), view.body);

function query(view, cursor) {
  const wanted = Object.fromEntries(PASSED.map((name) => [name, view.asked[name]]));
  const within = SPANS.find(([name]) => name === view.asked.within);
  if (within) wanted.since = new Date(Date.now() - within[2] * 1000).toISOString();
  return { ...wanted, limit: PAGE, cursor };
}

async function load(view, cursor = null) {
  try {
    const page = await read("sessions", { query: query(view, cursor), signal: view.aborter.signal });
    if (cursor === null) { view.rows.clear(); view.body.replaceChildren(); view.waiting.clear(); drawNews(view); }
    view.more = cursor !== null;
    for (const session of page.sessions) put(view, session);
    view.cursor = page.cursor;
    drawFoot(view);
  } catch (error) {
    if (error.name !== "AbortError") replace(view.foot, element("span", { class: "bad" }, error.message), " ", button("Try again", () => load(view, cursor)));
  }
}

function put(view, session, fresh = false) {
  const row = rowOf(session, fresh);
  const before = view.rows.get(session.id);
  if (before) before.replaceWith(row);
  else view.body.append(row);
  view.rows.set(session.id, row);
}

function drawFoot(view) {
  const shown = view.rows.size;
  const asked = ASKED.some((name) => view.asked[name]) || view.asked.text;
  if (!shown) {
    replace(view.foot, element("strong", {}, asked ? "No session fits." : "No session yet."), asked ? " Fewer words or filters find more."
      : " Point any OTLP exporter at this address; a session appears when its trace has been quiet for a moment.");
  } else {
    replace(view.foot, `${plural(shown, "session")} shown${view.cursor ? ", there are more " : ", that is all "}`, view.cursor && button("More", async () => {
      const last = view.body.lastElementChild;
      await load(view, view.cursor);
      last?.nextElementSibling?.querySelector("a")?.focus();
    }, { class: "primary" }));
  }
}

function rowOf(session, fresh) {
  const agents = session.agents ?? [];
  const calls = `${plural(session.model_calls, "model call")}, ${plural(session.tool_calls, "tool call")}, ${plural(session.runs, "run")}`;
  const tokens = session.input_tokens === null && session.output_tokens === null ? null : (session.input_tokens ?? 0) + (session.output_tokens ?? 0);
  const cell = (kind, label, ...children) => element("td", { class: kind, "data-label": label }, ...children);
  return element("tr", { class: fresh ? "fresh" : "" },
    element("td", { class: "opening" }, element("div", { class: "first" }, link({ session: session.id }, { class: "words", dir: "auto" }, line(session.opening || session.name || session.id, 220)),
      element("span", { class: "tags" },
        session.origin === "replay" && element("span", { class: "tag replay" }, "replay"),
        (session.tags ?? []).slice(0, 6).map((tag) => element("span", { class: "tag" }, line(tag, 40))),
        (session.tags ?? []).length > 6 && element("span", { class: "tag faint" }, `${session.tags.length - 6} more tags`),
        session.user && element("span", { class: "user", title: `user ${session.user}` }, line(session.user, 40)),
        !session.eligible && element("span", { class: "tag faint", title: "An offline replay cannot be exact; the session says why" }, "not exact")))),
    cell("agent", "Agent", several(agents), session.versions?.length ? element("span", { class: "dim" }, ` ${line(session.versions.join(", "), 24)}`) : null),
    cell("status", "Status", pill(session.status)),
    cell("started", "Started", element("time", { datetime: session.started, title: session.started }, when(session.started))),
    cell("number", "Took", duration(lengthOf(session.started, session.ended))),
    cell("model", "Model", several(session.models ?? [])),
    cell("number", "Calls", element("span", { title: calls }, `${exact(session.model_calls)} + ${exact(session.tool_calls)}`)),
    cell("number", "Tokens", element("span", { title: tokens === null ? "nobody said" : `${exact(session.input_tokens)} in, ${exact(session.output_tokens)} out` }, compact(tokens))),
    cell(`number ${session.cost === null || session.cost === undefined ? "none" : ""}`, "Cost", money(session.cost)),
    cell("number revision", "Revision", String(session.revision)));
}

const several = (names) => names.length > 0 ? element("span", { title: names.join(", ") }, line(names[0], 48), names.length > 1 && element("span", { class: "dim" }, ` +${names.length - 1}`)) : "\u2013";

// -- what happens meanwhile ------------------------------------------------------------------------------------------

function changed(view, one) {
  view.waiting.add(one.id);
  clearTimeout(view.timer);
  view.timer = setTimeout(() => refresh(view), 400);
}

// Who reads further down is not moved: what is on the screen is renewed in its place, the rest is counted.
async function refresh(view, all = false) {
  const ids = [...view.waiting, ...(all ? view.rows.keys() : [])];
  if (!view.more && scrollY < 200 && !view.body.contains(document.activeElement)) {
    await load(view);
    for (const id of ids) view.rows.get(id)?.classList.add("fresh");
    return;
  }
  for (const id of ids.filter((one) => view.rows.has(one)).slice(0, PAGE)) {
    view.waiting.delete(id);
    try {
      put(view, await read(sessionPath(id, "/summary"), { signal: view.aborter.signal }), true);
    } catch (error) {
      if (error.status !== 404) return unlessGone(error);
      view.rows.get(id).remove();
      view.rows.delete(id);
    }
  }
  drawFoot(view);
  drawNews(view);
}

function drawNews(view) {
  const count = view.waiting.size;
  replace(view.news, count > 0 && button(`${exact(count)} more came or changed: show`, () => { scrollTo(0, 0); load(view); }, { class: "primary" }));
}

// -- keyboard --------------------------------------------------------------------------------------------------------

function key(view, event) {
  const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key];
  if (step) {
    const links = [...view.body.querySelectorAll("a.words")];
    const at = links.indexOf(document.activeElement);
    links[at < 0 ? (step > 0 ? 0 : links.length - 1) : Math.min(Math.max(at + step, 0), links.length - 1)]?.focus();
    return true;
  }
  if (event.key === "/") { document.getElementById("search").select(); return true; }
  if (event.key === "Escape" && (view.asked.text || ASKED.some((name) => view.asked[name]))) {
    document.getElementById("search").value = "";
    view.go({});
    return true;
  }
  return false;
}
