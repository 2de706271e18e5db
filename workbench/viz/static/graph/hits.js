// What lies at a point of a drawing.

import { linePath } from "./paths.js";
import { wordsScale } from "./words.js";

let HITTING = null; // a context: it knows what is in a path

/** Return a function (x, y, scale) -> {node}, {edge}, {region} or {} of a drawing: what of it is
 * there. Lines count if there are words on them. */
export function graphHits({ nodes, edges, words = [], regions = [] }) {
  HITTING ??= Object.assign(document.createElement("canvas").getContext("2d"), { lineWidth: 12 });
  const lines = edges.filter((edge) => edge.state === "cut").map((
    edge,
  ) => [edge, new Path2D(linePath(edge.points))]);
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
    const line = lines.find(([, path]) => HITTING.isPointInStroke(path, x, y));
    if (line) return { edge: line[0] };
    const ground = grounds.find(([, path]) => HITTING.isPointInPath(path, x, y));
    return ground ? { region: ground[0] } : {};
  };
}
