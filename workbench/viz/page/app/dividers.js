// Dividers between panes, moved by dragging or arrows, and the buttons that fold a pane.

import { h } from "../base/elements.js";
import { button } from "./pieces.js";

/** @import { App } from "./store.js" */

const STEP = 2; // percent of the container, for each press of an arrow
/** @type {Record<string, number>} */
const ARROWS = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 };
const SIGNS = { before: 1, after: -1 };

/** The side of a divider on which its pane stands.
 * @typedef {keyof typeof SIGNS} Side */

/** A divider between two panes, which changes the size of the one before it or after it. The style
 * sheet decides whether it is horizontal or vertical.
 * @param {App} app
 * @param {string} pane
 * @param {string} label
 * @param {Side} side */
export function divider(app, pane, label, side) {
  const el = h("div", {
    class: `wb-divider wb-divider-${pane}`,
    role: "separator",
    tabindex: 0,
    "aria-label": `size of ${label}`,
    "data-key": `divider-${pane}`,
    title: `size of ${label}: drag, or arrow keys; as at first: double click, or Home`,
  });
  const resize = (/** @type {number | null} */ share) => {
    app.sizes.resize(pane, share);
    showValue();
  };
  const showValue = () => {
    const { isUpright, share } = measured(el, side);
    el.setAttribute("aria-orientation", isUpright ? "vertical" : "horizontal");
    el.setAttribute("aria-valuenow", share.toFixed());
  };
  el.addEventListener("focus", showValue);
  new ResizeObserver(showValue).observe(el); // a slider, whose value is known once it has a position
  el.addEventListener("dblclick", () => (resize(null), app.sizes.store()));
  el.addEventListener("keydown", (event) => {
    const by = ARROWS[event.key];
    if (!by && event.key !== "Home") return;
    resize(by ? measured(el, side).share + by * STEP * SIGNS[side] : null);
    app.sizes.store();
    event.preventDefault();
    event.stopPropagation(); // or the mode would step
  });
  listenDrags(el, side, resize, () => app.sizes.store());
  return el;
}

/** Whether a divider is vertical, the share in percent that its pane has, and the share of a pixel.
 * @param {HTMLElement} el
 * @param {Side} side */
function measured(el, side) {
  const isUpright = el.offsetHeight > el.offsetWidth;
  const pane = side === "before" ? el.previousElementSibling : el.nextElementSibling;
  const [own, whole] = [pane, outerBox(el)].map((e) => {
    const { width, height } = e?.getBoundingClientRect() ?? { width: 1, height: 1 };
    return isUpright ? width : height;
  });
  return { isUpright, share: (100 * own) / whole, perPixel: 100 / whole };
}

/** Call `resize` with the share that a drag leads to, and `end` when it is over.
 * @param {HTMLElement} el
 * @param {Side} side
 * @param {(share: number) => void} resize
 * @param {() => void} end */
function listenDrags(el, side, resize, end) {
  /** @type {{at: number, share: number, perPixel: number, isUpright: boolean} | null} */
  let drag = null;
  el.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    const from = measured(el, side);
    drag = { ...from, at: from.isUpright ? event.clientX : event.clientY };
    el.setPointerCapture(event.pointerId);
    event.preventDefault(); // no text is selected
    el.focus({ preventScroll: true });
  });
  el.addEventListener("pointermove", ({ clientX, clientY }) => {
    if (!drag) return;
    const by = (drag.isUpright ? clientX : clientY) - drag.at;
    resize(drag.share + by * drag.perPixel * SIGNS[side]);
  });
  for (const name of ["pointerup", "pointercancel"]) {
    el.addEventListener(name, () => {
      if (drag) end();
      drag = null;
    });
  }
}

/** The nearest element around another that has a box of its own.
 * @param {Element} el
 * @returns {Element | null} */
function outerBox(el) {
  const outer = el.parentElement;
  return outer && getComputedStyle(outer).display === "contents" ? outerBox(outer) : outer;
}

/** A button that folds a pane, or shows it again.
 * @param {App} app
 * @param {string} pane
 * @param {string} title
 * @param {string} key
 * @param {string} hint */
export function foldButton(app, pane, title, key, hint) {
  const el = button(app, title, () => app.sizes.toggle(pane), {
    key,
    title: `${app.sizes.isOpen(pane) ? "fold" : "show"} ${hint}`,
    name: `fold-${pane}`,
  });
  el.setAttribute("aria-expanded", String(app.sizes.isOpen(pane)));
  return el;
}
