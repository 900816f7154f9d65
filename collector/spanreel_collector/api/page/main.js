// What the address asks for is what is shown; the keyboard, the colours, and what happens meanwhile.

import { follow } from "./client.js";
import { address, ask, button, element, link, replace } from "./dom.js";
import { line } from "./format.js";
import { showSession } from "./session.js";
import { showSessions } from "./sessions.js";

const main = document.getElementById("main");
const THEMES = [
  ["auto", "\u25d0", "as the system has it"],
  ["light", "\u2600", "light"],
  ["dark", "\u263e", "dark"],
];
const KEYS = [
  ["/", "search; in a session, find in it"],
  ["j  k", "next and previous: session in the list, row in a session"],
  ["\u2191  \u2193", "the same"],
  ["\u2190  \u2192", "fold and unfold a run, turn or call"],
  ["Enter", "open; in a session, go to the details"],
  ["Esc", "close the details; back to the list; clear search and filters"],
  ["z", "the waterfall: only the time of the run or turn around what is chosen, and all of it again"],
  ["r", "the replays of a session"],
  ["?", "this"],
];

let view = null;
let shown = null;

const asked = () => Object.fromEntries(new URLSearchParams(location.search));

/** Another state of the page. While somebody types, each letter is no step in the browser's history. */
function go(query, typing = false) {
  const to = address(query);
  if (to === (location.search || "?")) return;
  history[typing ? "replaceState" : "pushState"](null, "", to === "?" ? location.pathname : to);
  draw();
}

// The same session, or still the list: it is told, and stays. Anything else is drawn anew.
function draw() {
  const query = asked();
  const kind = query.session === undefined ? "sessions" : `session ${query.session}`;
  if (view && shown === kind) return view.update(query);
  view?.close();
  shown = kind;
  main.className = query.session === undefined ? "" : "reading";
  document.title = "spanreel";
  trail(query);
  view = query.session === undefined ? showSessions(main, query, go) : showSession(main, query, go);
  scrollTo(0, 0);
}

function trail(query) {
  replace(
    document.getElementById("trail"),
    query.session !== undefined && [
      link(back, { id: "back" }, "Sessions"),
      element("span", { "aria-hidden": "true" }, " / "),
      element("span", { class: "here", title: query.session, "aria-current": "page" }, line(query.session, 60)),
    ],
  );
}

// The list is left as it was asked for, and found so again.
let back = {};

addEventListener("popstate", draw);

document.addEventListener("click", (event) => {
  const anchor = event.target.closest?.("a[data-inside]");
  if (!anchor || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  if (asked().session === undefined) back = asked();
  go(Object.fromEntries(new URLSearchParams(anchor.search)));
});

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const typing = event.target.matches?.("input, select, textarea");
  if (typing) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (event.key === "?") showKeys();
  else if (view?.key(event)) event.preventDefault();
  else if (event.key === "Escape" && asked().session !== undefined) go(back);
});

const showKeys = () =>
  ask("Keyboard", (close) => [
    element("h2", {}, "Keyboard"),
    element(
      "dl",
      { class: "keys" },
      KEYS.map(([key, does]) => [
        element(
          "dt",
          {},
          key.split("  ").map((one) => element("kbd", {}, one)),
        ),
        element("dd", {}, does),
      ]),
    ),
    element(
      "p",
      { class: "actions" },
      button("Close", () => close(null), { class: "primary" }),
    ),
  ]);

function applyTheme(name) {
  const [theme, sign, means] = THEMES.find(([one]) => one === name) ?? THEMES[0];
  document.documentElement.dataset.theme = theme;
  const switcher = document.getElementById("theme");
  replace(switcher, sign);
  switcher.setAttribute("aria-label", `Colours: ${means}`);
  switcher.title = `Colours: ${means}`;
  return theme;
}

let theme = applyTheme(localStorage.getItem("spanreel.theme"));
document.getElementById("theme").addEventListener("click", () => {
  const next = THEMES[(THEMES.findIndex(([one]) => one === theme) + 1) % THEMES.length][0];
  localStorage.setItem("spanreel.theme", next);
  theme = applyTheme(next);
});
document.getElementById("keys").addEventListener("click", showKeys);

const live = document.getElementById("live");
draw();
follow(
  (one) => (one ? view?.changed(one) : view?.missed()),
  (state) => {
    live.className = `live ${state}`;
    replace(live, state === "live" ? "live" : "not live");
    live.title =
      state === "live"
        ? "What changes is shown at once"
        : "The service does not send what changes now; it is tried again";
  },
);
