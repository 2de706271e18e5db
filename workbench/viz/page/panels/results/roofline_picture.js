// The picture of a roofline: roofs, dots, and names that cover none of them, on logarithmic scales.

import { goTo, pinned } from "../../app/actions.js";
import { spreadText } from "../../app/timing.js";
import { svg } from "../../base/elements.js";
import { three } from "../../base/text.js";

/** @import { App } from "../../app/store.js" */
/** @import { Point } from "../../graph/graph.d.ts" */
/** @import { TimingRow, VariantRow } from "../../record.d.ts" */

/** A measured variant and its place, or a predicted one: operations for each byte, and a second.
 * `device` is another one than the record's.
 * @typedef {{
 *   i: number, variant: VariantRow, timing: TimingRow | null, x: number, y: number, device: string
 * }} Dot */

/** A peak of arithmetic with its name: operations a second.
 * @typedef {{name: string, rate: number}} Ceiling */

const ROOF_DASHES = ["", "7 3", "3 3", "1 3"]; // of the slopes, the fastest level first
const NAME_LETTERS = 14;
const LETTER = 6.4; // of names, how wide
const LEADER_FROM = 26; // from its dot: a line leads to the name
const LEGEND = { row: 12, sample: 14, column: 43 };

/**
 * @param {App} app
 * @param {Ceiling[]} ceilings the highest first
 * @param {[string, number][]} bandwidth
 * @param {Dot[]} dots */
export function roofPicture(app, ceilings, bandwidth, dots) {
  const peak = ceilings[0].rate;
  const axes = roofAxes(bandwidth, peak, dots);
  const roofs = roofLines(axes, ceilings);
  const legend = roofLegend(roofs);
  return svg(
    "svg",
    {
      class: "wb-roof",
      "data-term": "roofline",
      viewBox: `0 0 ${ROOF.width} ${ROOF.height + legend.height}`,
      role: "img",
      "aria-label": `peak ${rateText(peak)}; measured: ${dots.map(dotText).join("; ")}`,
    },
    ...roofGrid(axes),
    ...roofs.map(({ from, to, dashes, kind }) =>
      svg("path", {
        class: `wb-roof-line ${kind}`,
        "data-term": "roof",
        "stroke-dasharray": dashes,
        d: `M${from.join(" ")}L${to.join(" ")}`,
      })
    ),
    ...legend.parts,
    ...roofDots(app, axes, dots, roofs),
  );
}

/** The hover text of a dot: its speed with its spread, and its device.
 * @param {Dot} dot */
const dotText = ({ variant, timing, x, y, device }) =>
  `${variant.name}${device && ` on ${device}`}: ${rateText(y)} ${
    timing ? spreadText(timing) : "predicted"
  }, ` +
  `${three(x)} operations for each byte loaded or stored`;

/** The dots with their names; the selected and the pinned one come first, and are always named.
 * @param {App} app
 * @param {Axes} axes
 * @param {Dot[]} dots
 * @param {Roof[]} roofs */
function roofDots(app, axes, dots, roofs) {
  /** @type {(dot: Dot) => Point} */
  const at = ({ x, y }) => [axes.across(x), axes.up(y)];
  const rank = (/** @type {Dot} */ { i, device }) =>
    device ? 3 : i === app.view.variant ? 0 : i === pinned(app) ? 1 : 2;
  const ranked = [...dots].sort((a, b) => rank(a) - rank(b));
  const places = namePlaces(
    ranked.map((dot) => ({
      at: at(dot),
      width: shortName(dot).length * LETTER,
      isDue: rank(dot) < 2,
    })),
    roofs.flatMap(pointsOf),
  );
  return dots.map((dot) => roofDot(app, at(dot), dot, places[ranked.indexOf(dot)]));
}

/** A line for each power of ten, and the captions of the axes.
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
        gridText(y),
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

/** A speed in GFLOP/s, in few letters.
 * @param {number} y */
const gridText = (y) =>
  y < 1e13
    ? String(Number((y / 1e9).toPrecision(1)))
    : y < 1e15
    ? `${(y / 1e12).toFixed(0)}k`
    : `${(y / 1e15).toFixed(0)}M`;

/** A line of the picture with its name in the legend.
 * @typedef {{name: string, from: Point, to: Point, dashes: string, kind: string}} Roof */

