// One session: its head, and under it the conversation beside the waterfall with the details of what is selected, or its
// replays, or another session beside it.

import { read, send, sessionPath } from "./client.js";
import { conversation } from "./conversation.js";
import { detailOf } from "./detail.js";
import { address, ask, button, copy, element, link, notify, replace, save } from "./dom.js";
import { duration, exact, lengthOf, line, money, plural, shellWord, tokens, when } from "./format.js";
import { marks, pill } from "./marks.js";
import { outlineOf, placeOf } from "./outline.js";
import { showComparison, showReplays } from "./replays.js";
import { waterfall } from "./waterfall.js";
import { COST, ORIGIN } from "./words.js";

const VIEWS = [["", "Conversation"], ["replays", "Replays"], ["compare", "Compare"]];
const NARROW = matchMedia("(max-width: 820px)");

/** Draws a session into `main`. Returns what `main.js` tells it: keys, changes, another address. */
export function showSession(main, asked, go) {
  const view = { main, asked, go, id: asked.session, aborter: new AbortController(), document: null, selected: null, pane: "conversation" };
  view.ask = (changes) => go({ ...view.asked, ...changes });
  replace(main, element("p", { class: "empty" }, "Loading"));
  load(view);
  return {
    key: (event) => key(view, event),
    changed: (one) => one.id === view.id && changed(view, one.revision),
    missed: () => changed(view, Infinity),
    close: () => { clearTimeout(view.timer); view.aborter.abort(); },
    update: (now) => update(view, now),
  };
}

async function load(view) {
  const { signal } = view.aborter;
  try {
    const [found, reports, revisions] = await Promise.all([
      read(sessionPath(view.id), { query: { revision: view.asked.revision }, signal }),
      read(sessionPath(view.id, "/reports"), { signal }),
      read(sessionPath(view.id, "/revisions"), { signal }),
    ]);
    view.document = found;
    view.reports = reports;
    view.revisions = revisions;
    view.forecast = new Map();
    view.outline = outlineOf(found);
  } catch (error) {
    if (error.name === "AbortError") return;
    return replace(view.main, element("div", { class: "empty" }, element("p", {}, error.status === 404 ? "There is no such session: it was erased, or never here." : error.message),
      element("p", {}, link({}, {}, "All sessions"))));
  }
  draw(view);
  forecast(view);
}

// It takes as long as a replay's planning does; nobody waits for it. It is of the newest revision.
async function forecast(view) {
  if (view.asked.revision) return;
  try {
    const { calls, revision } = await read(sessionPath(view.id, "/forecast"), { signal: view.aborter.signal });
    if (revision !== view.document.revision) return;
    view.forecast = new Map(calls.map((one) => [one.place, one]));
    if (view.selected && view.panes) choose(view, view.selected, { quiet: true, still: true });
  } catch (error) {
    if (error.name !== "AbortError") notify(error.message, "bad");
  }
}

function draw(view) {
  const { document: session } = view;
  window.document.title = `${line(opening(session) || session.id, 60)} \u2013 spanreel`;
  view.content = element("div", { class: "content" });
  replace(view.main, element("article", { class: "session", "aria-label": `Session ${session.id}` }, head(view), eligibility(view), view.content));
  drawContent(view);
}

function drawContent(view) {
  const shown = view.asked.view ?? "";
  for (const tab of view.main.querySelectorAll(".views a")) tab.toggleAttribute("aria-current", tab.dataset.view === shown);
  view.panes = null;
  if (shown === "replays") return showReplays(view.content, view);
  if (shown === "compare") return showComparison(view.content, view);
  drawPanes(view);
}

// -- the head --------------------------------------------------------------------------------------------------------

function opening(session) {
  const said = session.runs[0]?.input?.map((index) => session.messages[index]).flatMap((message) => message?.parts ?? []);
  return session.name ?? said?.map((part) => part.content).find((text) => typeof text === "string" && text.trim());
}

