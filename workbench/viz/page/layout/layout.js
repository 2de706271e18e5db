// The positions of a graph's nodes.
//
// A graph is {nodes: [{key, w, h}], edges: [{a, b, slot, slots}]}: `a` is source number `slot` of
// `slots` of `b`, both places in `nodes`. The result has {x, y} per node (middle of the box) and
// the points of each edge; null for one that is too long to draw: a stub at each end.

import { layoutFresh } from "./layered.js";
import { layoutNext } from "./next_layout.js";

/** @import { Layout, LayoutGraph, Place } from "./graph.d.ts" */

/** Return the layout of a graph: the next one after `before` (Map key -> {x, y}) where they have
 * nodes in common, else a fresh one.
 * @param {LayoutGraph} graph
 * @param {Map<number | string, Place>} [before]
 * @returns {Layout} */
export function layoutGraph(graph, before = new Map()) {
  if (graph.nodes.some((node) => before.has(node.key))) return layoutNext(graph, before);
  return layoutFresh(graph);
}
