// The time of a variant or a baseline: figure, spread, ratio to the pinned variant.

import { reference } from "../../app/actions.js";
import { coldSpread, inOneRun, overlap, real, spreadText, timingText } from "../../app/timing.js";
import { h } from "../../base/elements.js";
import { secondsText, three } from "../../base/text.js";

/** @import { TimingRow, VariantRow } from "../../record.d.ts" */
/** @import { App } from "../../app/store.js" */

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
  return h(
    "span",
    { class: "wb-times" },
    h(
      "span",
      {
        class: `wb-figure ${timing.earlier ? "wb-stale" : ""}`,
        title: timingText(timing),
      },
      timing.earlier && "~",
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
    ratioCell(app, timing, reference(app)?.timing),
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
    { class: "wb-times" },
    h(
      "span",
      { class: "wb-figure wb-stale", "data-term": "predicted", title: "predicted, not run here" },
      `~${secondsText(cost.predicted_s)}`,
    ),
    h("span"),
    other
      ? h(
        "b",
        { class: "wb-figure", title: "predicted: times as fast as the pinned variant" },
        `~${three(other.predicted_s / cost.predicted_s).replace(/\.00$/, "")}x`,
      )
      : h("span"),
  );
}

/** The ratio of the two times that are shown to each other; where they were not taken in turns, in
 * one run, marked ~.
 * @param {App} app
 * @param {TimingRow} timing
 * @param {TimingRow | null | undefined} other */
function ratioCell(app, timing, other) {
  if (!real(other)) return h("span");
  const [a, b] = app.view.cold ? [other.cold_s, timing.cold_s] : [other.median_s, timing.median_s];
  if (a === null || b === null) return h("span");
  const apart = inOneRun(timing, other) ? "" : "~";
  const same = other !== timing && !apart && overlap(other, timing, app.view.cold);
  const meaning = same ? "no measurable difference" : "times as fast as the pinned variant";
  const title = apart
    ? `${meaning}; timed separately: the machine may have been slower or faster`
    : meaning;
  return h(
    "b",
    { class: "wb-figure", title },
    same ? "≈" : `${apart}${three(a / b).replace(/\.00$/, "")}x`,
  );
}
