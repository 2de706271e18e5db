// The positions of a graph's nodes: of a first state, or of the next one, in which nodes keep
// theirs.
//
// A graph is {nodes: [{key, w, h}], edges: [{a, b, slot, slots}]}: `a` is source number `slot` of
// `slots` of `b`, both places in `nodes`. The result has {x, y} per node (middle of the box) and
// the points of each edge; null for one that is too long to draw: a stub at each end.

import {
  COLUMN_GAP,
  layoutNearest,
  layoutPort,
  layoutSettle,
  layoutTopological,
  LONG_EDGE,
  PITCH,
} from "./geometry.js";
import { layoutFresh } from "./layered.js";

/** @import { Layout, LayoutEdge, LayoutGraph, Place, Route } from "./graph.d.ts" */

/** Return the layout of a graph: the next one after `before` (Map key -> {x, y}) if they have nodes
 * in common, else a fresh one.
 * @param {LayoutGraph} graph
 * @param {Map<number | string, Place>} [before]
 * @returns {Layout} */
export function layoutGraph(graph, before = new Map()) {
  if (graph.nodes.some((node) => before.has(node.key))) return layoutNext(graph, before);
  return layoutFresh(graph);
}

// The layout of a graph's next state, in which nodes keep their positions. A new node goes between
// its neighbours; an old one is pushed down only where there is no room.

const TIGHT = 46; // the least distance of two layers with a new node between them
const TIGHT_GAP = 4; // the least distance of boxes of which one has grown
const TOLERANCE = 0.01; // pixels by which a gap may be too small

/** Return the layout of a graph of which some nodes have positions: those keep them, and are pushed
 * down only if new nodes between them do not fit.
 * @param {LayoutGraph} graph
 * @param {Map<number | string, Place>} before
 * @returns {Layout} */
function layoutNext(graph, before) {
  const order = layoutTopological(graph);
  const known = graph.nodes.map((node) => before.get(node.key) || null);
  const y = layoutHeights(graph, order, known);
  const places = y.map((at, i) => ({ x: known[i]?.x ?? NaN, y: at }));
  layoutBeside(graph, order, places);
  return { places, routes: layoutRoutes(graph, places) };
}

/** Return y per node: old ones keep theirs, new ones are spread between their neighbours. Removed
 * nodes push no other: their lines may run up while they are seen.
 * @param {LayoutGraph} graph
 * @param {number[]} order
 * @param {(Place | null)[]} known */
function layoutHeights(graph, order, known) {
  /** @type {number[][]} */
  const up = graph.nodes.map(() => []);
  /** @type {number[][]} */
  const down = graph.nodes.map(() => []);
  const place = new Int32Array(order.length);
  order.forEach((n, i) => (place[n] = i));
  for (const { a, b, state } of graph.edges) {
    if (place[a] < place[b] && !(state === "gone" && known[b])) up[b].push(a), down[a].push(b);
  }
  // steps to, and y of, the next old node below
  const below = known.map(() => [0, Infinity]);
  for (const n of [...order].reverse()) {
    for (const t of down[n]) {
      const [steps, end] = known[t] ? [1, known[t]?.y ?? 0] : [below[t][0] + 1, below[t][1]];
      if (end - steps * TIGHT < below[n][1] - below[n][0] * TIGHT || below[n][0] === 0) {
        below[n] = [steps, end];
      }
    }
  }
  const y = known.map((at) => (at ? at.y : NaN));
  for (const n of order) {
    const tops = up[n].map((s) => y[s]).filter((v) => !Number.isNaN(v));
    const top = tops.length ? Math.max(...tops) : null;
    const [steps, end] = below[n];
    const at = known[n];
    if (at) y[n] = top === null ? at.y : Math.max(at.y, top + TIGHT);
    else if (top === null) y[n] = end === Infinity ? 0 : end - steps * PITCH;
    else if (end === Infinity) y[n] = top + PITCH;
    else {
      const gap = (end - top) / (steps + 1);
      y[n] = top + Math.max(TIGHT, Math.min(PITCH, gap)); // too tight: push those below
    }
  }
  return y;
}

/** Give new nodes the free column nearest to their neighbours; old ones leave theirs only if they
 * would overlap: boxes grow with their labels, or are pushed down.
 * @param {LayoutGraph} graph
 * @param {number[]} order
 * @param {Place[]} places */
