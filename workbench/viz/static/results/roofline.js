// The roofline: what this machine lets through at most, and where the measured variants stand.
// Across: operations for each byte that is loaded or stored; up: operations a second. Both scales
// are logarithmic. Each level of memory is a slope, the arithmetic a ceiling over all of them; as
// lines of different dashes, with their names. The figures stand below as text.
// Source: Williams, Waterman, Patterson 2009; a roof for each cache after Ilic, Pratas, Sousa 2014.

import { goTo, pinned } from "../app/actions.js";
import { peakOf, percent, real } from "../app/timing.js";
import { h, svg } from "../base/elements.js";
import { fold } from "../base/fold.js";
import { plural, three } from "../base/text.js";
import { figureTable, speedTable } from "./estimate.js";

const ROOF = { width: 272, height: 196, left: 30, right: 8, top: 16, bottom: 30 };
const MOST_NAMED = 4; // dots; of more, only the one that is shown and the pinned one are named
const ROOF_DASHES = { L1: "", L2: "7 3", L3: "3 3", memory: "1 3" };

/** The picture with its words, or null where speeds or timings are not known. */
export function roofline(app) {
  const { machine } = app.record;
  const dots = roofDots(app);
  if (!machine.peak || !machine.bandwidth || !dots.length) return null;
  const kind = dots.find(({ variant }) => variant.cost)?.variant.cost.kind || "f32";
  const peak = machine.peak[kind];
  const axes = roofAxes(machine.bandwidth, peak, dots);
  return h(
    "figure",
    { class: "wb-roofline", "aria-label": "roofline" },
    roofPicture(app, axes, { peak, kind, dots }),
    fold("roofline", "roofs in figures", () => roofFigures(app, dots)),
  );
}

/** The variants of this kernel that were measured on the machine itself: {i, variant, x, y}. */
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

/** Scales that hold the dots and the places where slopes meet the ceiling. */
function roofAxes(bandwidth, peak, dots) {
  const ridges = bandwidth.map(([, rate]) => peak / rate);
  const [xs, ys] = [dots.map(({ x }) => x), dots.map(({ y }) => y)];
  const x0 = Math.min(...xs, ...ridges) / 3;
  const x1 = Math.max(...xs, ...ridges) * 3;
  const y0 = Math.min(...ys, bandwidth.at(-1)[1] * x0 * 4) / 2;
  const y1 = Math.max(...ys, peak) * 2;
  const { width, height, left, right, top, bottom } = ROOF;
  const across = (x) => left + ((width - left - right) * Math.log(x / x0)) / Math.log(x1 / x0);
  const up = (y) =>
    height - bottom - ((height - top - bottom) * Math.log(y / y0)) / Math.log(y1 / y0);
  return { x0, x1, y0, y1, across, up, bandwidth };
}

function roofPicture(app, axes, { peak, kind, dots }) {
  const told = dots.map(({ variant, x, y }) =>
    `${variant.name}: ${rateText(y)} at ${three(x)} operations a byte`
  );
  return svg(
    "svg",
    {
      class: "wb-roof",
      viewBox: `0 0 ${ROOF.width} ${ROOF.height}`,
      role: "img",
      "aria-label": `peak ${rateText(peak)}; measured: ${told.join("; ")}`,
    },
    ...roofGrid(axes),
    ...axes.bandwidth.map((row, i) => roofSlope(axes, row, peak, i)),
    roofCeiling(app, axes, peak, kind),
    ...roofNamed(app, axes, dots),
  );
}

/** The dots, each with its name where no other dot or name is; the chosen one and the pinned one
 * have the first choice, and are always named. */
function roofNamed(app, axes, dots) {
  const first = (dot) => (dot.i === app.view.variant ? 0 : dot.i === pinned(app) ? 1 : 2);
  /** @returns {[number, number]} */
  const at = ({ x, y }) => [axes.across(x), axes.up(y)];
  const taken = dots.map(at).map(([left, top]) => [left - 5, top - 5, left + 5, top + 5]);
  const names = new Map();
  for (const dot of [...dots].sort((a, b) => first(a) - first(b))) {
    if (first(dot) === 2 && dots.length > MOST_NAMED) continue;
    const [place, box] = roofNamePlace(
      at(dot),
      dot.variant.name.slice(0, 16).length * 6.2,
      taken,
      first(dot) < 2,
    );
    if (!place) continue;
    names.set(dot.i, place);
    taken.push(box);
  }
  return dots.map((dot) => roofDot(app, at(dot), dot, names.get(dot.i)));
}

