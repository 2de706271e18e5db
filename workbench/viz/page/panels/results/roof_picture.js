// The picture of a roofline.

import { goTo, pinned } from "../../app/actions.js";
import { svg } from "../../base/elements.js";
import { three } from "../../base/text.js";
import { ROOF, roofAxes } from "./roof_axes.js";
import { namePlaces } from "./roof_names.js";

/** @import { MachineRow, VariantRow } from "../../record.d.ts" */
/** @import { Point } from "../../graph/graph.d.ts" */
/** @import { Axes } from "./roof_axes.js" */
/** @import { App } from "../../app/store.js" */

/** A measured variant and its place: operations for each byte, and a second.
 * @typedef {{i: number, variant: VariantRow, x: number, y: number}} Dot */

const ROOF_DASHES = ["", "7 3", "3 3", "1 3"]; // of the slopes, the fastest level first
const NAME_LETTERS = 16;

/**
 * @param {App} app
 * @param {string} kind
 * @param {number} peak
 * @param {[string, number][]} bandwidth
 * @param {Dot[]} dots */
export function roofPicture(app, kind, peak, bandwidth, dots) {
  const axes = roofAxes(bandwidth, peak, dots);
  const texts = dots.map(({ variant, x, y }) =>
    `${variant.name}: ${rateText(y)} at ${three(x)} operations a byte`
  );
  return svg(
    "svg",
    {
      class: "wb-roof",
      viewBox: `0 0 ${ROOF.width} ${ROOF.height}`,
      role: "img",
      "aria-label": `peak ${rateText(peak)}; measured: ${texts.join("; ")}`,
    },
    ...roofGrid(axes),
    ...axes.bandwidth.map((row, i) => roofSlope(axes, row, peak, i)),
    roofCeiling(app, axes, peak, kind),
    ...roofDots(app, axes, dots),
  );
}

/** The dots with their names; the chosen one and the pinned one have the first choice, and are
 * always named.
 * @param {App} app
 * @param {Axes} axes
 * @param {Dot[]} dots */
function roofDots(app, axes, dots) {
  /** @type {(dot: Dot) => Point} */
  const at = ({ x, y }) => [axes.across(x), axes.up(y)];
  const rank = (/** @type {Dot} */ { i }) => i === app.view.variant ? 0 : i === pinned(app) ? 1 : 2;
  const ranked = [...dots].sort((a, b) => rank(a) - rank(b));
  const places = namePlaces(ranked.map((dot) => ({
    at: at(dot),
    width: dot.variant.name.slice(0, NAME_LETTERS).length * 6.2,
    isDue: rank(dot) < 2,
  })));
  return dots.map((dot) => roofDot(app, at(dot), dot, places[ranked.indexOf(dot)]));
}

/** A line for each power of ten, and what the axes are.
 * @param {Axes} axes */
function roofGrid({ x0, x1, y0, y1, across, up }) {
  /** @type {(from: number, to: number) => number[]} */
  const powers = (from, to) =>
    Array.from(
      { length: Math.floor(Math.log10(to)) - Math.ceil(Math.log10(from)) + 1 },
      (_, i) => 10 ** (Math.ceil(Math.log10(from)) + i),
    );
  const { width, height, left, right, top, bottom } = ROOF;
  return [
    ...powers(x0, x1).flatMap((x) => [
      svg("path", { class: "wb-roof-grid", d: `M${across(x)} ${top}V${height - bottom}` }),
      svg(
        "text",
        { x: across(x), y: height - bottom + 11, "text-anchor": "middle" },
        String(Number(x.toPrecision(1))),
      ),
    ]),
    ...powers(y0, y1).flatMap((y) => [
      svg("path", { class: "wb-roof-grid", d: `M${left} ${up(y)}H${width - right}` }),
      svg(
        "text",
        { x: left - 4, y: up(y) + 3.5, "text-anchor": "end" },
        String(Number((y / 1e9).toPrecision(1))),
      ),
    ]),
    svg("text", { x: 2, y: 9 }, "GFLOP/s"),
    svg(
      "text",
      { x: width - right, y: height - 4, "text-anchor": "end" },
      "operations per byte loaded or stored",
    ),
  ];
}

/** The slope of a level: bytes a second times operations a byte, up to the ceiling.
 * @param {Axes} axes
 * @param {[string, number]} roof
 * @param {number} peak
 * @param {number} i */
function roofSlope({ x0, y0, across, up }, [level, rate], peak, i) {
  const from = Math.max(x0, y0 / rate);
  const named = from * (peak / rate / from) ** (i % 2 ? 0.3 : 0.1); // each level's name somewhere else
  return svg(
    "g",
    {},
    svg("path", {
      class: "wb-roof-line",
      "stroke-dasharray": ROOF_DASHES[i] ?? "",
      d: `M${across(from)} ${up(from * rate)}L${across(peak / rate)} ${up(peak)}`,
    }),
    svg("text", {
      class: "wb-roof-name",
      x: across(named) - 3,
      y: up(named * rate) - 3,
      "text-anchor": "end",
    }, level),
  );
}

/** The ceilings: of all cores, and of one alone.
 * @param {App} app
 * @param {Axes} axes
 * @param {number} peak
 * @param {string} kind */
function roofCeiling(app, { x1, across, up, bandwidth }, peak, kind) {
  const alone = app.record.machine.one_thread?.peak[kind];
  const from = across(peak / bandwidth[0][1]);
  return svg(
    "g",
    {},
    svg("path", { class: "wb-roof-line", d: `M${from} ${up(peak)}H${across(x1)}` }),
    svg(
      "text",
      { class: "wb-roof-name", x: across(x1) - 2, y: up(peak) - 4, "text-anchor": "end" },
      `peak ${rateText(peak)}`,
    ),
    alone !== undefined && alone < 0.9 * peak &&
      svg("path", { class: "wb-roof-line wb-roof-one", d: `M${from} ${up(alone)}H${across(x1)}` }),
    alone !== undefined && alone < 0.9 * peak &&
      svg("text", {
        class: "wb-roof-name",
        x: across(x1) - 2,
        y: up(alone) + 10,
        "text-anchor": "end",
      }, `one thread ${rateText(alone)}`),
  );
}

/** A variant: a diamond if ratios refer to it, filled if it is the one that is shown.
 * @param {App} app
 * @param {Point} at
 * @param {Dot} dot
 * @param {Point | null} name */
function roofDot(app, [left, top], { i, variant, x, y }, name) {
  const [chosen, isPinned] = [i === app.view.variant, i === pinned(app)];
  const shape = isPinned ? "M0 -6L6 0L0 6L-6 0Z" : "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0Z";
  return svg(
    "g",
    {
      class: `wb-roof-dot ${chosen ? "wb-roof-chosen" : ""}`,
      transform: `translate(${left} ${top})`,
      onclick: () => goTo(app, i),
    },
    svg(
      "title",
      {},
      `${variant.name}: ${rateText(y)}, ${three(x)} operations for each byte loaded or stored`,
    ),
    svg("path", { d: shape }),
    name &&
      svg("text", {
        class: "wb-roof-name",
        x: name[0],
        y: name[1],
        "text-anchor": name[0] < 0 ? "end" : "start",
      }, variant.name.slice(0, NAME_LETTERS)),
  );
}

/** 1.87e11 -> "187 GFLOP/s"
 * @param {number} rate */
export const rateText = (rate) => `${three(rate / 1e9)} GFLOP/s`;
