// Labels on a drawing: the texts of a box at a given scale, the bytes on a cut line, the title of a
// kernel, the numbered discs at corners.
//
// On the screen no text is smaller than people can read: where the picture shrinks further, a text
// grows inside its box, is shortened, and has the box alone.

import { stubNames, widthIn } from "./paths.js";

/** @import { Drawing, GraphEdge, GraphNode, GraphLabel, Key, Marks, Point, WantedLabel } from "./graph.d.ts" */

const SMALLEST = 9; // pixels on the screen
const TWO_LINES_FROM = 0.75; // the scale below which a box has one line
const STEP = 1.12; // texts grow in steps, or each turn of a wheel would rewrite all of them
export const TEXT_FROM = 0.42; // the scale below which a box is only its colour

/** The scale for which texts are written: at most that of the picture.
 * @param {number} scale */
export const textScale = (scale) =>
  scale * 10 >= SMALLEST ? 1 : STEP ** Math.floor(Math.log(scale) / Math.log(STEP));

/** The size of a text that is `size` large at scale 1.
 * @param {number} size
 * @param {number} scale */
export const textSize = (size, scale) => Math.max(size, SMALLEST / scale);

/** A text with its size, its distance below the middle of its box, and its greatest width.
 * @typedef {{text: string, size: number, y: number, width: number}} BoxText
 * @param {GraphNode} node
 * @param {number} scale of the texts
 * @returns {{label: BoxText, sub: BoxText | null, letter: BoxText, middle: number}} */
export function boxTexts(node, scale) {
  const isWhole = scale >= TWO_LINES_FROM;
  const width = isWhole ? widthIn(node) : node.w - 2;
  const middle = node.letter && isWhole ? 6 : 0;
  const size = textSize(node.small ? 10.5 : 12, scale);
  const hasSub = isWhole && Boolean(node.sub);
  const y = hasSub ? -2 : 0.34 * size;
  return {
    label: { text: isWhole ? node.label : shortened(node.label, size, width), size, y, width },
    sub: hasSub ? { text: node.sub, size: textSize(10, scale), y: 11, width } : null,
    letter: { text: node.letter ?? "", size: textSize(10, scale), y: 4, width: 14 },
    middle,
  };
}

/** A text, cut to the width available.
 * @param {string} text
 * @param {number} size
 * @param {number} width */
function shortened(text, size, width) {
  const whole = (textWidth(text, 12) * size) / 12;
  if (whole <= width) return text;
  const letters = Math.floor((text.length * width) / whole) - 1;
  return letters > 0 ? `${text.slice(0, letters)}…` : "";
}

// Labels on a drawing: the bytes on a cut line, the title of a kernel. Labels stand on free ground,
// have a background of their own, and do not shrink with the picture. A label is {text, kind:
// "bytes" | "title", spots: [[x, y]..], edge, region}; placing it adds {x, y, w, h}, the middle and
// the size.

const LABEL_HEIGHT = 16;
const LABELS_FROM = 0.82; // the scale below which labels keep their size on the screen
const CELL = 64; // pixels of a cell of the grid that finds overlapping boxes
const LABELS_GROW = 2.2; // and the greatest factor by which they grow beyond the picture

/** The factor by which labels are drawn larger than the picture.
 * @param {number} scale */
export const labelScale = (scale) => Math.min(LABELS_GROW, Math.max(1, LABELS_FROM / scale));

/** Return the labels that have a position, the first free one of their spots; a title may be left
 * out, but neither bytes (unless they may hide) nor a title that folds the kernels under it. They
 * cover neither badges nor the names beside stubs.
 * @param {GraphNode[]} nodes
 * @param {WantedLabel[]} wanted
 * @param {GraphEdge[]} [edges] */
export function placedLabels(nodes, wanted, edges = []) {
  /** @type {GraphLabel[]} */
  const placed = [];
  const boxes = new Boxes();
  for (const node of nodes) {
    boxes.add(node);
    const { x, y, w, h } = node;
    const size = 2 * badgeRadius(node);
    if (node.badge) boxes.add({ x: x - w / 2, y: y - h / 2, w: size, h: size });
  }
  for (const edge of edges) {
    const { x, y, w } = edge.points ? { x: 0, y: 0, w: 0 } : stubNames({ nodes, edges }, edge);
    if (w) boxes.add({ x: x + w / 2, y: y - 3, w, h: 11 });
  }
  for (const word of wanted) {
    const size = { w: textWidth(word.text, 11, "bold") + 12, h: LABEL_HEIGHT };
    const free = word.spots.find(([x, y]) => boxes.isFree({ x, y, ...size }));
    const [x, y] = free || word.spots[0];
    const isNeeded = word.kind === "bytes" ? !word.mayHide : word.region?.fold;
    if (!free && !isNeeded) continue;
    const box = { ...word, ...size, x, y };
    placed.push(box);
    boxes.add(box);
  }
  return placed;
}

