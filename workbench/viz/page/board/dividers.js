// The borders between panes, moved by dragging or arrows.

import { h } from "../base/elements.js";

const STEP = 2; // percent of both parts, for each press of an arrow
/** @type {Record<string, number>} */
const ARROWS = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 };

/** The lengths in pixels of the parts at a border, and what it does: move by pixels, give both parts
 * the same room, and store that.
 * @typedef {{
 *   lengths: () => [number, number], move: (by: number) => void, even: () => void, end: () => void
 * }} Border */

/** A border between two parts of a split.
 * @param {"row" | "column"} way
 * @param {string} name
 * @param {string} label
 * @param {Border} border */
export function divider(way, name, label, { lengths, move, even, end }) {
  const isUpright = way === "row";
  const el = h("div", {
    class: `wb-divider wb-divider-${way}`,
    role: "separator",
    tabindex: 0,
    "aria-orientation": isUpright ? "vertical" : "horizontal",
    "aria-label": label,
    "aria-valuemin": 0,
    "aria-valuemax": 100,
    "aria-valuenow": 50,
    "data-key": `divider-${name}`,
    title: `${label}: drag, or arrow keys; both equal: double click, or Home`,
  });
  const showValue = () => {
    const [first, second] = lengths();
    el.setAttribute("aria-valuenow", (100 * first / (first + second || 1)).toFixed());
  };
  const done = () => (end(), showValue());
  el.addEventListener("focus", showValue);
  el.addEventListener("dblclick", () => (even(), done()));
  el.addEventListener("keydown", (event) => {
    const by = ARROWS[event.key];
    if (!by && event.key !== "Home") return;
    const [first, second] = lengths();
    if (by) move(by * STEP * (first + second) / 100);
    else even();
    done();
    event.preventDefault();
    event.stopPropagation(); // or a pane would step
  });
  new ResizeObserver(showValue).observe(el); // its value is known once it is laid out
  listenDrags(el, isUpright, move, done);
  return el;
}

/** Call `move` with the pixels of each movement of a drag, and `end` when it is over.
 * @param {HTMLElement} el
 * @param {boolean} isUpright
 * @param {(by: number) => void} move
 * @param {() => void} end */
function listenDrags(el, isUpright, move, end) {
  /** Where the pointer was; null: nothing is dragged.
   * @type {number | null} */
  let at = null;
  el.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    at = isUpright ? event.clientX : event.clientY;
    el.setPointerCapture(event.pointerId);
    event.preventDefault(); // no text is selected
    el.focus({ preventScroll: true });
  });
  el.addEventListener("pointermove", ({ clientX, clientY }) => {
    if (at === null) return;
    const now = isUpright ? clientX : clientY;
    if (now !== at) move(now - at);
    at = now;
  });
  for (const name of ["pointerup", "pointercancel"]) {
    el.addEventListener(name, () => {
      if (at !== null) end();
      at = null;
    });
  }
}
