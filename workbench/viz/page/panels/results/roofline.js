// The roofline: what this machine lets through at most, and where the measured variants stand.
// Across: operations for each byte that is loaded or stored; up: operations a second. Both scales
// are logarithmic. Each level of memory is a slope, the arithmetic a ceiling over all of them; as
// lines of different dashes, with their names. The figures stand below as text.
// Source: Williams, Waterman, Patterson 2009; a roof for each cache after Ilic, Pratas, Sousa 2014.

import { peakOf, percent, real } from "../../app/timing.js";
import { h } from "../../base/elements.js";
import { fold } from "../../base/fold.js";
import { plural, three } from "../../base/text.js";
import { figureTable, speedTable } from "./estimate.js";
import { rateText, roofPicture } from "./roof_picture.js";

/** @import { CostRow, MachineRow } from "../../record.d.ts" */
/** @import { Dot } from "./roof_picture.js" */
/** @import { App } from "../../app/store.js" */

/** The picture with its words, or null where speeds or timings are not known.
 * @param {App} app */
export function roofline(app) {
  const { machine } = app.record;
  const dots = roofDots(app);
  if (!machine.peak || !machine.bandwidth || !dots.length) return null;
  const kind = dots.find(({ variant }) => variant.cost)?.variant.cost?.kind ||
    Object.keys(machine.peak)[0];
  const peak = machine.peak[kind];
  return h(
    "figure",
    { class: "wb-roofline", "aria-label": "roofline" },
    roofPicture(app, kind, peak, machine.bandwidth, dots),
    fold("roofline", "roofs as numbers", () => roofFigures(app, dots)),
  );
}

/** The variants of this kernel that were measured on the machine itself.
 * @param {App} app
 * @returns {Dot[]} */
function roofDots(app) {
  const { flops } = app.kernel() || {};
  if (!flops) return [];
  return app.variantsOf(app.view.kernel).flatMap((i) => {
    const variant = app.record.variants[i];
    const seconds = app.view.cold ? variant.timing?.cold_s : variant.timing?.median_s;
    const bytes = variant.counts && variant.counts.bytes_loaded + variant.counts.bytes_stored;
    return real(variant.timing) && seconds && bytes
      ? [{ i, variant, x: flops / bytes, y: flops / seconds }]
      : [];
  });
}

/** The same in figures: what each level lets the variant that is shown do, then all variants,
 * and what the machine moves.
 * @param {App} app
 * @param {Dot[]} dots */
function roofFigures(app, dots) {
  const here = dots.find(({ i }) => i === app.view.variant);
  const cost = here?.variant.cost;
  return h(
    "div",
    {},
    here && cost && Object.keys(cost.roofs).length > 0 &&
      figureTable(
        `roofs for ${here.variant.name.slice(0, 20)} on ${
          plural(cost.threads, "thread")
        }, and the share reached`,
        [],
        Object.entries(cost.roofs).map((row) => roofRow(app.record.machine, cost, here.y, row)),
      ),
    figureTable(
      "measured, and operations per byte",
      [],
      dots.map(({ variant, x, y }) => [variant.name, rateText(y), three(x)]),
    ),
    speedTable(app.record.machine),
  );
}

/** A roof, and the share of it that a variant reached. That of a level of memory follows from the
 * bytes that are predicted to come from there: where a kernel is above it, fewer came.
 * @param {MachineRow} machine
 * @param {CostRow} cost
 * @param {number} y
 * @param {[string, number]} roof */
function roofRow(machine, { kind, threads }, y, [level, predicted]) {
  if (level !== "peak") {
    return [
      level,
      rateText(predicted),
      y > predicted ? "fewer bytes" : percent(y / predicted),
    ];
  }
  const peak = peakOf(machine, kind, threads) ?? 0;
  return ["arithmetic", rateText(peak), y > peak ? "fewer operations" : percent(y / peak)];
}
