// The list of kernels: what each takes, their total, the order, and what a query finds.

import assert from "node:assert/strict";
import {
  equalKernels,
  kernelGroups,
  kernelWork,
  sharedModule,
  togetherWork,
  workShare,
  workTime,
  workTotal,
} from "../../../../workbench/viz/page/record/kernels.js";

/** A norm, a product twice, and a sum: [like, measured, predicted, bytes] of each. */
const ROWS = [
  ["mean+sqrt", 0, 2e-6, 1e-6, 2048],
  ["matmul+bias", 1, null, 3e-6, 8192],
  ["matmul+bias", 1, null, null, 8192],
  ["sum", 3, 1e-6, null, 4096],
];

function recordOf(rows = ROWS) {
  return {
    kernels: rows.map(([title, , , , bytes], k) => ({
      title,
      name: `r_${k}`,
      bytes,
      line: k % 2,
      modules: [],
      phases: [],
    })),
    lines: [{ where: "In[1]:1" }, { where: "In[2]:5" }],
    plan: {
      runs: rows.map(([, like, measured_s, predicted_s]) => ({ like, measured_s, predicted_s })),
    },
  };
}

Deno.test("a kernel has the time of those that are equal to it, measured or else predicted", () => {
  const work = kernelWork(recordOf());
  assert.deepEqual(work.map(workTime), ["2.00 µs", "~3.00 µs", "~3.00 µs", "1.00 µs"]);
  assert.deepEqual(work.map(workShare), ["22%", "33%", "33%", "11%"]);
  assert.equal(workTotal(work), "~9.00 µs, 22 KiB");
  assert.equal(workTotal([work[0], work[3]]), "3.00 µs, 6 KiB");
});

Deno.test("without one of the times there is no sum of them", () => {
  const rows = ROWS.map((row, k) => (k === 3 ? ["sum", 3, null, null, 4096] : row));
  const work = kernelWork(recordOf(rows));
  assert.equal(workTime(work[3]), "");
  assert.equal(togetherWork(work).seconds, null);
  assert.equal(workTotal(work), "22 KiB");
  assert.equal(workTotal([]), "0 B");
});

Deno.test("kernels stand as they run, or by a figure, equal ones together", () => {
  const record = recordOf();
  assert.deepEqual(kernelGroups(record, "place", ""), [[0], [1], [2], [3]]);
  assert.deepEqual(kernelGroups(record, "time", ""), [[1, 2], [0], [3]]);
  assert.deepEqual(kernelGroups(record, "bytes", ""), [[1, 2], [3], [0]]);
});

Deno.test("many short equal kernels stand before a long one that takes less than all of them", () => {
  const short = Array.from({ length: 8 }, () => ["norm", 1, 3e-6, null, 16]);
  const record = recordOf([["matmul", 0, 2e-5, null, 64], ...short]);
  const [first, second] = kernelGroups(record, "time", "");
  assert.deepEqual([first, second], [[1, 2, 3, 4, 5, 6, 7, 8], [0]]);
  const work = kernelWork(record);
  const together = togetherWork(first.map((k) => work[k]));
  assert.deepEqual([workTime(together), workShare(together)], ["24.0 µs", "55%"]);
});

Deno.test("modules that differ in numbers are named once", () => {
  const named = (...paths) => sharedModule(paths.map((path) => ({ modules: path ? [path] : [] })));
  assert.equal(named("blocks.0.norm", "blocks.11.norm"), "blocks.*.norm");
  assert.equal(named("head", "head"), "head");
  assert.equal(named("blocks.0.norm", "head"), "");
  assert.equal(named(null, "head"), "");
});

Deno.test("a query finds kernels by title, name, number and line", () => {
  const record = recordOf();
  const find = (query) => kernelGroups(record, "time", query);
  assert.deepEqual(["bias MATMUL", "sqrt", "r_3", "In[2]:5", "none"].map(find), [
    [[1, 2]],
    [[0]],
    [[3]],
    [[1], [3]],
    [],
  ]);
});

Deno.test("equal kernels are found from each of them", () => {
  const { plan } = recordOf();
  assert.deepEqual([0, 1, 2, 3].map((k) => equalKernels(plan, k)), [[0], [1, 2], [1, 2], [3]]);
});
