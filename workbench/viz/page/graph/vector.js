// A canvas drawing as SVG, for exported pictures.

import { SvgPainter } from "./svg_painter.js";

/** @import { Drawing, Marks, Placement } from "./graph.d.ts" */

/** What canvases show.
 * @type {WeakMap<Element, {drawing: Drawing, view: Placement, marks: Marks}>} */
export const SCENES = new WeakMap();

/** Return the graph of a canvas as SVG, from where the canvas looks at it or from elsewhere; null for
 * another canvas.
 * @param {Element} canvas
 * @param {Placement} [view]
 * @returns {SVGSVGElement | null} */
export function vectorOf(canvas, view) {
  const scene = SCENES.get(canvas);
  if (!scene) return null;
  const painter = new SvgPainter();
  painter.paint(scene.drawing);
  painter.place(view ?? scene.view);
  painter.mark(scene.marks);
  return painter.el;
}
