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
/** @import { Bounds, Drawing, GraphEdge, GraphNode, GraphLabel, Marks, Painter, Placement, Point } from "./graph.d.ts" */

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

/** The edges of a state that lie near each other, as one path, and the rectangle around them.
 * @typedef {{state: string, path: Path2D, box: Bounds}} Lines */
/** The contents of a canvas; `shown` is the placement at which it shows them, null: it does not yet.
 * @typedef {{
 *   drawing: Drawing, view: Placement, marks: Marks, lines: Lines[],
 *   regions: [Path2D, string][], outline: (node: GraphNode) => Path2D, shown: Placement | null
 * }} Scene */
/** A rectangle of a canvas, in its pixels.
 * @typedef {{x: number, y: number, width: number, height: number}} Area */

/** @returns {Painter} */
export function canvasPainter() {
  const el = h("canvas", { class: "wb-g-canvas", "aria-hidden": "true" });
  const context = el.getContext("2d");
  const scene = newScene();
  SCENES.set(el, scene);
  let isPlanned = false;
  const now = () => {
    isPlanned = false;
    if (context && el.isConnected) canvasUpdate(el, context, scene);
  };
  const plan = () => {
    if (!isPlanned) requestAnimationFrame(now);
    isPlanned = true;
  };
  /** @type {(part: Partial<Scene>) => void} */
  const set = (part) => {
    if (!part.view) scene.shown = null;
    Object.assign(scene, part);
    plan();
  };
  const redraw = () => (scene.shown = null, now());
  el.addEventListener("contextrestored", redraw);
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
      set({}); // a new size clears it
    },
    redraw, // at once: paper waits for no frame
  };
}

/** @returns {Scene} */
function newScene() {
  /** @type {Map<string, Path2D>} */
  const outlines = new Map();
  return {
    drawing: { nodes: [], edges: [] },
    view: { scale: 1, x: 0, y: 0 },
    marks: { picked: null, found: new Set(), lit: new Set(), values: new Set() },
    lines: [],
    regions: [],
    outline: ({ shape, w, h }) => {
      const name = `${shape} ${w} ${h}`;
      const path = outlines.get(name) ?? new Path2D(outlinePath(shape, w, h));
      outlines.set(name, path);
      return path;
    },
    shown: null,
  };
}

/** The placement of a drawing in a canvas, in pixels of the screen. It is at whole pixels, so that
 * what is drawn can be moved.
 * @param {Placement} view
 * @returns {Placement} */
function pixelPlacement({ scale, x, y }) {
  const ratio = window.devicePixelRatio || 1;
  return { scale: scale * ratio, x: Math.round(x * ratio), y: Math.round(y * ratio) };
}

/** Bring a canvas up to date.
 * @param {HTMLCanvasElement} el
 * @param {CanvasRenderingContext2D} context
 * @param {Scene} scene */
function canvasUpdate(el, context, scene) {
  const placement = pixelPlacement(scene.view);
  for (const area of areasToDraw(el, context, scene.shown, placement)) {
    canvasDraw(el, context, scene, placement, area);
  }
  scene.shown = placement;
}

/** Return the parts of a canvas to draw. Where a scene only moved, what the canvas shows is moved,
 * and what comes into sight remains: a frame of thousands of boxes and lines takes 40 ms.
 * @param {HTMLCanvasElement} el
 * @param {CanvasRenderingContext2D} context
 * @param {Placement | null} shown
 * @param {Placement} now
 * @returns {Area[]} */
function areasToDraw(el, context, shown, now) {
  const { width, height } = el;
  const [dx, dy] = shown ? [now.x - shown.x, now.y - shown.y] : [0, 0];
  const isMoved = shown?.scale === now.scale && Math.abs(dx) < width && Math.abs(dy) < height;
  if (!isMoved) return [{ x: 0, y: 0, width, height }];
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.globalCompositeOperation = "copy";
  context.drawImage(el, dx, dy);
  context.globalCompositeOperation = "source-over";
  const beside = { x: dx > 0 ? 0 : width + dx, y: 0, width: Math.abs(dx), height };
  const above = { x: Math.max(0, dx), y: dy > 0 ? 0 : height + dy, height: Math.abs(dy) };
  return [beside, { ...above, width: width - Math.abs(dx) }]
    .filter((area) => area.width && area.height);
}

const TILE = 1500; // pixels of a drawing

/** The edges of a drawing, by their states and places; "stub" are those that are too long. Those out
 * of sight cost nothing.
 * @param {Drawing} drawing
 * @returns {Lines[]} */
function linesOf(drawing) {
  /** @type {Map<string, Lines>} */
  const lines = new Map();
  for (const edge of drawing.edges) {
    const state = edge.points ? edge.state : "stub";
    const box = boundsOf(edge.points ?? [[drawing.nodes[edge.b].x, drawing.nodes[edge.b].y]]);
    const [width, height] = [box.right - box.left, box.bottom - box.top];
    const isLong = width > TILE || height > TILE;
    const tile = [box.left, box.top].map((at) => Math.floor(at / TILE)).join();
    const key = `${state} ${isLong ? "long" : tile}`;
    const known = lines.get(key) ?? { state, path: new Path2D(), box };
    addEdge(known.path, drawing, edge);
    known.box = unionOf(known.box, box);
    lines.set(key, known);
  }
  const order = [...new Set([...lines.values()].map(({ state }) => state))];
  return [...lines.values()].sort((a, b) => order.indexOf(a.state) - order.indexOf(b.state));
}

