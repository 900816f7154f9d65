// Elements, and text in them. Whatever comes from a trace enters the page here, and only ever as text.

// What would move letters about, or is not to be seen at all; line ends and tabs stay.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

const printable = (text) => String(text).replace(UNSEEN, "\ufffd");

/** An element. `properties`: `class`, `on` (listeners by event), all else attributes, left out where null or false. */
export function element(tag, properties, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [event, listen] of Object.entries(value)) made.addEventListener(event, listen);
    else if (name === "class") made.className = value;
    else if (name === "value") made[tag === "input" ? "defaultValue" : "value"] = value;
    else made.setAttribute(name, value === true ? "" : printable(value));
  }
  return fill(made, ...children);
}

/** The same element with these children in the place of what it held. */
export function replace(parent, ...children) {
  parent.replaceChildren();
  return fill(parent, ...children);
}

function fill(parent, ...children) {
  for (const child of children.flat(2)) {
    if (child === null || child === undefined || child === false) continue;
    parent.append(child instanceof Node ? child : document.createTextNode(printable(child)));
  }
  return parent;
}

/** A button that says what it does. */
export function button(label, act, properties) {
  return element("button", { type: "button", on: { click: act }, ...properties }, label);
}

/** A list into `box`, so many at a time; what is left says how much there is, and comes when asked for. */
export function inPortions(box, items, draw, most, from = 0) {
  box.append(...items.slice(from, from + most).map(draw));
  const next = from + most;
  if (next >= items.length) return box;
  const more = button(
    `${next.toLocaleString("en-US")} of ${items.length.toLocaleString("en-US")} shown: more`,
    () => {
      more.remove();
      inPortions(box, items, draw, most, next);
    },
    { class: "more" },
  );
  box.append(more);
  return box;
}

/** A link to another state of this page; `main` follows it without loading the page again. */
export function link(query, properties, ...children) {
  return element("a", { href: address(query), "data-inside": true, ...properties }, ...children);
}

/** The address of a state of this page. */
export function address(query) {
  const kept = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return "?" + new URLSearchParams(kept).toString();
}

/** A dialog, opened; resolves when it is closed. `make` gets a function that closes it, with a value. */
export function ask(label, make) {
  return new Promise((resolve) => {
    let answer = null;
    const dialog = element("dialog", {
      "aria-label": label,
      on: {
        close: () => {
          dialog.remove();
          resolve(answer);
        },
        click: (event) => {
          if (event.target === dialog) dialog.close();
        },
      },
    });
    fill(
      dialog,
      make((value) => {
        answer = value;
        dialog.close();
      }),
    );
    document.body.append(dialog);
    dialog.showModal();
  });
}

let clearing = 0;

/** Say something for a few seconds, to screen readers too. */
export function notify(text, tone = "") {
  const notice = document.getElementById("notice");
  replace(notice, element("span", { class: `toast ${tone}` }, text));
  clearTimeout(clearing);
  clearing = setTimeout(() => replace(notice), 6000);
}

/** Copy text, and say so. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    notify("Copied");
  } catch {
    notify("The browser did not permit copying: select the text and copy it", "bad");
  }
}

/** A command for a shell, to be copied; `title` stands before it. */
export const commandLine = (text, label, title = null) =>
  element(
    "div",
    { class: "command" },
    title && element("span", { class: "dim" }, title),
    element("code", {}, text),
    button("Copy", () => copy(text), { class: "small", "aria-label": label }),
  );

/** Hand a file to the person. */
export function save(name, blob) {
  const url = URL.createObjectURL(blob);
  element("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

let pressed = false;
const waiting = [];

const press = () => {
  pressed = true;
};
// The click comes right after the button is let go.
const release = () =>
  setTimeout(() => {
    pressed = false;
    for (const go of waiting.splice(0)) go();
  });

addEventListener("pointerdown", press, true);
addEventListener("pointerup", release, true);
addEventListener("pointercancel", release, true);
addEventListener("blur", release);

/** Resolves once no button or finger is down. What is drawn anew under a pressed button takes its click away, so
 * whatever comes by itself waits for this. Rejects where `signal` says that nobody wants it any more. */
export async function released(signal) {
  if (pressed) await new Promise((resolve) => waiting.push(resolve));
  signal.throwIfAborted();
}

/** Resolves once nobody is typing into a field in `box`: what is half written there is not drawn anew. */
export const written = (box) =>
  new Promise((resolve) => {
    const field = document.activeElement;
    if (!field?.matches("input") || !box.contains(field) || field.value === field.defaultValue) return resolve();
    field.addEventListener("blur", () => resolve(written(box)), { once: true });
  });

export const reducedMotion = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
