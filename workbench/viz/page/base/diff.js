// A line diff: the longest common subsequence, after the common lines at both ends; and the paired
// lines of two texts side by side.

const MOST_CELLS = 4e6;

/** A line of both texts, or only of the first or the second, with its index in each.
 * @typedef {[" ", number, number] | ["-", number, null] | ["+", null, number]} DiffRow */

/** Return the lines of two texts as one.
 * @param {string[]} a
 * @param {string[]} b
 * @returns {DiffRow[]} */
export function diffLines(a, b) {
  let start = 0;
  let [endA, endB] = [a.length, b.length];
  while (start < endA && start < endB && a[start] === b[start]) start++;
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) (endA--, endB--);
  /** @type {(from: number, to: number, shift: number) => DiffRow[]} */
  const same = (from, to, shift) => rangeOf(from, to).map((i) => [" ", i, i + shift]);
  return [
    ...same(0, start, 0),
    ...changedPart(a, b, start, endA, endB),
    ...same(endA, a.length, endB - endA),
  ];
}

/** Return the number of lines that differ: for each changed part, that of its longer side.
 * @param {string[]} a
 * @param {string[]} b */
export function countDiffering(a, b) {
  let [count, gone, fresh] = [0, 0, 0];
  for (const [sign] of [...diffLines(a, b), [" "]]) {
    if (sign === "-") gone++;
    else if (sign === "+") fresh++;
    else [count, gone, fresh] = [count + Math.max(gone, fresh), 0, 0];
  }
  return count;
}

/** Return the rows of the part between the common beginning and the common end.
 * @param {string[]} a
 * @param {string[]} b
 * @param {number} start
 * @param {number} endA
 * @param {number} endB
 * @returns {DiffRow[]} */
function changedPart(a, b, start, endA, endB) {
  const [rows, columns] = [endA - start, endB - start];
  /** @type {(i: number) => DiffRow} */
  const removed = (i) => ["-", i, null];
  /** @type {(j: number) => DiffRow} */
  const added = (j) => ["+", null, j];
  if (rows * columns > MOST_CELLS) {
    // too long to compare: all of one, then all of the other
    return [...rangeOf(start, endA).map(removed), ...rangeOf(start, endB).map(added)];
  }
  const width = columns + 1;
  const longest = new Uint16Array((rows + 1) * width);
  for (let i = rows - 1; i >= 0; i--) {
    for (let j = columns - 1; j >= 0; j--) {
      longest[i * width + j] = a[start + i] === b[start + j]
        ? longest[(i + 1) * width + j + 1] + 1
        : Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
    }
  }
  /** @type {DiffRow[]} */
  const rowsOfBoth = [];
  let [i, j] = [0, 0];
  while (i < rows || j < columns) {
    if (i < rows && j < columns && a[start + i] === b[start + j]) {
      rowsOfBoth.push([" ", start + i++, start + j++]);
    } else if (
      j === columns ||
      (i < rows && longest[(i + 1) * width + j] >= longest[i * width + j + 1])
    ) {
      rowsOfBoth.push(removed(start + i++));
    } else rowsOfBoth.push(added(start + j++));
  }
  return rowsOfBoth;
}

/**
 * @param {number} from
 * @param {number} to */
const rangeOf = (from, to) => Array.from({ length: to - from }, (_, i) => from + i);

// Paired lines of two texts side by side. Equal lines are paired; in a changed part the lines with
// most words in common are paired, in order, and the others fill the rows between.

const LEAST_SHARED = 0.5; // the share of words that two lines must have in common to be one changed line
const MOST_COMPARED = 40_000; // pairs of lines; a longer part is paired by place

/** A row: the indexes of its lines, null for an empty side. The lines are equal, or one became the
 * other, or they only share the row: in a changed text, or in two texts that are read separately.
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

/** Return the words of a line, in order, each with whether the other line has it too.
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

/** The rows of a changed part.
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
    for (; i < left || j < right; i++, j++) { // lines between two pairs share rows
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

/** The pairs, in order, with most words in common altogether.
 * @param {Map<string, number>[]} removed
 * @param {Map<string, number>[]} added
 * @returns {LinePair[]} */
function similarPairs(removed, added) {
  const width = added.length + 1;
  const best = new Float64Array((removed.length + 1) * width);
  const likeness = new Float64Array(removed.length * width);
  for (let i = removed.length - 1; i >= 0; i--) {
    for (let j = added.length - 1; j >= 0; j--) {
      const shared = similarity(removed[i], added[j]);
      likeness[i * width + j] = shared;
      best[i * width + j] = Math.max(
        best[(i + 1) * width + j],
        best[i * width + j + 1],
        shared >= LEAST_SHARED ? shared + best[(i + 1) * width + j + 1] : 0,
      );
    }
  }
  /** @type {LinePair[]} */
  const pairs = [];
  let [i, j] = [0, 0];
  while (i < removed.length && j < added.length) {
    const [total, shared] = [best[i * width + j], likeness[i * width + j]];
    if (shared >= LEAST_SHARED && total === shared + best[(i + 1) * width + j + 1]) {
      pairs.push([i++, j++]);
    } else if (total === best[(i + 1) * width + j]) i++;
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
