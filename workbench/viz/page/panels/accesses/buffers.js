// The buffers of Accesses: a grid of the elements of each, in colours for the elements of the current
// step, those in its cache lines, and the number of earlier touches.

import { CellGrid } from "../../base/cell_grid.js";
import { h } from "../../base/elements.js";
import { bytesText, plural } from "../../base/text.js";

/** @import { Look } from "../../base/cell_grid.js" */
/** @import { AccessedBuffer } from "../../record.d.ts" */

const PAGE_BYTES = 4096;
const BANKS = 32;
const BANK_BYTES = 4;
const MOST_CELLS = 200_000; // of a buffer that are drawn, around its first access
const MARGIN_ROWS = 2; // above the first access where rows are left out
const MOST_NAMED = 8; // steps or lanes
const REUSE = [
  { least: 1, colour: "#d4e4f7", words: "touched once before" },
  { least: 2, colour: "#a9caf0", words: "twice" },
  { least: 3, colour: "#7bade6", words: "3 to 7 times" },
  { least: 8, colour: "#4d8fd9", words: "8 times or more" },
];
const NOW = "#e8780c"; // touched in this step
const TOUCHED_LINE = "#fbe3c8"; // in a cache line of this step, and not touched
const LATER = "#f1eef7"; // touched in a later step

/** An access: its step, element and lane (-1: none).
 * @typedef {{step: number, element: number, lane: number}} Touch */
/** What the cells of a buffer show: the steps that touch each element; `now` has the elements of the
 * current step with their lanes, and `before` how often each was touched in earlier steps.
 * @typedef {{
 *   row: AccessedBuffer, steps: Map<number, number[]>, columns: number,
 *   now: {elements: Map<number, number[]>, lines: Set<number>, before: Map<number, number>}
 * }} Shown */
/** The accesses of a buffer, and the drawn part.
 * @typedef {Shown & {touches: Touch[], first: number, grid: CellGrid, words: HTMLElement}} Drawn */

/** @type {(row: AccessedBuffer, element: number) => number} */
const lineOf = ({ element_bytes, line_bytes }, element) =>
  Math.floor((element * element_bytes) / line_bytes);

/** @type {(row: AccessedBuffer, element: number) => number} */
const pageOf = ({ element_bytes }, element) => Math.floor((element * element_bytes) / PAGE_BYTES);

/** @param {AccessedBuffer} row */
export function title({ name, user, dtype, shape, space, writes }) {
  const does = [writes.includes(false) && "read", writes.includes(true) && "written"];
  const size = shape.join(" × ") || "1";
  return h(
    "span",
    {},
    h("code", {}, user ? `${user} ${name}` : name),
    " ",
    h(
      "span",
      { class: "wb-quiet" },
      [`${dtype} ${size}`, space, ...does].filter(Boolean).join(", "),
    ),
  );
}

/** The grid of a buffer: a row of its last dimension; of shared memory a word of each bank. With a
 * `statement` (-1: all) its accesses alone count.
 * @param {AccessedBuffer} row
 * @param {string} name
 * @param {number} statement
 * @returns {Drawn} */
export function drawn(row, name, statement) {
  const perBank = Math.max(1, Math.floor(BANK_BYTES / row.element_bytes));
  const columns = row.space === "shared" ? BANKS * perBank : (row.shape.at(-1) || 1);
  const size = row.shape.reduce((a, b) => a * b, 1);
  const touches = row.elements.map((element, place) => ({
    element,
    step: row.steps[place],
    lane: row.lanes[place] ?? -1,
  })).filter((_, place) => statement < 0 || row.statements[place] === statement);
  const least = touches.reduce((most, { element }) => Math.min(most, element), size);
  const margin = Math.max(0, least - MARGIN_ROWS * columns);
  const first = size > MOST_CELLS ? Math.floor(margin / columns) * columns : 0;
  /** @type {Map<number, number[]>} */
  const steps = new Map();
  for (const { element, step } of touches) {
    const known = steps.get(element) ?? [];
    if (known.at(-1) !== step) known.push(step);
    steps.set(element, known);
  }
  /** @type {Shown["now"]} */
  const now = { elements: new Map(), lines: new Set(), before: new Map() };
  const shown = { row, steps, columns, now };
  const grid = new CellGrid({
    name: `${name}-cell`,
    label: `elements of ${row.name}`,
    rows: {
      count: Math.min(size - first, MOST_CELLS),
      columns,
      least: 4,
      most: row.lanes.length ? 18 : 12,
      height: row.lanes.length ? 14 : 10,
    },
    look: (cell) => lookOf(shown, first + cell),
    words: (cell) => wordsOf(shown, first + cell),
  });
  const words = h("span", { class: "wb-quiet", role: "status", "data-term": "cache line, page" });
  return { ...shown, touches, first, grid, words };
}

