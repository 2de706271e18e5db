// The canvas painter, for graphs too large for SVG, and the theme's colours for canvases.

import { colourAt, h } from "../base/elements.js";
import {
  badgeRadius,
  boxTexts,
  isLitLine,
  labelScale,
  relationsOf,
  TEXT_FROM,
  textScale,
  textSize,
} from "./labels.js";
import { addEdge, outlinePath, stateSign, STUB, STUB_FONT, stubNames } from "./paths.js";
import { SCENES } from "./svg_painter.js";

/** @import { Relation } from "./labels.js" */
/** @import { Bounds, Drawing, GraphNode, GraphLabel, Marks, Painter, Placement } from "./graph.d.ts" */

/**
 * @param {CanvasRenderingContext2D} context
 * @param {GraphLabel} label
 * @param {number} grow
 * @param {Colours} colours */
function canvasLabel(context, label, grow, colours) {
  context.save();
  context.translate(label.x, label.y);
  context.scale(grow, grow);
  context.beginPath();
  context.roundRect(-label.w / 2, -label.h / 2, label.w, label.h, label.h / 2);
  context.fillStyle = colours.ground;
  context.fill();
  context.lineWidth = 1.4;
  context.strokeStyle = colours.text;
  if (label.kind === "bytes") context.stroke();
  context.textAlign = "center";
  context.font = `bold ${colours.font(11)}`;
  context.fillStyle = colours.text;
  context.fillText(label.text, 0, 4);
  context.restore();
}

/** The contents of a canvas: `lines` has all edges of a state as one path.
 * @typedef {{
 *   drawing: Drawing, view: Placement, marks: Marks, lines: Map<string, Path2D>,
 *   regions: [Path2D, string][], outline: (node: GraphNode) => Path2D
 * }} Scene */

/** @returns {Painter} */
export function canvasPainter() {
  const el = h("canvas", { class: "wb-g-canvas", "aria-hidden": "true" });
  const context = el.getContext("2d");
  /** @type {Map<string, Path2D>} */
  const outlines = new Map();
  /** @type {Scene} */
  const scene = {
    drawing: { nodes: [], edges: [] },
    view: { scale: 1, x: 0, y: 0 },
    marks: { picked: null, found: new Set(), lit: new Set(), values: new Set() },
    lines: new Map(),
    regions: [],
    outline: ({ shape, w, h }) => {
      const name = `${shape} ${w} ${h}`;
      const path = outlines.get(name) ?? new Path2D(outlinePath(shape, w, h));
      outlines.set(name, path);
      return path;
    },
  };
  SCENES.set(el, scene);
  let isPlanned = false;
  const now = () => {
    isPlanned = false;
    if (context && el.isConnected) canvasDraw(el, context, scene);
  };
  const plan = () => {
    if (!isPlanned) requestAnimationFrame(now);
    isPlanned = true;
  };
  /** @type {(part: Partial<Scene>) => void} */
  const set = (part) => (Object.assign(scene, part), plan());
  return {
    el,
    paint: (drawing) =>
      set({
        drawing,
        lines: linesOf(drawing),
        regions: (drawing.regions || []).map((r) => [new Path2D(r.path), r.colour]),
      }),
    place: (view) => set({ view }),
    mark: (marks) => set({ marks }),
    resize: (width, height) => {
      const ratio = window.devicePixelRatio || 1;
      Object.assign(el, { width: Math.round(width * ratio), height: Math.round(height * ratio) });
      plan();
    },
    redraw: now, // at once: paper waits for no frame
  };
}

/** All edges of a state as one path, by the state; "stub" are those that are too long.
 * @param {Drawing} drawing */
function linesOf(drawing) {
  /** @type {Map<string, Path2D>} */
  const lines = new Map();
  for (const edge of drawing.edges) {
    const kind = edge.points ? edge.state : "stub";
    const path = lines.get(kind) ?? new Path2D();
    addEdge(path, drawing, edge);
    lines.set(kind, path);
  }
  return lines;
}

/**
 * @param {HTMLCanvasElement} el
 * @param {CanvasRenderingContext2D} context
 * @param {Scene} scene */
