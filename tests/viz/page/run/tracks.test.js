// The arithmetic of the timeline: what of a run is drawn in a range of time, ticks, memory.

import assert from "node:assert/strict";
import {
  aliveAt,
  bytesAt,
  curveOf,
  peaksIn,
} from "../../../../workbench/viz/page/panels/run/memory.js";
import {
  bounded,
  indexAt,
  marksIn,
  ticksOf,
  trackOf,
  tracksOf,
  zoomed,
} from "../../../../workbench/viz/page/panels/run/tracks.js";

const LANES = [{ name: "python" }, { name: "CPU" }, { name: "empty" }];

/** A row of spans [start, length]. */
function rowOf(spans) {
  const places = spans.map((_, i) => i);
  return trackOf(0, 0, places, spans.map(([at]) => at), spans.map(([, length]) => length));
}

/** Numbers that are the same in every run. */
function* numbers(seed) {
  for (;;) yield (seed = (seed * 1103515245 + 12345) % 2147483648) / 2147483648;
}

/** `count` spans, one after the other, with lengths and gaps of very different sizes. */
function manySpans(count, seed) {
  const random = numbers(seed);
  const next = () => Math.floor(10 ** (4 * random.next().value));
  let at = 0;
  return Array.from({ length: count }, () => {
    const start = at + next();
    const length = next();
    at = start + length;
    return [start, length];
  });
}

Deno.test("a lane has a row for each depth; one without spans has an empty row", () => {
  const spans = {
    start_ns: [0, 2, 3, 9],
    length_ns: [8, 3, 1, 1],
    lane: [0, 0, 1, 0],
    depth: [0, 1, 0, 0],
  };
  const rows = tracksOf({ lanes: LANES, spans }).map((
    { lane, depth, places },
  ) => [lane, depth, places]);
  assert.deepEqual(rows, [[0, 0, [0, 3]], [0, 1, [1]], [1, 0, [2]], [2, 0, []]]);
});

Deno.test("marks show each span in sight, those below a pixel together, at most two a pixel", () => {
  for (const seed of [1, 2, 3]) {
    const spans = manySpans(2000, seed);
    const row = rowOf(spans);
    const end = spans.at(-1)[0] + spans.at(-1)[1];
    for (const [from, to] of [[0, end], [end / 3, end / 2], [end / 2, end / 2 + 5000]]) {
      const pixel = (to - from) / 500;
      const marks = marksIn(row, { from, to }, pixel);
      const inSight = spans.filter(([at, length]) => at < to && at + length > from);
      assert.ok(marks.length <= 1002, `seed ${seed}`);
      const counted = marks.reduce((sum, { count }) => sum + count, 0);
      assert.ok(
        Math.abs(counted - inSight.length) <= 1e3 && counted >= inSight.length,
        `seed ${seed}`,
      );
      for (const [at, length] of inSight.filter(([, length]) => length >= pixel)) {
        assert.ok(marks.some((m) => m.from === at && m.to === at + length && m.count === 1));
      }
    }
  }
});

Deno.test("a mark of several takes the share of its pixel that they take", () => {
  const marks = marksIn(rowOf([[0, 1], [4, 1], [8, 1], [10, 30]]), { from: 0, to: 100 }, 10);
  assert.deepEqual(marks, [
    { from: 0, to: 10, place: 0, count: 3, share: 0.3 },
    { from: 10, to: 40, place: 3, count: 1, share: 1 },
  ]);
});

Deno.test("clocks that jump: spans that overlap are all found", () => {
  const row = rowOf([[0, 100], [10, 5], [50, 5]]);
  assert.deepEqual(marksIn(row, { from: 60, to: 70 }, 1).map(({ place }) => place).slice(0, 1), [
    0,
  ]);
  assert.equal(indexAt(row, 12), 1);
  assert.equal(indexAt(row, 70), 0);
});

Deno.test("the span at a time, or near it", () => {
  const row = rowOf([[10, 10], [30, 10]]);
  assert.deepEqual([5, 10, 19, 25, 39, 45].map((t) => indexAt(row, t)), [-1, 0, 0, -1, 1, -1]);
  assert.deepEqual([8, 22, 28, 25].map((t) => indexAt(row, t, 2)), [0, 0, 1, -1]);
});

Deno.test("a range stays in the run, and a zoom keeps the time under the pointer", () => {
  const { from, to } = bounded({ from: -900, to: -400 }, 1000);
  assert.deepEqual([from, to], [-20, 480]);
  assert.deepEqual(bounded({ from: -1e9, to: 1e9 }, 1000), { from: -20, to: 1020 });
  assert.equal(bounded({ from: 5, to: 5 }, 1000).to - bounded({ from: 5, to: 5 }, 1000).from, 40);
  assert.deepEqual(zoomed({ from: 0, to: 100 }, 0.5, 20), { from: 10, to: 60 });
});

Deno.test("ticks are round, and as exact as their distance", () => {
  const texts = (from, to) => ticksOf({ from, to }, 500).map(({ text }) => text);
  assert.deepEqual(texts(0, 1e6), ["0.0 ms", "0.2 ms", "0.4 ms", "0.6 ms", "0.8 ms", "1.0 ms"]);
  assert.deepEqual(texts(12_345_000, 12_346_000), [
    "12.3450 ms",
    "12.3452 ms",
    "12.3454 ms",
    "12.3456 ms",
    "12.3458 ms",
    "12.3460 ms",
  ]);
  assert.deepEqual(texts(-10, 40), ["0 ns", "10 ns", "20 ns", "30 ns", "40 ns"]);
});

const MEMORY = {
  before_bytes: [100, 0],
  start_ns: [0, 10, 20],
  end_ns: [20, -1, 30],
  bytes: [8, 4, 16],
};

Deno.test("memory: the curve, what is alive under the pointer, and the most of a pixel", () => {
  const curve = curveOf(MEMORY);
  assert.equal(curve.peak, 120);
  assert.deepEqual([-5, 0, 9, 10, 20, 29, 30, 99].map((t) => bytesAt(curve, t)), [
    100,
    108,
    108,
    112,
    120,
    120,
    104,
    104,
  ]);
  assert.deepEqual(aliveAt(MEMORY, 15), [0, 1]);
  assert.deepEqual(aliveAt(MEMORY, 20), [2, 1]);
  assert.deepEqual(aliveAt(MEMORY, 50), [1]);
  assert.deepEqual([...peaksIn(curve, { from: 0, to: 40 }, 4)], [108, 112, 120, 120]);
  assert.equal(curveOf({ before_bytes: [], start_ns: [], end_ns: [], bytes: [] }).peak, 0);
});
