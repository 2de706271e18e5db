// The time of a variant or a baseline: figure, spread, ratio to the pinned variant.

import { pinned } from "../app/actions.js";
import { inOneRun, overlap, real, spreadText, timingText } from "../app/timing.js";
import { h } from "../base/elements.js";
import { secondsText, three } from "../base/text.js";

/** Time, spread and ratio to the pinned variant; nothing where an emulator ran. */
export function timeCells(app, timing, hidden = false) {
  if (!timing || hidden) {
    return [h("span", { class: "wb-quiet wb-span3" }, hidden ? "emulated" : "not timed")];
  }
  const s = app.view.cold ? timing.cold_s : timing.median_s;
  if (s === null) return [h("span", { class: "wb-quiet wb-span3" }, "not timed cold")];
  const reference = app.record.variants[pinned(app)]?.timing;
  return [
    h(
      "span",
      { class: "wb-figure", title: timingText(app.record.machine, timing) },
      secondsText(s),
    ),
    h(
      "span",
      { class: "wb-figure wb-quiet wb-spread" },
      app.view.cold ? "" : spreadText(timing),
    ),
    ratioCell(app, timing, reference),
  ];
}

/** The ratio of the two times that are shown to each other; where they were not taken in turns, in
 * one run, marked ~. */
function ratioCell(app, timing, reference) {
  if (!real(reference)) return h("span");
  const [a, b] = app.view.cold
    ? [reference.cold_s, timing.cold_s]
    : [reference.median_s, timing.median_s];
  if (a === null || b === null) return h("span");
  const apart = inOneRun(timing, reference) ? "" : "~";
  const same = reference !== timing && !apart && !app.view.cold && overlap(reference, timing);
  const meaning = same ? "no measurable difference" : "times as fast as the pinned variant";
  const title = apart
    ? `${meaning}; timed apart: the machine may have been slower or faster`
    : meaning;
  return h(
    "b",
    { class: "wb-figure", title },
    same ? "≈" : `${apart}${three(a / b).replace(/\.00$/, "")}x`,
  );
}
