// A line diff: the longest common subsequence, after the lines that begin and end alike.

const MOST_CELLS = 4e6;

/** Return [[sign, place in a | null, place in b | null]]; signs " ", "-", "+". */
export function diffLines(a, b) {
  let start = 0;
  let [endA, endB] = [a.length, b.length];
  while (start < endA && start < endB && a[start] === b[start]) start++;
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) (endA--, endB--);
  const same = (from, to, shift) =>
    Array.from({ length: to - from }, (_, i) => [" ", from + i, from + i + shift]);
  return [
    ...same(0, start, 0),
    ...changedPart(a, b, start, endA, endB),
    ...same(endA, a.length, endB - endA),
  ];
}

/** Return how many lines differ: of each part that changed as many as the longer side has. */
export function countDiffering(a, b) {
  let [count, gone, fresh] = [0, 0, 0];
  for (const [sign] of [...diffLines(a, b), [" "]]) {
    if (sign === "-") gone++;
    else if (sign === "+") fresh++;
    else [count, gone, fresh] = [count + Math.max(gone, fresh), 0, 0];
  }
  return count;
}

function changedPart(a, b, start, endA, endB) {
  const [rows, columns] = [endA - start, endB - start];
  const removed = (i) => ["-", i, null];
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
  const found = [];
  let [i, j] = [0, 0];
  while (i < rows || j < columns) {
    if (i < rows && j < columns && a[start + i] === b[start + j]) {
      found.push([" ", start + i++, start + j++]);
    } else if (
      j === columns ||
      (i < rows && longest[(i + 1) * width + j] >= longest[i * width + j + 1])
    ) {
      found.push(removed(start + i++));
    } else found.push(added(start + j++));
  }
  return found;
}

const rangeOf = (from, to) => Array.from({ length: to - from }, (_, i) => from + i);
