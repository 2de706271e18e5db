// The drawing of the folded plan: a box for each kernel or group of repeated kernels, with its
// share of the time, and the values of an unfolded kernel.

import { rowAt } from "../../app/store.js";
import { bytesText, plural } from "../../base/text.js";
import { lineSpots, placedLabels, textWidth } from "../../graph/labels.js";
import { linePath } from "../../graph/paths.js";
import { planNode } from "../../graph/plan_drawing.js";
import { layoutFolded } from "../../layout/columns.js";
import { layoutGraph } from "../../layout/layout.js";
import {
  kernelColour,
  kernelWork,
  mainPhase,
  phaseLetters,
  phasesOf,
  timeWords,
  togetherWork,
  withoutPhases,
  workShare,
  workTime,
} from "../../record/kernels.js";
import {
  isWeightsFold,
  kernelKey,
  planFolds,
  planUnits,
  unfoldedValues,
  unitLines,
  valueKey,
} from "../../record/units.js";
import { UNKNOWN } from "./figures.js";

/** @import { Drawing, GraphEdge, GraphNode, GraphRegion, Point, Size, WantedLabel } from "../../graph/graph.d.ts" */
/** @import { Layout } from "../../layout/graph.d.ts" */
/** @import { PageRecord, PlanRepeat } from "../../record.d.ts" */
/** @import { Work } from "../../record/kernels.js" */
/** @import { Figure, Scale } from "./figures.js" */
/** @import { Unfolded, Unit, UnitLine } from "../../record/units.js" */

const MOST_LETTERS = 36; // of a title
const MOST_NUMBERS = 12; // of kernels that do not run one after the other
const HEIGHT = 36;
const LEAST_WIDTH = 104; // room for a time and a share
const GROUND = "#888888"; // of kernels that repeat
const MARGIN = 13; // of the ground of a fold around its boxes
const BAND = 12; // half the width of a ground along a line

/** The drawn parts of a folded plan: they stay while only times arrive.
 * @typedef {{units: Unit[], values: Set<number>, boxes: GraphNode[], lines: UnitLine[],
 *   edges: GraphEdge[], layout: Layout}} Shape */

/** Lay out the shown units of a plan; `unfolded` has the keys of unfolded ones.
 * @param {PageRecord} record
 * @param {Unfolded} unfolded
 * @returns {Shape} */
export function foldedShape(record, unfolded) {
  const units = planUnits(record, unfolded);
  const values = unfoldedValues(record.plan, unfolded);
  const isShown = shownUnits(record, values);
  const boxes = [
    ...units.filter(isShown).map((unit) => unitBox(record, unit)),
    ...[...values].map((i) => ({
      ...planNode(record, record.plan.nodes[i], i, Infinity),
      key: valueKey(i),
    })),
  ];
  const lines = unitLines(record, units, values);
  const places = new Map(boxes.map(({ key }, i) => [key, i]));
  /** @type {GraphEdge[]} */
  const edges = lines.map(({ a, b, cut }) => ({
    a: places.get(a) ?? 0,
    b: places.get(b) ?? 0,
    slot: 0,
    slots: 0,
    state: cut ? "cut" : "kept",
    points: null,
  }));
  const counts = boxes.map(() => 0);
  for (const edge of edges) edge.slot = counts[edge.b]++;
  for (const edge of edges) edge.slots = counts[edge.b];
  return { units, values, boxes, lines, edges, layout: layoutGraph({ nodes: boxes, edges }) };
}

/** Whether a unit has a box: an unfolded one has values instead.
 * @param {PageRecord} record
 * @param {Set<number>} values
 * @returns {(unit: Unit) => boolean} */
function shownUnits({ plan }, values) {
  const opened = new Set([...values].flatMap((i) => plan.nodes[i].kernels));
  return ({ kernels }) => kernels.length > 1 || !opened.has(kernels[0]);
}

/** Return a shape as a drawing, in columns that suit a pane.
 * @param {PageRecord} record
 * @param {Unfolded} unfolded
 * @param {Shape} shape
 * @param {Size} pane
 * @param {Figure | null} figure
 * @param {Scale | null} scale
 * @returns {Drawing} */
