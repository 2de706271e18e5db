// Numbers and words as text: times, bytes, counts, plurals; and text search.

/** Whether a text has all words of a query, in any order; signs count in a query without letters.
 * @param {string} text
 * @param {string} query */
export function hasWords(text, query) {
  const [searched, wanted] = [text, query.trim()].map((words) => words.toLowerCase());
  const parts = wanted.match(/[\p{L}\p{N}_]+/gu) || [wanted];
  return parts.every((part) => searched.includes(part));
}

/** The words and numbers of a text: `a[2].out` -> "a.2.out".
 * @param {string} text */
const dotted = (text) => (text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? []).join(".");

/** Return the items whose texts have the words of a query in any order, those with whole words first.
 * Of a name, `a.2.out` or `a[2].out`, the parts alone count where nothing has it.
 * @template T
 * @param {T[]} items
 * @param {(item: T) => string} textOf
 * @param {string} query
 * @returns {T[]} */
export function search(items, textOf, query) {
  const words = query.trim().split(/\s+/).map(dotted);
  const matches = items.flatMap((item) => {
    const text = textOf(item);
    if (!hasWords(text, query)) return [];
    const own = `.${dotted(text)}.`;
    const has = words.filter((word) => own.includes(word)).length;
    return [{ item, has, whole: words.filter((word) => own.includes(`.${word}.`)).length }];
  });
  const named = matches.filter(({ has }) => has === words.length);
  return (named.length ? named : matches).sort((a, b) => b.whole - a.whole).map(({ item }) => item);
}

/** 0.0213 -> "21.3 ms"
 * @param {number} s */
export function secondsText(s) {
  const [scale, unit] = s >= 1 ? [1, "s"] : s >= 1e-3 ? [1e3, "ms"] : [1e6, "µs"];
  return `${three(s * scale)} ${unit}`;
}

const GROUPED = new Intl.NumberFormat("en"); // making one takes longer than using it

/** Three significant digits: 213, 21.3, 2.13; below one two of them: 0.21, 0.021.
 * @param {number} x */
export function three(x) {
  if (!Number.isFinite(x)) return "-";
  if (x >= 99.95) return GROUPED.format(Math.round(x));
  if (x > 0 && x < 0.1) return x.toPrecision(2);
  return x.toFixed(x >= 9.995 ? 1 : 2);
}

/** 20480 -> "20 KiB"
 * @param {number} n */
export function bytesText(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  for (; n >= 1024 && i < units.length - 1; i++) n /= 1024;
  return `${i ? three(n).replace(/\.0+$/, "") : n} ${units[i]}`;
}

/** 12000 -> "12.0 k"
 * @param {number} n */
export function countText(n) {
  const [scale, unit] = n >= 1e9
    ? [1e9, " G"]
    : n >= 1e6
    ? [1e6, " M"]
    : n >= 1e4
    ? [1e3, " k"]
    : [1, ""];
  return scale === 1 ? String(n) : three(n / scale) + unit;
}

/** Seconds of the epoch as "14:02" of today, "20 Nov" of this year, "20 Nov 2025".
 * @param {number} when */
export function dateText(when, now = new Date()) {
  const date = new Date(when * 1000);
  if (date.toDateString() === now.toDateString()) {
    return date.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  }
  const year = date.getFullYear() === now.getFullYear() ? undefined : "numeric";
  return date.toLocaleDateString("en-GB", { day: "numeric", month: "short", year });
}

/** A text of at most so many letters; what is left out is marked.
 * @param {string} text
 * @param {number} most */
export const cut = (text, most) => text.length > most ? `${text.slice(0, most - 1)}…` : text;

/** plural(2, "pass") -> "2 passes", plural(2, "copy") -> "2 copies"
 * @param {number} n
 * @param {string} word */
export function plural(n, word) {
  const many = /[^aeiou]y$/.test(word) ? word.replace(/y$/, "ies") : null;
  const ending = /(s|x|ch|sh)$/.test(word) ? "es" : "s";
  return `${n.toLocaleString("en")} ${n === 1 ? word : many ?? word + ending}`;
}

/** @param {number} value */
export const planFigure = (
  value,
) => (Number.isInteger(value) ? value.toLocaleString("en") : three(value));
