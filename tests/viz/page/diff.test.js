import assert from "node:assert/strict";
import { countDiffering, diffLines } from "../../../workbench/viz/page/base/diff.js";

const signs = (a, b) => diffLines([...a], [...b]).map(([sign]) => sign).join("");

Deno.test("what is common stays, in order", () => {
  assert.equal(signs("abcd", "abcd"), "    ");
  assert.equal(signs("abcd", "axcd"), " -+  ");
  assert.equal(signs("", "ab"), "++");
  assert.equal(signs("abxcd", "abcd"), "  -  ");
});

Deno.test("both texts can be read from their difference", () => {
  const [a, b] = ["the quick brown fox jumps", "a quick red fox, it jumps"].map((t) => [...t]);
  const rows = diffLines(a, b);
  assert.deepEqual(rows.filter(([sign]) => sign !== "+").map(([, i]) => a[i]), a);
  assert.deepEqual(rows.filter(([sign]) => sign !== "-").map(([, , j]) => b[j]), b);
});

Deno.test("of each part that changed the longer side counts", () => {
  assert.equal(countDiffering([..."abcd"], [..."axyd"]), 2);
  assert.equal(countDiffering([..."abcd"], [..."ad"]), 2);
  assert.equal(countDiffering([..."abcd"], [..."abcd"]), 0);
});

Deno.test("what is too long to compare is all of one, then all of the other", () => {
  const [a, b] = ["x", "y"].map((letter) =>
    Array.from({ length: 2001 }, (_, i) => `${letter}${i}`)
  );
  const rows = diffLines(a, b);
  assert.equal(rows.length, 4002);
  assert.equal(rows[0][0] + rows.at(-1)[0], "-+");
});