function canvasDraw(el, context, { drawing, view, marks, lines, regions, outline }) {
  const colours = graphColours(el);
  const ratio = window.devicePixelRatio || 1;
  const { scale, x, y } = view;
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, el.width, el.height);
  context.setTransform(scale * ratio, 0, 0, scale * ratio, x * ratio, y * ratio);
  context.globalAlpha = colours.regionAlpha;
  for (const [path, colour] of regions) (context.fillStyle = colour), context.fill(path);
  context.globalAlpha = 1;
  for (const [kind, path] of lines) {
    context.setLineDash(kind === "gone" ? [4, 3] : []);
    context.strokeStyle = lineColour(kind, colours);
    context.lineWidth = kind === "new" || kind === "cut" ? 2.2 : 1.2;
    context.globalAlpha = kind === "waiting" ? 0.35 : 1;
    context.stroke(path);
  }
  context.globalAlpha = 1;
  context.setLineDash([]);
  const near = relationsOf(drawing, marks.picked);
  const lit = marks.values.size ? drawing.edges.filter((edge) => isLitLine(edge, marks)) : [];
  for (const edge of new Set([...near.lines.keys(), ...lit])) {
    const path = new Path2D();
    addEdge(path, drawing, edge);
    const relation = isLitLine(edge, marks) ? undefined : near.lines.get(edge);
    context.setLineDash(relation === "reader" ? READER_DASH : []);
    context.strokeStyle = colours[relation ?? "picked"];
    context.lineWidth = Math.max(relation ? 2.6 : 3.4, 2 / scale);
    context.stroke(path);
  }
  context.setLineDash([]);
  const seen = {
    left: -x / scale,
    top: -y / scale,
    right: (el.width / ratio - x) / scale,
    bottom: (el.height / ratio - y) / scale,
  };
  for (const node of drawing.nodes) {
    if (
      node.x + node.w / 2 > seen.left && node.x - node.w / 2 < seen.right &&
      node.y + node.h > seen.top && node.y - node.h < seen.bottom
    ) {
      canvasNode(context, node, scale, marks, near.boxes.get(node.key), colours, outline(node));
    }
  }
  if (scale >= TEXT_FROM) canvasStubs(context, drawing, seen, textScale(scale), colours);
  for (const label of drawing.labels || []) canvasLabel(context, label, labelScale(scale), colours);
}

const READER_DASH = [7, 3];
/** The states whose outlines say more than that a box is near the picked one. */
const CHANGED = new Set(["new", "gone", "changed"]);

/** @type {(state: string, colours: Colours) => string} */
const lineColour = (state, { new: fresh, gone, text, edge }) =>
  ({ new: fresh, changed: fresh, gone, cut: text })[state] ?? edge;

/**
 * @param {CanvasRenderingContext2D} context
 * @param {GraphNode} node
 * @param {number} scale
 * @param {Marks} marks
 * @param {Relation | undefined} relation to the picked box
 * @param {Colours} colours
 * @param {Path2D} path */
function canvasNode(context, node, scale, marks, relation, colours, path) {
  context.save();
  context.translate(node.x, node.y);
  const isWaiting = node.state === "waiting";
  context.globalAlpha = isWaiting || node.state === "gone" ? 0.35 : 1;
  context.fillStyle = node.tint || colours.family(node.family);
  context.fill(path);
  if (!isWaiting) context.globalAlpha = 1;
  context.setLineDash(node.state === "gone" ? [4, 3] : []);
  const isMarked = marks.picked === node.key || marks.found.has(node.key) ||
    marks.lit.has(node.key);
  const isNear = !isMarked && relation !== undefined && !CHANGED.has(node.state);
  if (isNear && relation === "reader") context.setLineDash(READER_DASH);
  context.strokeStyle = isMarked
    ? colours.picked
    : isNear
    ? colours[relation]
    : lineColour(node.state, colours);
  context.lineWidth = isMarked
    ? Math.max(3, 2 / scale)
    : isNear
    ? Math.max(2.4, 2 / scale)
    : isWaiting || node.state === "kept"
    ? 1.2
    : 2.6;
  context.stroke(path);
  if (scale >= TEXT_FROM) {
    context.textAlign = "center";
    const { label, sub, letter, middle } = boxTexts(node, textScale(scale));
    for (const line of [label, sub]) {
      if (!line) continue;
      context.fillStyle = line === sub ? colours.muted : colours.text;
      context.font = colours.font(line.size);
      context.fillText(line.text, middle, line.y, line.width);
    }
    context.fillStyle = colours.muted;
    context.font = `bold ${colours.font(letter.size)}`;
    if (middle) context.fillText(letter.text, -node.w / 2 + 10, letter.y);
    if (node.badge) canvasBadge(context, node, labelScale(scale), colours);
    if (stateSign(node.state)) context.fillText(stateSign(node.state), node.w / 2 + 9, -6);
  }
  context.restore();
}

