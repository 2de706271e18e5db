// The kernels of a run in groups, their colours, and two runs compared.

import assert from "node:assert/strict";
import {
  coloursOf,
  comparedRuns,
  groupingAtFirst,
  groupsOf,
  icicleOf,
  isOff,
} from "../../../../workbench/viz/page/panels/run/shares.js";

const kernel = (key, total, more = {}) => ({
  key,
  title: key,
  device: "CPU",
  opts: "",
  kind: "sum",
  module: "",
  phase: "",
  launches: 4,
  total_ns: total,
  median_ns: total / 2,
  low_ns: total / 2 - 1,
  high_ns: total / 2 + 1,
  bytes: 10,
  flops: 5,
  predicted_ns: total / 4,
  ratio: 2,
  ...more,
});

const KERNELS = [
  kernel("a", 100, { module: "net.0" }),
  kernel("b", 300, { module: "net.1", kind: "matmul" }),
  kernel("c", 600, { module: "net.1.act", predicted_ns: null, ratio: null }),
];

Deno.test("groups have their sums, the greatest share first", () => {
  const rows = groupsOf({ kernels: KERNELS }, "kind").map((
    { name, ns, share, launches, bytes, ratio },
  ) => [
    name,
    ns,
    share,
    launches,
    bytes,
    ratio,
  ]);
  assert.deepEqual(rows, [["sum", 700, 0.7, 8, 80, null], ["matmul", 300, 0.3, 4, 40, 2]]);
  assert.deepEqual(groupsOf({ kernels: KERNELS }, "kernel").map(({ kernels }) => kernels), [[2], [
    1,
  ], [0]]);
  assert.deepEqual([1.4, 1.6, 0.7, 0.6, null].map(isOff), [false, true, false, true, false]);
});

Deno.test("colours go to the greatest groups; what has none shares the last", () => {
  assert.equal(groupingAtFirst({ kernels: KERNELS }), "module");
  const many = Array.from(
    { length: 10 },
    (_, i) => kernel(`k${i}`, 100 - i, { kind: `kind ${i}` }),
  );
  const { of, names } = coloursOf({ kernels: many }, "kind");
  assert.deepEqual(of, [0, 1, 2, 3, 4, 5, 6, 7, 8, 8]);
  assert.equal(names.at(-1), "all others");
});

Deno.test("a module stands inside of the one whose path begins its own", () => {
  const [net] = icicleOf({ kernels: KERNELS }).inside;
  assert.deepEqual([net.path, net.ns], ["net", 1000]);
  assert.deepEqual(net.inside.map(({ path, ns }) => [path, ns]), [["net.0", 100], ["net.1", 900]]);
  assert.deepEqual(net.inside[1].inside.map(({ path, ns }) => [path, ns]), [["net.1.act", 600]]);
});

Deno.test("two runs: only what differs beyond the noise, by what it saves a round", () => {
  const before = { kernels: [...KERNELS, kernel("gone", 50)], rounds: [0] };
  const now = {
    kernels: [
      kernel("a", 101),
      kernel("b", 600, { opts: "UPCAST" }),
      kernel("c", 200),
      kernel("new", 20),
    ],
    rounds: [0, 1],
  };
  const { pairs, same } = comparedRuns(before, now);
  assert.equal(same, 1);
  assert.deepEqual(pairs.map(({ title, before, now, saved }) => [title, before, now, saved]), [
    ["c", 300, 100, 1000],
    ["gone", 25, null, 100],
    ["new", null, 10, -20],
    ["b", 150, 300, 0],
  ]);
});

Deno.test("two runs: equal kernels are paired by their lines, and few launches tell nothing", () => {
  const lines = (...medians) =>
    medians.map((ns, n) => kernel("a", 2 * ns, { line: `f.py:${n}`, launches: n === 2 ? 1 : 4 }));
  const before = { kernels: lines(100, 300, 50), rounds: [] };
  const { pairs, same, unknown } = comparedRuns(before, {
    kernels: lines(100, 200, 10),
    rounds: [],
  });
  assert.deepEqual([same, unknown], [1, 1]);
  assert.deepEqual(pairs.map(({ before, now }) => [before, now]), [[300, 200]]);
});
