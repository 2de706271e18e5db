// Printing: the style sheet shows whole panes (shell.css), and graphs are shown whole, whatever part
// of them is in sight; what stands on a canvas is painted for a light page.

/** @import { App } from "./store.js" */

const MARGIN = 12;

/** Show whole graphs in light colours while the page is printed; return a function that ends that.
 * @param {App} app
 * @param {HTMLElement} root */
export function listenPrint(app, root) {
  /** @type {SVGSVGElement[]} */
  let whole = [];
  let theme = "";
  const paint = (/** @type {string} */ name, isPaper = false) => {
    root.dataset.theme = name;
    root.classList.toggle("wb-paper", isPaper);
    app.changed("theme");
  };
  const before = () => {
    theme = root.dataset.theme ?? "light";
    paint("light", true);
    whole = [...root.querySelectorAll("svg")].filter((drawing) => showWhole(drawing));
  };
  const after = () => {
    whole.forEach((drawing) => drawing.removeAttribute("viewBox"));
    paint(theme);
  };
  addEventListener("beforeprint", before);
  addEventListener("afterprint", after);
  return () => {
    removeEventListener("beforeprint", before);
    removeEventListener("afterprint", after);
  };
}

/** Let a drawing that a camera moves show all of its elements; return whether it is one.
 * @param {SVGSVGElement} drawing */
function showWhole(drawing) {
  const world = drawing.querySelector("g");
  if (!world || !drawing.matches(".wb-g-svg") || drawing.hasAttribute("viewBox")) return false;
  const { x, y, width, height } = world.getBBox();
  const { a, e, f } = world.transform.baseVal.consolidate()?.matrix ?? new DOMMatrix();
  const box = [
    ...[a * x + e - MARGIN, a * y + f - MARGIN],
    ...[a * width + 2 * MARGIN, a * height + 2 * MARGIN],
  ];
  if (width) drawing.setAttribute("viewBox", box.join(" "));
  return width > 0;
}
