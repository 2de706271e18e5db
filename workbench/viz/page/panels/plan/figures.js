// The figure that colours the kernels of the plan: its values, its scale, and their legend. One hue,
// darker or lighter: it is told apart without seeing colours, and each box has its figure as text.

import { chooser } from "../../app/pieces.js";
import { percent } from "../../app/timing.js";
import { h } from "../../base/elements.js";
import { bytesText, countText, secondsText } from "../../base/text.js";
import { timeSign } from "../../record/kernels.js";

/** @import { Work } from "../../record/kernels.js" */

/** A figure of a kernel: its word, its value (null: not known), its text, and the sign before
 * it; `most` is the end of its scale, from 0 on, where that is fixed.
 * @typedef {{
 *   name: string, of(work: Work): number | null, text(value: number): string,
 *   sign?(work: Work): string, most?: number
 * }} Figure */

/** @type {Figure[]} */
export const FIGURES = [
  { name: "time", of: ({ seconds }) => seconds, text: secondsText, sign: timeSign },
  { name: "bytes", of: ({ bytes }) => bytes, text: bytesText },
  { name: "operations", of: ({ operations }) => operations, text: countText },
  { name: "share of peak", of: ({ peak }) => peak, text: percent, most: 1 },
];

const STEPS = ["10", "2e", "4c", "6b", "8a"]; // how opaque the hue is, from the least on
export const UNKNOWN = "transparent";

/** A scale: the step of a value, and its ends as text. Without fixed ends each step is the same
 * factor, since kernels differ by orders of magnitude.
 * @typedef {{tint(value: number | null): string, least: string, most: string, isLog: boolean}} Scale */

/** @param {Figure} figure
 * @param {(number | null)[]} values
 * @returns {Scale | null} */
export function scaleOf({ text, most }, values) {
  const known = values.flatMap((value) => (value !== null && value > 0 ? [value] : []));
  if (!known.length) return null;
  const ends = most === undefined ? [Math.min(...known), Math.max(...known)] : [0, most];
  const [from, to] = most === undefined ? ends.map(Math.log) : ends;
  const place = (/** @type {number} */ value) => most === undefined ? Math.log(value) : value;
  const step = (/** @type {number} */ value) => {
    const share = value > 0 ? (place(value) - from) / (to - from || 1) : 0;
    return Math.max(0, Math.min(STEPS.length - 1, Math.floor(share * STEPS.length)));
  };
  return {
    tint: (value) => (value === null ? UNKNOWN : hue(STEPS[step(value)])),
    least: text(ends[0]),
    most: text(ends[1]),
    isLog: most === undefined,
  };
}

/** @param {string} opacity */
const hue = (opacity) => `#0072b2${opacity}`;

/** The choice of a figure, and the legend of its scale.
 * @param {number} chosen index in FIGURES; -1: none
 * @param {Scale | null} scale
 * @param {(figure: number) => void} choose */
export function figureLegend(chosen, scale, choose) {
  const rows = FIGURES.map(({ name }, i) => /** @type {[number, string]} */ ([i, `by ${name}`]));
  return [
    chooser("colours of kernels", [[-1, "by kernel"], ...rows], chosen, choose),
    chosen >= 0 && !scale && h("span", { class: "wb-quiet" }, "not timed yet"),
    scale &&
    h(
      "span",
      {
        class: "wb-plan-scale",
        title: scale.isLog
          ? "from the least to the most; each step is the same factor; without a ground: not known"
          : "each step is a fifth; without a ground: not timed",
        "data-term": "colours of kernels",
      },
      scale.least,
      ...STEPS.map((opacity) => h("i", { style: `background:${hue(opacity)}` })),
      scale.most,
    ),
  ];
}