function layoutBeside(graph, order, places) {
  /** @type {number[][]} */
  const near = graph.nodes.map(() => []);
  for (const { a, b } of graph.edges) near[a].push(b), near[b].push(a);
  /** The nodes near a height: indexes into `graph.nodes`.
   * @type {Map<number, number[]>} */
  const shelf = new Map();
  const shelves = (/** @type {number} */ n) => {
    const { y } = places[n];
    const half = graph.nodes[n].h / 2 + 4;
    const heights = [];
    for (let s = Math.floor((y - half) / TIGHT); s <= Math.floor((y + half) / TIGHT); s++) {
      heights.push(s);
    }
    return heights;
  };
  const place = (/** @type {number} */ n) => {
    for (const s of shelves(n)) shelf.get(s)?.push(n) ?? shelf.set(s, [n]);
  };
  /** @type {(n: number) => number[]} */
  const others = (n) => [...new Set(shelves(n).flatMap((s) => shelf.get(s) || []))];
  const isPlaced = (/** @type {number} */ n) => !Number.isNaN(places[n].x);
  const unplaced = order.filter((n) => !isPlaced(n));
  layoutApart(graph, order.filter(isPlaced), places);
  for (const n of order) {
    if (!isPlaced(n)) continue;
    places[n].x = layoutFree(graph, places, n, places[n].x, others(n), 0);
    place(n);
  }
  // outward from placed nodes, so that each new one has a placed neighbour
  while (unplaced.length) {
    const at = Math.max(0, unplaced.findIndex((n) => near[n].some(isPlaced)));
    const [n] = unplaced.splice(at, 1);
    const xs = near[n].filter(isPlaced).map((m) => places[m].x);
    const wanted = xs.length ? xs.reduce((sum, x) => sum + x, 0) / xs.length : 0;
    places[n].x = layoutFree(graph, places, n, wanted, others(n));
    place(n);
  }
}

/** Move the boxes of a row apart if some have grown into others: each a little.
 * @param {LayoutGraph} graph
 * @param {number[]} listed
 * @param {Place[]} places */
function layoutApart(graph, listed, places) {
  /** Nodes by their heights.
   * @type {Map<number, number[]>} */
  const rows = new Map();
  for (const n of listed) rows.set(places[n].y, (rows.get(places[n].y) || []).concat(n));
  const width = graph.nodes.map(({ w }) => w);
  const x = places.map((place) => place.x);
  for (const row of rows.values()) {
    row.sort((a, b) => x[a] - x[b]);
    if (row.every((n, i) => !i || x[n] - x[row[i - 1]] >= (width[n] + width[row[i - 1]]) / 2)) {
      continue;
    }
    layoutSettle(row, row.map((n) => [x[n], 1]), width, x, TIGHT_GAP);
    for (const n of row) places[n].x = x[n];
  }
}

/** Return the x nearest to `wanted` at which node `n` has a gap to the `others`; `least` is the gap
 * that suffices at `wanted` itself.
 * @param {LayoutGraph} graph
 * @param {Place[]} places
 * @param {number} n
 * @param {number} wanted
 * @param {number[]} others
 * @param {number} [least] */
function layoutFree(graph, places, n, wanted, others, least = COLUMN_GAP) {
  const { w, h } = graph.nodes[n];
  const obstacles = others
    .filter((m) => Math.abs(places[m].y - places[n].y) < (h + graph.nodes[m].h) / 2 + 4)
    .map((m) => ({ x: places[m].x, apart: (w + graph.nodes[m].w) / 2 - TOLERANCE }));
  if (obstacles.every(({ x, apart }) => Math.abs(x - wanted) >= apart + least)) return wanted;
  const gaps = obstacles.map(({ x, apart }) => [x - apart - COLUMN_GAP, x + apart + COLUMN_GAP]);
  const nearest = layoutNearest(wanted, gaps);
  return nearest < wanted ? nearest - TOLERANCE : nearest + TOLERANCE;
}

// Routes of lines around boxes of fixed position. Boxes beside each other are a band: past one a
// line runs straight down, between two it bends. Lines of one source are one until they part. A
// line that is too high or too wide, or that finds no way, is a stub: wide ones would lie on top of
// each other, since there is no more room between two bands than for a few.

/** @typedef {{top: number, bottom: number, blocked: [number, number][], members: number[]}} Band */