const BADGE_INK = "#111"; // on the colour of its kernel, in either theme

/**
 * @param {CanvasRenderingContext2D} context
 * @param {GraphNode} node
 * @param {number} grow
 * @param {Colours} colours */
function canvasBadge(context, node, grow, colours) {
  context.save();
  context.translate(-node.w / 2, -node.h / 2);
  context.scale(grow, grow);
  context.font = `bold ${colours.font(11)}`;
  context.beginPath();
  context.arc(0, 0, badgeRadius(node), 0, 7);
  context.fillStyle = node.badgeTint ?? "";
  context.fill();
  context.lineWidth = 1.4;
  context.strokeStyle = colours.text;
  context.stroke();
  context.fillStyle = BADGE_INK;
  context.fillText(node.badge ?? "", 0, 3.5);
  context.restore();
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Drawing} drawing
 * @param {Bounds} seen
 * @param {number} scale of the texts
 * @param {Colours} colours */
function canvasStubs(context, drawing, seen, scale, colours) {
  context.textAlign = "left";
  const size = textSize(STUB_FONT, scale);
  context.font = colours.font(size);
  context.fillStyle = colours.muted;
  for (const edge of drawing.edges) {
    const to = drawing.nodes[edge.b];
    if (edge.points || to.y < seen.top || to.y - to.h - 2 * STUB > seen.bottom) continue;
    const { x, y, text } = stubNames(drawing, edge, size);
    if (x > seen.left - 100 && x < seen.right && y > seen.top && y < seen.bottom) {
      context.fillText(text, x, y);
    }
  }
}

// The theme's colours for canvases: `--wb-g-*` in graph.css.

/** Colours by name, and those of op families by their letters; the opacity of regions; a font by
 * its size.
 * @typedef {"new" | "gone" | "edge" | "text" | "muted" | "picked" | "operand" | "reader" |
 *   "ground"} ColourName
 * @typedef {Record<ColourName, string> & {
 *   family(letter: string): string, regionAlpha: number, font(size: number): string
 * }} Colours */

/** The colours of elements, until the theme changes.
 * @type {WeakMap<Element, Colours>} */
export const COLOURS = new WeakMap();

/** Return the colours of the theme around an element; they are kept, since reading them makes the
 * browser compute the styles of the page.
 * @param {Element} el */
export function graphColours(el) {
  const colours = COLOURS.get(el) ?? readColours(el);
  COLOURS.set(el, colours);
  return colours;
}

/**
 * @param {Element} el
 * @returns {Colours} */
function readColours(el) {
  const style = getComputedStyle(el);
  const colour = (/** @type {string} */ name) => colourAt(el, `--wb-g-${name}`);
  /** @type {Map<string, string>} */
  const families = new Map();
  return {
    new: colour("new"),
    gone: colour("gone"),
    edge: colour("edge"),
    text: colour("text"),
    muted: colour("muted"),
    picked: colour("picked"),
    operand: colour("operand"),
    reader: colour("reader"),
    ground: colour("ground"),
    family: (letter) => {
      const known = families.get(letter) ?? colour(letter);
      families.set(letter, known);
      return known;
    },
    regionAlpha: Number(style.getPropertyValue("--wb-g-region")) || 0.5,
    font: (size) => `${size}px ${style.fontFamily}`,
  };
}
