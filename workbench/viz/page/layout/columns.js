// A layout folded into columns, like the text of a newspaper, to fit the shape of a pane.

import { PITCH } from "./geometry.js";

/** @import { Layout, LayoutGraph } from "./graph.d.ts" */

const GUTTER = 44; // between two columns, with the lines from one to the next
const LANE = 5; // between two of these lines
const STEP = 9; // how far they go on before they turn
const MOST_COLUMNS = 40;

/** The first and last layer of a column, and its left and right edge.
 * @typedef {{begin: number, end: number, left: number, right: number}} Column */

/** Fold a fresh layout into as many columns as show it largest in a pane.
 * @param {LayoutGraph} graph
 * @param {Layout} layout
 * @param {{width: number, height: number}} pane
 * @returns {Layout} */
export function layoutFolded(graph, layout, pane) {
  const columns = layoutBestColumns(layerEdges(graph, layout), pane);
  if (columns.length < 2) return layout;
  /** @type {number[]} */
  const columnOf = [];
  columns.forEach(({ begin, end }, c) => columnOf.push(...Array(end - begin).fill(c)));
  let at = 0;
  const starts = columns.map(({ left, right }) => {
    const start = at;
    at += right - left + GUTTER;
    return start;
  });
  /** @type {(point: [number, number], c: number) => [number, number]} */
  const moved = ([x, y], c) => [x - columns[c].left + starts[c], y - columns[c].begin * PITCH];
  const column = (/** @type {number} */ i) => columnOf[layerAt(layout.places[i].y)];
  const places = layout.places.map((place, i) => {
    const [x, y] = moved([place.x, place.y], column(i));
    return { x, y };
  });
  /** The number of lines that enter a column from the previous one.
   * @type {number[]} */
  const lanes = columns.map(() => 0);
  const routes = layout.routes.map((route, i) => {
    const { a, b } = graph.edges[i];
    const [from, to] = [column(a), column(b)];
    if (!route || from === to) return route?.map((point) => moved(point, from)) ?? null;
    const isNext = to === from + 1 &&
      layerAt(layout.places[b].y) === layerAt(layout.places[a].y) + 1;
    if (!isNext) return null;
    const [[x, y], [toX, toY]] = [moved(route[0], from), moved(route[route.length - 1], to)];
    const lane = lanes[to]++;
    const middle = starts[to] - GUTTER / 2 + (lane % 2 ? 1 : -1) * Math.ceil(lane / 2) * LANE;
    return layoutTurn([x, y], [toX, toY], Math.min(middle, starts[to] - 4));
  });
  return { places, routes };
}

/** A line that goes down, sideways, up to the top of the next column, and down again.
 * @param {[number, number]} from
 * @param {[number, number]} to
 * @param {number} middle
 * @returns {[number, number][]} */
const layoutTurn = ([x, y], [toX, toY], middle) => [
  [x, y],
  [x, y + STEP],
  [middle, y + STEP],
  [middle, toY - STEP],
  [toX, toY - STEP],
  [toX, toY],
];

/** @param {number} y */
const layerAt = (y) => Math.round(y / PITCH);

/** The left and right edge of each layer.
 * @param {LayoutGraph} graph
 * @param {Layout} layout
 * @returns {[number, number][]} */
function layerEdges({ nodes }, { places, routes }) {
  /** @type {[number, number][]} */
  const edges = [];
  const add = (/** @type {number} */ layer, /** @type {number} */ l, /** @type {number} */ r) => {
    while (edges.length <= layer) edges.push([Infinity, -Infinity]);
    edges[layer] = [Math.min(edges[layer][0], l), Math.max(edges[layer][1], r)];
  };
  places.forEach(({ x, y }, i) => add(layerAt(y), x - nodes[i].w / 2, x + nodes[i].w / 2));
  for (const route of routes) for (const [x, y] of route ?? []) add(layerAt(y), x, x);
  return edges;
}

/** Return the columns that show a drawing largest in a pane, no more than needed.
 * @param {[number, number][]} edges
 * @param {{width: number, height: number}} pane
 * @returns {Column[]} */
function layoutBestColumns(edges, pane) {
  /** @type {Column[]} */
  let best = [];
  let most = 0;
  for (let count = 1; count <= Math.min(MOST_COLUMNS, edges.length); count++) {
    const rows = Math.ceil(edges.length / count);
    if (best.length && Math.ceil(edges.length / rows) < count) continue; // as one of fewer columns
    const columns = layoutColumnsOf(edges, rows);
    const width = columns.reduce((sum, { left, right }) => sum + right - left + GUTTER, -GUTTER);
    const scale = Math.min(pane.width / width, pane.height / (rows * PITCH));
    if (scale > most) [best, most] = [columns, scale];
  }
  return best;
}

/**
 * @param {[number, number][]} edges
 * @param {number} rows
 * @returns {Column[]} */
function layoutColumnsOf(edges, rows) {
  /** @type {Column[]} */
  const columns = [];
  for (let begin = 0; begin < edges.length; begin += rows) {
    const own = edges.slice(begin, begin + rows);
    columns.push({
      begin,
      end: begin + own.length,
      left: own.reduce((least, [left]) => Math.min(least, left), Infinity),
      right: own.reduce((greatest, [, right]) => Math.max(greatest, right), -Infinity),
    });
  }
  return columns;
}