/** @typedef {{x: number, y: number, w: number, h: number}} Box */

/** Boxes by their position: a box stands in each cell of a grid that it touches. */
class Boxes {
  /** @type {Map<string, Box[]>} */
  #cells = new Map();

  /** @param {Box} box */
  add(box) {
    for (const cell of cellsOf(box)) {
      this.#cells.get(cell)?.push(box) ?? this.#cells.set(cell, [box]);
    }
  }

  /** Whether a box overlaps no other.
   * @param {Box} box */
  isFree(box) {
    return !cellsOf(box).some((cell) => this.#cells.get(cell)?.some((b) => overlaps(b, box)));
  }
}

/** @param {Box} box */
function cellsOf({ x, y, w, h }) {
  const cells = [];
  const [left, right, top, bottom] = [x - w / 2 - 1, x + w / 2 + 1, y - h / 2 - 1, y + h / 2 + 1]
    .map((at) => Math.floor(at / CELL));
  for (let row = top; row <= bottom; row++) {
    for (let column = left; column <= right; column++) cells.push(`${column} ${row}`);
  }
  return cells;
}

/**
 * @param {Box} a
 * @param {Box} b */
const overlaps = (a, b) =>
  Math.abs(a.x - b.x) < (a.w + b.w) / 2 + 1 && Math.abs(a.y - b.y) < (a.h + b.h) / 2 + 1;

/** The spots for labels on a line: in the gaps after its source and before its reader, then along
 * it.
 * @param {Point[]} points
 * @returns {Point[]} */
export function lineSpots(points) {
  /** @type {(a: Point, b: Point, share: number) => Point} */
  const between = ([x, y], [toX, toY], share) => [x + (toX - x) * share, y + (toY - y) * share];
  const middles = points.slice(1).map((point, i) => between(point, points[i], 0.5));
  const shifted = [0.3, 0.7].map((share) => between(points[0], points[1], share));
  return [middles[0], middles[middles.length - 1], ...middles.slice(1, -1), ...shifted];
}

/** A hidden canvas context, which measures texts. */
export function newContext() {
  const context = document.createElement("canvas").getContext("2d");
  if (!context) throw new Error("this browser draws on no canvas");
  return context;
}

/** A context for each font, since setting a font is slow.
 * @type {Map<string, CanvasRenderingContext2D>} */
const MEASURING = new Map();

/** The width of a text, in pixels.
 * @param {string} text
 * @param {number} size
 * @param {string} [weight] */
export function textWidth(text, size, weight = "") {
  const font =
    `${weight} ${size}px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif`;
  const context = MEASURING.get(font) ?? Object.assign(newContext(), { font });
  MEASURING.set(font, context);
  return context.measureText(text).width;
}

// Marks on a drawing, and the numbered discs at the corners of boxes.

/** Whether a line reads one of the lit nodes.
 * @param {GraphEdge} edge
 * @param {Marks} marks */
export const isLitLine = ({ values }, marks) => values?.some((n) => marks.values.has(n)) ?? false;

/** How the parts of a drawing stand to the picked box: the boxes that it reads and those that read
 * it, by their keys, and the lines between.
 * @typedef {"operand" | "reader"} Relation
 * @param {Drawing} drawing
 * @param {Key | null} picked */
export function relationsOf({ nodes, edges }, picked) {
  /** @type {Map<Key, Relation>} */
  const boxes = new Map();
  /** @type {Map<GraphEdge, Relation>} */
  const lines = new Map();
  const place = picked === null ? -1 : nodes.findIndex(({ key }) => key === picked);
  for (const edge of place < 0 ? [] : edges) {
    if (edge.a === place) lines.set(edge, "reader"), boxes.set(nodes[edge.b].key, "reader");
    else if (edge.b === place) lines.set(edge, "operand"), boxes.set(nodes[edge.a].key, "operand");
  }
  return { boxes, lines };
}

/** The radius of the disc of a node's badge.
 * @param {Pick<GraphNode, "badge">} node */
export const badgeRadius = ({ badge = "" }) => (badge.length > 2 ? 11.5 : 8.5);
