// One session: its head, and under it the conversation beside the waterfall with the details of what is selected, or
// its replays, or another session beside it.

import { read, readScopes, sessionPath } from "./client.js";
import { showComparison } from "./comparison.js";
import { conversation } from "./conversation.js";
import { detailOf, foretell } from "./detail.js";
import { address, button, element, link, notify, released, replace } from "./dom.js";
import { eligibility } from "./eligibility.js";
import { line } from "./format.js";
import { outlineOf } from "./outline.js";
import { showReplays } from "./replays.js";
import { head, opening } from "./session_head.js";
import { waterfall } from "./waterfall.js";

const NARROW = matchMedia("(max-width: 820px)");

/** Draws a session into `main`. Returns what `main.js` tells it: keys, changes, another address. */
export function showSession(main, asked, go) {
  const view = {
    main,
    asked,
    go,
    id: asked.session,
    aborter: new AbortController(),
    document: null,
    selected: null,
    pane: "conversation",
  };
  view.ask = (changes) => go({ ...view.asked, ...changes });
  replace(main, element("p", { class: "empty" }, "Loading"));
  load(view);
  return {
    key: (event) => key(view, event),
    changed: (one) => one.id === view.id && changed(view, one.revision),
    missed: () => changed(view, Infinity),
    close: () => {
      clearTimeout(view.timer);
      view.aborter.abort();
    },
    update: (now) => update(view, now),
  };
}

async function load(view) {
  const { signal } = view.aborter;
  try {
    const [found, reports, revisions, scopes] = await Promise.all([
      read(sessionPath(view.id), { query: { revision: view.asked.revision }, signal }),
      read(sessionPath(view.id, "/reports"), { signal }),
      read(sessionPath(view.id, "/revisions"), { signal }),
      readScopes(signal),
    ]);
    await released(signal);
    view.scopes = scopes;
    view.document = found;
    view.reports = reports;
    view.revisions = revisions;
    view.forecast = new Map();
    view.outline = outlineOf(found);
  } catch (error) {
    if (error.name === "AbortError") return;
    return replace(
      view.main,
      element(
        "div",
        { class: "empty" },
        element(
          "p",
          {},
          error.status === 404 ? "There is no such session: it was erased, or never here." : error.message,
        ),
        element("p", {}, link({}, {}, "All sessions")),
      ),
    );
  }
  draw(view);
  forecast(view);
}

// It takes as long as a replay's planning does; nobody waits for it. It is of the newest revision.
async function forecast(view) {
  if (view.asked.revision) return;
  const { signal } = view.aborter;
  try {
    const { calls, revision } = await read(sessionPath(view.id, "/forecast"), { signal });
    await released(signal);
    if (revision !== view.document.revision) return;
    view.forecast = new Map(calls.map((one) => [one.place, one]));
    if (view.selected && view.panes) foretell(view, view.selected, view.panes.detail.querySelector(".forecast"));
  } catch (error) {
    if (error.name !== "AbortError") notify(error.message, "bad");
  }
}

function draw(view) {
  const { document: session } = view;
  window.document.title = `${line(opening(session) || session.id, 60)} \u2013 spanreel`;
  view.content = element("div", { class: "content" });
  replace(
    view.main,
    element(
      "article",
      { class: "session", "aria-label": `Session ${session.id}` },
      head(view),
      eligibility(view),
      view.content,
    ),
  );
  drawContent(view);
}

function drawContent(view) {
  const shown = view.asked.view ?? "";
  for (const tab of view.main.querySelectorAll(".views a"))
    if (tab.dataset.view === shown) tab.setAttribute("aria-current", "page");
    else tab.removeAttribute("aria-current");
  view.panes = null;
  if (shown === "replays") return showReplays(view.content, view);
  if (shown === "compare") return showComparison(view.content, view);
  drawPanes(view);
}

// -- conversation, waterfall, details --------------------------------------------------------------------------------