export function foldedDrawing(record, unfolded, shape, pane, figure, scale) {
  const work = kernelWork(record);
  const layout = layoutFolded({ nodes: shape.boxes, edges: shape.edges }, shape.layout, pane);
  const unitAt = new Map(shape.units.map((unit) => [unit.key, unit]));
  const nodes = shape.boxes.map((box, i) => {
    const unit = unitAt.get(String(box.key));
    return {
      ...box,
      ...(unit ? unitTexts(record, unit, work) : {}),
      ...(unit && figure ? unitFigure(unit, work, figure, scale) : {}),
      ...layout.places[i],
    };
  });
  /** @type {GraphEdge[]} */
  const edges = shape.edges.map((edge, i) => ({
    ...edge,
    points: layout.routes[i],
    hint: edge.state === "cut"
      ? `${bytesText(lineBytes(shape.lines[i]))} go through memory\nclick: why`
      : "",
    values: [...shape.lines[i].nodes.keys()],
  }));
  const regions = foldedRegions(record, unfolded, nodes, edges);
  /** Of two overlapping grounds the larger is seen.
   * @type {WantedLabel[]} */
  const bytes = edges.map((edge, i) => ({ edge, bytes: lineBytes(shape.lines[i]) }))
    .sort((a, b) => b.bytes - a.bytes)
    .flatMap(({ edge, bytes }) =>
      edge.state === "cut" && edge.points
        ? [{
          kind: "bytes",
          text: bytesText(bytes),
          spots: lineSpots(edge.points),
          edge,
          mayHide: true,
        }]
        : []
    );
  const titles = regions.map((region) => foldTitle(region, nodes));
  return { nodes, edges, regions, labels: placedLabels(nodes, [...titles, ...bytes], edges) };
}

/** @param {UnitLine} line */
const lineBytes = ({ nodes }) => [...nodes.values()].reduce((sum, bytes) => sum + bytes, 0);

/** @param {string} text */
const cutTitle = (text) =>
  text.length > MOST_LETTERS ? `${text.slice(0, MOST_LETTERS - 1)}…` : text;

/** @param {PlanRepeat} repeat */
const repeatTitle = ({ times, title, module }) =>
  times === 1 ? title : `${module && `${module}: `}${times} × ${title}`;

/** @param {PageRecord} record
 * @param {Unit} unit */
function unitTitle(record, { kernels, repeat }) {
  return repeat ? repeatTitle(repeat) : record.kernels[kernels[0]].title;
}

/** The numbers of kernels: "4 to 7" where they stand one after the other.
 * @param {number[]} places */
function kernelNumbers(places) {
  const [first, last] = [places[0], places[places.length - 1]];
  if (last - first === places.length - 1) return `${first + 1} to ${last + 1}`;
  const more = places.length > MOST_NUMBERS ? ", …" : "";
  return places.slice(0, MOST_NUMBERS).map((k) => k + 1).join(", ") + more;
}

/** A box: on the colour of its phase, with its letter, where all its kernels are of one.
 * @param {PageRecord} record
 * @param {Unit} unit
 * @returns {GraphNode} */
function unitBox(record, unit) {
  const { plan } = record;
  const { key } = unit;
  const [first] = unit.kernels;
  const own = unit.kernels.map((k) => record.kernels[k]);
  const isFold = own.length > 1;
  const isOne = own.every((kernel) => kernel.phases.join() === own[0].phases.join());
  const phases = phasesOf(record, unit.kernels);
  const title = unitTitle(record, unit);
  const isWeights = isWeightsFold(record, unit);
  const label = cutTitle(isWeights ? title : withoutPhases(title, phases));
  const decision = isWeights ? null : rowAt(plan.decisions, own[own.length - 1].decision);
  const colour = isFold
    ? (isOne && mainPhase(record, own[0].phases)?.colours[0]) || GROUND
    : kernelColour(record, first) ?? GROUND;
  return {
    key,
    unit: key,
    n: decision?.node ?? -1,
    label,
    sub: "",
    family: "",
    letter: phaseLetters(phases),
    state: "kept",
    op: title,
    found: [...new Set(own.flatMap(({ modules, phases }) => [...modules, ...phases]))].join(" "),
    shape: "round",
    tint: `${colour}${phases.length ? "66" : "40"}`,
    x: 0,
    y: 0,
    w: phases.length
      ? Math.max(LEAST_WIDTH + 8, textWidth(label, 12) + 42)
      : Math.max(LEAST_WIDTH, textWidth(label, 12) + 24),
    h: HEIGHT,
    kernel: isWeights ? null : first,
    badge: isFold ? "+" : String(first + 1),
    badgeTint: isFold ? "#fff" : colour,
  };
}

