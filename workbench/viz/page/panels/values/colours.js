// Colours of values: blue below zero and orange above where there are both, else blue alone, darker
// away from zero; NaN and infinities have colours of their own.

/** @import { ValueSummary } from "../../record.d.ts" */

const BELOW = [33, 102, 172];
const ABOVE = [204, 99, 10];
const MIDDLE = [247, 247, 247];
const PALE = 0.55; // the share of white in the colour behind a number
const BITS = { nan: 1, infinity: 2, minusInfinity: 4 };

/** @type {Record<"nan" | "infinity" | "minusInfinity", string>} */
export const NOT_FINITE = { nan: "#e0409a", infinity: "#ffd24a", minusInfinity: "#35b8a6" };

/** A value as a number; null where it is not finite.
 * @param {unknown} value */
export function finite(value) {
  const number = Number(value);
  return Number.isFinite(number) ? number : null;
}

/** The colour of each finite value: `at(value, isPale)`. Values of both signs have the same scale on
 * both sides of zero.
 * @param {ValueSummary} summary
 * @returns {{low: number, high: number, at: (value: number, isPale?: boolean) => string}} */
export function scaleOf({ min, max }) {
  const [least, greatest] = [finite(min ?? 0) ?? 0, finite(max ?? 0) ?? 0];
  const isSigned = least < 0 && greatest > 0;
  const most = Math.max(Math.abs(least), Math.abs(greatest));
  const [low, high] = isSigned ? [-most, most] : [least, greatest];
  const at = (/** @type {number} */ value, isPale = false) => {
    const share = high > low ? value / (high - low) - low / (high - low) : 0.5;
    /** @type {[number[], number]} */
    const [end, part] = !isSigned
      ? [BELOW, greatest <= 0 ? 1 - share : share]
      : share < 0.5
      ? [BELOW, 1 - 2 * share]
      : [ABOVE, 2 * share - 1];
    const strength = Math.max(0, Math.min(1, part)) * (isPale ? PALE : 1);
    const channels = MIDDLE.map((from, i) => Math.round(from + (end[i] - from) * strength));
    return `rgb(${channels.join(",")})`;
  };
  return { low, high, at };
}

/** The colour of a value that is not finite, by its text.
 * @param {unknown} value
 * @returns {string | null} */
export function notFinite(value) {
  if (value === "nan") return NOT_FINITE.nan;
  if (value === "inf") return NOT_FINITE.infinity;
  return value === "-inf" ? NOT_FINITE.minusInfinity : null;
}

/** The colour of a cell whose marks say that some values in it are not finite.
 * @param {number} marks
 * @returns {string | null} */
export function markedColour(marks) {
  if (marks & BITS.nan) return NOT_FINITE.nan;
  if (marks & BITS.infinity) return NOT_FINITE.infinity;
  return marks & BITS.minusInfinity ? NOT_FINITE.minusInfinity : null;
}