/** Beside a dot: below or above, to the side that has more room first. */
function roofNamePlace([left, top], width, taken, isDue) {
  const [near, far] = left > ROOF.width / 2 ? [-9, 9] : [9, -9];
  const places = [near, far].flatMap((x) => [12, -6].map((y) => [x, y]));
  const boxes = places.map(([x, y]) => {
    const [from, base] = [left + x - (x < 0 ? width : 0), top + y];
    return [from, base - 8, from + width, base + 2];
  });
  const isFree = ([x0, y0, x1, y1]) =>
    x0 > ROOF.left && x1 < ROOF.width && y0 > 0 && y1 < ROOF.height - ROOF.bottom &&
    taken.every((other) => x0 >= other[2] || x1 <= other[0] || y0 >= other[3] || y1 <= other[1]);
  const found = boxes.findIndex(isFree);
  return found < 0 && !isDue ? [] : [places[Math.max(0, found)], boxes[Math.max(0, found)]];
}

/** A line for each power of ten, and what the axes are. */
function roofGrid({ x0, x1, y0, y1, across, up }) {
  const powers = (from, to) =>
    Array.from(
      { length: Math.floor(Math.log10(to)) - Math.ceil(Math.log10(from)) + 1 },
      (_, i) => 10 ** (Math.ceil(Math.log10(from)) + i),
    );
  const { width, height, left, right, top, bottom } = ROOF;
  return [
    ...powers(x0, x1).flatMap((
      x,
    ) => [
      svg("path", { class: "wb-roof-grid", d: `M${across(x)} ${top}V${height - bottom}` }),
      svg(
        "text",
        { x: across(x), y: height - bottom + 11, "text-anchor": "middle" },
        String(Number(x.toPrecision(1))),
      ),
    ]),
    ...powers(y0, y1).flatMap((
      y,
    ) => [
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

/** The slope of a level: bytes a second times operations a byte, up to the ceiling. */
function roofSlope({ x0, y0, across, up }, [level, rate], peak, i) {
  const from = Math.max(x0, y0 / rate);
  const named = from * (peak / rate / from) ** (i % 2 ? 0.3 : 0.1); // each level's name somewhere else
  return svg(
    "g",
    {},
    svg("path", {
      class: "wb-roof-line",
      "stroke-dasharray": ROOF_DASHES[level],
      d: `M${across(from)} ${up(from * rate)}L${across(peak / rate)} ${up(peak)}`,
    }),
    svg("text", {
      class: "wb-roof-name",
      x: across(named) - 3,
      y: up(named * rate) - 3,
      "text-anchor": "end",
    }, level === "memory" ? "mem" : level),
  );
}

/** The ceilings: of all cores, and of one alone. */
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
    alone && alone < 0.9 * peak &&
      svg("path", { class: "wb-roof-line wb-roof-one", d: `M${from} ${up(alone)}H${across(x1)}` }),
    alone && alone < 0.9 * peak &&
      svg("text", {
        class: "wb-roof-name",
        x: across(x1) - 2,
        y: up(alone) + 10,
        "text-anchor": "end",
      }, `one thread ${rateText(alone)}`),
  );
}

/** A variant: a diamond if ratios refer to it, filled if it is the one that is shown. */
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
      }, variant.name.slice(0, 16)),
  );
}

/** The same in figures: what each level lets the variant that is shown do, then all variants,
 * and what the machine moves. */
function roofFigures(app, dots) {
  const here = dots.find(({ i }) => i === app.view.variant);
  const roofs = Object.entries(here?.variant.cost?.roofs || {});
  const threads = here?.variant.cost && plural(here.variant.cost.threads, "thread");
  return h(
    "div",
    {},
    roofs.length > 0 &&
      figureTable(
        `roofs for ${here.variant.name.slice(0, 20)} on ${threads}, and the share reached`,
        [],
        roofs.map((row) => roofRow(app.record.machine, here, row)),
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
 * bytes that are predicted to come from there: where a kernel is above it, fewer came. */
function roofRow(machine, { variant, y }, [level, predicted]) {
  if (level !== "peak") {
    return [
      level,
      rateText(predicted),
      y > predicted ? "fewer bytes came" : percent(y / predicted),
    ];
  }
  const { kind, threads } = variant.cost;
  const peak = peakOf(machine, kind, threads);
  return ["arithmetic", rateText(peak), y > peak ? "fewer operations" : percent(y / peak)];
}

/** 1.87e11 -> "187 GFLOP/s" */
const rateText = (rate) => `${three(rate / 1e9)} GFLOP/s`;