function drawPanes(view) {
  const select = (row, how) => choose(view, row, how);
  const talk = conversation(view, select);
  const fall = waterfall(view, select);
  const detail = element("section", { class: "detail", "aria-label": "Details", tabindex: "-1", hidden: true });
  view.panes = { talk, fall, detail };
  const tabs = element(
    "div",
    { class: "panes-tabs", role: "group", "aria-label": "What to show" },
    [
      ["conversation", "Conversation"],
      ["waterfall", "Waterfall"],
    ].map(([name, label]) => button(label, () => setPane(view, name), { "data-pane": name })),
  );
  view.frame = element(
    "div",
    { class: "panes" },
    talk.element,
    element("div", { class: "side" }, fall.element, detail),
  );
  replace(view.content, tabs, view.frame);
  setPane(view, view.pane);
  fall.draw();
  const row = view.outline.at(view.asked.at);
  if (row) choose(view, row, { quiet: true });
}

function setPane(view, name) {
  view.pane = name;
  view.frame.dataset.pane = name;
  for (const tab of view.content.querySelectorAll("[data-pane]"))
    if (tab !== view.frame) tab.setAttribute("aria-pressed", String(tab.dataset.pane === name));
  view.panes.fall.draw();
}

/** Select a row in all panes. `from` is the pane that need not move; `quiet` leaves the address as it is. */
function choose(view, row, { from, quiet } = {}) {
  const { talk, fall, detail } = view.panes;
  view.selected = row;
  detail.hidden = row === null;
  view.frame.classList.toggle("detailed", row !== null);
  if (row)
    replace(
      detail,
      detailOf(view, row, () => choose(view, null), select(view)),
    );
  detail.scrollTop = 0;
  fall.select(row, from !== "waterfall");
  talk.select(row, from !== "conversation");
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
  if (now.revision !== before.revision) {
    view.aborter.abort();
    view.aborter = new AbortController();
    return load(view);
  }
  if (now.view !== before.view || now.with !== before.with || now.report !== before.report || !view.panes)
    return view.document && drawContent(view);
  const row = view.outline.at(now.at);
  if (row) setPane(view, NARROW.matches ? view.pane : "conversation");
  choose(view, row, { quiet: true });
}

// A later revision: what is open stays open, and stays where it is.
function changed(view, revision) {
  if (view.asked.revision || (view.document && revision <= view.document.revision)) return;
  clearTimeout(view.timer);
  view.timer = setTimeout(async () => {
    if (!view.document) return;
    const { selected } = view;
    const before = view.document.revision;
    const scrolled = view.panes?.talk.element.scrollTop ?? 0;
    await load(view);
    if (!view.panes?.talk.element.isConnected) return;
    view.panes.talk.element.scrollTop = scrolled;
    const row = selected && view.outline.again(selected);
    if (row) choose(view, row, { from: "conversation" });
    if (view.document.revision > before) notify(`Revision ${view.document.revision} has come`);
  }, 300);
}

function key(view, event) {
  if (event.key === "r") {
    view.ask({ view: view.asked.view === "replays" ? null : "replays", report: null });
    return true;
  }
  if (event.key === "Escape" && view.asked.view) {
    view.ask({ view: null, report: null, with: null });
    return true;
  }
  if (!view.panes) return false;
  const { fall, talk, detail } = view.panes;
  const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key];
  if (detail.contains(document.activeElement) && step && event.key.startsWith("Arrow")) return false;
  if (step) {
    const row = fall.beside(view.selected, step);
    if (row) choose(view, row);
    return true;
  }
  if (event.key === "/") {
    talk.find();
    return true;
  }
  if (event.key === "z") {
    fall.zoom();
    return true;
  }
  if (event.key === "ArrowRight" || event.key === "ArrowLeft")
    return view.selected ? fall.fold(view.selected, event.key === "ArrowLeft", (row) => choose(view, row)) : false;
  if (event.key === "Enter" && view.selected && !event.target.closest("button, a, summary")) {
    detail.focus();
    return true;
  }
  if (event.key === "Escape" && view.selected) {
    choose(view, null);
    return true;
  }
  return false;
}
