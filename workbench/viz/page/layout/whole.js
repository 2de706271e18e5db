// The layout of a whole graph, such as the plan: without heights, with other gaps, and with a line
// for nearly every edge. Python calls it (`workbench/viz/javascript.py`).

import { layoutPort } from "./geometry.js";
import { layoutColumns, layoutLayers, layoutProper } from "./layered.js";
import { layoutRows } from "./row_order.js";
import { layoutShortest } from "./simplex.js";

const DUMMIES = 1500; // most of a graph
const DUMMIES_EACH = 3; // per node, if that is more

/** Return the layout of nodes with these widths, a `gap` apart, and edges [source, target], those into
 * one target in the order of its operands: `x` and `layer` per node; `lines`, the x of what runs
 * down from each node, layer by layer; per edge the `port` where it ends and how many layers of
 * its source's line are the `chain` before that, null where it has no line.
 * @param {{widths: number[], edges: [number, number][], gap: number}} graph */
export function layoutWhole({ widths, edges, gap }) {
  const slots = widths.map(() => 0);
  const listed = edges.map(([a, b]) => ({ a, b, slot: slots[b]++, slots: 0 }));
  for (const edge of listed) edge.slots = slots[edge.b];
  const graph = { nodes: widths.map((w, key) => ({ key, w, h: 0 })), edges: listed };
  if (!widths.length) return { x: [], layer: [], lines: [], ports: [], chains: [], width: 0 };
  const layers = layoutShortest(listed, layoutLayers(graph));
  const proper = layoutProper(graph, layers, layoutLongest(graph, layers));
  const middles = layoutColumns(proper, layoutRows(proper), gap);
  const left = middles.reduce((least, x, v) => Math.min(least, x - proper.width[v] / 2), Infinity);
  /** @type {number[][]} */
  const lines = proper.lines;
  const x = middles.map((middle) => middle - left);
  return {
    x: x.slice(0, widths.length),
    layer: layers,
    lines: lines.map((line) => line.map((v) => x[v])),
    ports: listed.map(({ b, slot, slots }) =>
      layoutPort(graph.nodes[b], { x: x[b], y: 0 }, slot, slots)[0]
    ),
    chains: proper.chains,
    width: x.reduce((most, middle, v) => Math.max(most, middle + proper.width[v] / 2), 0),
  };
}

/** Return over how many layers an edge may be drawn, so that dummies do not become too many.
 * @param {{nodes: object[], edges: {a: number, b: number}[]}} graph
 * @param {number[]} layers */
export function layoutLongest({ nodes, edges }, layers) {
  const most = Math.max(DUMMIES, DUMMIES_EACH * nodes.length);
  const spans = edges.map(({ a, b }) => [layers[b] - layers[a], a]).sort((p, q) => p[0] - q[0]);
  const passed = new Int32Array(nodes.length); // dummies under each node, of the edges so far
  let dummies = 0;
  for (const [span, a] of spans) {
    dummies += span - 1 - passed[a];
    if (dummies > most) return span - 1;
    passed[a] = span - 1;
  }
  return Infinity;
}
