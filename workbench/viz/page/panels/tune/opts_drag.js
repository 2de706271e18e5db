// Opts dragged to another position in their list: before or after the opt under the pointer.

/** @import { VariantRow } from "../../record.d.ts" */
/** @import { OptsDrafts } from "./opts_drafts.js" */

const SIDES = ["wb-opt-before", "wb-opt-after"];

/** Let a chip be dragged, and others be dropped on it. As text it is the opt as Python.
 * @param {HTMLElement} chip
 * @param {OptsDrafts} drafts
 * @param {VariantRow} variant
 * @param {number} place */
export function letDrag(chip, drafts, variant, place) {
  const mark = (/** @type {boolean | null} */ isAfter) =>
    SIDES.forEach((name, i) => chip.classList.toggle(name, isAfter === Boolean(i)));
  const isOurs = () => drafts.dragged?.variant === variant;
  chip.draggable = true;
  chip.addEventListener("dragstart", ({ dataTransfer }) => {
    drafts.dragged = { variant, place };
    dataTransfer?.setData("text/plain", drafts.of(variant).opts[place].text);
  });
  chip.addEventListener("dragend", () => (drafts.dragged = null));
  chip.addEventListener("dragleave", () => mark(null));
  chip.addEventListener("dragover", (event) => {
    if (!isOurs()) return;
    event.preventDefault(); // it may be dropped here
    mark(isSecondHalf(chip, event));
  });
  chip.addEventListener("drop", (event) => {
    if (!isOurs() || !drafts.dragged) return;
    event.preventDefault();
    mark(null);
    const from = drafts.dragged.place;
    drafts.dragged = null;
    drafts.moveTo(variant, from, placeOf(from, place, isSecondHalf(chip, event)));
  });
}

/** Whether a pointer is nearer to the end of a chip than to its beginning.
 * @param {HTMLElement} chip
 * @param {DragEvent} event */
function isSecondHalf(chip, { clientX }) {
  const { left, width } = chip.getBoundingClientRect();
  return clientX > left + width / 2;
}

/** The place that what was at `from` gets where it is dropped before or after another.
 * @param {number} from
 * @param {number} other
 * @param {boolean} isAfter */
export const placeOf = (from, other, isAfter) => other + Number(isAfter) - Number(from < other);
