// What of a drawing is in sight, and the map of all of it in a corner.

import { graphColours } from "./colours.js";

export const SCALES = [0.02, 3]; // the least and the greatest scale
const MINIMAP = 110; // pixels, the longer side

export function graphBounds({ nodes, regions = [], words = [] }) {
  if (!nodes.length) return { left: 0, top: 0, right: 1, bottom: 1 };
  const margin = regions.length ? 14 : 10;
  const box = { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity };
  for (const { x, y, w, h: height } of nodes) {
    box.left = Math.min(box.left, x - w / 2 - margin);
    box.right = Math.max(box.right, x + w / 2 + margin);
    box.top = Math.min(box.top, y - height / 2 - margin);
    box.bottom = Math.max(box.bottom, y + height / 2 + margin);
  }
  for (const { x, w } of words) {
    // words grow a little as the picture shrinks
    box.left = Math.min(box.left, x - 0.65 * w);
    box.right = Math.max(box.right, x + 0.65 * w);
  }
  return box;
}

export const scaleToFit = (box, size) =>
  Math.min(size.width / (box.right - box.left), size.height / (box.bottom - box.top));

export function centred(box, scale, size) {
  const k = Math.min(SCALES[1], Math.max(SCALES[0], scale));
  return {
    scale: k,
    x: size.width / 2 - ((box.left + box.right) / 2) * k,
    y: size.height / 2 - ((box.top + box.bottom) / 2) * k,
  };
}

export function outOfSight(box, { scale, x, y }, size) {
  return box.left * scale + x < -1 || box.top * scale + y < -1 ||
    box.right * scale + x > size.width + 1 || box.bottom * scale + y > size.height + 1;
}

export const mapScale = (box) => MINIMAP / Math.max(box.right - box.left, box.bottom - box.top);

/** Draw the whole in small, and the part that is in sight; nothing if all of it is. */
export function drawMap(map, drawing, bounds, view, size) {
  map.hidden = !size.width || !outOfSight(bounds, view, size);
  if (map.hidden) return;
  const k = mapScale(bounds);
  const [width, height] = [(bounds.right - bounds.left) * k, (bounds.bottom - bounds.top) * k].map((
    v,
  ) => Math.max(14, Math.ceil(v)));
  if (map.width !== width || map.height !== height) Object.assign(map, { width, height });
  const context = map.getContext("2d");
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
  const [x, y] = [
    (-view.x / view.scale - bounds.left) * k,
    (-view.y / view.scale - bounds.top) * k,
  ];
  context.strokeRect(
    Math.max(1, x),
    Math.max(1, y),
    Math.min(width - 2, (size.width / view.scale) * k),
    Math.min(height - 2, (size.height / view.scale) * k),
  );
}
