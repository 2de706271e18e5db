// Pictures of panes: SVG of a graph for any program, SVG of any pane for browsers, and PNG of both.

import { h } from "../base/elements.js";
import { vectorOf } from "../graph/svg_painter.js";

const SPACE = "http://www.w3.org/2000/svg";
const PNG_SCALE = 2;
/** The style properties of a graph. */
const LOOKS = [
  ...["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray"],
  ...["opacity", "font-family", "font-size", "font-weight", "font-style", "text-anchor"],
  ...["dominant-baseline", "display", "visibility", "paint-order"],
];
const COLOURS = ["color-scheme", "color", "background-color"];

/** @typedef {{text: string, width: number, height: number}} Picture */

/** Return a drawing of the page as SVG, the whole of it, with its present looks.
 * @param {SVGSVGElement} drawing
 * @param {string} ground
 * @returns {Picture} */
export function drawingSvg(drawing, ground) {
  const copy = /** @type {SVGSVGElement} */ (drawing.cloneNode(true));
  const [from, to] = [drawing, copy].map((root) => [...root.querySelectorAll("*")]);
  from.forEach((element, i) => {
    const style = getComputedStyle(element);
    LOOKS.forEach((name) => to[i].setAttribute(name, style.getPropertyValue(name)));
    for (const name of ["style", "class"]) to[i].removeAttribute(name);
  });
  const world = drawing.querySelector("g");
  const view = drawing.viewBox.baseVal;
  const isMoved = world && !view?.width; // a camera moves the elements in it
  if (isMoved) copy.querySelector("g")?.removeAttribute("transform");
  const { x, y, width, height } = isMoved ? world.getBBox() : view;
  const margin = isMoved ? 12 : 0;
  const box = [x - margin, y - margin, width + 2 * margin, height + 2 * margin].map(Math.round);
  for (const { name } of [...copy.attributes]) copy.removeAttribute(name);
  copy.setAttribute("viewBox", box.join(" "));
  const paper = document.createElementNS(SPACE, "rect");
  const at = { x: box[0], y: box[1], width: box[2], height: box[3], fill: ground };
  for (const [name, value] of Object.entries(at)) paper.setAttribute(name, String(value));
  copy.prepend(paper);
  return sized(copy, box[2], box[3]);
}

/** Return a pane as SVG: HTML in a picture, which browsers show.
 * @param {HTMLElement} root
 * @param {HTMLElement} pane
 * @param {string} css
 * @returns {Picture} */
export function paneSvg(root, pane, css) {
  const [all, part] = [root, pane].map((element) => element.getBoundingClientRect());
  const copy = copied(root, pane);
  const style = getComputedStyle(root);
  const own = [...css.matchAll(/(--wb-[\w-]+):/g)].map(([, name]) => name);
  for (const name of new Set([...own, ...COLOURS])) {
    copy.style.setProperty(name, style.getPropertyValue(name));
  }
  const size = { width: `${all.width}px`, height: `${all.height}px`, border: "0", outline: "0" };
  Object.assign(copy.style, size);
  const shell = document.createElementNS(SPACE, "svg");
  const html = document.createElementNS(SPACE, "foreignObject");
  html.setAttribute("width", String(all.width));
  html.setAttribute("height", String(all.height));
  html.append(h("style", {}, css), copy);
  shell.append(html);
  const box = [part.x - all.x, part.y - all.y, part.width, part.height];
  shell.setAttribute("viewBox", box.join(" "));
  return sized(shell, part.width, part.height);
}

/** Return a copy of a pane with its ancestors; their other children are empty, of the same size.
 * @param {Element} element
 * @param {HTMLElement} pane
 * @returns {HTMLElement | SVGElement} */
function copied(element, pane) {
  const isWhole = pane.contains(element);
  const vector = element.checkVisibility() ? vectorOf(element) : null;
  if (vector) {
    const { width, height } = element.getBoundingClientRect();
    vector.style.cssText = `width:${width}px;height:${height}px`;
    return vector;
  }
  const copy = element instanceof HTMLCanvasElement && element.checkVisibility()
    ? h("img", { src: element.toDataURL(), class: element.className, style: element.style.cssText })
    : /** @type {HTMLElement} */ (element.cloneNode(false));
  copy.removeAttribute("id");
  if (element instanceof HTMLTextAreaElement) copy.textContent = element.value;
  if (element instanceof HTMLInputElement) copy.setAttribute("value", element.value);
  if (isWhole || element.contains(pane)) {
    const { scrollLeft, scrollTop } = element;
    for (const child of element.childNodes) {
      const other = child instanceof Element ? copied(child, pane) : child.cloneNode();
      if (other instanceof HTMLElement && (scrollLeft || scrollTop)) {
        other.style.translate = `${-scrollLeft}px ${-scrollTop}px`;
      }
      copy.append(other);
    }
  } else if (copy instanceof HTMLElement) {
    const { width, height } = element.getBoundingClientRect();
    Object.assign(copy.style, { width: `${width}px`, height: `${height}px`, flex: "none" });
  }
  return copy;
}

/**
 * @param {SVGSVGElement} picture
 * @param {number} width
 * @param {number} height
 * @returns {Picture} */
function sized(picture, width, height) {
  picture.setAttribute("width", String(width));
  picture.setAttribute("height", String(height));
  return { text: new XMLSerializer().serializeToString(picture), width, height };
}

/** Return a picture as PNG, at twice the size.
 * @param {Picture} picture
 * @returns {Promise<Blob>} */
export async function png({ text, width, height }) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const [w, ht] = [width, height].map((size) => Math.ceil(size * PNG_SCALE));
  const canvas = h("canvas", { width: w, height: ht });
  canvas.getContext("2d")?.drawImage(image, 0, 0, w, ht);
  return await new Promise((done, failed) =>
    canvas.toBlob((blob) => blob ? done(blob) : failed(new Error("too large for a picture")))
  );
}
