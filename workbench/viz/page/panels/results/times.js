// The time of a variant or a baseline: value, spread, ratio to the pinned variant.

import { reference } from "../../app/actions.js";
import { coldSpread, inOneRun, overlap, real, spreadText, timingText } from "../../app/timing.js";
import { h } from "../../base/elements.js";
import { secondsText, three } from "../../base/text.js";

/** @import { TimingRow, VariantRow } from "../../record.d.ts" */
/** @import { App } from "../../app/store.js" */

const APART =
  "timed separately from the pinned variant: the machine may have been slower or faster; Time takes both in turns";

/** Time, spread and ratio to the pinned variant; nothing where an emulator ran.
 * @param {App} app
 * @param {TimingRow | null} timing
 * @param {boolean} [hidden] */
export function timeCells(app, timing, hidden = false) {
  if (!timing || hidden) {
    return h("span", { class: "wb-quiet wb-said" }, hidden ? "emulated" : "not timed");
  }
  const s = app.view.cold ? timing.cold_s : timing.median_s;
  if (s === null) return h("span", { class: "wb-quiet wb-said" }, "not timed cold");
  const other = reference(app)?.timing;
  const isOld = timing.earlier || (real(other) && !inOneRun(timing, other));
  return h(
    "span",
    { class: "wb-times" },
    h(
      "span",
      {
        class: `wb-figure ${isOld ? "wb-stale" : ""}`,
        title: timingText(timing),
      },
      isOld && "~",
      secondsText(s),
    ),
    h(
      "span",
      {
        class: "wb-figure wb-quiet wb-spread",
        "data-term": timing.samples.length < 2 ? "once" : "±",
      },
      app.view.cold ? coldSpread(timing) : spreadText(timing),
    ),
    ratioCell(app, timing, other),
  );
}

/** The predicted time of a variant, and the ratio of the pinned one's to it.
 * @param {App} app
 * @param {VariantRow} variant */
export function predictedCells(app, { cost }) {
  if (!cost) {
    const isOther = app.record.variants.some((variant) => variant.cost);
    const title = isOther && "a variant is predicted once it is selected";
    const words = isOther ? "not predicted yet" : "not predicted";
    return h("span", { class: "wb-quiet wb-said", title: title || null }, words);
  }
  const other = reference(app)?.cost;
  return h(
    "span",
    { class: "wb-times wb-times-predicted" },
    h(
      "span",
      { class: "wb-figure wb-stale", "data-term": "predicted", title: "predicted, not run here" },
      `~${secondsText(cost.predicted_s)}`,
    ),
    other
      ? h(
        "b",
        { class: "wb-figure", title: "predicted: times as fast as the pinned variant" },
        `~${three(other.predicted_s / cost.predicted_s).replace(/\.00$/, "")}x`,
      )
      : h("span"),
  );
}

/** The ratio of the two times that are shown to each other; none where they were not taken in turns,
 * in one run: the machine may have been slower in one of them.
 * @param {App} app
 * @param {TimingRow} timing
 * @param {TimingRow | null | undefined} other */
function ratioCell(app, timing, other) {
  if (!real(other)) return h("span");
  const [a, b] = app.view.cold ? [other.cold_s, timing.cold_s] : [other.median_s, timing.median_s];
  if (a === null || b === null) return h("span");
  if (!inOneRun(timing, other)) return h("span", { class: "wb-quiet", title: APART }, "apart");
  const same = other !== timing && overlap(other, timing, app.view.cold);
  const title = same ? "no measurable difference" : "times as fast as the pinned variant";
  return h(
    "b",
    { class: "wb-figure", title },
    same ? "≈" : `${three(a / b).replace(/\.00$/, "")}x`,
  );
}
