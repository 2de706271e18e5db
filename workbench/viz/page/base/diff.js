// A line diff: the longest common subsequence, after the common lines at both ends.

const MOST_CELLS = 4e6;

/** A line that both have, that only the first or only the second has, with its places there.
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

/** Return how many lines differ: of each part that changed as many as the longer side has.
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

/** Return the rows of the part that does not begin or end alike.
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
