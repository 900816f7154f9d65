// What the list of sessions is asked for: words, filters, order. All of it stands in the address.

import { button, element, link, replace } from "./dom.js";
import { exact, line } from "./format.js";
import { ORIGIN, STATUS } from "./words.js";

const FACETS = [
  ["agent", "Agent"],
  ["model", "Model"],
  ["tool", "Tool"],
  ["status", "Status"],
  ["version", "Version"],
  ["tag", "Tag"],
  ["origin", "Origin"],
];
/** `[name, label, seconds]`. */
export const SPANS = [
  ["1h", "last hour", 3600],
  ["1d", "last 24 hours", 86400],
  ["7d", "last 7 days", 604800],
  ["30d", "last 30 days", 2592000],
];
const ORDERS = [
  ["started", "newest first"],
  ["updated", "last changed"],
  ["duration", "longest"],
  ["tokens", "most tokens"],
  ["cost", "most expensive"],
];
/** What goes to the service as it is. */
export const PASSED = [
  "text",
  "agent",
  "version",
  "user",
  "model",
  "tool",
  "tag",
  "origin",
  "status",
  "key",
  "baseline",
  "eligible",
  "least_tokens",
  "most_tokens",
  "least_cost",
  "most_cost",
  "order",
  "since",
  "until",
];
const ASKED = [...PASSED.filter((name) => name !== "text" && name !== "order"), "within"];

/** How many filters are set; words and order are none. */
export const filtersSet = (asked) => ASKED.filter((name) => asked[name] && !["since", "until"].includes(name)).length;

// What is redrawn under somebody's fingers has the focus again afterwards.
export function drawAsked(view) {
  const name = document.activeElement?.name;
  const count = filtersSet(view.asked);
  replace(view.opener, count ? `Filters (${count})` : "Filters");
  drawFilters(view);
  const words = document.getElementById("search");
  if (words !== document.activeElement) words.value = view.asked.text ?? "";
  replace(
    view.order,
    ASKED.some((one) => view.asked[one]) &&
      link({ text: view.asked.text, order: view.asked.order }, { class: "clear" }, "Clear filters"),
    choice(
      "order",
      "Order",
      ORDERS,
      view.asked.order ?? "started",
      (value) => view.ask({ order: value === "started" ? null : value }),
      false,
    ),
  );
  if (name) view.filters.parentElement.querySelector(`[name="${CSS.escape(name)}"]`)?.focus();
}

/** The field for words. */
export function search(view) {
  const field = element("input", {
    type: "search",
    id: "search",
    value: view.asked.text ?? "",
    placeholder: "Words in messages, tools, results",
    "aria-label": "Search sessions",
    autocomplete: "off",
    spellcheck: "false",
    enterkeyhint: "search",
  });
  const ask = (typing) => {
    clearTimeout(view.typing);
    view.ask({ text: field.value.trim() || null }, typing);
  };
  field.addEventListener("input", () => {
    clearTimeout(view.typing);
    view.typing = setTimeout(() => ask(true), 350);
  });
  field.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowDown") return;
    event.preventDefault();
    view.body.querySelector("a.words")?.focus();
  });
  return element(
    "form",
    {
      class: "search",
      role: "search",
      on: {
        submit: (event) => {
          event.preventDefault();
          ask(false);
        },
      },
    },
    field,
    element("kbd", { "aria-hidden": "true" }, "/"),
  );
}

/** The button that shows the filters where the window is narrow. */
export function opener(view) {
  const made = button(
    "Filters",
    () => {
      made.setAttribute("aria-expanded", String(view.filters.classList.toggle("open")));
    },
    { class: "opener", "aria-expanded": "false", "aria-controls": "filters" },
  );
  return made;
}

function drawFilters(view) {
  const { asked, ask, facets } = view;
  const found = FACETS.map(([name, label]) => {
    const counted = facets.get(name) ?? [];
    const values = counted.map(([value, count]) => [value, `${shownValue(name, value)} (${exact(count)})`]);
    if (asked[name] && !counted.some(([value]) => value === asked[name]))
      values.unshift([asked[name], shownValue(name, asked[name])]);
    return (
      values.length > 0 &&
      choice(name, label, [["", "any"], ...values], asked[name] ?? "", (value) => ask({ [name]: value }))
    );
  });
  const eligible = choice(
    "eligible",
    "Replay",
    [
      ["", "any"],
      ["true", "can be exact"],
      ["false", "cannot be exact"],
    ],
    asked.eligible ?? "",
    (value) => ask({ eligible: value }),
  );
  const spans = [["", "any time"], ...SPANS.map(([name, label]) => [name, label]), ["own", "from \u2013 to"]];
  const chosen = asked.within ?? (asked.since || asked.until ? "own" : "");
  const time = choice("within", "Started", spans, chosen, (value) => ask({ within: value, since: null, until: null }));
  const user = typed(
    "user",
    "User",
    { value: asked.user ?? "", size: 10, placeholder: "any", spellcheck: "false", autocomplete: "off" },
    (value) => ask({ user: value.trim() }),
  );
  const held =
    asked.key && element("span", { class: "choice set" }, element("span", {}, "Conversation"), line(asked.key, 40));
  replace(
    view.filters,
    found,
    eligible,
    time,
    chosen === "own" && [bound("From", "since", asked, ask), bound("To", "until", asked, ask)],
    user,
    held,
  );
}

const shownValue = (name, value) =>
  line(name === "status" ? (STATUS.get(value) ?? value) : name === "origin" ? (ORIGIN.get(value) ?? value) : value, 60);

function choice(name, label, options, value, choose, marked = true) {
  const made = element(
    "select",
    { name, "aria-label": label, on: { change: () => choose(made.value || null) } },
    options.map(([one, text]) => element("option", { value: one }, text)),
  );
  made.value = value;
  return element("label", { class: `choice ${value && marked ? "set" : ""}` }, element("span", {}, label), made);
}

const typed = (name, label, properties, choose) =>
  element(
    "label",
    { class: `choice ${properties.value ? "set" : ""}` },
    element("span", {}, label),
    element("input", {
      name,
      "aria-label": label,
      ...properties,
      on: { change: (event) => choose(event.target.value) },
    }),
  );

function bound(label, name, asked, ask) {
  const local = asked[name]
    ? new Date(Date.parse(asked[name]) - new Date().getTimezoneOffset() * 60000).toISOString().slice(0, 16)
    : "";
  return typed(name, label, { type: "datetime-local", value: local }, (value) =>
    ask({ within: "own", [name]: value ? new Date(value).toISOString() : null }),
  );
}
