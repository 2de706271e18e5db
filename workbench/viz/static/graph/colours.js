// The colours of the theme, for canvases: `--wb-g-*` in graph.css.

import { FAMILIES } from "./families.js";

/** Colours by name, and of each family of ops; how strong those of regions are; a font of a size.
 * @typedef {"new" | "gone" | "edge" | "text" | "muted" | "picked" | "ground"} ColourName
 * @typedef {Record<ColourName, string> & {
 *   families: Record<string, string>, regionAlpha: number, font(size: number): string
 * }} Colours */

/** The colours of elements, until the theme changes.
 * @type {WeakMap<Element, Colours>} */
export const COLOURS = new WeakMap();

/** Return the colours of the theme that an element stands in; reading them makes the browser
 * work out the styles of the page, so they are kept.
 * @param {Element} el */
export function graphColours(el) {
  const colours = COLOURS.get(el) ?? readColours(el);
  COLOURS.set(el, colours);
  return colours;
}

/**
 * @param {Element} el
 * @returns {Colours} */
function readColours(el) {
  const style = getComputedStyle(el);
  const valueOf = (/** @type {string} */ name) => style.getPropertyValue(`--wb-g-${name}`).trim();
  return {
    new: valueOf("new"),
    gone: valueOf("gone"),
    edge: valueOf("edge"),
    text: valueOf("text"),
    muted: valueOf("muted"),
    picked: valueOf("picked"),
    ground: valueOf("ground"),
    families: Object.fromEntries(Object.keys(FAMILIES).map((name) => [name, valueOf(name)])),
    regionAlpha: Number(valueOf("region")) || 0.5,
    font: (size) => `${size}px ${style.fontFamily}`,
  };
}
