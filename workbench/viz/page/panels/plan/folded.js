// The plan folded, as a drawing: a box for each kernel, or for kernels that repeat, with its share
// of the time; of an unfolded kernel its values, on its ground.

import { rowAt } from "../../app/store.js";
import { bytesText, plural } from "../../base/text.js";
import { linePath } from "../../graph/paths.js";
import { lineSpots, placedWords, textWidth } from "../../graph/words.js";
import { layoutFolded } from "../../layout/columns.js";
import { layoutGraph } from "../../layout/layout.js";
import { kernelWork, togetherWork, workShare, workTime } from "../../record/kernels.js";
import {
  kernelColour,
  mainPhase,
  phaseLetters,
  phasesOf,
  withoutPhases,
} from "../../record/phases.js";
import { planUnits, repeatKey, unfoldedValues, unitLines, valueKey } from "../../record/units.js";
import { planNode } from "./drawing.js";

/** @import { PageRecord, PlanRepeat } from "../../record.d.ts" */
/** @import { Drawing, GraphEdge, GraphNode, GraphRegion, Point, Size, WantedWord } from "../../graph/graph.d.ts" */
/** @import { Layout } from "../../layout/graph.d.ts" */
/** @import { Unfolded, Unit, UnitLine } from "../../record/units.js" */

const MOST_LETTERS = 36; // of a title
const HEIGHT = 36;
const LEAST_WIDTH = 104; // room for a time and a share
const GROUND = "#888888"; // of kernels that repeat
const BAND = 12; // half the width of a ground along a line

/** What of a folded plan is drawn: it stays while only times arrive.
 * @typedef {{units: Unit[], values: Set<number>, boxes: GraphNode[], lines: UnitLine[],
 *   edges: GraphEdge[], layout: Layout}} Shape */

/** Lay out what is shown of a plan; `unfolded` has the units that are not.
 * @param {PageRecord} record
 * @param {Unfolded} unfolded
 * @returns {Shape} */
