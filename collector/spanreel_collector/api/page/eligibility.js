// Whether a session can be replayed exactly: what stands in the way, what to do, and the command.

import { sessionPath } from "./client.js";
import { commandLine, element, inPortions, link } from "./dom.js";
import { line, plural, shellWord } from "./format.js";
import { placeOf } from "./outline.js";

/** It, to be opened. */
export function eligibility(view) {
  const { document: session } = view;
  const { eligible, reasons = [] } = session.replay ?? { eligible: false };
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
    replayCommands(session),
  );
}

/** The commands that replay the runs of a session, each as the run was started when it was recorded. */
export function replayCommands(session, options = "") {
  const url = new URL(`/api/v1/${sessionPath(session.id)}`, location.href).href;
  const roots = session.runs.filter((run) => !run.parent);
  const command = ([run, number]) => {
    const program = started(run) ?? "python your_agent.py";
    const text = `spanreel replay ${shellWord(`${url}#${number}`)}${options} -- ${program}`;
    return commandLine(text, "Copy the command", roots.length > 1 && line(run.agent?.name ?? "run", 30));
  };
  return inPortions(
    element("div", {}),
    roots.map((run, number) => [run, number]),
    command,
    10,
  );
}

// What is copied here is run by somebody. A trace is anybody's text, so only a program of the person's own is taken over:
// a Python file with its arguments, or a module without any (`-m pip install ...` would be another's).
function started(run) {
  const [python, first, second, ...rest] = run.entrypoint?.argv ?? [];
  if (!/^([\w./-]*\/)?python[\d.]*$/.test(python ?? "")) return null;
  const own = /^[^-].*\.py$/.test(first ?? "") || (first === "-m" && /^[\w.]+$/.test(second ?? "") && !rest.length);
  return own ? run.entrypoint.argv.map((word) => shellWord(String(word))).join(" ") : null;
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
