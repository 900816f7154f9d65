// Messages of a conversation, with their parts. Markdown, addresses and pictures stay what they are here: text.

import { element } from "./dom.js";
import { brief, exact, line } from "./format.js";
import { jsonTree, longText, peek } from "./json_tree.js";

const ROLES = new Map([
  ["system", "instructions"],
  ["developer", "instructions"],
  ["user", "user"],
  ["assistant", "model"],
  ["tool", "tool result"],
]);

/** A message. `calls`: whether what it asks of tools is shown whole, or only by name since the calls stand below it. */
export function messageOf(message, { calls = false, folded = null } = {}) {
  if (!message) return element("p", { class: "dim" }, "A message that the document does not have.");
  const role = message.role ?? "message";
  const label = element("span", { class: "role" }, ROLES.get(role) ?? role, message.name ? ` ${message.name}` : "");
  const kind = ROLES.has(role) ? role : "other";
  const hidden = folded ?? (kind === "system" || kind === "developer");
  if (!hidden) return element("div", { class: `message ${kind}` }, label, partsOf(message, calls));
  return folding(
    `message ${kind}`,
    [label, element("span", { class: "peek", dir: "auto" }, line(textOf(message), 140))],
    () => partsOf(message, calls),
  );
}

/** What a message says, as text, for search and for one line. */
export const textOf = (message) =>
  (message?.parts ?? [])
    .map((part) => {
      if (typeof part.content === "string") return part.content;
      return part.type === "text"
        ? brief(part.content)
        : `${part.name ?? ""} ${brief(part.arguments ?? part.response ?? part, 400)}`;
    })
    .join(" ");

/** A part that opens, and is made when it does. */
export function folding(className, summary, make, open = false) {
  const box = element(
    "details",
    {
      class: className,
      on: {
        toggle: () => {
          if (box.open && box.childElementCount === 1) box.append(...[make()].flat());
        },
      },
    },
    element("summary", {}, ...summary),
  );
  if (open) {
    box.append(...[make()].flat());
    box.open = true;
  }
  return box;
}

function partsOf(message, calls) {
  const given = message.parts ?? [];
  // What asks for tools and says nothing else, and none of which stands below, is not nothing.
  const shown = calls || (given.length > 0 && given.every((part) => part.type === "tool_call"));
  const parts = given.map((part) => partOf(part, shown)).filter(Boolean);
  return parts.length ? parts : [element("p", { class: "dim" }, "(nothing)")];
}

function partOf(part, calls) {
  switch (part.type) {
    case "text":
      return typeof part.content === "string" ? longText(part.content) : jsonTree(part.content, "text");
    case "refusal":
      return element("div", {}, element("span", { class: "tag" }, "refusal"), longText(part.content ?? ""));
    case "reasoning":
      return folding(
        "reasoning",
        ["reasoning ", element("span", { class: "peek" }, line(part.content ?? "", 90))],
        () => longText(part.content ?? ""),
      );
    case "tool_call":
      return calls ? valued(`asks for ${line(part.name ?? "a tool", 80)}`, part.arguments) : null;
    case "tool_call_response":
      return valued(`result${part.id ? ` of ${line(part.id, 60)}` : ""}`, part.response);
    case "server_tool_call":
      return valued(`the provider runs ${line(part.name ?? "a tool", 80)}`, part.server_tool_call ?? part);
    case "server_tool_call_response":
      return valued("the provider\u2019s tool gave", part.server_tool_call_response ?? part);
    case "blob":
    case "uri":
    case "file":
      return media(part);
    default:
      return valued(line(part.type ?? "part", 60), part);
  }
}

const valued = (label, value) =>
  folding("valued", [`${label} `, peek(value, 110)], () =>
    typeof value === "string" ? longText(value, "said mono") : jsonTree(value, label),
  );

function media(part) {
  const size = typeof part.content === "string" ? `${exact(part.content.length)} characters` : "";
  const facts = [part.modality ?? part.type, part.mime_type, size].filter(Boolean).join(", ");
  return element(
    "div",
    { class: "media" },
    element("span", { class: "tag" }, facts),
    part.uri || part.file_id ? element("span", { class: "mono" }, ` ${line(part.uri ?? part.file_id, 300)}`) : null,
    folding("valued", ["as recorded"], () => jsonTree(part, "part")),
  );
}
