// The pointer on a graph: its events, and the part of the drawing at a point.

import { labelScale, newContext } from "./labels.js";
import { linePath } from "./paths.js";

/** @import { Drawing, GraphEdge, GraphRegion, Hit, Placement } from "./graph.d.ts" */

/** The actions of the pointer, at points of the pane; `mapTo` at a point of the map.
 * @typedef {(x: number, y: number) => void} At
 * @typedef {{
 *   placement(): Placement, move(placement: Placement): void, click: At, open: At, hover: At,
 *   leave(): void, mapTo: At, zoomAt(factor: number, x: number, y: number): void
 * }} PointerListener */

/** Drag pans, a click picks, a double click opens; Ctrl or Cmd and the wheel zoom.
 * @param {HTMLElement} stage
 * @param {HTMLElement} map
 * @param {PointerListener} on */
export function graphPointer(stage, map, on) {
  /** @type {{x: number, y: number, view: Placement, moved: boolean} | null} */
  let start = null;
  /** @type {(event: MouseEvent) => [number, number]} */
  const at = (event) => {
    const box = stage.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  stage.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || event.target === map) return;
    start = { x: event.clientX, y: event.clientY, view: on.placement(), moved: false };
  });
  stage.addEventListener("pointermove", (event) => {
    if (!start) return on.hover(...at(event));
    const [dx, dy] = [event.clientX - start.x, event.clientY - start.y];
    if (!start.moved && Math.hypot(dx, dy) < 4) return;
    if (!start.moved) stage.setPointerCapture(event.pointerId);
    start.moved = true;
    stage.classList.add("wb-g-dragged");
    on.move({ ...start.view, x: start.view.x + dx, y: start.view.y + dy });
  });
  const up = (/** @type {PointerEvent} */ event) => {
    if (start && !start.moved && event.type === "pointerup") on.click(...at(event));
    start = null;
    stage.classList.remove("wb-g-dragged");
  };
  stage.addEventListener("pointerleave", on.leave);
  stage.addEventListener("pointerup", up);
  stage.addEventListener("pointercancel", up);
  stage.addEventListener("dblclick", (event) => on.open(...at(event)));
  stage.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    on.zoomAt(Math.exp(-event.deltaY / 300), ...at(event));
  }, { passive: false });
  const to = (/** @type {PointerEvent} */ event) =>
    event.buttons & 1 && on.mapTo(event.offsetX, event.offsetY);
  map.addEventListener("pointerdown", to);
  map.addEventListener("pointermove", to);
}

// Hit testing: the part of a drawing at a point.

/** A canvas context, which tests whether a point is in a path.
 * @type {CanvasRenderingContext2D | null} */
let HITTING = null;

/** Return a function (x, y, scale) -> {node}, {edge}, {region} or {} that finds the part of a
 * drawing at a point. Lines count if they have labels.
 * @param {Drawing} drawing
 * @returns {(x: number, y: number, scale: number) => Hit} */
export function graphHits({ nodes, edges, labels = [], regions = [] }) {
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
    const grow = labelScale(scale) / 2;
    const label = labels.find((w) =>
      Math.abs(w.x - x) <= w.w * grow && Math.abs(w.y - y) <= w.h * grow
    );
    if (label) return { edge: label.edge, region: label.region };
    const line = lines.find(([, path]) => context.isPointInStroke(path, x, y));
    if (line) return { edge: line[0] };
    const ground = grounds.findLast(([, path]) => context.isPointInPath(path, x, y));
    return ground ? { region: ground[0] } : {};
  };
}
