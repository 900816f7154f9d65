// What evaluators said of a session, a run or a call.

import { element } from "./dom.js";
import { precisely } from "./format.js";
import { section, valueSection } from "./sections.js";

/** A section with each evaluation: its name, score and label, and why; nothing where there is none. */
export function evaluationsSection(evaluations) {
  if (!evaluations?.length) return null;
  return section(
    evaluations.length === 1 ? "Evaluation" : "Evaluations",
    element("ul", { class: "plain" }, evaluations.map(evaluationOf)),
  );
}

function evaluationOf(one) {
  const fields = Object.keys(one.provider_fields ?? {}).length > 0;
  const about = [
    one.evaluator && `by ${one.evaluator}`,
    one.response_id && `of the answer ${one.response_id}`,
    one.judged_at && precisely(one.judged_at),
  ].filter(Boolean);
  return element(
    "li",
    {},
    element("strong", { dir: "auto" }, one.name ?? "evaluation"),
    " ",
    element("span", { dir: "auto" }, verdict(one)),
    about.length > 0 && element("span", { class: "dim" }, ` ${about.join(", ")}`),
    one.explanation && element("p", { class: "said", dir: "auto" }, one.explanation),
    fields && valueSection("What else it says", one.provider_fields),
  );
}

/** The score and the label as text; why there are none, where the evaluator failed. */
export const verdict = (one) =>
  [one.score === undefined ? null : String(one.score), one.label, one.error_type && `failed: ${one.error_type}`]
    .filter((part) => part !== null && part !== undefined && part !== "")
    .join(", ");
