// The layered layout of a graph: sources above; long lines through shared dummies, rows ordered for
// few crossings (row_order.js), columns by pooling.
//
// A graph is {nodes: [{key, w, h}], edges: [{a, b, slot, slots}]}: `a` is source number `slot` of
// `slots` of `b`, both places in `nodes`. The result has {x, y} per node (middle of the box) and
// the points of each edge; null for one that is too long to draw: a stub at each end.

import {
  COLUMN_GAP,
  layoutPort,
  layoutSettle,
  layoutTopological,
  LONG_EDGE,
  PITCH,
} from "./geometry.js";
import { layoutRows } from "./row_order.js";

/** @import { Layout, LayoutEdge, LayoutGraph, Place, ProperGraph } from "./graph.d.ts" */

const SHORTEN_ROUNDS = 4;
const MANY_READERS = 32; // lines of a node with this many readers are not made longer
const DUMMY_WIDTH = 6;

/**
 * @param {LayoutGraph} graph
 * @returns {Layout} */
export function layoutFresh(graph) {
  const proper = layoutProper(graph, layoutLayers(graph), LONG_EDGE);
  const x = layoutColumns(proper, layoutRows(proper), COLUMN_GAP);
  const places = graph.nodes.map((_, i) => ({ x: x[i], y: proper.layer[i] * PITCH }));
  const routes = graph.edges.map((edge, i) => {
    const passed = proper.chains[i];
    if (passed === null) return null;
    return layoutRoute(graph, places, edge, proper.lines[edge.a].slice(0, passed), x);
  });
  return { places, routes };
}

/** Return a layer per node: the longest way from a source, or farther down by its readers.
 * @param {LayoutGraph} graph */
export function layoutLayers(graph) {
  const order = layoutTopological(graph);
  const place = new Int32Array(order.length);
  order.forEach((n, i) => (place[n] = i));
  const layer = new Array(order.length).fill(0);
  /** @type {number[][]} */
  const sources = graph.nodes.map(() => []);
  /** @type {number[][]} */
  const targets = graph.nodes.map(() => []);
  for (const { a, b } of graph.edges) {
    if (place[a] < place[b]) sources[b].push(a), targets[a].push(b);
  }
  for (const n of order) for (const t of targets[n]) layer[t] = Math.max(layer[t], layer[n] + 1);
  layoutShorten(order, layer, sources, targets);
  return layer;
}

/** Move nodes down towards their readers if that shortens the lines in all. A line runs from a
 * source to its last reader.
 * @param {number[]} order
 * @param {number[]} layer
 * @param {number[][]} sources
 * @param {number[][]} targets */
function layoutShorten(order, layer, sources, targets) {
  /** @type {(a: number, n: number) => number} */
  const endWithout = (a, n) =>
    targets[a].reduce((end, t) => (t === n ? end : Math.max(end, layer[t])), layer[a]);
  for (let round = 0, hasMoved = true; hasMoved && round < SHORTEN_ROUNDS; round++) {
    hasMoved = false;
    for (const n of [...order].reverse()) {
      if (!targets[n].length) continue;
      const lowest = targets[n].reduce((least, t) => Math.min(least, layer[t]), Infinity) - 1;
      const near = [...new Set(sources[n])].filter((a) => targets[a].length <= MANY_READERS);
      const ends = near.map((a) => endWithout(a, n));
      const grown = (/** @type {number} */ at) =>
        ends.reduce((sum, end) => sum + Math.max(end, at), -at);
      if (lowest <= layer[n] || grown(lowest) > grown(layer[n])) continue;
      [layer[n], hasMoved] = [lowest, true];
    }
  }
}

/** Return the graph with a dummy wherever a line passes a layer. The edges of one source are parts
 * of its line: `lines` has the dummies under each node, `chains` the number of them that each edge
 * passes, null for one longer than `longest` layers.
 * @param {LayoutGraph} graph
 * @param {number[]} layers
 * @param {number} longest
 * @returns {ProperGraph} */
export function layoutProper(graph, layers, longest) {
  const count = graph.nodes.length;
  const layer = [...layers];
  const width = graph.nodes.map((node) => node.w);
  /** Above, below, and the share of the width below at which the line ends.
   * @type {[number, number, number][]} */
  const links = [];
  /** @type {number[][]} */
  const lines = graph.nodes.map(() => []);
  const chains = graph.edges.map(({ a, b, slot, slots }) => {
    const chain = layer[b] - layer[a] - 1;
    if (chain < 0 || chain >= longest) return null;
    const line = lines[a];
    while (line.length < chain) {
      const [above, dummy] = [line.at(-1) ?? a, layer.length];
      links.push([above, dummy, 0]);
      line.push(dummy);
      layer.push(layer[above] + 1);
      width.push(DUMMY_WIDTH);
    }
    links.push([chain ? line[chain - 1] : a, b, (slot + 1) / (slots + 1) - 0.5]);
    return chain;
  });
  /** @type {ProperGraph["up"]} */
  const up = layer.map(() => []);
  /** @type {ProperGraph["down"]} */
  const down = layer.map(() => []);
  const entering = new Map();
  for (const [, below] of links) entering.set(below, (entering.get(below) || 0) + 1);
  links.sort((one, other) => one[2] - other[2]); // so that `up` is in the order of the ports
  for (const [above, below, share] of links) {
    const port = entering.get(below) > 1 ? share : 0; // a chain goes straight down
    up[below].push([above, port]);
    down[above].push([below, port]);
  }
  return { count, layer, width, up, down, lines, chains };
}

/** Return x per vertex: each row as near to its neighbours as order and widths allow.
 * @param {ProperGraph} graph
 * @param {number[][]} rows
 * @param {number} gap */
export function layoutColumns({ layer, width, up, down, count }, rows, gap) {
  const x = new Array(layer.length).fill(0);
  for (const row of rows) {
    let at = 0;
    for (const v of row) (x[v] = at + width[v] / 2), (at += width[v] + gap);
    for (const v of row) x[v] -= at / 2;
  }
  for (let sweep = 0; sweep < 10; sweep++) {
    for (const row of sweep % 2 ? [...rows].reverse() : rows) {
      const wanted = row.map((v) => {
        let [sum, weight] = [x[v] * 0.01, 0.01];
        const pull = (/** @type {number} */ s, /** @type {number} */ shift) => {
          const w = v >= count && s >= count ? 8 : v >= count || s >= count ? 2 : 1;
          (sum += w * (x[s] + shift)), (weight += w);
        };
        if (sweep % 2 === 0 || sweep > 7) up[v].forEach(([s, port]) => pull(s, -port * width[v]));
        if (sweep % 2 === 1 || sweep > 7) down[v].forEach(([t, port]) => pull(t, port * width[t]));
        return [sum / weight, weight];
      });
      layoutSettle(row, wanted, width, x, gap);
    }
  }
  return x;
}

/** Return the points of an edge, past the dummies of its `chain`: it bends between two layers and runs
 * straight past the nodes.
 * @param {LayoutGraph} graph
 * @param {Place[]} places
 * @param {LayoutEdge} edge
 * @param {number[]} chain
 * @param {number[]} x */
function layoutRoute(graph, places, { a, b, slot, slots }, chain, x) {
  const half = graph.nodes[a].h / 2;
  /** @type {[number, number][]} */
  const points = [[places[a].x, places[a].y + half]];
  chain.forEach((v, k) => {
    const y = places[a].y + (k + 1) * PITCH;
    for (const side of [-half, half]) points.push([x[v], y + side]);
  });
  points.push(layoutPort(graph.nodes[b], places[b], slot, slots));
  return points;
}