function head(view) {
  const { document: session, outline } = view;
  const count = (kind) => outline.rows.filter((row) => row.kind === kind).length;
  const lost = marks(session.fidelity);
  const facts = [
    ["Started", element("time", { title: session.started_at }, when(session.started_at))],
    ["Took", duration(lengthOf(session.started_at, session.ended_at))],
    ["Calls", `${exact(count("model") + count("side"))} model, ${exact(count("tool"))} tool`],
    ["Tokens", tokens(session.usage) && element("span", { title: usageTitle(session.usage) }, tokens(session.usage))],
    ["Cost", session.cost && element("span", { title: COST.get(session.cost.source) }, money(session.cost.usd), element("span", { class: "dim" }, ` ${session.cost.source}`))],
    ["User", session.user_id && link({ user: session.user_id }, { title: "All sessions of this user" }, line(session.user_id, 40))],
    [session.key.kind === "conversation" ? "Conversation" : "Trace", element("span", { class: "mono", title: session.key.value }, line(session.key.value, 20))],
    ["Origin", element("span", { title: ORIGIN.get(session.origin) }, session.origin)],
    ["Baseline", session.baseline && link({ session: session.id, view: "compare", with: session.baseline }, {}, "compare with it")],
    ["Redaction", session.redaction?.policy && element("span", { title: `keys of its digests: ${(session.redaction.key_ids ?? []).join(", ") || "none"}` }, `policy ${line(session.redaction.policy, 30)}`)],
    ["Revision", revisionPicker(view)],
  ].filter(([, value]) => value);
  return element("header", { class: "head" },
    element("div", { class: "title" }, pill(session.status), element("h1", { dir: "auto" }, line(opening(session) || session.id, 140)),
      (session.tags ?? []).map((tag) => link({ tag }, { class: "tag" }, line(tag, 40)))),
    element("dl", { class: "facts" }, facts.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value)))),
    lost.length > 0 && element("p", { class: "lost" }, element("span", { class: "dim" }, "Not whole in some calls: "), lost),
    element("div", { class: "tools" },
      element("nav", { class: "views", "aria-label": "Views of this session" }, VIEWS.map(([name, label]) =>
        link({ session: view.id, revision: view.asked.revision, view: name }, { "data-view": name }, label, name === "replays" && view.reports.length > 0 && element("span", { class: "count" }, ` ${view.reports.length}`)))),
      actions(view)));
}

const usageTitle = (usage) => Object.entries(usage ?? {}).filter(([, value]) => typeof value === "number").map(([name, value]) => `${exact(value)} ${name.replaceAll("_", " ")}`).join(", ");

function revisionPicker(view) {
  const { document: session, revisions } = view;
  if (revisions.length < 2) return String(session.revision);
  const newest = Math.max(...revisions.map((one) => one.revision));
  const picker = element("select", { "aria-label": "Revision", on: { change: () => view.ask({ revision: Number(picker.value) === newest ? null : picker.value, at: null }) } },
    revisions.map((one) => element("option", { value: String(one.revision) }, `${one.revision}${one.revision === newest ? " (newest)" : ""} \u00b7 ${when(one.at)}`)));
  picker.value = String(session.revision);
  return picker;
}

function actions(view) {
  const file = (format) => button({ json: "Session", kitaru: "Kitaru JSONL", otlp: "Raw spans" }[format], () => download(view, format));
  return element("details", { class: "menu" }, element("summary", {}, "Export"),
    element("div", { class: "sheet" }, ["json", "kitaru", "otlp"].map(file), button("Erase this session\u2026", () => erase(view), { class: "danger" })));
}

async function download(view, format) {
  try {
    const response = await send(sessionPath(view.id, "/export"), { query: { format } });
    const named = /filename="?([\w.-]+)"?/.exec(response.headers.get("Content-Disposition") ?? "")?.[1];
    save(named ?? `session.${{ json: "json", kitaru: "kitaru.jsonl", otlp: "otlp.jsonl" }[format]}`, await response.blob());
  } catch (error) {
    notify(error.message, "bad");
  }
}

async function erase(view) {
  const sure = await ask("Erase this session", (close) => [
    element("h2", {}, "Erase this session?"),
    element("p", {}, "All its revisions, its raw spans and its replay reports are removed from the store, and what of its traces comes later is not kept. This cannot be undone. Backups still have it."),
    element("p", { class: "mono" }, view.id),
    element("p", { class: "actions" }, button("Keep it", () => close(false)), button("Erase", () => close(true), { class: "danger" }))]);
  if (!sure) return;
  try {
    await read(sessionPath(view.id), { method: "DELETE" });
    notify("Erased");
    view.go({});
  } catch (error) {
    notify(error.status === 403 ? "This token may read, not erase: that takes the scope \u201cerase\u201d" : error.message, "bad");
  }
}

// -- whether it can be replayed --------------------------------------------------------------------------------------