/** A kernel or a value of the plan that a search finds, also where it is folded: its box while it is
 * unfolded, and the kernel that has it.
 * @typedef {{box: GraphNode, kernel: number, value: number | null}} Searched */

/** What a search goes through, kernel by kernel: each, then its values. An input belongs to its first
 * reader.
 * @param {PageRecord} record
 * @returns {Searched[]} */
export function searchedParts(record) {
  const { nodes, edges } = record.plan;
  /** @type {Searched[][]} */
  const parts = record.kernels.map((_, kernel) => {
    const box = unitBox(record, { key: kernelKey(kernel), kernels: [kernel], repeat: null });
    const n = nodes.length ? -1 : box.n; // else #n is the value that it stores
    return [{ box: { ...box, n }, kernel, value: null }];
  });
  nodes.forEach((node, value) => {
    const reader = edges.find(({ a }) => a === value);
    const kernel = node.kernels[0] ?? (reader && nodes[reader.b].kernels[0]);
    const box = { ...planNode(record, node, value, Infinity), key: valueKey(value) };
    if (kernel !== undefined) parts[kernel].push({ box, kernel, value });
  });
  return parts.flat();
}

/** The time and share of a unit, as text.
 * @param {PageRecord} record
 * @param {Unit} unit
 * @param {ReturnType<typeof kernelWork>} work */
function unitTexts(record, unit, work) {
  const { kernels, plan } = record;
  const places = unit.kernels;
  const isFold = places.length > 1;
  const each = places.map((k) => work[k]);
  const own = togetherWork(each);
  const words = timeWords(each);
  const title = unitTitle(record, unit);
  const [time, share, bytes] = [workTime(own), workShare(own), bytesText(own.bytes)];
  const about = [
    isWeightsFold(record, unit) && plan.hint,
    isFold
      ? `${title}: ${plural(places.length, "kernel")}, ${kernelNumbers(places)}`
      : `kernel ${places[0] + 1}: ${title}`,
    time && `${time}${words && ` (${words})`}, ${share} of the time of all kernels`,
    [...new Set(places.flatMap((k) => kernels[k].phases))].join(" and "),
    `reads and writes ${bytes}`,
    isFold || plan.nodes.length ? "click: unfold" : "",
  ];
  return {
    sub: time ? `${share} · ${time}` : bytes,
    hint: about.filter(Boolean).join("\n"),
  };
}

/** The ground and the text of a unit, by a figure.
 * @param {Unit} unit
 * @param {Work[]} work
 * @param {Figure} figure
 * @param {Scale | null} scale */
function unitFigure({ kernels }, work, figure, scale) {
  const own = togetherWork(kernels.map((k) => work[k]));
  const value = figure.of(own);
  return {
    tint: scale?.tint(value) ?? UNKNOWN,
    sub: value === null ? "not known" : `${figure.sign?.(own) ?? ""}${figure.text(value)}`,
  };
}

/** The values of a figure, of all shown units.
 * @param {PageRecord} record
 * @param {Shape} shape
 * @param {Figure} figure */
export function figureValues(record, { units }, figure) {
  const work = kernelWork(record);
  return units.map(({ kernels }) => figure.of(togetherWork(kernels.map((k) => work[k]))));
}

