// The head of a session: what it was, its revisions and views, exports, erasing.

import { read, send, sessionPath } from "./client.js";
import { ask, button, element, link, notify, save } from "./dom.js";
import { verdict } from "./evaluations.js";
import { duration, exact, lengthOf, line, moment, money, tokens, when } from "./format.js";
import { marks, pill } from "./marks.js";
import { trouble } from "./trouble.js";
import { COST, ORIGIN } from "./words.js";

const MOST_USERS = 3;
const VIEWS = [
  ["", "Conversation"],
  ["replays", "Replays"],
  ["compare", "Compare"],
];

/** What it began with, for people. */
export function opening(session) {
  const said = session.runs[0]?.input
    ?.map((index) => session.messages[index])
    .flatMap((message) => message?.parts ?? []);
  return session.name ?? said?.map((part) => part.content).find((text) => typeof text === "string" && text.trim());
}

/** The head. */
export function head(view) {
  const { document: session, outline } = view;
  const count = (kind) => outline.rows.filter((row) => row.kind === kind).length;
  const lost = marks(session.fidelity);
  const users = [...new Set([session.user_id, ...session.runs.map((run) => run.user_id)].filter(Boolean))];
  const facts = [
    ["Started", element("time", { title: session.started_at }, when(session.started_at))],
    ["Took", lasted(session, outline)],
    ["Calls", `${exact(count("model") + count("side"))} model, ${exact(count("tool"))} tool`],
    ["Tokens", tokens(session.usage) && element("span", { title: usageTitle(session.usage) }, tokens(session.usage))],
    [
      "Cost",
      session.cost &&
        element(
          "span",
          { title: COST.get(session.cost.source) },
          money(session.cost.usd),
          element("span", { class: "dim" }, ` ${session.cost.source}`),
        ),
    ],
    [users.length > 1 ? "Users" : "User", users.length > 0 && userLinks(users)],
    [
      session.key.kind === "conversation" ? "Conversation" : "Trace",
      element("span", { class: "mono", title: session.key.value }, line(session.key.value, 20)),
    ],
    ["Origin", element("span", { title: ORIGIN.get(session.origin) }, session.origin)],
    [
      "Baseline",
      session.baseline && link({ session: session.id, view: "compare", with: session.baseline }, {}, "compare with it"),
    ],
    [
      "Redaction",
      session.redaction?.policy &&
        element(
          "span",
          { title: `keys of its digests: ${(session.redaction.key_ids ?? []).join(", ") || "none"}` },
          `policy ${line(session.redaction.policy, 30)}`,
        ),
    ],
    [
      "Judged",
      session.evaluations?.length > 0 &&
        session.evaluations.map((one, place) => [
          place > 0 && "; ",
          element("span", { title: one.explanation ?? "", dir: "auto" }, line(`${one.name ?? "as"} ${verdict(one)}`, 60)),
        ]),
    ],
    ["Revision", revisionPicker(view)],
  ].filter(([, value]) => value);
  return element(
    "header",
    { class: "head" },
    element(
      "div",
      { class: "title" },
      pill(session.status),
      element("h1", { dir: "auto" }, line(opening(session) || session.id, 140)),
      (session.tags ?? []).map((tag) => link({ tag }, { class: "tag" }, line(tag, 40))),
    ),
    element(
      "dl",
      { class: "facts" },
      facts.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))),
    ),
    trouble(view),
    lost.length > 0 &&
      element("p", { class: "lost" }, element("span", { class: "dim" }, "Not whole in some calls: "), lost),
    element(
      "div",
      { class: "tools" },
      element(
        "nav",
        { class: "views", "aria-label": "Views of this session" },
        VIEWS.map(([name, label]) =>
          link(
            { session: view.id, revision: view.asked.revision, view: name },
            { "data-view": name },
            label,
            name === "replays" &&
              view.reports.length > 0 &&
              element("span", { class: "count" }, ` ${view.reports.length}`),
          ),
        ),
      ),
      actions(view),
    ),
  );
}

// Where nobody told of an end, it lasted at least until the last that is known of it.
function lasted(session, { rows }) {
  if (session.status !== "unfinished") return duration(lengthOf(session.started_at, session.ended_at));
  const from = moment(session.started_at);
  const last = rows.reduce((latest, row) => Math.max(latest, row.ended ?? row.started ?? 0), 0);
  return from === null || last < from ? duration(null) : element("span", { title: "Or longer: a run of it has no end" }, `> ${duration(last - from)}`);
}

const userLinks = (users) => [
  ...users
    .slice(0, MOST_USERS)
    .flatMap((user, place) => [
      place > 0 && ", ",
      link({ user }, { title: "All sessions of this user" }, line(user, 40)),
    ]),
  users.length > MOST_USERS && element("span", { class: "dim" }, ` and ${exact(users.length - MOST_USERS)} more`),
];

const usageTitle = (usage) =>
  Object.entries(usage ?? {})
    .filter(([, value]) => typeof value === "number")
    .map(([name, value]) => `${exact(value)} ${name.replaceAll("_", " ")}`)
    .join(", ");

function revisionPicker(view) {
  const { document: session, revisions } = view;
  if (revisions.length < 2) return String(session.revision);
  const newest = Math.max(...revisions.map((one) => one.revision));
  const picker = element(
    "select",
    {
      "aria-label": "Revision",
      on: { change: () => view.ask({ revision: Number(picker.value) === newest ? null : picker.value, at: null }) },
    },
    revisions.map((one) =>
      element(
        "option",
        { value: String(one.revision) },
        `${one.revision}${one.revision === newest ? " (newest)" : ""} \u00b7 ${when(one.at)}`,
      ),
    ),
  );
  picker.value = String(session.revision);
  return picker;
}

function actions(view) {
  const file = (format) =>
    button(`Export ${{ json: "session", kitaru: "Kitaru JSONL", otlp: "raw spans" }[format]}`, () =>
      download(view, format),
    );
  return element(
    "details",
    { class: "menu" },
    element("summary", {}, "Actions"),
    element(
      "div",
      { class: "sheet" },
      ["json", "kitaru", "otlp"].map(file),
      view.scopes.includes("erase") &&
        button("Erase this session\u2026", () => erase(view), { class: "danger" }),
    ),
  );
}

async function download(view, format) {
  try {
    const response = await send(sessionPath(view.id, "/export"), { query: { format } });
    const named = /filename="?([\w.-]+)"?/.exec(response.headers.get("Content-Disposition") ?? "")?.[1];
    save(
      named ?? `session.${{ json: "json", kitaru: "kitaru.jsonl", otlp: "otlp.jsonl" }[format]}`,
      await response.blob(),
    );
  } catch (error) {
    notify(error.message, "bad");
  }
}

async function erase(view) {
  const sure = await ask("Erase this session", (close) => [
    element("h2", {}, "Erase this session?"),
    element(
      "p",
      {},
      "All its revisions, its raw spans, its replays and their reports are removed from the store, and what of its traces comes later is not kept. This cannot be undone. Backups still have it.",
    ),
    element("p", { class: "mono" }, view.id),
    element(
      "p",
      { class: "actions" },
      button("Keep it", () => close(false)),
      button("Erase", () => close(true), { class: "danger" }),
    ),
  ]);
  if (!sure) return;
  try {
    await read(sessionPath(view.id), { method: "DELETE" });
    notify("Erased");
    view.go({});
  } catch (error) {
    notify(error.message, "bad");
  }
}