function eligibility(view) {
  const { document: session } = view;
  const { eligible, reasons = [] } = session.replay ?? { eligible: false };
  const url = new URL(`/api/v1/${sessionPath(session.id)}`, location.href).href;
  const roots = session.runs.filter((run) => !run.parent);
  const commands = roots.slice(0, 20).map((run, number) => `spanreel replay ${shellWord(`${url}#${number}`)} -- python your_agent.py`);
  const command = (text, run) => element("div", { class: "command" }, roots.length > 1 && element("span", { class: "dim" }, line(run.agent?.name ?? `run`, 30)),
    element("code", {}, text), button("Copy", () => copy(text), { class: "small", "aria-label": "Copy the command" }));
  return element("details", { class: `replay ${eligible ? "good" : "bad"}` },
    element("summary", {}, element("span", { class: "verdict" }, eligible ? "Can be replayed exactly" : `${plural(reasons.length, "thing")} in the way of an exact replay`),
      element("span", { class: "dim" }, eligible ? " \u2013 the command" : " \u2013 what, and what to do")),
    reasons.length > 0 && element("ol", { class: "reasons" }, reasons.slice(0, 200).map((one) => reason(view, one))),
    reasons.length > 200 && element("p", { class: "dim" }, `200 of ${exact(reasons.length)} shown; the session document has all`),
    commands.map((text, number) => command(text, roots[number])),
    roots.length > 20 && element("p", { class: "dim" }, `20 of ${exact(roots.length)} runs shown; the number after # is the run`));
}

function reason(view, one) {
  const row = view.outline.at(one.place);
  return element("li", {}, row ? link({ ...placeOf(view, row) }, {}, `${row.title}`) : element("span", { class: "mono" }, one.place), ": ", one.reason,
    one.remedy && element("span", { class: "remedy" }, ` To do: ${one.remedy}.`));
}

// -- conversation, waterfall, details --------------------------------------------------------------------------------

function drawPanes(view) {
  const select = (row, how) => choose(view, row, how);
  const talk = conversation(view, select);
  const fall = waterfall(view, select);
  const detail = element("section", { class: "detail", "aria-label": "Details", tabindex: "-1", hidden: true });
  view.panes = { talk, fall, detail };
  const tabs = element("div", { class: "panes-tabs", role: "group", "aria-label": "What to show" }, [["conversation", "Conversation"], ["waterfall", "Waterfall"]].map(([name, label]) =>
    button(label, () => setPane(view, name), { "data-pane": name })));
  view.frame = element("div", { class: "panes" }, talk.element, element("div", { class: "side" }, fall.element, detail));
  replace(view.content, tabs, view.frame);
  setPane(view, view.pane);
  fall.draw();
  const row = view.outline.at(view.asked.at);
  if (row) choose(view, row, { quiet: true });
}

function setPane(view, name) {
  view.pane = name;
  view.frame.dataset.pane = name;
  for (const tab of view.content.querySelectorAll("[data-pane]")) if (tab !== view.frame) tab.setAttribute("aria-pressed", String(tab.dataset.pane === name));
  view.panes.fall.draw();
}

/** Select a row in all panes. `from` is the pane that need not move; `quiet` leaves the address as it is;
 * `still` moves nothing. */
function choose(view, row, { from, quiet, still } = {}) {
  const { talk, fall, detail } = view.panes;
  view.selected = row;
  detail.hidden = row === null;
  view.frame.classList.toggle("detailed", row !== null);
  if (row) replace(detail, detailOf(view, row, () => choose(view, null), select(view)));
  if (!still) detail.scrollTop = 0;
  fall.select(row, from !== "waterfall" && !still);
  talk.select(row, from !== "conversation" && !still);
  if (!quiet) {
    view.asked = { ...view.asked, at: row?.pointer };
    if (!row) delete view.asked.at;
    history.replaceState(null, "", address(view.asked));
  }
}

const select = (view) => (row) => choose(view, row);

function update(view, now) {
  const before = view.asked;
  view.asked = now;
  if (now.revision !== before.revision) { view.aborter.abort(); view.aborter = new AbortController(); return load(view); }
  if (now.view !== before.view || now.with !== before.with || now.report !== before.report || !view.panes) return view.document && drawContent(view);
  const row = view.outline.at(now.at);
  if (row) setPane(view, NARROW.matches ? view.pane : "conversation");
  choose(view, row, { quiet: true });
}

// A later revision: what is open stays open, and stays where it is.
function changed(view, revision) {
  if (view.asked.revision || (view.document && revision <= view.document.revision)) return;
  clearTimeout(view.timer);
  view.timer = setTimeout(async () => {
    const { selected, document: { revision: before } } = view;
    const scrolled = view.panes?.talk.element.scrollTop ?? 0;
    await load(view);
    if (!view.panes) return;
    view.panes.talk.element.scrollTop = scrolled;
    const row = selected && view.outline.again(selected);
    if (row) choose(view, row, { from: "conversation" });
    if (view.document.revision > before) notify(`Revision ${view.document.revision} has come`);
  }, 300);
}

function key(view, event) {
  if (event.key === "r") { view.ask({ view: view.asked.view === "replays" ? null : "replays", report: null }); return true; }
  if (event.key === "Escape" && view.asked.view) { view.ask({ view: null, report: null, with: null }); return true; }
  if (!view.panes) return false;
  const { fall, talk, detail } = view.panes;
  const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key];
  if (detail.contains(document.activeElement) && step && event.key.startsWith("Arrow")) return false;
  if (step) { const row = fall.beside(view.selected, step); if (row) choose(view, row); return true; }
  if (event.key === "/") { talk.find(); return true; }
  if (event.key === "z") { fall.zoom(); return true; }
  if (event.key === "ArrowRight" || event.key === "ArrowLeft") return view.selected ? fall.fold(view.selected, event.key === "ArrowLeft", (row) => choose(view, row)) : false;
  if (event.key === "Enter" && view.selected && !event.target.closest("button, a, summary")) { detail.focus(); return true; }
  if (event.key === "Escape" && view.selected) { choose(view, null); return true; }
  return false;
}
