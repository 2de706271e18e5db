// The texts of a box at a given scale. On the screen no text is smaller than people can read: where
// the picture shrinks further, a text grows inside its box, is shortened, and has the box alone.

import { roomIn } from "./paths.js";
import { textWidth } from "./words.js";

/** @import { GraphNode } from "./graph.d.ts" */

const SMALLEST = 9; // pixels on the screen
const TWO_LINES_FROM = 0.75; // the scale below which a box has one line
const STEP = 1.12; // texts grow in steps, or each turn of a wheel would write all of them anew
export const TEXT_FROM = 0.42; // the scale below which a box is only its colour

/** The scale for which texts are written: at most that of the picture.
 * @param {number} scale */
export const textScale = (scale) =>
  scale * 10 >= SMALLEST ? 1 : STEP ** Math.floor(Math.log(scale) / Math.log(STEP));

/** The size of a text that is `size` large at scale 1.
 * @param {number} size
 * @param {number} scale */
export const textSize = (size, scale) => Math.max(size, SMALLEST / scale);

/** A text, how large, how far below the middle of its box, and how wide at most.
 * @typedef {{text: string, size: number, y: number, room: number}} BoxText
 * @param {GraphNode} node
 * @param {number} scale of the texts
 * @returns {{label: BoxText, sub: BoxText | null, letter: BoxText, middle: number}} */
export function boxTexts(node, scale) {
  const isWhole = scale >= TWO_LINES_FROM;
  const room = isWhole ? roomIn(node) : node.w - 8;
  const middle = node.letter && isWhole ? 6 : 0;
  const size = textSize(node.small ? 10.5 : 12, scale);
  const hasSub = isWhole && Boolean(node.sub);
  const y = hasSub ? -2 : 0.34 * size;
  return {
    label: { text: isWhole ? node.label : shortened(node.label, size, room), size, y, room },
    sub: hasSub ? { text: node.sub, size: textSize(10, scale), y: 11, room } : null,
    letter: { text: node.letter ?? "", size: textSize(10, scale), y: 4, room: 14 },
    middle,
  };
}

/** A text as far as there is room for it.
 * @param {string} text
 * @param {number} size
 * @param {number} room */
function shortened(text, size, room) {
  const whole = (textWidth(text, 12) * size) / 12;
  if (whole <= room) return text;
  const letters = Math.floor((text.length * room) / whole) - 1;
  return letters > 0 ? `${text.slice(0, letters)}…` : "";
}
