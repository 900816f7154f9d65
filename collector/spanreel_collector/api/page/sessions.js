// The list of sessions: what is asked for stands in the address, and the rows follow what happens meanwhile.

import { asksForToken, read, sessionPath } from "./client.js";
import { button, commandLine, element, notify, released, replace, written } from "./dom.js";
import { PASSED, SPANS, filtersSet, drawAsked, opener, search } from "./filters.js";
import { exact, plural } from "./format.js";
import { COLUMNS, rowOf } from "./session_row.js";

const PAGE = 50;

/** Draws the list into `main` for what the address asks. Returns what `main.js` tells it: keys, changes, addresses. */
export function showSessions(main, asked, go) {
  const view = {
    asked,
    go,
    rows: new Map(),
    cursor: null,
    more: false,
    waiting: new Set(),
    facets: new Map(),
    gone: new AbortController(),
  };
  view.ask = (changes, typing = false) => go({ ...view.asked, ...changes }, typing);
  view.body = element("tbody", {});
  view.table = table(view);
  view.foot = element("div", { class: "foot", role: "status" });
  view.news = element("div", { class: "news", role: "status" });
  view.filters = element("div", { class: "filters", id: "filters" });
  view.opener = opener(view);
  view.order = element("div", {});
  replace(
    main,
    element(
      "section",
      { class: "list", "aria-label": "Sessions" },
      element("div", { class: "ask" }, search(view), view.opener, view.order),
      view.filters,
      view.news,
      view.table,
      view.foot,
    ),
  );
  const stop = () => {
    clearTimeout(view.timer);
    view.aborter?.abort();
  };
  const close = () => {
    stop();
    clearTimeout(view.typing);
    view.gone.abort();
  };
  const update = (now) => {
    stop();
    view.aborter = new AbortController();
    view.asked = now;
    drawAsked(view);
    load(view);
  };
  update(asked);
  readFacets(view);
  return {
    key: (event) => key(view, event),
    changed: (one) => changed(view, one),
    missed: () => refresh(view, true),
    close,
    update,
  };
}

async function readFacets(view) {
  try {
    view.facets = new Map(Object.entries(await read("facets", { signal: view.gone.signal })));
    await written(view.filters);
    if (!view.gone.signal.aborted) drawAsked(view);
  } catch (error) {
    unlessGone(error);
  }
}

const unlessGone = (error) => {
  if (error.name !== "AbortError") notify(error.message, "bad");
};

const table = (view) =>
  element(
    "table",
    { class: "sessions" },
    element(
      "thead",
      {},
      element(
        "tr",
        {},
        COLUMNS.map(([label, kind]) => element("th", { scope: "col", class: kind }, label)),
      ),
    ),
    view.body,
  );

function query(view, cursor) {
  const wanted = Object.fromEntries(PASSED.map((name) => [name, view.asked[name]]));
  const within = SPANS.find(([name]) => name === view.asked.within);
  if (within) wanted.since = new Date(Date.now() - within[2] * 1000).toISOString();
  return { ...wanted, limit: PAGE, cursor };
}

async function load(view, cursor = null) {
  const { signal } = view.aborter;
  try {
    const page = await read("sessions", { query: query(view, cursor), signal });
    await released(signal);
    if (cursor === null) {
      view.rows.clear();
      view.body.replaceChildren();
      view.waiting.clear();
      drawNews(view);
    }
    view.more = cursor !== null;
    for (const session of page.sessions) put(view, session);
    view.cursor = page.cursor;
    drawFoot(view);
  } catch (error) {
    if (error.name !== "AbortError")
      replace(
        view.foot,
        element("span", { class: "bad" }, error.message),
        " ",
        button("Try again", () => load(view, cursor)),
      );
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
  const asked = filtersSet(view.asked) > 0 || view.asked.text;
  view.table.hidden = shown === 0;
  if (!shown) {
    replace(
      view.foot,
      asked
        ? [element("strong", {}, "No session fits."), " Fewer words or filters find more."]
        : element("div", { class: "welcome" }, welcome()),
    );
  } else {
    replace(
      view.foot,
      `${plural(shown, "session")} shown${view.cursor ? ", there are more " : ", that is all "}`,
      view.cursor &&
        button(
          "More",
          async () => {
            const last = view.body.lastElementChild;
            await load(view, view.cursor);
            last?.nextElementSibling?.querySelector("a")?.focus();
          },
          { class: "primary" },
        ),
    );
  }
}

// What whoever sees no session yet does next.
function welcome() {
  const record = `OTEL_EXPORTER_OTLP_ENDPOINT=${location.origin} spanreel run -- python your_agent.py`;
  const token = "OTEL_EXPORTER_OTLP_HEADERS='Authorization=Bearer%20YOUR_TOKEN'";
  return [
    element("strong", {}, "No session yet."),
    element("p", {}, "Record an agent into this service:"),
    commandLine(asksForToken() ? `${token} ${record}` : record, "Copy the command"),
    element(
      "p",
      { class: "dim" },
      "Or point any OTLP exporter, or a Collector, at this address. ",
      "A session appears here by itself when its trace has been quiet for a moment.",
    ),
  ];
}

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
    const { signal } = view.aborter;
    try {
      const session = await read(sessionPath(id, "/summary"), { signal });
      await released(signal);
      put(view, session, true);
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
  replace(
    view.news,
    count > 0 &&
      button(
        `${exact(count)} more came or changed: show`,
        () => {
          scrollTo(0, 0);
          load(view);
        },
        { class: "primary" },
      ),
  );
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
  if (event.key === "/") {
    document.getElementById("search").select();
    return true;
  }
  if (event.key === "Escape" && (view.asked.text || filtersSet(view.asked) > 0)) {
    document.getElementById("search").value = "";
    view.go({});
    return true;
  }
  return false;
}
