// Texts of a timing: its spread, its share of the machine's peak, its ratio to another.

import { secondsText, three } from "../base/text.js";

/** @import { TimingRow } from "../record.d.ts" */

/** Whether a timing was measured on this machine, and not on an emulator.
 * @param {TimingRow | null | undefined} timing
 * @returns {timing is TimingRow} */
export const real = (timing) => Boolean(timing && !timing.emulator && !timing.machine);

/** Stands where other programs had the kernel's cores in every sample: such a time is no time. */
export const BUSY = "busy";
/** From this spread on a median is not certain. */
export const WIDE = 0.1;
/** Stands where there is one sample, and so no spread. */
export const ONE_RUN = "1 run";
const NOT_COMPARED = "the machine is busy: not compared";

/** Whether a timing has no undisturbed sample.
 * @param {TimingRow} timing */
export const isBusy = ({ had = null }) => had !== null;

/** Whether nothing speaks against a timing: the machine was at rest, and the samples lie close.
 * @param {TimingRow} timing */
export const isCertain = ({ doubts = [] }) => doubts.length === 0;

/** The uncertainty of a median, within its samples or over several measurements; unknown for a
 * single run.
 * @param {TimingRow} timing */
export function spreadText({ spread, samples, median_s, medians = [], had = null }) {
  if (had !== null) return BUSY;
  const [least, most] = ends(median_s, medians);
  if (medians.length) return withinText(Math.max(spread, (most - least) / 2 / median_s));
  return samples.length < 2 ? ONE_RUN : withinText(spread);
}

/** The least and the greatest of some medians.
 * @param {number} median
 * @param {number[]} medians */
const ends = (median, medians) => [Math.min(median, ...medians), Math.max(median, ...medians)];

/** @param {number} spread */
export const withinText = (spread) =>
  spread < 0.001 ? "± <0.1%" : spread >= 1 ? "± >100%" : `± ${percent(spread)}`;

/** @param {number} fraction */
export const percent = (fraction) =>
  fraction > 0 && fraction < 0.0005
    ? "<0.1%"
    : `${(fraction * 100).toFixed(fraction < 0.0995 ? 1 : 0)}%`;

/** "13.0 ms ± 12%"; "1.73 ms busy": other programs disturbed every sample.
 * @param {TimingRow} timing */
export const medianText = (timing) => `${secondsText(timing.median_s)} ${spreadText(timing)}`;

/** "13.0 ms ± 12%", or "1.73 ms, the machine is busy": where there is room for few words, the reason
 * of a doubt stands in place of the spread.
 * @param {TimingRow} timing */
export function briefTiming(timing) {
  const { median_s, doubts = [], emulator } = timing;
  const isDoubted = doubts.length > 0 && !isBusy(timing);
  const text = isDoubted
    ? `${secondsText(median_s)}, ${doubts[0].split(":")[0]}`
    : medianText(timing);
  return emulator ? `${text} EMULATOR` : text;
}

/** "13.0 ms ± 12%, cold 14.0 ms ± 3%, 9% of peak, 20.6 GFLOP/s, 0.242 GB/s"
 * @param {TimingRow} timing */
export function timingText(timing) {
  const { cold_s, emulator, device, gflops, gbytes, share } = timing;
  return [
    medianText(timing),
    cold_s !== null &&
    `cold ${secondsText(cold_s)} ${coldSpread(timing)}`.trimEnd(),
    ...(emulator ? [`EMULATOR (${device})`] : [
      share && `${percent(share.fraction)} of ${share.of}`,
      `${three(gflops)} GFLOP/s`,
      `${three(gbytes)} GB/s`,
    ]),
    ...(timing.doubts ?? []),
    overCalls(timing),
    timing.later,
    timing.random_inputs && "on random inputs",
    timing.earlier && "measured earlier",
    timing.machine && `on ${timing.machine}`,
  ].filter(Boolean).join(", ");
}

/** The range of several measurements.
 * @param {TimingRow} timing */
const overCalls = ({ median_s, medians = [] }) =>
  medians.length > 0 &&
  `${medians.length + 1} calls gave ${ends(median_s, medians).map(secondsText).join(" to ")}`;

/** Whether two timings were taken in turns, in one run: a machine may be slower an hour later.
 * @param {TimingRow} one
 * @param {TimingRow} other */
export const inOneRun = (one, other) => one === other || (one.run !== "" && one.run === other.run);

/** The uncertainty of a median with cold caches.
 * @param {TimingRow} timing */
export const coldSpread = ({ cold_spread: spread = null }) =>
  spread === null ? "" : withinText(spread);

/** Whether the intervals of two timings overlap: then no difference was measured.
 * @param {TimingRow} one
 * @param {TimingRow} other
 * @param {boolean} [cold] */
export function overlap(one, other, cold = false) {
  const [a, b] = [one, other].map((t) => {
    const [median, spread] = cold ? [t.cold_s ?? 0, t.cold_spread ?? 0] : [t.median_s, t.spread];
    return [median * (1 - spread), median * (1 + spread)];
  });
  return a[0] <= b[1] && b[0] <= a[1];
}

/** Stands before a time of another run, or of an earlier session: "~" is for predictions alone. */
export const APART = "*";

export const SAME = "no measurable difference";

/** How many times as fast a timing is as another one, with the range that the spreads allow; "" for
 * a missing one, and for those of an emulator or another machine; in words for a disturbed one.
 * @param {TimingRow | null} timing
 * @param {TimingRow | null} before
 * @param {string} [than] the name of the other one */
export function speedText(timing, before, than = "") {
  if (timing === before || !real(timing) || !real(before)) return "";
  if (isBusy(timing) || isBusy(before)) return NOT_COMPARED;
  const isOneRun = inOneRun(timing, before);
  if (isOneRun && overlap(timing, before)) return SAME;
  const isFaster = timing.median_s <= before.median_s;
  const [short, long] = isFaster ? [timing, before] : [before, timing];
  const word = `${isFaster ? "fast" : "slow"}${than && ` as ${than}`}`;
  const low = long.median_s * (1 - long.spread) / (short.median_s * (1 + short.spread));
  const high = long.median_s * (1 + long.spread) / (short.median_s * (1 - short.spread));
  const range = isOneRun && short.spread < 1
    ? `${three(low)} to ${three(high)}`
    : "timed separately";
  return `${three(long.median_s / short.median_s)} times as ${word} (${range})`;
}
