// Whether a session can be replayed exactly: what stands in the way, what to do, and the command.

import { sessionPath } from "./client.js";
import { commandLine, element, inPortions, link } from "./dom.js";
import { line, plural, shellWord } from "./format.js";
import { placeOf } from "./outline.js";

/** It, to be opened. */
export function eligibility(view) {
  const { document: session } = view;
  const { eligible, reasons = [] } = session.replay ?? { eligible: false };
  const url = new URL(`/api/v1/${sessionPath(session.id)}`, location.href).href;
  const roots = session.runs.filter((run) => !run.parent);
  const command = (run, number) => {
    const text = `spanreel replay ${shellWord(`${url}#${number}`)} -- python your_agent.py`;
    return commandLine(text, "Copy the command", roots.length > 1 && line(run.agent?.name ?? "run", 30));
  };
  return element(
    "details",
    { class: `eligibility ${eligible ? "able" : "unable"}` },
    element(
      "summary",
      {},
      element(
        "span",
        { class: "verdict" },
        eligible ? "Can be replayed exactly" : `${plural(reasons.length, "thing")} in the way of an exact replay`,
      ),
      element("span", { class: "dim" }, eligible ? " \u2013 the command" : " \u2013 what, and what to do"),
    ),
    reasons.length > 0 && inPortions(element("ol", { class: "reasons" }), reasons, (one) => reason(view, one), 50),
    inPortions(
      element("div", {}),
      roots.map((run, number) => [run, number]),
      ([run, number]) => command(run, number),
      10,
    ),
  );
}

function reason(view, one) {
  const row = view.outline.at(one.place);
  return element(
    "li",
    {},
    row ? link({ ...placeOf(view, row) }, {}, `${row.title}`) : element("span", { class: "mono" }, one.place),
    ": ",
    one.reason,
    one.remedy && element("span", { class: "remedy" }, ` To do: ${one.remedy}.`),
  );
}