const CLEARANCE = 6; // from a line to a box, and to another line, pixels
const WIDE_EDGE = 8 * PITCH; // pixels; a wider line is a stub
const STEP = 4; // pixels to the side of a point, within which a bend must be clear of boxes

/** Return the points of each edge; null for a stub.
 * @param {LayoutGraph} graph
 * @param {Place[]} places
 * @returns {Route[]} */
function layoutRoutes(graph, places) {
  const { bands, bandOf } = layoutBands(graph, places);
  /** The x at which the line of a source passes a band, by both.
   * @type {Map<string, number>} */
  const lines = new Map();
  const heights = graph.edges.map(({ a, b }) => places[b].y - places[a].y);
  /** @type {Route[]} */
  const routes = graph.edges.map(() => null);
  // short ones first: longer ones leave them the straight way
  const order = graph.edges.map((_, i) => i).sort((i, j) => heights[i] - heights[j]);
  for (const i of order) {
    const { a, b, slot, slots, state } = graph.edges[i];
    const port = layoutPort(graph.nodes[b], places[b], slot, slots);
    let x = places[a].x;
    if (Math.abs(heights[i]) > LONG_EDGE * PITCH || Math.abs(port[0] - x) > WIDE_EDGE) continue;
    /** @type {[number, number][]} */
    const points = [[x, places[a].y + graph.nodes[a].h / 2]];
    for (let at = bandOf[a] + 1; at < bandOf[b]; at++) {
      const { top, bottom, blocked } = bands[at];
      const passage = `${a} ${at}`;
      const own = lines.get(passage);
      x = own ?? layoutNearest(x + Math.sign(port[0] - x), blocked);
      if (own === undefined) {
        lines.set(passage, x);
        blocked.push([x - CLEARANCE, x + CLEARANCE]);
      }
      points.push([x, top], [x, bottom]);
    }
    points.push(port);
    const near = bands.slice(bandOf[a], bandOf[b] + 1).flatMap(({ members }) => members);
    const obstacles = near.filter((n) => n !== a && n !== b);
    // the line of a removed node is shown wherever it ran
    if (state === "gone" || isClear(graph, places, points, obstacles)) routes[i] = points;
  }
  return routes;
}

/** Return the bands from the top, and the band of each node: boxes beside each other, directly or
 * through others, are of one band.
 * @param {LayoutGraph} graph
 * @param {Place[]} places */
function layoutBands({ nodes }, places) {
  const bandOf = nodes.map(() => 0);
  /** @type {Band[]} */
  const bands = [];
  const top = (/** @type {number} */ n) => places[n].y - nodes[n].h / 2;
  for (const n of nodes.map((_, n) => n).sort((n, m) => top(n) - top(m))) {
    const [{ x }, { w, h }] = [places[n], nodes[n]];
    if (!bands.length || top(n) >= bands[bands.length - 1].bottom) {
      bands.push({ top: top(n), bottom: top(n), blocked: [], members: [] });
    }
    const band = bands[bands.length - 1];
    band.bottom = Math.max(band.bottom, top(n) + h);
    band.blocked.push([x - w / 2 - CLEARANCE, x + w / 2 + CLEARANCE]);
    band.members.push(n);
    bandOf[n] = bands.length - 1;
  }
  return { bands, bandOf };
}

/** Whether a line, which leaves and enters every point vertically, avoids all boxes.
 * @param {LayoutGraph} graph
 * @param {Place[]} places
 * @param {[number, number][]} points
 * @param {number[]} boxes */
function isClear(graph, places, points, boxes) {
  const isHit = (/** @type {number} */ x, /** @type {number} */ y) =>
    boxes.some((n) =>
      Math.abs(x - places[n].x) < graph.nodes[n].w / 2 &&
      Math.abs(y - places[n].y) < graph.nodes[n].h / 2
    );
  return points.slice(1).every(([toX, toY], i) => {
    const [x, y] = points[i];
    const parts = 8 + Math.abs(toX - x) / STEP;
    for (let k = 1; k < parts; k++) {
      const t = k / parts;
      const [bend, down] = [t * t * (3 - 2 * t), t ** 3 + 1.5 * t * (1 - t)]; // as in `linePath`
      if (isHit(x + bend * (toX - x), y + down * (toY - y))) return false;
    }
    return true;
  });
}
