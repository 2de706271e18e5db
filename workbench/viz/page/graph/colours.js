// The theme's colours for canvases: `--wb-g-*` in graph.css.

/** Colours by name, and of a family of ops by its letter; how strong those of regions are; a font of a size.
 * @typedef {"new" | "gone" | "edge" | "text" | "muted" | "picked" | "ground"} ColourName
 * @typedef {Record<ColourName, string> & {
 *   family(letter: string): string, regionAlpha: number, font(size: number): string
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
  /** @type {Map<string, string>} */
  const families = new Map();
  return {
    new: valueOf("new"),
    gone: valueOf("gone"),
    edge: valueOf("edge"),
    text: valueOf("text"),
    muted: valueOf("muted"),
    picked: valueOf("picked"),
    ground: valueOf("ground"),
    family: (letter) => {
      const colour = families.get(letter) ?? valueOf(letter);
      families.set(letter, colour);
      return colour;
    },
    regionAlpha: Number(valueOf("region")) || 0.5,
    font: (size) => `${size}px ${style.fontFamily}`,
  };
}
