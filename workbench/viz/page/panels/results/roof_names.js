// The positions of names in a roofline, clear of dots, other names and roofs.

import { ROOF } from "./roof_axes.js";

/** @import { Point } from "../../graph/graph.d.ts" */

const MOST_NAMED = 4; // dots; of more, only those that are due are named

/** A dot with its name: `isDue` says that the name must stand.
 * @typedef {{at: Point, width: number, isDue: boolean}} NamedDot
 * @typedef {[number, number, number, number]} Box */

/** Return where the name of each dot stands beside it, null where there is no room. The first have
 * the first choice. What is due stands on a roof rather than nowhere.
 * @param {NamedDot[]} dots
 * @param {Point[]} [roofs] points of the lines */
export function namePlaces(dots, roofs = []) {
  const obstacles = dots.map(({ at: [x, y] }) => box(x - 5, y - 5, x + 5, y + 5));
  const lines = roofs.map(([x, y]) => box(x, y, x, y));
  return dots.map((dot) => {
    if (!dot.isDue && dots.length > MOST_NAMED) return null;
    const name = namePlace(dot, [...obstacles, ...lines]) ??
      (dot.isDue ? namePlace(dot, obstacles, true) : null);
    if (name) obstacles.push(name.box);
    return name && name.place;
  });
}

/** Beside a dot: below or above, to the side that has more room first; there whatever it is on, where
 * it must be.
 * @param {NamedDot} dot
 * @param {Box[]} obstacles
 * @param {boolean} [mustBe] */
function namePlace({ at: [left, top], width }, obstacles, mustBe = false) {
  const [near, far] = left > ROOF.width / 2 ? [-9, 9] : [9, -9];
  const names = [1, 3, 5, 8].flatMap((by) => [by * near, by * far]).flatMap((x) =>
    [3, 12, -6, 22, -16, 33, -27, 44, -38].map((y) => {
      const [from, base] = [left + x - (x < 0 ? width : 0), top + y];
      return { place: point(x, y), box: box(from - 1, base - 9, from + width + 1, base + 3) };
    })
  );
  /** @type {(name: {box: Box}) => boolean} */
  const isFree = ({ box: [x0, y0, x1, y1] }) =>
    x0 > ROOF.left && x1 < ROOF.width && y0 > 0 && y1 < ROOF.height - ROOF.bottom &&
    obstacles.every((other) =>
      x0 >= other[2] || x1 <= other[0] || y0 >= other[3] || y1 <= other[1]
    );
  return names.find(isFree) ?? (mustBe ? names[1] : null);
}

/** @type {(x: number, y: number) => Point} */
const point = (x, y) => [x, y];
/** @type {(x0: number, y0: number, x1: number, y1: number) => Box} */
const box = (x0, y0, x1, y1) => [x0, y0, x1, y1];
