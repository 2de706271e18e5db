// Hit testing: the part of a drawing at a point.

import { linePath } from "./paths.js";
import { newContext, wordsScale } from "./words.js";

/** @import { Drawing, GraphEdge, GraphRegion, Hit } from "./graph.d.ts" */

/** A context: it knows what is in a path.
 * @type {CanvasRenderingContext2D | null} */
let HITTING = null;

/** Return a function (x, y, scale) -> {node}, {edge}, {region} or {} of a drawing: what of it is
 * there. Lines count if there are words on them.
 * @param {Drawing} drawing
 * @returns {(x: number, y: number, scale: number) => Hit} */
export function graphHits({ nodes, edges, words = [], regions = [] }) {
  HITTING ??= Object.assign(newContext(), { lineWidth: 12 });
  const context = HITTING;
  /** @type {[GraphEdge, Path2D][]} */
  const lines = edges.flatMap((edge) =>
    edge.state === "cut" && edge.points ? [[edge, new Path2D(linePath(edge.points))]] : []
  );
  /** @type {[GraphRegion, Path2D][]} */
  const grounds = regions.map((region) => [region, new Path2D(region.path)]);
  return (x, y, scale) => {
    const node = nodes.findLast((n) =>
      Math.abs(n.x - x) <= n.w / 2 && Math.abs(n.y - y) <= n.h / 2
    );
    if (node) return { node };
    const grow = wordsScale(scale) / 2;
    const word = words.find((w) =>
      Math.abs(w.x - x) <= w.w * grow && Math.abs(w.y - y) <= w.h * grow
    );
    if (word) return { edge: word.edge, region: word.region };
    const line = lines.find(([, path]) => context.isPointInStroke(path, x, y));
    if (line) return { edge: line[0] };
    const ground = grounds.findLast(([, path]) => context.isPointInPath(path, x, y));
    return ground ? { region: ground[0] } : {};
  };
}