/** @param {Point[]} points
 * @returns {Bounds} */
function boundsOf(points) {
  const [across, down] = [0, 1].map((axis) => points.map((point) => point[axis]));
  return {
    left: Math.min(...across),
    top: Math.min(...down),
    right: Math.max(...across),
    bottom: Math.max(...down),
  };
}

/** @type {(a: Bounds, b: Bounds) => Bounds} */
const unionOf = (a, b) => ({
  left: Math.min(a.left, b.left),
  top: Math.min(a.top, b.top),
  right: Math.max(a.right, b.right),
  bottom: Math.max(a.bottom, b.bottom),
});

const MARGIN = 60; // pixels of a drawing that signs, badges and texts of stubs reach beyond boxes

/** Draw the part of a scene that is in an area of its canvas.
 * @param {HTMLCanvasElement} el
 * @param {CanvasRenderingContext2D} context
 * @param {Scene} scene
 * @param {Placement} placement in pixels of the canvas
 * @param {Area} area */
function canvasDraw(el, context, scene, placement, area) {
  const { drawing, view: { scale }, marks, regions, outline } = scene;
  const colours = graphColours(el);
  context.save();
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.beginPath();
  context.rect(area.x, area.y, area.width, area.height);
  context.clip();
  context.clearRect(area.x, area.y, area.width, area.height);
  context.setTransform(placement.scale, 0, 0, placement.scale, placement.x, placement.y);
  const seen = boundsIn(placement, area);
  context.globalAlpha = colours.regionAlpha;
  for (const [path, colour] of regions) (context.fillStyle = colour), context.fill(path);
  context.globalAlpha = 1;
  const near = relationsOf(drawing, marks.picked);
  canvasLines(context, scene, seen, near.lines, colours);
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
  context.restore();
}

/** The part of a drawing that can be seen in an area.
 * @param {Placement} placement
 * @param {Area} area
 * @returns {Bounds} */
function boundsIn({ scale, x, y }, area) {
  const margin = MARGIN + 4 / scale; // lines have a width
  return {
    left: (area.x - x) / scale - margin,
    top: (area.y - y) / scale - margin,
    right: (area.x + area.width - x) / scale + margin,
    bottom: (area.y + area.height - y) / scale + margin,
  };
}

/** Draw the lines: all, then those of the marked boxes and values.
 * @param {CanvasRenderingContext2D} context
 * @param {Scene} scene
 * @param {Bounds} seen
 * @param {Map<GraphEdge, Relation>} near the lines of the picked box
 * @param {Colours} colours */
function canvasLines(context, { drawing, view: { scale }, marks, lines }, seen, near, colours) {
  for (const { state, path, box } of lines) {
    const isOut = box.right < seen.left || box.left > seen.right || box.bottom < seen.top ||
      box.top > seen.bottom;
    if (isOut) continue;
    context.setLineDash(state === "gone" ? [4, 3] : []);
    context.strokeStyle = lineColour(state, colours);
    context.lineWidth = state === "new" || state === "cut" ? 2.2 : 1.2;
    context.globalAlpha = state === "waiting" ? 0.35 : 1;
    context.stroke(path);
  }
  context.globalAlpha = 1;
  const lit = marks.values.size ? drawing.edges.filter((edge) => isLitLine(edge, marks)) : [];
  for (const edge of new Set([...near.keys(), ...lit])) {
    const path = new Path2D();
    addEdge(path, drawing, edge);
    const relation = isLitLine(edge, marks) ? undefined : near.get(edge);
    context.setLineDash(relation === "reader" ? READER_DASH : []);
    context.strokeStyle = colours[relation ?? "lit"];
    context.lineWidth = Math.max(relation ? 2.6 : 3.4, 2 / scale);
    context.stroke(path);
  }
  context.setLineDash([]);
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
  const isLit = marks.lit.has(node.key);
  context.fillStyle = node.tint || (isLit ? colours.shine : colours.family(node.family));
  context.fill(path);
  if (!isWaiting) context.globalAlpha = 1;
  context.setLineDash(node.state === "gone" ? [4, 3] : []);
  const isChosen = marks.picked === node.key || marks.found.has(node.key);
  const isMarked = isChosen || isLit;
  const isNear = !isMarked && relation !== undefined && !CHANGED.has(node.state);
  if (isNear && relation === "reader") context.setLineDash(READER_DASH);
  context.strokeStyle = isMarked
    ? isChosen ? colours.picked : colours.lit
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
    const { x, y, w, text } = stubNames(drawing, edge, size);
    if (x + w > seen.left && x < seen.right && y > seen.top && y < seen.bottom) {
      context.fillText(text, x, y);
    }
  }
}

// The theme's colours for canvases: `--wb-g-*` in graph.css.

/** Colours by name, and those of op families by their letters; the opacity of regions; a font by
 * its size.
 * @typedef {"new" | "gone" | "edge" | "text" | "muted" | "picked" | "lit" | "shine" |
 *   "operand" | "reader" | "ground"} ColourName
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
    lit: colour("lit"),
    shine: colour("shine"),
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
