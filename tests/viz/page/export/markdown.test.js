// A comparison as Markdown: it says what differs, and text of the record is only text there.

import assert from "node:assert/strict";
import { comparison } from "../../../../workbench/viz/page/export/markdown.js";

const timing = (median_s, more = {}) => ({
  median_s,
  spread: 0.01,
  samples: [1, 2],
  cold_s: null,
  gflops: 2,
  gbytes: 1,
  kind: null,
  threads: 1,
  device: "LLVM",
  emulator: false,
  run: "a",
  earlier: false,
  ...more,
});
const row = (name, more) => ({
  kernel: 0,
  name,
  opts: [],
  rules_off: [],
  edited: false,
  timing: null,
  check: null,
  bound: null,
  note: "",
  counts: null,
  recipe: "kernel = ex.kernels[0]\n",
  code: [],
  ...more,
});
const record = {
  expr: { text: "y = a @ b", line: 0, python: "ex = explore(y)\n" },
  lines: [{ where: "In[3]:2", text: "" }],
  kernels: [{ title: "matmul+relu" }],
  device: "LLVM",
  machine: { cpu: "CPU", cores: 2, peak: null, one_thread: null },
};
const code = (...lines) => [{ language: "C", lines, links: [] }];

Deno.test("opts, times, checks, counts and code of two variants stand side by side", () => {
  const was = row("plain", {
    timing: timing(2e-3),
    counts: { loads: 4000 },
    code: code(...Array.from({ length: 9 }, (_, i) => `line ${i}`), "old"),
  });
  const now = row("mine 1", {
    opts: ['UPCAST("g1", 4)'],
    timing: timing(1e-3),
    check: { ok: true, text: "right: 64 of 64" },
    counts: { loads: 1000 },
    code: code(...Array.from({ length: 9 }, (_, i) => `line ${i}`), "new"),
  });
  const text = comparison(record, now, was);
  assert.match(text, /^## matmul\+relu: mine 1 beside plain\n/);
  assert.match(text, /`y = a @ b` \(In\\\[3\\\]:2\), kernel 1 of 1, LLVM, CPU, 2 cores/);
  assert.match(text, /\n\| {2}\| plain \| mine 1 \|\n\| --- \| --- \| --- \|\n/);
  assert.match(text, /\| opts \| none \| `UPCAST\("g1", 4\)` \|/);
  assert.match(text, /\| time \| 2\.00 ms ± 1\.0%.* \| 1\.00 ms ± 1\.0%.* \|/);
  assert.match(text, /\| loads \| 4,000 \| 1,000 \|/);
  assert.match(text, /mine 1 is 2\.00 times as fast as plain \(1\.96 to 2\.04\)\.\n/);
  assert.match(text, /```diff\n@@ \.\. @@\n line 6\n line 7\n line 8\n-old\n\+new\n```/);
  assert.match(text, /```python\nex = explore\(y\)\nkernel = ex\.kernels\[0\]\n```/);
  assert.ok(!text.includes("| note |"), "what neither has is left out");
});

Deno.test("times of other machines, and of another run, are not taken for a gain", () => {
  const was = row("plain", { timing: timing(2e-3) });
  const text = (more) => comparison(record, row("mine", { timing: timing(1e-3, more) }), was);
  assert.ok(!text({ machine: "another" }).includes("as fast"));
  assert.match(text({ run: "b" }), /times as fast as plain \(timed separately\)\./);
  assert.match(
    comparison(record, row("mine", { timing: timing(1.99e-3) }), was),
    /No measurable difference in time/,
  );
  assert.match(
    comparison(record, row("mine", { timing: timing(3e-3) }), was),
    /mine is 1\.50 times as slow as plain \(1\.47 to 1\.53\)\./,
  );
});

Deno.test("text is only text", () => {
  const one = row("a|b`<img>*_\n# x", { note: "| x |\n```", opts: ["`|`"] });
  const text = comparison(record, one, one);
  assert.ok(!text.includes("<img>") && !text.includes("\n# x"));
  for (const line of text.split("\n").filter((each) => each.startsWith("|"))) {
    assert.equal(line.replaceAll("\\|", "").split("|").length, 4, line);
  }
});