/** The grounds of unfolded units, those of folds below those of kernels.
 * @param {PageRecord} record
 * @param {Unfolded} unfolded
 * @param {GraphNode[]} nodes
 * @param {GraphEdge[]} edges
 * @returns {(GraphRegion & {unit: string, kernels: number[]})[]} */
function foldedRegions(record, unfolded, nodes, edges) {
  const { plan, kernels } = record;
  const inside = nodes.map((node) =>
    node.unit === undefined ? plan.nodes[Number(String(node.key).slice(1))].kernels[0] : node.kernel
  );
  /** @type {(places: number[], margin: number) => string} */
  const patches = (places, margin) =>
    nodes.filter((_, i) => places.includes(inside[i] ?? -1))
      .map((node) => patch(node, margin)).join("");
  const bands = (/** @type {number} */ kernel) =>
    edges.filter(({ a, b }) => inside[a] === kernel && inside[b] === kernel)
      .map(({ points }) => points && band(points)).join("");
  const folds = planFolds(record).filter(({ key }) => unfolded.has(key));
  const opened = kernels.map((_, k) => k).filter((k) => unfolded.has(`k${k}`));
  const hint = "click the title: fold";
  return [
    ...folds.map((unit) => ({
      kernel: unit.kernels[0],
      title: unitTitle(record, unit),
      colour: `${GROUND}60`,
      path: patches(unit.kernels, MARGIN),
      hint: `${unitTitle(record, unit)}\n${hint}`,
      unit: unit.key,
      kernels: unit.kernels,
    })),
    ...opened.map((k) => ({
      kernel: k,
      title: kernels[k].title,
      colour: rowAt(plan.regions, k)?.colour ?? GROUND,
      path: patches([k], 7) + bands(k),
      hint: `kernel ${k + 1}: ${kernels[k].title}\n${hint}`,
      unit: `k${k}`,
      kernels: [k],
    })),
  ].filter(({ path }) => path);
}

/** The title of an unfolded unit, which folds it again, at the edge of its ground: at its first box,
 * else at another one.
 * @param {GraphRegion & {unit: string, kernels: number[]}} region
 * @param {GraphNode[]} nodes
 * @returns {WantedLabel} */
function foldTitle(region, nodes) {
  const text = `− ${cutTitle(region.title)}`;
  const width = 0.55 * textWidth(text, 11, "bold"); // half of it, and room to grow on zooming out
  const spots = region.kernels.flatMap((k) => nodes.find(({ kernel }) => kernel === k) ?? [])
    .flatMap(({ x, y, w, h }) => {
      const above = y - h / 2 - 18; // its badge is free
      const away = w / 2 + MARGIN + 4 + width;
      const aside = Math.max(0, w / 2 - width);
      const tops = [x, x + aside, x - aside + 14].map((at) => [at, above]);
      const sides = [y, y - 17, y + 17].flatMap((at) => [[x + away, at], [x - away, at]]);
      return /** @type {Point[]} */ ([...tops, ...sides]);
    });
  return { kind: "title", text, region: { ...region, fold: region.unit }, spots };
}

/** A rectangle with round corners behind a box, clockwise.
 * @param {GraphNode} node
 * @param {number} margin */
function patch({ x, y, w, h }, margin) {
  const r = 9;
  const [wide, high] = [w + 2 * margin - 2 * r, h + 2 * margin - 2 * r];
  const arc = `a${r} ${r} 0 0 1 `;
  return `M${(x - w / 2 - margin + r).toFixed(1)} ${(y - h / 2 - margin).toFixed(1)}h${
    wide.toFixed(1)
  }${arc}${r} ${r}v${high.toFixed(1)}${arc}-${r} ${r}h${(-wide).toFixed(1)}${arc}-${r} -${r}v${
    (-high).toFixed(1)
  }${arc}${r} -${r}Z`;
}

/** A ground along a line, clockwise.
 * @param {Point[]} points */
function band(points) {
  /** @type {(way: Point[], by: number) => string} */
  const shifted = (way, by) => linePath(way.map(([x, y]) => [x + by, y]));
  const back = shifted([...points].reverse(), -BAND).replace("M", "L");
  return `${shifted(points, BAND)}${back}Z`;
}