/** The ceilings, and the slopes of the levels: bytes a second times operations a byte, up to the
 * highest ceiling.
 * @param {Axes} axes
 * @param {Ceiling[]} ceilings
 * @returns {Roof[]} */
function roofLines({ x0, x1, y0, across, up, bandwidth }, ceilings) {
  const peak = ceilings[0].rate;
  const ridge = across(peak / bandwidth[0][1]);
  /** @type {(ceiling: Ceiling, place: number) => Roof} */
  const ceilingLine = ({ name, rate }, place) => ({
    name: `${name} ${rateText(rate)}`,
    from: [ridge, up(rate)],
    to: [across(x1), up(rate)],
    dashes: place ? "5 4" : "",
    kind: place ? "wb-roof-one" : "",
  });
  const slopes = bandwidth.map(([name, rate], i) => {
    const from = Math.max(x0, y0 / rate);
    /** @type {Roof} */
    const roof = {
      name,
      from: [across(from), up(from * rate)],
      to: [across(peak / rate), up(peak)],
      dashes: ROOF_DASHES[i] ?? "",
      kind: "",
    };
    return roof;
  });
  return [...ceilings.map(ceilingLine), ...slopes];
}

/** Points of a line, close enough to each other that no name fits between them.
 * @param {Roof} roof
 * @returns {Point[]} */
function pointsOf({ from: [x0, y0], to: [x1, y1] }) {
  const count = Math.ceil(Math.hypot(x1 - x0, y1 - y0) / 4) + 1;
  return Array.from({ length: count + 1 }, (_, i) => {
    const share = i / count;
    return [x0 + share * (x1 - x0), y0 + share * (y1 - y0)];
  });
}

/** The names of the roofs below the picture, where they cover nothing: a ceiling in each row, the
 * levels in the last.
 * @param {Roof[]} roofs */
function roofLegend(roofs) {
  const ceilings = roofs.filter(({ from, to }) => from[1] === to[1]).length;
  const perRow = Math.floor(ROOF.width / LEGEND.column);
  const places = roofs.map((_, i) => {
    const level = Math.max(0, i - ceilings);
    const row = Math.min(i, ceilings) + Math.floor(level / perRow);
    return [4 + (level % perRow) * LEGEND.column, ROOF.height + row * LEGEND.row + 8];
  });
  const parts = [
    ...roofs.map(({ dashes, kind }, i) =>
      svg("path", {
        class: `wb-roof-line ${kind}`,
        "stroke-dasharray": dashes,
        d: `M${places[i][0]} ${places[i][1] - 3}h${LEGEND.sample}`,
      })
    ),
    ...roofs.map(({ name }, i) => {
      const [x, y] = places[i];
      return svg("text", { class: "wb-roof-name", x: x + LEGEND.sample + 3, y }, name);
    }),
  ];
  const rows = ceilings + Math.ceil((roofs.length - ceilings) / perRow);
  return { parts, height: rows * LEGEND.row };
}

/** @param {Dot} dot */
const shortName = ({ variant: { name } }) =>
  name.length > NAME_LETTERS ? `${name.slice(0, NAME_LETTERS - 1)}…` : name;

/** A variant: a diamond if ratios refer to it, filled if it is selected, a square on another
 * device.
 * @param {App} app
 * @param {Point} at
 * @param {Dot} dot
 * @param {Point | null} name */
function roofDot(app, [left, top], dot, name) {
  const { i, device } = dot;
  const [chosen, isPinned] = [!device && i === app.view.variant, i === pinned(app)];
  const shape = device
    ? "M-4 -4H4V4H-4Z"
    : isPinned
    ? "M0 -6L6 0L0 6L-6 0Z"
    : "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0Z";
  return svg(
    "g",
    {
      class: `wb-roof-dot ${chosen ? "wb-roof-chosen" : ""}`,
      transform: `translate(${left} ${top})`,
      onclick: () => goTo(app, i),
    },
    svg("title", {}, dotText(dot)),
    name && Math.hypot(...name) > LEADER_FROM &&
      svg("path", { class: "wb-roof-to", d: `M0 0L${name.join(" ")}` }),
    svg("path", { d: shape }),
    name &&
      svg("text", {
        class: "wb-roof-name",
        x: name[0],
        y: name[1],
        "text-anchor": name[0] < 0 ? "end" : "start",
      }, shortName(dot)),
  );
}

