// The minimap of a drawing, in the corner where it covers least and never a change.

import { graphColours } from "./canvas_painter.js";

/** @import { Camera } from "./camera.js" */
/** @import { Drawing, GraphNode, Marks, Size } from "./graph.d.ts" */

const MINIMAP = 110; // pixels, the longer side
const MARGIN = 5; // pixels
const CORNERS = [["right", "bottom"], ["left", "bottom"], ["right", "top"], ["left", "top"]];

/** The size of the map of a drawing, beside the drawing.
 * @param {Camera} camera */
export const mapScale = ({ bounds }) =>
  MINIMAP / Math.max(bounds.right - bounds.left, bounds.bottom - bounds.top);

/** Draw the whole in small, and the visible part; nothing if all of it is visible, or if each
 * corner has a changed or picked box.
 * @param {HTMLCanvasElement} map
 * @param {Drawing} drawing
 * @param {Camera} camera
 * @param {Marks} marks */
export function drawMap(map, drawing, camera, marks) {
  const { bounds, placement, size } = camera;
  const context = map.getContext("2d");
  map.hidden = !size.width || !camera.isOutOfSight(bounds);
  if (map.hidden || !context) return;
  const k = mapScale(camera);
  const [width, height] = [bounds.right - bounds.left, bounds.bottom - bounds.top].map((side) =>
    Math.max(14, Math.ceil(side * k))
  );
  const corner = freeCorner(drawing, camera, marks, { width, height });
  map.hidden = !corner;
  if (!corner) return;
  map.style.cssText = corner.map((side) => `${side}:${MARGIN}px`).join(";");
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

/** The corner in which a map covers fewest boxes and labels; null if it would cover a changed or
 * picked box in each.
 * @param {Pick<Drawing, "nodes" | "labels">} drawing
 * @param {Pick<Camera, "placement" | "size">} camera
 * @param {Pick<Marks, "picked">} marks
 * @param {Size} map
 * @returns {string[] | null} */
export function freeCorner({ nodes, labels = [] }, { placement, size }, { picked }, map) {
  const { scale, x, y } = placement;
  const [width, height] = [map.width + 3 * MARGIN, map.height + 3 * MARGIN];
  const isMain = (/** @type {Partial<GraphNode>} */ { key, state }) =>
    key !== undefined && (key === picked || state !== "kept");
  const costs = CORNERS.map(([across, down]) => {
    const [left, top] = [
      across === "left" ? 0 : size.width - width,
      down === "top" ? 0 : size.height - height,
    ];
    const [middleX, middleY] = [(left + width / 2 - x) / scale, (top + height / 2 - y) / scale];
    const covered = [...nodes, ...labels].filter((box) =>
      Math.abs(box.x - middleX) < (box.w + width / scale) / 2 &&
      Math.abs(box.y - middleY) < (box.h + height / scale) / 2
    );
    return covered.some(isMain) ? Infinity : covered.length;
  });
  const least = Math.min(...costs);
  return least === Infinity ? null : CORNERS[costs.indexOf(least)];
}
