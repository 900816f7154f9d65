// Times, lengths, counts and money as people read them.

const UNKNOWN = "\u2013";

/** Milliseconds since 1970 of an RFC 3339 text, with fractions as fine as it has them; null where it is none. */
export function moment(text) {
  const found = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)$/.exec(text ?? "");
  if (!found) return null;
  const whole = Date.parse(found[1] + found[3]);
  return Number.isNaN(whole) ? null : whole + Number(`0.${found[2] ?? 0}`) * 1000;
}

export const lengthOf = (started, ended) => {
  const [from, to] = [moment(started), moment(ended)];
  return from === null || to === null || to < from ? null : to - from;
};

export function duration(milliseconds) {
  if (milliseconds === null) return UNKNOWN;
  if (milliseconds > 0 && milliseconds < 0.9995) return `${Math.ceil(milliseconds * 1000)} \u00b5s`;
  if (milliseconds < 10) return `${trim(milliseconds.toFixed(1))} ms`;
  if (milliseconds < 999.5) return `${Math.round(milliseconds)} ms`;
  const seconds = milliseconds / 1000;
  if (seconds < 59.95) return `${trim(seconds.toFixed(seconds < 10 ? 2 : 1))} s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return pair(whole, 60, "min", 1, "s");
  return whole < 86400 ? pair(whole, 3600, "h", 60, "min") : pair(whole, 86400, "d", 3600, "h");
}

const trim = (number) => (number.includes(".") ? number.replace(/\.?0+$/, "") : number);

function pair(whole, big, bigName, small, smallName) {
  const rest = Math.floor((whole % big) / small);
  return `${Math.floor(whole / big)} ${bigName}` + (rest ? ` ${rest} ${smallName}` : "");
}

export const exact = (number) => (typeof number === "number" ? number.toLocaleString("en-US") : UNKNOWN);

export function compact(number) {
  if (typeof number !== "number") return UNKNOWN;
  if (number < 1000) return String(number);
  const [scaled, sign] =
    number < 999_500 ? [number / 1e3, "k"] : number < 999_500_000 ? [number / 1e6, "M"] : [number / 1e9, "G"];
  return trim(scaled.toFixed(scaled < 99.5 ? 1 : 0)) + sign;
}

export function money(usd) {
  if (typeof usd !== "number") return UNKNOWN;
  if (usd === 0) return "$0";
  return usd < 0.01 ? `$${trim(usd.toFixed(usd < 0.0001 ? 7 : 5))}` : `$${usd.toFixed(usd < 1 ? 3 : 2)}`;
}

const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const YEAR = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });

/** When it was, in the time zone of who looks, as short as it is clear today. */
export function when(text, now = new Date()) {
  const at = moment(text);
  if (at === null) return UNKNOWN;
  const date = new Date(at);
  if (date.toDateString() === now.toDateString()) return CLOCK.format(date);
  const day = date.getFullYear() === now.getFullYear() ? DAY : YEAR;
  return `${day.format(date)}, ${CLOCK.format(date)}`;
}

const PRECISE = new Intl.DateTimeFormat("en-GB", {
  day: "numeric",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  fractionalSecondDigits: 3,
});

/** To the millisecond. */
export const precisely = (text) => (moment(text) === null ? text : PRECISE.format(new Date(moment(text))));

export function tokens(usage) {
  if (!usage || (usage.input_tokens ?? usage.output_tokens ?? null) === null) return "";
  return `${compact(usage.input_tokens)} in \u00b7 ${compact(usage.output_tokens)} out`;
}

export const plural = (count, word) => `${exact(count)} ${word}${count === 1 ? "" : "s"}`;

/** On one line, no longer than this. */
export function line(text, most = 160) {
  const flat = String(text)
    .slice(0, most * 4)
    .replace(/\s+/g, " ")
    .trim();
  return flat.length > most ? `${flat.slice(0, most - 1)}\u2026` : flat;
}

/** JSON as text; integers too large for a number are kept as they came. */
export const toJson = (value, indent) =>
  JSON.stringify(
    value,
    (key, item) => (typeof item === "bigint" ? (JSON.rawJSON?.(String(item)) ?? String(item)) : item),
    indent,
  );

/** A JSON value on one line. */
export const brief = (value, most = 160) => line(typeof value === "string" ? value : shallow(value), most);

// Only as much as a line shows is made into text: a value may be megabytes.
function shallow(value, room = 400) {
  if (value === null || typeof value !== "object") return toJson(value) ?? UNKNOWN;
  const parts = [];
  let used = 2;
  for (const [key, item] of entries(value)) {
    const text = (Array.isArray(value) ? "" : `${JSON.stringify(key)}: `) + shallow(item, room - used);
    parts.push(text);
    used += text.length + 2;
    if (used > room) {
      parts.push("\u2026");
      break;
    }
  }
  return Array.isArray(value) ? `[${parts.join(", ")}]` : `{${parts.join(", ")}}`;
}

export const entries = (value) =>
  Array.isArray(value) ? value.map((item, index) => [index, item]) : Object.entries(value);

/** The text if it needs no quotes in a shell, else in quotes. */
export const shellWord = (text) =>
  /^[\w@%+=:,./#-]+$/.test(text) ? text : `'${printableWord(text).replaceAll("'", "'\\''")}'`;

const printableWord = (text) => text.replace(/[\u0000-\u001f\u007f-\u009f]/g, "");