/** Show the accesses of a step.
 * @param {Drawn} drawn
 * @param {number} step */
export function touchAt({ row, touches, grid, words, now }, step) {
  now.elements = new Map();
  now.before = new Map();
  for (const { element, step: own, lane } of touches) {
    if (own < step) now.before.set(element, (now.before.get(element) ?? 0) + 1);
    if (own !== step) continue;
    const lanes = now.elements.get(element) ?? [];
    if (lane >= 0) lanes.push(lane);
    now.elements.set(element, lanes);
  }
  const elements = [...now.elements.keys()];
  now.lines = new Set(elements.map((element) => lineOf(row, element)));
  const before = new Set([...now.before.keys()].map((element) => lineOf(row, element)));
  const isNew = [...now.lines].filter((line) => !before.has(line)).length;
  const pages = new Set(elements.map((element) => pageOf(row, element))).size;
  const again = elements.filter((element) => now.before.has(element)).length;
  words.textContent = elements.length
    ? `${plural(elements.length, "element")}, ${
      plural(now.lines.size, "cache line")
    }, ${isNew} new,` +
      ` ${plural(pages, "page")}; ${again} touched before${bankText(row, elements)}`
    : "not touched in this step";
  if (row.unknown) {
    words.textContent += `; ${plural(row.unknown, "index")} from memory: not listed`;
  }
  grid.show(-1, [step]);
}

/** The most words of one bank that a step touches, of shared memory.
 * @param {AccessedBuffer} row
 * @param {number[]} elements */
function bankText(row, elements) {
  if (row.space !== "shared" || !row.lanes.length) return "";
  const words = [...new Set(elements.map((e) => Math.floor(e * row.element_bytes / BANK_BYTES)))];
  const counts = new Map();
  for (const word of words) counts.set(word % BANKS, (counts.get(word % BANKS) ?? 0) + 1);
  return `; up to ${plural(Math.max(...counts.values()), "word")} of one bank`;
}

/**
 * @param {Shown} shown
 * @param {number} element
 * @returns {Look} */
function lookOf({ row, steps, now }, element) {
  const lanes = now.elements.get(element);
  if (lanes) return { fill: NOW, edge: "fg", text: lanes.length ? String(lanes[0]) : "" };
  const isInLine = now.lines.has(lineOf(row, element));
  const before = now.before.get(element) ?? 0;
  const edge = isInLine ? NOW : "edge";
  if (before) return { fill: REUSE.findLast(({ least }) => before >= least)?.colour ?? "bg", edge };
  if (isInLine) return { fill: TOUCHED_LINE, edge: "edge" };
  if (steps.has(element)) return { fill: LATER, edge: "line-colour" };
  return { fill: "bg", edge: "line-colour" };
}

/**
 * @param {Shown} shown
 * @param {number} element */
function wordsOf({ row, steps, columns, now }, element) {
  const touched = steps.get(element) ?? [];
  const at = row.shape.reduceRight(
    (/** @type {{places: number[], rest: number}} */ { places, rest }, size) => ({
      places: [rest % size, ...places],
      rest: Math.floor(rest / size),
    }),
    { places: [], rest: element },
  ).places;
  const some = (/** @type {number[]} */ numbers) =>
    numbers.slice(0, MOST_NAMED).join(", ") + (numbers.length > MOST_NAMED ? ", .." : "");
  const by = touched.length
    ? `touched in ${plural(touched.length, "step")}: ${some(touched)}`
    : "not touched by the listed steps";
  const lanes = now.elements.get(element) ?? [];
  const ofLanes = lanes.length ? `, now by ${plural(lanes.length, "lane")}: ${some(lanes)}` : "";
  const bank = row.space === "shared"
    ? `, bank ${Math.floor((element % columns) * BANKS / columns)}`
    : "";
  const so = now.before.has(element) ? `, ${now.before.get(element)} times before` : "";
  return `${row.name}[${at.join(", ")}]: ${by}${so}${ofLanes}; byte ${
    bytesText(element * row.element_bytes)
  }, cache line ${lineOf(row, element)}${bank}`;
}

export const legend = () =>
  h(
    "p",
    { class: "wb-accesses-legend wb-quiet", title: "the colours of the cells" },
    ...[
      [NOW, "this step"],
      [TOUCHED_LINE, "in its cache lines, unused"],
      ...REUSE.map(({ colour, words }) => [colour, words]),
      [LATER, "touched later"],
    ].map(([colour, words]) =>
      h("span", {}, h("i", { style: `background:${colour}` }), ` ${words}`)
    ),
  );
