// The colours of the theme, for canvases: `--wb-g-*` in graph.css.

import { FAMILIES } from "./families.js";

export const COLOURS = new WeakMap(); // element -> its colours, until the theme changes

/** Return the colours of the theme that an element stands in; reading them makes the browser
 * work out the styles of the page, so they are kept. */
export function graphColours(el) {
  if (!COLOURS.has(el)) COLOURS.set(el, readColours(el));
  return COLOURS.get(el);
}

function readColours(el) {
  const style = getComputedStyle(el);
  const of = (name) => style.getPropertyValue(`--wb-g-${name}`).trim();
  const colours = Object.fromEntries(
    ["new", "gone", "edge", "text", "muted", "picked", "ground", ...Object.keys(FAMILIES)].map((
      n,
    ) => [n, of(n)]),
  );
  return {
    ...colours,
    regionAlpha: Number(of("region")) || 0.5,
    font: (size) => `${size}px ${style.fontFamily}`,
  };
}
