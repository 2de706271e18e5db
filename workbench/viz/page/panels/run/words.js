// The words of a run: what a span, a gap or a moment of its memory is, in a line.

import { bytesText, cut, plural, secondsText, three } from "../../base/text.js";
import { aliveAt, bytesAt } from "./memory.js";

/** @import { Kernel, Run } from "./run.d.ts" */
/** @import { Curve } from "./memory.js" */

/** Nanoseconds as a text.
 * @param {number} ns */
export const timeText = (ns) => ns > 0 && ns < 1e3 ? `${three(ns)} ns` : secondsText(ns / 1e9);

/** The kernel of a span; null: it is of other work.
 * @param {Run} run
 * @param {number} place
 * @returns {Kernel | null} */
export function kernelOf({ kinds, kernels, spans }, place) {
  const kind = kinds[spans.kind[place]];
  return kind === "kernel" || kind === "part" ? kernels[spans.subject[place]] : null;
}

/** What stands in a span.
 * @param {Run} run
 * @param {number} place */
export function spanLabel(run, place) {
  const kernel = kernelOf(run, place);
  if (kernel) return kernel.title;
  const { kinds, names, spans } = run;
  return [kinds[spans.kind[place]], names[spans.subject[place]]].filter(Boolean).join(" ");
}

/** A span in words: its name, start, duration, module, line, and the error that ended it.
 * @param {Run} run
 * @param {number} place */
export function spanWords(run, place) {
  const { spans, lanes, errors } = run;
  const kernel = kernelOf(run, place);
  const error = errors.find(({ span }) => span === place);
  const [start, length] = [spans.start_ns[place], spans.length_ns[place]];
  return [
    spanLabel(run, place),
    `starts at ${timeText(start)}`,
    `takes ${timeText(length)}`,
    kernel?.predicted_ns && `predicted ${timeText(kernel.predicted_ns)}`,
    kernel?.module && `module ${kernel.module}`,
    kernel?.phase,
    kernel?.line,
    lanes[spans.lane[place]].name,
    error && `ended by ${error.text}`,
  ].filter(Boolean).join(" · ");
}

/** A gap in words.
 * @param {Run} run
 * @param {number} place */
export const gapWords = ({ gaps, causes, lanes }, place) =>
  [
    `gap: ${causes[gaps.cause[place]]}`,
    `starts at ${timeText(gaps.start_ns[place])}`,
    `takes ${timeText(gaps.length_ns[place])}`,
    lanes[gaps.lane[place]].name,
  ].join(" · ");

const MOST_ALIVE = 6;

/** The memory at a time: how much is in use, and the largest blocks.
 * @param {Run} run
 * @param {Curve} curve
 * @param {number} time */
export function memoryWords({ memory, names }, curve, time) {
  const alive = aliveAt(memory, time);
  const listed = alive.slice(0, MOST_ALIVE).map((place) => {
    const label = names[memory.label[place]] ?? "without a name";
    return `${cut(label, 40)} ${bytesText(memory.bytes[place])}`;
  });
  const more = alive.length - listed.length;
  const before = memory.before_bytes.reduce((sum, own) => sum + own, 0);
  return [
    `memory at ${timeText(Math.max(0, time))}: ${bytesText(bytesAt(curve, time))} in use`,
    ...listed,
    more > 0 && `${more} more`,
    before && `${bytesText(before)} from before the run`,
  ].filter(Boolean).join(" · ");
}

/** A run in a line.
 * @param {Run} run */
export function runWords({ title, machine, length_ns: length, kernels, rounds }) {
  const launches = kernels.reduce((sum, kernel) => sum + kernel.launches, 0);
  const repeated = rounds.length ? `, ${plural(rounds.length, "time")}` : "";
  return `${title}${repeated}: ${timeText(length)}, ${plural(launches, "launch")} on ${machine}`;
}
