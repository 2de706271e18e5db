// Facts of the selected variant: its bottleneck, its check, its counts, a note.

import { reference } from "../../app/actions.js";
import { inOneRun, overlap, real } from "../../app/timing.js";
import { h, words } from "../../base/elements.js";
import { fold } from "../../base/fold.js";
import { bytesText, countText } from "../../base/text.js";
import { estimateParts } from "./estimate.js";
import { identityRow } from "./identity.js";
import { noteField } from "./note.js";
import { roofline } from "./roofline.js";

/** @import { CheckRow, StepRow, TimingRow, VariantRow } from "../../record.d.ts" */
/** @import { App } from "../../app/store.js" */

/** What is known of the variant that is shown: difference, check, what bounds it, counts, a note.
 * @param {App} app */
export function aboutVariant(app) {
  const variant = app.variant();
  if (!variant) return null;
  const other = reference(app);
  const same = other && other !== variant && isSame(other.timing, variant.timing);
  return h(
    "div",
    { class: "wb-about" },
    same && h("p", {}, "No measurable difference to ", words(other.name), "."),
    variant.check?.ok && checkLine(variant.check), // a wrong answer is said beside the buttons
    variant.bound &&
      h(
        "p",
        {},
        h("b", { "data-term": "bottleneck" }, "BOTTLENECK "),
        words(variant.bound, "", 600),
      ),
    ...estimateParts(app, variant),
    roofline(app),
    optsFold(variant),
    countsFold(variant.counts),
    identityRow(app, variant), // what is read stands above what is written
    noteField(app, variant),
  );
}

/** Whether the answer is right, and how far off it is.
 * @param {CheckRow} check */
export const checkLine = ({ ok, text }) =>
  h(
    "p",
    { class: ok ? "wb-good" : "wb-bad", "data-term": "check" },
    ok ? "✓ " : "✗ ",
    words(text, "", 400),
  );

/** Whether two timings were taken in one run, and say no difference.
 * @param {TimingRow | null} one
 * @param {TimingRow | null} other */
const isSame = (one, other) =>
  real(one) && real(other) && inOneRun(one, other) && overlap(one, other);

/** The opts of a variant; of the default ones with the steps that chose them, why, and by which
 * figures.
 * @param {VariantRow} variant */
function optsFold({ opts, steps = [] }) {
  if (!opts.length) return null;
  const title = `opts ${opts.length}${steps.length ? ": why these" : ""}`;
  const items = () => (steps.length ? steps.map(stepParts) : opts.map((opt) => optWords(opt)));
  return fold(
    "opts",
    title,
    () => h("ol", { class: "wb-opts" }, ...items().map((parts) => h("li", {}, parts))),
  );
}

/** @param {string} opt */
const optWords = (opt) => words(opt, "wb-code", 120);

/** @param {StepRow} step */
function stepParts({ name, opts, why, counts }) {
  return [
    h("b", {}, name),
    ": ",
    words(why, "", 400),
    h("div", {}, ...opts.flatMap((opt) => [optWords(opt), " "])),
    h("div", { class: "wb-quiet" }, counts),
  ];
}

/** @param {Record<string, number> | null} counts */
function countsFold(counts) {
  return counts && fold("counts", "counts: what one run does", () => countsTable(counts));
}

/** @param {Record<string, number>} counts */
function countsTable(counts) {
  return h(
    "dl",
    { class: "wb-counts" },
    ...Object.entries(counts).flatMap(([name, n]) => [
      h("dt", { "data-term": name.replaceAll("_", " ") }, name.replaceAll("_", " ")),
      h(
        "dd",
        { title: n.toLocaleString("en") },
        name.startsWith("bytes") ? bytesText(n) : countText(n),
      ),
    ]),
  );
}