export function foldedShape(record, unfolded) {
  const units = planUnits(record.plan, unfolded);
  const values = unfoldedValues(record.plan, unfolded);
  const isShown = shownUnits(record, units, values);
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

/** Whether a unit has a box: one that is unfolded has values instead.
 * @param {PageRecord} record
 * @param {Unit[]} units
 * @param {Set<number>} values
 * @returns {(unit: Unit) => boolean} */
function shownUnits({ plan }, units, values) {
  const opened = new Set([...values].flatMap((i) => plan.nodes[i].kernels));
  const folded = new Set(units.filter((unit) => unit.repeat || !opened.has(unit.first)));
  return (unit) => folded.has(unit);
}

/** Return a shape as a drawing, in columns that suit a pane.
 * @param {PageRecord} record
 * @param {Unfolded} unfolded
 * @param {Shape} shape
 * @param {Size} pane
 * @returns {Drawing} */
export function foldedDrawing(record, unfolded, shape, pane) {
  const work = kernelWork(record);
  const layout = layoutFolded({ nodes: shape.boxes, edges: shape.edges }, shape.layout, pane);
  const unitAt = new Map(shape.units.map((unit) => [unit.key, unit]));
  const nodes = shape.boxes.map((box, i) => {
    const unit = unitAt.get(String(box.key));
    return { ...box, ...(unit ? unitTexts(record, unit, work) : {}), ...layout.places[i] };
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
  /** Of two that collide the larger is seen.
   * @type {WantedWord[]} */
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
  return { nodes, edges, regions, words: placedWords(nodes, [...titles, ...bytes], edges) };
}

/** @param {UnitLine} line */
const lineBytes = ({ nodes }) => [...nodes.values()].reduce((sum, bytes) => sum + bytes, 0);

/** @param {string} text */
const cutTitle = (text) =>
  text.length > MOST_LETTERS ? `${text.slice(0, MOST_LETTERS - 1)}…` : text;

/** @param {PlanRepeat} repeat */
const repeatTitle = ({ times, title, module }) =>
  times === 1 ? title : `${module && `${module}: `}${times} × ${title}`;

/** A box: on the colour of its phase, with its letter, where all its kernels are of one.
 * @param {PageRecord} record
 * @param {Unit} unit
 * @returns {GraphNode} */
function unitBox(record, unit) {
  const { kernels, plan } = record;
  const { repeat, first, end, key } = unit;
  const phases = phasesOf(record, first, end);
  const title = repeat ? repeatTitle(repeat) : kernels[first].title;
  const label = cutTitle(withoutPhases(title, phases));
  const decision = rowAt(plan.decisions, kernels[end - 1].decision);
  const own = kernels.slice(first, end);
  const isOne = own.every((kernel) => kernel.phases.join() === own[0].phases.join());
  const colour = repeat
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
    w: Math.max(LEAST_WIDTH, textWidth(label, 12) + (phases.length ? 42 : 24)),
    h: HEIGHT,
    kernel: first,
    badge: repeat ? "+" : String(first + 1),
    badgeTint: repeat ? "#fff" : colour,
  };
}

/** What a unit takes, in words.
 * @param {PageRecord} record
 * @param {Unit} unit
 * @param {ReturnType<typeof kernelWork>} work */
function unitTexts({ kernels, plan }, { first, end, repeat }, work) {
  const own = togetherWork(work.slice(first, end));
  const [time, share, bytes] = [workTime(own), workShare(own), bytesText(own.bytes)];
  const about = [
    repeat
      ? `${repeatTitle(repeat)}: ${plural(end - first, "kernel")}, ${first + 1} to ${end}`
      : `kernel ${first + 1}: ${kernels[first].title}`,
    time && `${time}${own.isMeasured ? "" : " (predicted)"}, ${share} of the time of all kernels`,
    kernels.slice(first, end).flatMap(({ phases }) => phases).filter((p, i, all) =>
      all.indexOf(p) === i
    ).join(" and "),
    `reads and writes ${bytes}`,
    repeat || plan.nodes.length ? "click: unfold" : "",
  ];
  return {
    sub: time ? `${share} · ${time}` : bytes,
    hint: about.filter(Boolean).join("\n"),
  };
}

/** The grounds of what is unfolded, those of repeats below those of kernels.
 * @param {PageRecord} record
 * @param {Unfolded} unfolded
 * @param {GraphNode[]} nodes
 * @param {GraphEdge[]} edges
 * @returns {(GraphRegion & {unit: string})[]} */
function foldedRegions({ plan, kernels }, unfolded, nodes, edges) {
  const inside = nodes.map((node) =>
    node.unit === undefined ? plan.nodes[Number(String(node.key).slice(1))].kernels[0] : node.kernel
  );
  /** @type {(first: number, end: number, margin: number) => string} */
  const patches = (first, end, margin) =>
    nodes.filter((_, i) => first <= (inside[i] ?? -1) && (inside[i] ?? -1) < end)
      .map((node) => patch(node, margin)).join("");
  const bands = (/** @type {number} */ kernel) =>
    edges.filter(({ a, b }) => inside[a] === kernel && inside[b] === kernel)
      .map(({ points }) => points && band(points)).join("");
  const repeats = plan.repeats.filter((repeat) => unfolded.has(repeatKey(repeat)));
  const opened = kernels.map((_, k) => k).filter((k) => unfolded.has(`k${k}`));
  const hint = "click the title: fold";
  return [
    ...repeats.map((repeat) => ({
      kernel: repeat.first,
      title: repeatTitle(repeat),
      colour: `${GROUND}60`,
      path: patches(repeat.first, repeat.first + repeat.size * repeat.times, 13),
      hint: `${repeatTitle(repeat)}\n${hint}`,
      unit: repeatKey(repeat),
    })),
    ...opened.map((k) => ({
      kernel: k,
      title: kernels[k].title,
      colour: rowAt(plan.regions, k)?.colour ?? GROUND,
      path: patches(k, k + 1, 7) + bands(k),
      hint: `kernel ${k + 1}: ${kernels[k].title}\n${hint}`,
      unit: `k${k}`,
    })),
  ].filter(({ path }) => path);
}

/** The title of what is unfolded, which folds it again.
 * @param {GraphRegion & {unit: string}} region
 * @param {GraphNode[]} nodes
 * @returns {WantedWord} */
function foldTitle(region, nodes) {
  const text = `− ${cutTitle(region.title)}`;
  const top = nodes.find(({ kernel }) => kernel === region.kernel) ?? nodes[0];
  const { x, y } = top;
  const width = 0.6 * textWidth(text, 11, "bold");
  const above = y - top.h / 2 - 18; // its badge is free
  const away = top.w / 2 + 24 + width;
  const aside = Math.max(0, top.w / 2 - width);
  return {
    kind: "title",
    text,
    region: { ...region, fold: region.unit },
    spots: [
      [x, above],
      [x + aside, above],
      [x - aside + 14, above],
      [x + away, y],
      [x - away, y],
      [x + away, y - 28],
    ],
  };
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
