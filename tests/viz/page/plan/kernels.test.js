// The list of kernels: what each takes, their total, the order, and what a query finds.

import assert from "node:assert/strict";
import {
  checkedVariants,
  distinctions,
  equalKernels,
  kernelGroups,
  kernelWork,
  sharedLines,
  sharedModule,
  timedCount,
  timeWords,
  togetherWork,
  weightKernels,
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

const variant = (kernel, name, timing = null, row = {}) => ({ kernel, name, timing, ...row });

function recordOf(rows = ROWS) {
  return {
    kernels: rows.map(([title, , , , bytes], k) => ({
      title,
      name: `r_${k}`,
      bytes,
      root: k,
      line: k % 2,
      module: "",
      modules: [],
      phases: title === "weights" ? ["weights"] : [],
    })),
    lines: [{ where: "In[1]:1" }, { where: "In[2]:5" }],
    variants: rows.map((_, k) => variant(k, "plain")),
    devices: [],
    device: "LLVM",
    plan: {
      runs: rows.map(([, like, measured_s, predicted_s]) => ({ like, measured_s, predicted_s })),
    },
  };
}

Deno.test("a kernel has the time of those that are equal to it, measured or else predicted", () => {
  const work = kernelWork(recordOf());
  assert.deepEqual(work.map(workTime), ["2.00 µs", "~3.00 µs", "~3.00 µs", "1.00 µs"]);
  assert.deepEqual(work.map(workShare), ["~22%", "~33%", "~33%", "~11%"]);
  assert.equal(timedCount(work), "2 of 4 timed");
  assert.equal(workTotal(work), "~9.00 µs, 22 KiB");
  assert.equal(workTotal([work[0], work[3]]), "3.00 µs, 6 KiB");
});

Deno.test("the time of a kernel that is not certain is marked, and that of equal ones", () => {
  const record = recordOf();
  Object.assign(record.plan.runs[1], { measured_s: 5e-6, is_certain: false });
  assert.deepEqual(kernelWork(record).map(({ mark }) => mark), ["", "uncertain", "uncertain", ""]);
});

Deno.test("a kernel has the newest time of its variant with the default opts", () => {
  const record = recordOf();
  const shown = (timing, name = "auto") => {
    record.variants[4] = variant(0, name, timing);
    const [{ name: named, mark, ...work }] = kernelWork(record);
    return [named, workTime({ mark, ...work }), mark, work.seconds];
  };
  assert.deepEqual(shown({ median_s: 7e-6 }), ["auto", "7.00 µs", "", 7e-6], "timed again");
  const busy = { median_s: 8e-6, had: 0.1 };
  assert.deepEqual(shown(busy), ["auto", "8.00 µs", "busy", 8e-6]);
  const doubted = { median_s: 6e-6, doubts: ["the samples lie far apart"] };
  assert.deepEqual(shown(doubted), ["auto", "6.00 µs", "uncertain", 6e-6]);
  const earlier = { median_s: 9e-6, earlier: true };
  assert.deepEqual(shown(earlier), ["auto", "*9.00 µs", "earlier", 9e-6]);
  assert.deepEqual(shown(busy, "mine"), ["auto", "2.00 µs", "", 2e-6], "no other variant's");
  assert.deepEqual(shown({ median_s: 7e-6, emulator: true })[1], "2.00 µs");
  record.device = "GPU";
  record.devices = [{ name: "GPU", groups: true }, { name: "LLVM" }];
  record.variants[5] = variant(0, "auto", busy, { default_of: "LLVM" });
  const here = shown({ median_s: 5e-6 }, "auto on GPU");
  assert.deepEqual(here, ["auto on GPU", "5.00 µs", "", 5e-6]);
});

Deno.test("a kernel whose default opts are none has the time of plain, by that name", () => {
  const record = recordOf();
  record.variants[0] = variant(0, "plain", { median_s: 2e-6 });
  record.variants[1] = variant(1, "plain", { median_s: 4e-5 });
  const work = kernelWork(record);
  assert.deepEqual(work.map(({ name }) => name), ["plain", "auto", "auto", "auto"]);
  assert.equal(workTime(work[1]), "~3.00 µs", "predicted for auto");
});

Deno.test("what is predicted is marked so in each time, sum and share", () => {
  const work = kernelWork(recordOf([["norm", 0, null, 3e-6, 8], ["sum", 1, null, 1e-6, 8]]));
  assert.deepEqual(work.map(workTime), ["~3.00 µs", "~1.00 µs"]);
  assert.deepEqual(work.map(workShare), ["~75%", "~25%"]);
  assert.deepEqual([workTotal(work), timedCount(work)], ["~4.00 µs, 16 B", ""]);
  assert.deepEqual([timeWords(work), timeWords(work.slice(1))], ["predicted", "predicted"]);
});

Deno.test("a disturbed run is shown as such, in place of what is predicted", () => {
  const rows = [["norm", 0, null, 3e-6, 8], ["norm", 0, null, null, 8], ["sum", 2, 1e-6, 2e-6, 8]];
  const record = recordOf([...rows, ["rest", 3, null, null, 8]]);
  for (const k of [0, 3]) record.plan.runs[k].busy_s = 4e-6;
  const work = kernelWork(record);
  assert.deepEqual(work.map(workTime), ["4.00 µs", "4.00 µs", "1.00 µs", "4.00 µs"]);
  assert.deepEqual(work.map(({ mark }) => mark), ["busy", "busy", "", "busy"]);
  assert.equal(timeWords(work), "on a busy machine for 3 of 4");
  assert.equal(timedCount(work), "1 of 4 timed, 3 disturbed");
});

Deno.test("a time of plain that was disturbed is none of other default opts", () => {
  const record = recordOf([["norm", 0, null, 3e-6, 8], ["sum", 1, null, 5e-6, 8]]);
  record.variants[0] = variant(0, "plain", { median_s: 1e-2, had: 0.1 });
  const [own] = kernelWork(record);
  assert.deepEqual([own.name, workTime(own), own.mark], ["auto", "~3.00 µs", "predicted"]);
  assert.deepEqual(placesOf(record, "time", ""), [[1], [0]]);
});

Deno.test("the order by time is that of the shown times, also of disturbed ones", () => {
  const record = recordOf();
  record.variants.push(variant(1, "auto", { median_s: 1e-7, had: 0.1 }));
  record.variants.push(variant(3, "auto", { median_s: 1e-2, had: 0.1 }));
  const work = kernelWork(record);
  assert.deepEqual(work.map(workTime), ["2.00 µs", "0.10 µs", "0.10 µs", "10.0 ms"]);
  assert.deepEqual(work.map(workShare), ["<1%", "<1%", "<1%", "~100%"]);
  assert.deepEqual(placesOf(record, "time", ""), [[3], [0], [1, 2]]);
});

Deno.test("a sum of a disturbed and a predicted time is a predicted one", () => {
  const record = recordOf([["norm", 0, null, 3e-6, 8], ["sum", 1, null, 5e-6, 8]]);
  record.variants.push(variant(0, "auto", { median_s: 4e-6, had: 0.1 }));
  const work = kernelWork(record);
  assert.equal(workTime(togetherWork(work)), "~9.00 µs");
  assert.equal(timeWords(work), "predicted for 1 of 2, on a busy machine for 1 of 2");
});

Deno.test("a verdict on edited source is none on the kernel", () => {
  const { variants } = recordOf();
  const ok = { check: { ok: true } };
  variants.push(variant(0, "edited 1", null, { check: { ok: false }, edited: true }));
  variants.push(variant(0, "auto", null, ok), variant(1, "auto", null, ok));
  assert.deepEqual(checkedVariants({ variants }, [0]), [variants[5]]);
});

Deno.test("without one of the times there is no sum of them", () => {
  const rows = ROWS.map((row, k) => (k === 3 ? ["sum", 3, null, null, 4096] : row));
  const work = kernelWork(recordOf(rows));
  assert.equal(workTime(work[3]), "");
  assert.equal(togetherWork(work).seconds, null);
  assert.equal(workTotal(work), "22 KiB");
  assert.deepEqual(work.map(workShare), ["", "", "", ""]);
  assert.equal(workTotal([]), "0 B");
});

Deno.test("kernels with one title are told apart by their sizes, else by their modules", () => {
  const record = recordOf([...ROWS, ["matmul+bias", 4, null, null, 8], ["sum", 5, null, null, 8]]);
  const names = ["r_4", "r_16_64_64", "r_16_64_64", "r_2_3", "r_16_64_256", "r_2_3"];
  names.forEach((name, k) => Object.assign(record.kernels[k], { name }));
  record.kernels[3].modules = ["norm: sum", "net: loss"];
  record.kernels[5].modules = ["norm: sum"];
  assert.deepEqual(distinctions(record), [
    "",
    "16x64x64",
    "16x64x64",
    "2x3 net: loss",
    "16x64x256",
    "2x3",
  ]);
});

Deno.test("to tell many kernels apart takes a few readings of each", () => {
  let readings = 0;
  const count = 300;
  const kernels = Array.from({ length: count }, (_, k) => ({
    get title() {
      readings += 1;
      return "matmul";
    },
    name: "r_2_2",
    line: 0,
    modules: [`layer.${k}`],
  }));
  const runs = kernels.map((_, like) => ({ like }));
  const words = distinctions({ kernels, plan: { runs } });
  assert.deepEqual(words, kernels.map((_, k) => `2x2 layer.${k}`));
  assert.ok(readings <= 4 * count, `${readings} readings of ${count} titles`);
  assert.deepEqual([...sharedLines(kernels)], [0]);
  assert.deepEqual([...sharedLines([{ line: null }, { line: 3 }])], []);
});

const placesOf = (...of) => kernelGroups(...of).map(({ places }) => places);

Deno.test("kernels stand as they run, or by a figure, equal ones together", () => {
  const record = recordOf();
  assert.deepEqual(placesOf(record, "place", ""), [[0], [1], [2], [3]]);
  assert.deepEqual(placesOf(record, "time", ""), [[1, 2], [0], [3]]);
  assert.deepEqual(placesOf(record, "bytes", ""), [[1, 2], [3], [0]]);
});

Deno.test("the kernels that draw weights are the last group in every order", () => {
  const rows = [["weights", 0, null, 1e-6, 8], ROWS[0], ["weights", 2, 9e-6, null, 4], ROWS[3]];
  const record = recordOf(rows);
  record.plan.runs.forEach((run, k) => run.like = k);
  for (const order of ["place", "time", "bytes", "module"]) {
    const groups = kernelGroups(record, order, "");
    assert.deepEqual(groups.map(({ isWeights }) => isWeights), [false, false, true], order);
    const inside = order === "time" ? [2, 0] : [0, 2];
    assert.deepEqual(groups[2].places, inside, `${order}, also in it`);
  }
  assert.deepEqual(placesOf(record, "place", "weights"), [[0], [2]], "a query shows what it finds");
  assert.deepEqual(placesOf(record, "place", " ").at(-1), [0, 2]);
});

Deno.test("nothing is folded where all kernels draw weights, or one does", () => {
  const weights = ["weights", 0, null, 1e-6, 8];
  for (const rows of [[weights, weights], [weights, ROWS[0]], [weights], ROWS.slice(0, 1), []]) {
    assert.deepEqual(weightKernels(recordOf(rows)), []);
  }
  assert.deepEqual(weightKernels(recordOf([weights, ROWS[0], weights])), [0, 2]);
});

Deno.test("many short equal kernels stand before a long one that takes less than all of them", () => {
  const short = Array.from({ length: 8 }, () => ["norm", 1, 3e-6, null, 16]);
  const record = recordOf([["matmul", 0, 2e-5, null, 64], ...short]);
  const [first, second] = placesOf(record, "time", "");
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
  const find = (query) => placesOf(record, "time", query);
  assert.deepEqual(["bias MATMUL", "sqrt", "r_3", "In[2]:5", "none"].map(find), [
    [[1, 2]],
    [[0]],
    [[3]],
    [[1], [3]],
    [],
  ]);
});

Deno.test("the path of a module finds its kernels alone", () => {
  const record = recordOf();
  record.kernels.forEach((kernel, k) => kernel.modules = [`net.blocks[${k}].mlp`]);
  assert.deepEqual(placesOf(record, "place", "blocks.1.mlp"), [[1]]);
  assert.deepEqual(placesOf(record, "place", "blocks[3]"), [[3]]);
});

Deno.test("equal kernels are found from each of them", () => {
  const { plan } = recordOf();
  assert.deepEqual([0, 1, 2, 3].map((k) => equalKernels(plan, k)), [[0], [1, 2], [1, 2], [3]]);
});

Deno.test("modules are folds within each other, in the model's order", () => {
  const paths = [
    "net.stem",
    "net.h[0].up",
    "net.h[0].down",
    "net.h[0]",
    "net.h[1].up",
    "",
    "net.z",
    "net.z",
  ];
  const record = recordOf(paths.map(() => ROWS[0]));
  record.kernels.forEach((kernel, k) => kernel.module = paths[k]);
  const shown = (groups) =>
    groups.map(({ name, places, inside }) => [name || places[0], shown(inside)]);
  const alone = (...places) => places.map((k) => [k, []]);
  assert.deepEqual(shown(kernelGroups(record, "module", "")), [
    ["net", [
      ...alone(0),
      ["net.h", [["net.h[0]", alone(1, 2, 3)], ...alone(4)]],
      ["net.z", alone(6, 7)],
    ]],
    ...alone(5),
  ]);
  record.kernels[5].module = "net.a";
  assert.deepEqual(placesOf(record, "module", ""), [[0], [1, 2, 3, 4], [5], [6, 7]]);
  assert.deepEqual(placesOf(record, "module", "mean"), paths.map((_, k) => [k]));
});
