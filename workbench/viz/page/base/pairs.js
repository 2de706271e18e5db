// Paired lines of two texts side by side. Equal lines are paired; in a changed part the lines with
// most words in common are paired, in order, and the others fill the rows between.

import { diffLines } from "./diff.js";

const LEAST = 0.5; // of the words of two lines, that they must share to be the same line changed
const MOST_COMPARED = 40_000; // pairs of lines; a longer part is paired by place

/** A row: the places of its lines, null where a side has none. They are the same line, or one is
 * what the other became, or they only share the row: in a text that changed, or in texts that are
 * read apart.
 * @typedef {"same" | "changed" | "other" | "apart"} PairKind
 * @typedef {{left: number | null, right: number | null, kind: PairKind}} PairRow
 * @typedef {[left: number, right: number]} LinePair */

/** Return two texts as rows.
 * @param {string[]} a
 * @param {string[]} b
 * @returns {PairRow[]} */
export function pairLines(a, b) {
  /** @type {PairRow[]} */
  const rows = [];
  /** @type {{removed: number[], added: number[]}} */
  let part = { removed: [], added: [] };
  for (const [sign, left, right] of diffLines(a, b)) {
    if (sign === "-") part.removed.push(left);
    else if (sign === "+") part.added.push(right);
    else {
      rows.push(...partRows(a, b, part), { left, right, kind: "same" });
      part = { removed: [], added: [] };
    }
  }
  return [...rows, ...partRows(a, b, part)];
}

/** Return the words of a line, each with whether the other line has it too, in order.
 * @param {string} line
 * @param {string} other
 * @returns {[word: string, isCommon: boolean][]} */
export function markedWords(line, other) {
  const words = wordsIn(line);
  /** @type {[string, boolean][]} */
  const marked = words.map((word) => [word, false]);
  for (const [sign, place] of diffLines(words, wordsIn(other))) {
    if (sign === " ") marked[place][1] = true;
  }
  return marked;
}

/** The rows of a part that changed.
 * @param {string[]} a
 * @param {string[]} b
 * @param {{removed: number[], added: number[]}} part
 * @returns {PairRow[]} */
function partRows(a, b, { removed, added }) {
  const pairs = removed.length * added.length > MOST_COMPARED
    ? []
    : similarPairs(removed.map((i) => wordCounts(a[i])), added.map((j) => wordCounts(b[j])));
  /** @type {PairRow[]} */
  const rows = [];
  let [i, j] = [0, 0];
  for (const [left, right] of [...pairs, [removed.length, added.length]]) {
    for (; i < left || j < right; i++, j++) { // what is between two pairs shares rows
      rows.push({
        left: i < left ? removed[i] : null,
        right: j < right ? added[j] : null,
        kind: "other",
      });
    }
    if (left < removed.length) {
      rows.push({ left: removed[left], right: added[right], kind: "changed" });
    }
    [i, j] = [left + 1, right + 1];
  }
  return rows;
}

/** The pairs, in order, that have most in common altogether.
 * @param {Map<string, number>[]} removed
 * @param {Map<string, number>[]} added
 * @returns {LinePair[]} */
function similarPairs(removed, added) {
  const width = added.length + 1;
  const best = new Float64Array((removed.length + 1) * width);
  const likeness = new Float64Array(removed.length * width);
  for (let i = removed.length - 1; i >= 0; i--) {
    for (let j = added.length - 1; j >= 0; j--) {
      const alike = similarity(removed[i], added[j]);
      likeness[i * width + j] = alike;
      best[i * width + j] = Math.max(
        best[(i + 1) * width + j],
        best[i * width + j + 1],
        alike >= LEAST ? alike + best[(i + 1) * width + j + 1] : 0,
      );
    }
  }
  /** @type {LinePair[]} */
  const pairs = [];
  let [i, j] = [0, 0];
  while (i < removed.length && j < added.length) {
    const [here, alike] = [best[i * width + j], likeness[i * width + j]];
    if (alike >= LEAST && here === alike + best[(i + 1) * width + j + 1]) pairs.push([i++, j++]);
    else if (here === best[(i + 1) * width + j]) i++;
    else j++;
  }
  return pairs;
}

/** The share of the words of two lines that both have.
 * @param {Map<string, number>} a
 * @param {Map<string, number>} b */
function similarity(a, b) {
  let [common, all] = [0, 0];
  for (const [word, count] of a) (all += count, common += Math.min(count, b.get(word) ?? 0));
  for (const count of b.values()) all += count;
  return all ? (2 * common) / all : 1;
}

/** @param {string} line */
function wordCounts(line) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const word of wordsIn(line)) {
    if (word.trim()) counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  return counts;
}

/** @param {string} line
 * @returns {string[]} */
const wordsIn = (line) => line.match(/[\w.]+|\s+|./g) ?? [];
