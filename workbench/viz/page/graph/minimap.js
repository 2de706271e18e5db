// The minimap of a drawing, in the corner where it covers least and never a change.

import { h, svg } from "../base/elements.js";

/** @import { Camera } from "./camera.js" */
/** @import { Bounds, Drawing, GraphNode, Marks, Size } from "./graph.d.ts" */

const MINIMAP = 110; // pixels, the longer side
const MOST_SHARES = { width: 0.3, height: 0.4 }; // of the pane: in a small one it covers less
const MARGIN = 5; // pixels
const CORNERS = [["right", "bottom"], ["left", "bottom"], ["right", "top"], ["left", "top"]];

/** The size of the map of a drawing, beside the drawing.
 * @param {Pick<Camera, "bounds" | "size">} camera */
export const mapScale = ({ bounds, size }) =>
  Math.min(
    Math.min(MINIMAP, MOST_SHARES.width * size.width) / (bounds.right - bounds.left),
    Math.min(MINIMAP, MOST_SHARES.height * size.height) / (bounds.bottom - bounds.top),
  );

/** The whole of a drawing in small, and the visible part. It is SVG: a canvas is a layer of the
 * browser's, and with it all that is painted over or after it, which made each frame of a notebook
 * take 5 ms more. */
export class Minimap {
  #boxes = svg("g");
  #seen = svg("rect", { class: "wb-g-map-seen" });
  #picture = svg("svg", {}, this.#boxes, this.#seen);
  el = h("div", { class: "wb-g-map", "aria-hidden": "true", "data-term": "map" });
  /** @type {Drawing | null} */
  #drawn = null;

  constructor() {
    this.el.append(this.#picture);
  }

  /** Draw it; nothing if all of the drawing is visible, or if each corner has a changed or picked
   * box.
   * @param {Drawing} drawing
   * @param {Camera} camera
   * @param {Marks} marks */
  draw(drawing, camera, marks) {
    const { bounds, placement: { scale, x, y }, size } = camera;
    const { el } = this;
    const isShown = size.width > 0 && camera.isOutOfSight(bounds);
    const k = mapScale(camera);
    const [width, height] = [bounds.right - bounds.left, bounds.bottom - bounds.top].map((side) =>
      Math.max(14, Math.ceil(side * k))
    );
    const corner = isShown ? freeCorner(drawing, camera, marks, { width, height }) : null;
    el.hidden = !corner;
    if (!corner) return;
    el.style.cssText = corner.map((side) => `${side}:${MARGIN}px`).join(";");
    setSize(this.#picture, 0, 0, width, height);
    if (drawing !== this.#drawn) this.#boxes.replaceChildren(...boxPaths(drawing, bounds, k));
    this.#drawn = drawing;
    setSize(
      this.#seen,
      Math.max(1, (-x / scale - bounds.left) * k),
      Math.max(1, (-y / scale - bounds.top) * k),
      Math.min(width - 2, (size.width / scale) * k),
      Math.min(height - 2, (size.height / scale) * k),
    );
  }
}

/**
 * @param {SVGElement} element
 * @param {...number} box x, y, width, height */
function setSize(element, ...box) {
  ["x", "y", "width", "height"].forEach((name, i) => element.setAttribute(name, box[i].toFixed(1)));
}

/** The boxes of a drawing in small, a path for each colour.
 * @param {Drawing} drawing
 * @param {Bounds} bounds
 * @param {number} k */
function boxPaths({ nodes }, { left, top }, k) {
  /** @type {Map<string, string[]>} */
  const byColour = new Map();
  for (const { x, y, w, h: height, state, tint } of nodes) {
    const isNew = state === "new" || state === "changed";
    const colour = isNew ? "var(--wb-g-new)" : tint || "var(--wb-g-edge)";
    const [across, down] = [w * k, height * k].map((side) => Math.max(1, side).toFixed(1));
    const at = [(x - w / 2 - left) * k, (y - height / 2 - top) * k].map((d) => d.toFixed(1));
    const boxes = byColour.get(colour) ?? [];
    boxes.push(`M${at.join(" ")}h${across}v${down}h-${across}z`);
    byColour.set(colour, boxes);
  }
  return [...byColour].map(([colour, boxes]) =>
    svg("path", { d: boxes.join(""), style: `fill:${colour}` })
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
