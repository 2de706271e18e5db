// All of a drawing in small, in a corner of its pane.

import { graphColours } from "./colours.js";

/** @import { Camera } from "./camera.js" */
/** @import { Drawing } from "./graph.d.ts" */

const MINIMAP = 110; // pixels, the longer side

/** How large the map of a drawing is, beside the drawing.
 * @param {Camera} camera */
export const mapScale = ({ bounds }) =>
  MINIMAP / Math.max(bounds.right - bounds.left, bounds.bottom - bounds.top);

/** Draw the whole in small, and the part that is in sight; nothing if all of it is.
 * @param {HTMLCanvasElement} map
 * @param {Drawing} drawing
 * @param {Camera} camera */
export function drawMap(map, drawing, camera) {
  const { bounds, placement, size } = camera;
  const context = map.getContext("2d");
  map.hidden = !size.width || !camera.isOutOfSight(bounds);
  if (map.hidden || !context) return;
  const k = mapScale(camera);
  const [width, height] = [bounds.right - bounds.left, bounds.bottom - bounds.top].map((side) =>
    Math.max(14, Math.ceil(side * k))
  );
  if (map.width !== width || map.height !== height) Object.assign(map, { width, height });
  const colours = graphColours(map);
  context.clearRect(0, 0, width, height);
  for (const node of drawing.nodes) {
    context.fillStyle = node.state === "new" || node.state === "changed"
      ? colours.new
      : node.tint || colours.edge;
    context.fillRect(
      (node.x - node.w / 2 - bounds.left) * k,
      (node.y - node.h / 2 - bounds.top) * k,
      Math.max(1, node.w * k),
      Math.max(1, node.h * k),
    );
  }
  context.strokeStyle = colours.picked;
  context.lineWidth = 2;
  const { scale } = placement;
  context.strokeRect(
    Math.max(1, (-placement.x / scale - bounds.left) * k),
    Math.max(1, (-placement.y / scale - bounds.top) * k),
    Math.min(width - 2, (size.width / scale) * k),
    Math.min(height - 2, (size.height / scale) * k),
  );
}
