// The arithmetic of a timeline: the rows of a run, and what of them stands in a range of time at a
// scale. Nothing here draws. Units: nanoseconds since the run began.

/** @import { Run } from "./run.d.ts" */

/** Spans of one lane at one depth in the order of their starts: their places in the run, starts and
 * ends. `latest` is the latest end of those before and of its own, `busy` the sum of the lengths
 * before, so that a search needs no scan.
 * @typedef {{
 *   lane: number, depth: number, places: number[], start: Float64Array, end: Float64Array,
 *   latest: Float64Array, busy: Float64Array
 * }} Track
 * What is drawn as one: a span (`place`), or several narrower than a pixel (`count`), which take this
 * share of their pixel.
 * @typedef {{from: number, to: number, place: number, count: number, share: number}} Mark
 * A part of the time that is shown.
 * @typedef {{from: number, to: number}} Range */

/** The rows of a run: those of a lane by depth, lanes in their order.
 * @param {Pick<Run, "lanes" | "spans">} run
 * @returns {Track[]} */
export function tracksOf({ lanes, spans }) {
  /** @type {number[][][]} */
  const places = lanes.map(() => []);
  spans.lane.forEach((lane, place) => (places[lane][spans.depth[place]] ??= []).push(place));
  return places.flatMap((depths, lane) =>
    (depths.length ? depths : [[]]).map((own, depth) =>
      trackOf(lane, depth, own ?? [], spans.start_ns, spans.length_ns)
    )
  );
}

/** A row of some places.
 * @param {number} lane
 * @param {number} depth
 * @param {number[]} places in the order of their starts
 * @param {number[]} starts
 * @param {number[]} lengths
 * @returns {Track} */
export function trackOf(lane, depth, places, starts, lengths) {
  const start = Float64Array.from(places, (place) => starts[place]);
  const end = Float64Array.from(places, (place) => starts[place] + lengths[place]);
  const latest = new Float64Array(places.length);
  const busy = new Float64Array(places.length + 1);
  let most = -Infinity;
  for (let i = 0; i < places.length; i++) {
    latest[i] = most = Math.max(most, end[i]);
    busy[i + 1] = busy[i] + end[i] - start[i];
  }
  return { lane, depth, places, start, end, latest, busy };
}

/** The first index of sorted numbers, from `low` on, that is not less than a value; past the last: none.
 * @param {Float64Array} sorted
 * @param {number} value */
export function firstFrom(sorted, value, low = 0) {
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** What of a track is drawn in a range of time: each span of at least a pixel, and one mark for those
 * of a pixel together, so that there are at most two marks a pixel.
 * @param {Track} track
 * @param {Range} range
 * @param {number} pixel its length
 * @returns {Mark[]} */
export function marksIn({ places, start, end, latest, busy }, { from, to }, pixel) {
  /** @type {Mark[]} */
  const marks = [];
  const count = places.length;
  for (let i = firstFrom(latest, from); i < count && start[i] < to;) {
    if (end[i] - start[i] >= pixel) {
      marks.push({ from: start[i], to: end[i], place: places[i], count: 1, share: 1 });
      i++;
      continue;
    }
    const edge = (Math.floor(start[i] / pixel) + 1) * pixel;
    let next = Math.max(i + 1, firstFrom(start, edge, i + 1));
    while (next > i + 1 && end[next - 1] - start[next - 1] >= pixel) next--; // it stands by itself
    const share = Math.min(1, (busy[next] - busy[i]) / pixel);
    const last = Math.max(edge, end[next - 1]);
    marks.push({ from: edge - pixel, to: last, place: places[i], count: next - i, share });
    i = next;
  }
  return marks;
}

/** The index of the span at a time, or of one at most `slack` away; -1: there is none.
 * @param {Track} track
 * @param {number} time
 * @param {number} [slack] */
export function indexAt({ start, end }, time, slack = 0) {
  let nearest = -1;
  let distance = slack;
  for (
    let i = firstFrom(start, time + slack + 1) - 1, tried = 0;
    i >= 0 && tried < 4;
    i--, tried++
  ) {
    if (start[i] <= time && time < end[i]) return i;
    const away = Math.max(start[i] - time, time - end[i]);
    if (away <= distance) [nearest, distance] = [i, away];
  }
  return nearest;
}

/** A range moved and scaled so that it stays within the run; at least some nanoseconds stay visible.
 * @param {Range} range
 * @param {number} length of the run
 * @returns {Range} */
export function bounded({ from, to }, length) {
  const margin = Math.max(1, length / 50);
  const width = Math.min(length + 2 * margin, Math.max(LEAST_NS, to - from));
  const middle = (from + to) / 2;
  const first = Math.max(-margin, Math.min(length + margin - width, middle - width / 2));
  return { from: first, to: first + width };
}

const LEAST_NS = 40;

/** A range `factor` times as long, in which a time stays at its place.
 * @param {Range} range
 * @param {number} factor
 * @param {number} time
 * @returns {Range} */
export const zoomed = ({ from, to }, factor, time) => ({
  from: time - (time - from) * factor,
  to: time + (to - time) * factor,
});

/** The times of the marks of an axis, at least `pixels` apart: steps of 1, 2 or 5.
 * @param {Range} range
 * @param {number} width in pixels
 * @param {number} [pixels]
 * @returns {{at: number, text: string}[]} */
export function ticksOf({ from, to }, width, pixels = 90) {
  const least = Math.max(1, ((to - from) / Math.max(1, width)) * pixels);
  const power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].map((m) => m * power).find((each) => each >= least) ?? 10 * power;
  const most = Math.max(Math.abs(from), Math.abs(to));
  const [scale, unit] = UNITS.find(([each]) => most >= each) ?? UNITS[UNITS.length - 1];
  const digits = Math.max(0, Math.ceil(Math.log10(scale / step) - 1e-9));
  const first = Math.ceil(Math.max(0, from) / step);
  const ticks = [];
  for (let n = first; n * step <= to; n++) {
    ticks.push({ at: n * step, text: `${((n * step) / scale).toFixed(digits)} ${unit}` });
  }
  return ticks;
}

/** @type {[number, string][]} */
const UNITS = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
