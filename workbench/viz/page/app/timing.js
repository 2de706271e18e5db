// What a timing says: its spread, its share of the machine's peak, its ratio to another. There is one
// peak for each number of threads, the roofline's, and all shares are of it as it is now.

import { secondsText, three } from "../base/text.js";

/** @import { MachineRow, TimingRow } from "../record.d.ts" */

/** Whether there is a timing of the machine itself.
 * @param {TimingRow | null | undefined} timing
 * @returns {timing is TimingRow} */
export const real = (timing) => Boolean(timing && !timing.emulator);

/** How far off a median may be; of a single run nothing is known.
 * @param {TimingRow} timing */
export const spreadText = ({ spread, samples }) =>
  samples.length < 2 ? "one run" : withinText(spread);

/** @param {number} spread */
export const withinText = (spread) =>
  spread < 0.001 ? "± <0.1%" : spread >= 1 ? "± >100%" : `± ${percent(spread)}`;

/** @param {number} fraction */
export const percent = (fraction) => `${(fraction * 100).toFixed(fraction < 0.0995 ? 1 : 0)}%`;

/** Peak of `threads` threads in operations per second, at most that of all together. Null
 * where it is unknown, and for a kernel without floats.
 * @param {MachineRow} machine
 * @param {string | null} kind
 * @param {number} threads */
export function peakOf({ peak, one_thread }, kind, threads) {
  if (!peak || !one_thread || !kind) return null;
  return Math.min(one_thread.peak[kind] * threads, peak[kind]);
}

/** The share of the peak that a timing reached; null where that says nothing.
 * @param {MachineRow} machine
 * @param {TimingRow} timing */
export function shareOf(machine, timing) {
  const peak = peakOf(machine, timing.kind, timing.threads);
  if (peak === null || timing.emulator || !timing.gflops) return null;
  const share = (timing.gflops * 1e9) / peak;
  // above it: the compiler saw through the kernel, which does less than is counted
  return share > 1 + 1e-9 ? null : Math.min(1, share);
}

/** "peak", or "one thread's peak" where a kernel leaves cores to others.
 * @param {MachineRow} machine
 * @param {TimingRow} timing */
export function peakName(machine, { kind, threads }) {
  const [some, all] = [threads, Infinity].map((n) => peakOf(machine, kind, n) ?? 0);
  if (some >= 0.9 * all) return "peak";
  return threads === 1 ? "one thread's peak" : `${threads} threads' peak`;
}

/** "13.0 ms ± 12%, cold 14.0 ms, 9% of peak, 20.6 GFLOP/s, 0.242 GB/s"
 * @param {MachineRow} machine
 * @param {TimingRow} timing */
export function timingText(machine, timing) {
  const { median_s, cold_s, emulator, device, gflops, gbytes, earlier } = timing;
  const share = shareOf(machine, timing);
  return [
    `${secondsText(median_s)} ${spreadText(timing)}`,
    cold_s !== null && `cold ${secondsText(cold_s)}`,
    ...(emulator ? [`EMULATOR (${device})`] : [
      share !== null && `${percent(share)} of ${peakName(machine, timing)}`,
      `${three(gflops)} GFLOP/s`,
      `${three(gbytes)} GB/s`,
    ]),
    earlier && "measured earlier",
  ].filter(Boolean).join(", ");
}

/** Whether two timings were taken in turns, in one run: a machine is slower an hour later.
 * @param {TimingRow} one
 * @param {TimingRow} other */
export const inOneRun = (one, other) => one === other || (one.run !== "" && one.run === other.run);

/** Whether the intervals of two timings touch: then no difference was measured.
 * @param {TimingRow} one
 * @param {TimingRow} other */
export function overlap(one, other) {
  const [a, b] = [one, other].map((t) => [
    t.median_s * (1 - t.spread),
    t.median_s * (1 + t.spread),
  ]);
  return a[0] <= b[1] && b[0] <= a[1];
}