/** 1.87e11 -> "187 GFLOP/s"
 * @param {number} rate */
export const rateText = (rate) => `${three(rate / 1e9)} GFLOP/s`;

// The positions of names in a roofline, clear of dots, other names and roofs.

const MOST_NAMED = 4; // dots; of more, only the due ones are named

/** A dot with its name: `isDue` for a name that must be shown.
 * @typedef {{at: Point, width: number, isDue: boolean}} NamedDot
 * @typedef {[number, number, number, number]} Box */

/** Return the position of each name beside its dot, null if there is no free one. The first dots
 * choose first. A due name may cover a roof rather than be left out.
 * @param {NamedDot[]} dots
 * @param {Point[]} [roofs] points of the lines */
export function namePlaces(dots, roofs = []) {
  const obstacles = dots.map(({ at: [x, y] }) => box(x - 5, y - 5, x + 5, y + 5));
  const lines = roofs.map(([x, y]) => box(x, y, x, y));
  return dots.map((dot) => {
    if (!dot.isDue && dots.length > MOST_NAMED) return null;
    const name = namePlace(dot, [...obstacles, ...lines]) ??
      (dot.isDue ? namePlace(dot, obstacles, true) : null);
    if (name) obstacles.push(name.box);
    return name && name.place;
  });
}

/** The positions beside a dot: below or above, to the roomier side first; a due name may cover
 * anything there.
 * @param {NamedDot} dot
 * @param {Box[]} obstacles
 * @param {boolean} [mustBe] */
function namePlace({ at: [left, top], width }, obstacles, mustBe = false) {
  const [near, far] = left > ROOF.width / 2 ? [-9, 9] : [9, -9];
  const names = [1, 3, 5, 8].flatMap((by) => [by * near, by * far]).flatMap((x) =>
    [3, 12, -6, 22, -16, 33, -27, 44, -38].map((y) => {
      const [from, base] = [left + x - (x < 0 ? width : 0), top + y];
      return { place: point(x, y), box: box(from - 1, base - 9, from + width + 1, base + 3) };
    })
  );
  /** @type {(name: {box: Box}) => boolean} */
  const isFree = ({ box: [x0, y0, x1, y1] }) =>
    x0 > ROOF.left && x1 < ROOF.width && y0 > 0 && y1 < ROOF.height - ROOF.bottom &&
    obstacles.every((other) =>
      x0 >= other[2] || x1 <= other[0] || y0 >= other[3] || y1 <= other[1]
    );
  return names.find(isFree) ?? (mustBe ? names[1] : null);
}

/** @type {(x: number, y: number) => Point} */
const point = (x, y) => [x, y];
/** @type {(x0: number, y0: number, x1: number, y1: number) => Box} */
const box = (x0, y0, x1, y1) => [x0, y0, x1, y1];

// The logarithmic scales of a roofline.

/** Its size without the legend: no pane is narrower, so letters are nowhere smaller. */
const ROOF = { width: 212, height: 164, left: 27, right: 6, top: 16, bottom: 30 };

/** @typedef {ReturnType<typeof roofAxes>} Axes */

/** Scales that contain the dots and the points where slopes meet the ceiling.
 * @param {[string, number][]} bandwidth
 * @param {number} peak
 * @param {{x: number, y: number}[]} dots */
function roofAxes(bandwidth, peak, dots) {
  const ridges = bandwidth.map(([, rate]) => peak / rate);
  const [xs, ys] = [dots.map(({ x }) => x), dots.map(({ y }) => y)];
  const x0 = Math.min(...xs, ...ridges) / 3;
  const x1 = Math.max(...xs, ...ridges) * 3;
  const y0 = Math.min(...ys, bandwidth[bandwidth.length - 1][1] * x0 * 4) / 2;
  const y1 = Math.max(...ys, peak) * 2;
  const { width, height, left, right, top, bottom } = ROOF;
  const across = (/** @type {number} */ x) =>
    left + ((width - left - right) * Math.log(x / x0)) / Math.log(x1 / x0);
  const up = (/** @type {number} */ y) =>
    height - bottom - ((height - top - bottom) * Math.log(y / y0)) / Math.log(y1 / y0);
  return { x0, x1, y0, y1, across, up, bandwidth };
}
