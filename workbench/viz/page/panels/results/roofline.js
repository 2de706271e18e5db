// The roofline: the limits of this machine, and the measured variants below them. Across:
// operations for each byte that is loaded or stored; up: operations a second. Both scales are
// logarithmic. Each level of memory is a slope, the arithmetic a ceiling over all of them; as lines
// of different dashes, with their names. The figures stand below as text. Source: Williams,
// Waterman, Patterson 2009; a roof for each cache after Ilic, Pratas, Sousa 2014.

import { listedVariants } from "../../app/actions.js";
import { coldSpread, percent, real, spreadText } from "../../app/timing.js";
import { fold, h } from "../../base/elements.js";
import { plural, three } from "../../base/text.js";
import { figureTable, speedTable } from "./estimate.js";
import { rateText, roofPicture } from "./roofline_picture.js";

/** @import { App } from "../../app/store.js" */
/** @import { Ceiling, Dot } from "./roofline_picture.js" */

/** The picture with its texts, or null if speeds or timings are unknown.
 * @param {App} app */
export function roofline(app) {
  const { machine } = app.record;
  const dots = roofDots(app);
  if (!machine.peak || !machine.bandwidth || !dots.length) return null;
  const ceilings = ceilingsOf(app, dots);
  return h(
    "figure",
    { class: "wb-roofline", "aria-label": "roofline" },
    roofPicture(app, ceilings, machine.bandwidth, dots),
    fold("roofline", "roofs as numbers", () => roofFigures(app, dots)),
  );
}

/** The peaks of the arithmetic of these variants, the highest first: of tensor cores, if one of
 * them uses these, beside that of the others; and of one thread if that is much less.
 * @param {App} app
 * @param {Dot[]} dots
 * @returns {Ceiling[]} */
function ceilingsOf({ record: { machine } }, dots) {
  const peaks = machine.peak ?? {};
  const known = dots.map(({ timing, variant }) => timing?.kind || variant.cost?.kind)
    .filter((kind) => kind && kind in peaks);
  const kinds = known.length ? [...new Set(known)] : Object.keys(peaks).slice(0, 1);
  const ofAll = kinds.map((kind) => ({
    name: kind?.includes(" ") ? kind : "peak",
    rate: peaks[kind ?? ""],
  }));
  const [highest, ...others] = ofAll.sort((a, b) => b.rate - a.rate);
  const alone = machine.one_thread?.peak[kinds[0] ?? ""] ?? highest.rate;
  const one = alone < 0.9 * highest.rate ? [{ name: "one thread", rate: alone }] : [];
  return [highest, ...others, ...one];
}

/** The variants of this kernel that were measured on this machine, on any device. On a device for
 * which a variant was not compiled yet, its bytes are those on another.
 * @param {App} app
 * @returns {Dot[]} */
function roofDots(app) {
  const { flops } = app.kernel() || {};
  if (!flops) return [];
  if (app.record.elsewhere) return predictedDots(app, flops);
  return listedVariants(app).flatMap((i) => {
    const variant = app.record.variants[i];
    const { timing: own, elsewhere, counts } = variant;
    const known = [own, ...elsewhere].find((timing) => timing?.moved_bytes)?.moved_bytes;
    const bytes = counts ? counts.bytes_loaded + counts.bytes_stored : known;
    return [own, ...elsewhere].filter(real).flatMap((timing) => {
      const seconds = app.view.cold ? timing.cold_s : timing.median_s;
      const moved = (timing !== own && timing.moved_bytes) || bytes;
      const device = timing === own ? "" : timing.device;
      return seconds && moved
        ? [{ i, variant, timing, device, x: flops / moved, y: flops / seconds }]
        : [];
    });
  });
}

/** The variants of this kernel on another machine.
 * @param {App} app
 * @param {number} flops
 * @returns {Dot[]} */
const predictedDots = (app, flops) =>
  listedVariants(app).flatMap((i) => {
    const variant = app.record.variants[i];
    const { cost } = variant;
    if (!cost?.bytes.L1) return [];
    const [x, y] = [flops / cost.bytes.L1, flops / cost.predicted_s];
    return [{ i, variant, timing: null, device: "", x, y }];
  });

/** The same in numbers: the speed that each level allows the selected variant, then all variants,
 * and the measured peaks.
 * @param {App} app
 * @param {Dot[]} dots */
function roofFigures(app, dots) {
  const own = dots.find(({ i, device }) => i === app.view.variant && !device);
  const cost = own?.variant.cost;
  return h(
    "div",
    {},
    own && cost && Object.keys(cost.roofs).length > 0 &&
      figureTable(
        `roofs for ${own.variant.name.slice(0, 20)} on ${
          plural(cost.threads, cost.of)
        }, and the share reached`,
        [],
        Object.entries(cost.roofs).map((row) => roofRow(own, row)),
      ),
    figureTable(
      `${app.record.elsewhere ? "predicted" : "measured"}, and operations per byte`,
      [],
      dots.map(({ variant, timing, device, x, y }) => [
        device ? `${variant.name} on ${device}` : variant.name,
        `${rateText(y)} ${timing ? app.view.cold ? coldSpread(timing) : spreadText(timing) : ""}`,
        three(x),
      ]),
    ),
    speedTable(app.record.machine),
  );
}

/** A roof, and the share of it that a variant reached. That of a level of memory follows from the
 * bytes predicted to come from it: a kernel above it moved fewer.
 * @param {Dot} dot
 * @param {[string, number]} roof */
function roofRow({ variant, timing: measured, y }, [level, predicted]) {
  const { timing } = variant;
  if (!measured) {
    const name = level === "peak" ? "arithmetic" : level;
    return [name, rateText(predicted), percent(y / predicted)];
  }
  if (level !== "peak") {
    return [
      level,
      rateText(predicted),
      y > predicted ? "fewer bytes" : percent(y / predicted),
    ];
  }
  const share = timing?.share;
  const peak = share ? (timing.gflops * 1e9) / share.fraction : predicted; // as it is now
  return ["arithmetic", rateText(peak), share ? percent(y / peak) : "fewer operations"];
}
