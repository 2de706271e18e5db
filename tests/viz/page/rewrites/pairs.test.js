import assert from "node:assert/strict";
import { markedWords, pairLines } from "../../../../workbench/viz/page/base/diff.js";

const beside = (a, b) =>
  pairLines(a, b).map(({ left, right }) => `${a[left] ?? ""}|${b[right] ?? ""}`);

Deno.test("equal lines stand beside each other, changed ones beside what they were", () => {
  const a = ["x = 1", "y = x * 2 + z", "done"];
  assert.deepEqual(beside(a, ["x = 1", "y = x * 4 + z", "done"]), [
    "x = 1|x = 1",
    "y = x * 2 + z|y = x * 4 + z",
    "done|done",
  ]);
  assert.deepEqual(pairLines(a, a).map(({ kind }) => kind), ["same", "same", "same"]);
});

Deno.test("twenty-two lines that all changed are twenty-two pairs", () => {
  const lines = (sign) => Array.from({ length: 22 }, (_, i) => `_${i}*81 ${sign} (_4 + ${i})*9`);
  const rows = pairLines(lines("+"), lines("-"));
  assert.deepEqual(rows.map(({ left, right }) => [left, right]), rows.map((_, i) => [i, i]));
  assert.equal(rows.length, 22);
});

Deno.test("a line finds the one that it became among others", () => {
  assert.deepEqual(beside(["a = f(b, c)"], ["n = 7", "m = 8", "a = f(b, d)"]), [
    "|n = 7",
    "|m = 8",
    "a = f(b, c)|a = f(b, d)",
  ]);
});

Deno.test("what has nothing in common shares rows, and every line is there once, in order", () => {
  const [a, b] = [["kernel r_64", "one two", "three"], ["for i in 64 {", "x"]];
  const rows = pairLines(a, b);
  assert.deepEqual(rows.flatMap(({ left }) => left ?? []), [0, 1, 2]);
  assert.deepEqual(rows.flatMap(({ right }) => right ?? []), [0, 1]);
  assert.equal(rows.length, 3);
  const long = (word) => Array.from({ length: 300 }, (_, i) => `${word}${i}`);
  assert.equal(pairLines(long("a"), long("b")).length, 300, "too long to compare: by place");
});

Deno.test("words that the other line lacks are marked", () => {
  const marked = (line, other) =>
    markedWords(line, other).map(([word, isCommon]) => isCommon ? word : `[${word}]`).join("");
  assert.equal(marked("1 <= _5 + _2", "0 < _5 + _2"), "[1] <[=] _5 + _2");
});
