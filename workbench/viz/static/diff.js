// A line diff: the longest common subsequence, after the lines that begin and end alike.

const MOST_CELLS = 4e6;

/** Return [[sign, place in a | null, place in b | null]]; signs " ", "-", "+". */
function diff_lines(a, b) {
  let start = 0;
  let [end_a, end_b] = [a.length, b.length];
  while (start < end_a && start < end_b && a[start] === b[start]) start++;
  while (end_a > start && end_b > start && a[end_a - 1] === b[end_b - 1]) (end_a--, end_b--);
  const same = (from, to, shift) =>
    Array.from({ length: to - from }, (_, i) => [" ", from + i, from + i + shift]);
  return [
    ...same(0, start, 0),
    ...changed_part(a, b, start, end_a, end_b),
    ...same(end_a, a.length, end_b - end_a),
  ];
}

/** Return how many lines differ: of each part that changed as many as the longer side has. */
function count_differing(a, b) {
  let [count, gone, fresh] = [0, 0, 0];
  for (const [sign] of [...diff_lines(a, b), [" "]]) {
    if (sign === "-") gone++;
    else if (sign === "+") fresh++;
    else [count, gone, fresh] = [count + Math.max(gone, fresh), 0, 0];
  }
  return count;
}

function changed_part(a, b, start, end_a, end_b) {
  const [rows, columns] = [end_a - start, end_b - start];
  const removed = (i) => ["-", i, null];
  const added = (j) => ["+", null, j];
  if (rows * columns > MOST_CELLS)
    // too long to compare: all of one, then all of the other
    return [...range_of(start, end_a).map(removed), ...range_of(start, end_b).map(added)];
  const width = columns + 1;
  const longest = new Uint16Array((rows + 1) * width);
  for (let i = rows - 1; i >= 0; i--)
    for (let j = columns - 1; j >= 0; j--)
      longest[i * width + j] =
        a[start + i] === b[start + j]
          ? longest[(i + 1) * width + j + 1] + 1
          : Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
  const found = [];
  let [i, j] = [0, 0];
  while (i < rows || j < columns) {
    if (i < rows && j < columns && a[start + i] === b[start + j])
      found.push([" ", start + i++, start + j++]);
    else if (
      j === columns ||
      (i < rows && longest[(i + 1) * width + j] >= longest[i * width + j + 1])
    )
      found.push(removed(start + i++));
    else found.push(added(start + j++));
  }
  return found;
}

const range_of = (from, to) => Array.from({ length: to - from }, (_, i) => from + i);
