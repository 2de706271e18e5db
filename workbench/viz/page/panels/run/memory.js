// The memory of a run over time: how much is in use, and what.

import { firstFrom } from "./tracks.js";

/** @import { RunMemory } from "../../record.d.ts" */
/** @import { Range } from "./tracks.js" */

/** The bytes in use: from each of the sorted `times` on, as many as at its place in `bytes`.
 * @typedef {{times: Float64Array, bytes: Float64Array, peak: number}} Curve */

/** The curve of a run.
 * @param {RunMemory} memory
 * @returns {Curve} */
export function curveOf({ before_bytes: before, start_ns: starts, end_ns: ends, bytes }) {
  /** @type {[number, number][]} */
  const changes = [];
  bytes.forEach((size, i) => {
    changes.push([starts[i], size]);
    if (ends[i] >= 0) changes.push([Math.max(starts[i], ends[i]), -size]);
  });
  changes.sort((a, b) => a[0] - b[0] || a[1] - b[1]); // what ends at a time makes room first
  const times = new Float64Array(changes.length + 1);
  const sums = new Float64Array(changes.length + 1);
  times[0] = -Infinity;
  sums[0] = before.reduce((sum, own) => sum + own, 0);
  let peak = sums[0];
  changes.forEach(([time, change], i) => {
    times[i + 1] = time;
    sums[i + 1] = sums[i] + change;
    peak = Math.max(peak, sums[i + 1]);
  });
  return { times, bytes: sums, peak };
}

/** The place in a curve that holds at a time.
 * @param {Curve} curve
 * @param {number} time */
const placeAt = ({ times }, time) => Math.max(0, firstFrom(times, time + 1e-9) - 1);

/** The bytes in use at a time.
 * @param {Curve} curve
 * @param {number} time */
export function bytesAt(curve, time) {
  let place = placeAt(curve, time);
  while (curve.times[place + 1] === time) place++;
  return curve.bytes[place];
}

/** The most bytes in each of `width` parts of a range.
 * @param {Curve} curve
 * @param {Range} range
 * @param {number} width */
export function peaksIn(curve, { from, to }, width) {
  const { times, bytes } = curve;
  const peaks = new Float64Array(width);
  const pixel = (to - from) / width;
  let place = placeAt(curve, from);
  for (let x = 0; x < width; x++) {
    let most = bytes[place];
    const edge = from + (x + 1) * pixel;
    while (place + 1 < times.length && times[place + 1] < edge) {
      most = Math.max(most, bytes[++place]);
    }
    peaks[x] = most;
  }
  return peaks;
}

/** The places of the blocks in use at a time, the largest first.
 * @param {RunMemory} memory
 * @param {number} time */
export function aliveAt({ start_ns: starts, end_ns: ends, bytes }, time) {
  const alive = [];
  for (let i = 0; i < starts.length; i++) {
    if (starts[i] <= time && (ends[i] < 0 || time < ends[i])) alive.push(i);
  }
  return alive.sort((a, b) => bytes[b] - bytes[a] || a - b);
}
