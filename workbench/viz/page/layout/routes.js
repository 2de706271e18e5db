// Routes of lines around boxes of fixed position. Boxes beside each other are a band: past one a
// line runs straight down, between two it bends. Lines of one source are one until they part. A
// line that is too high or too wide, or that finds no way, is a stub: wide ones would lie on top of
// each other, since there is no more room between two bands than for a few.

import { layoutNearest, layoutPort, LONG_EDGE, PITCH } from "./geometry.js";

/** @import { LayoutEdge, LayoutGraph, Place, Route } from "./graph.d.ts" */
/** @typedef {{top: number, bottom: number, blocked: [number, number][], members: number[]}} Band */

const CLEARANCE = 6; // from a line to a box, and to another line, pixels
const WIDE_EDGE = 8 * PITCH; // pixels; what is wider is a stub
const STEP = 4; // pixels to the side from a point at which a bend must be clear of boxes to the next

/** Return the points of each edge; null for a stub.
 * @param {LayoutGraph} graph
 * @param {Place[]} places
 * @returns {Route[]} */
export function layoutRoutes(graph, places) {
  const { bands, bandOf } = layoutBands(graph, places);
  /** Where the line of a source passes a band, by both.
   * @type {Map<string, number>} */
  const lines = new Map();
  const heights = graph.edges.map(({ a, b }) => places[b].y - places[a].y);
  /** @type {Route[]} */
  const routes = graph.edges.map(() => null);
  // the short ones first: a longer one leaves them the straight way
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
    // what a step took away is shown wherever it ran
    if (state === "gone" || isClear(graph, places, points, obstacles)) routes[i] = points;
  }
  return routes;
}

/** Return the bands from above, and that of each node: boxes that are beside each other, or
 * beside one that is, are of one.
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

/** Whether a line, which leaves and enters every point vertically, runs through none of the boxes.
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
