// Pointer events on a graph.

/** @import { Placement } from "./graph.d.ts" */

/** What the pointer does, at points of the pane; `mapTo` at a point of the map.
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
