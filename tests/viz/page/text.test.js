import assert from "node:assert/strict";
import { briefTiming, medianText } from "../../../workbench/viz/page/app/timing.js";
import {
  bytesText,
  countText,
  cut,
  hasWords,
  plural,
  secondsText,
  three,
} from "../../../workbench/viz/page/base/text.js";

Deno.test("three digits count", () => {
  const figures = [213.4, 99.96, 21.34, 9.996, 2.134, 0.2134, 0.00213, 0, NaN];
  const texts = ["213", "100", "21.3", "10.0", "2.13", "0.21", "0.0021", "0.00", "-"];
  assert.deepEqual(figures.map(three), texts);
});

Deno.test("units fit the figure", () => {
  assert.deepEqual([2, 0.0034, 1.25e-5].map(secondsText), ["2.00 s", "3.40 ms", "12.5 µs"]);
  assert.deepEqual([0, 320, 1000, 20480, 1 << 21].map(bytesText), [
    "0 B",
    "320 B",
    "1000 B",
    "20 KiB",
    "2 MiB",
  ]);
  assert.deepEqual([9999, 12000, 83.3e6, 2e9].map(countText), [
    "9999",
    "12.0 k",
    "83.3 M",
    "2.00 G",
  ]);
});

Deno.test("plurals end as the word asks", () => {
  assert.deepEqual([plural(1, "copy"), plural(2, "copy")], ["1 copy", "2 copies"]);
  assert.deepEqual([plural(1, "pass"), plural(2, "pass"), plural(1200, "match")], [
    "1 pass",
    "2 passes",
    "1,200 matches",
  ]);
});

Deno.test("words are found in any order; signs count where there is nothing else", () => {
  assert.ok(hasWords("Fold a constant", "constant fold"));
  assert.ok(!hasWords("Fold a constant", "fold index"));
  assert.ok(hasWords("a + b", "+") && !hasWords("a b", "+"));
});

Deno.test("what is left out of a text is marked", () => {
  assert.deepEqual([cut("LOCAL g0 16", 11), cut("LOCAL g0 16", 8)], ["LOCAL g0 16", "LOCAL g…"]);
});

Deno.test("a time has one text wherever it stands", () => {
  const timing = { median_s: 1.73e-3, spread: 0.062, samples: [1.7e-3, 1.8e-3], had: null };
  const row = /** @type {import("../../../workbench/viz/page/record.d.ts").TimingRow} */ (
    /** @type {unknown} */ (timing)
  );
  assert.equal(medianText(row), "1.73 ms ± 6.2%");
  assert.equal(medianText({ ...row, had: 0.5 }), "1.73 ms busy");
});

Deno.test("a short time has the reason of its doubt in place of the spread", () => {
  const timing = { median_s: 1.73e-3, spread: 0.062, samples: [1, 1], doubts: [] };
  assert.equal(briefTiming(timing), "1.73 ms ± 6.2%");
  const doubts = ["the machine is busy: 1.6 times slower than at rest", "another"];
  assert.equal(briefTiming({ ...timing, doubts }), "1.73 ms, the machine is busy");
  assert.equal(briefTiming({ ...timing, doubts, had: 0.5 }), "1.73 ms busy");
  assert.equal(briefTiming({ ...timing, emulator: true }), "1.73 ms ± 6.2% EMULATOR");
});
