// The parts that details are made of: facts, values, and their headings.

import { element } from "./dom.js";
import { toJson } from "./format.js";
import { copyButton, jsonTree, longText } from "./json_tree.js";

/** Names and values, without those that are not known. */
export const facts = (pairs) => {
  const known = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== false);
  return (
    known.length > 0 &&
    element(
      "dl",
      { class: "facts stacked" },
      known.map(([name, value]) =>
        element(
          "div",
          {},
          element("dt", {}, name),
          element(
            "dd",
            { dir: "auto" },
            value instanceof Node || Array.isArray(value)
              ? value
              : typeof value === "object"
                ? toJson(value)
                : String(value),
          ),
        ),
      ),
    )
  );
};

/** A heading, and what stands under it. */
export const section = (title, ...content) => element("section", {}, element("h3", {}, title), ...content);

/** A value of any size with its name and a button that copies it. */
export function valueSection(title, value, note) {
  return element(
    "section",
    {},
    element("h3", {}, title, " ", copyButton(value)),
    note && element("p", { class: "dim" }, note),
    typeof value === "string"
      ? longText(value, "said mono boxed")
      : element("div", { class: "boxed" }, jsonTree(value, title)),
  );
}

/** The same, where there is anything. */
export const objectSection = (title, value) => value && Object.keys(value).length > 0 && valueSection(title, value);
