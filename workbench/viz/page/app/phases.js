// The marks of phases of training: a letter on a colour.

import { h } from "../base/elements.js";
import { phaseLetters } from "../record/phases.js";

/** @import { PhaseRow } from "../record.d.ts" */

/** The letters of the phases of a kernel, on its colour; null where nothing is trained.
 * @param {PhaseRow[]} phases
 * @param {string | undefined} [colour] */
export const phaseMark = (phases, colour = phases.at(-1)?.colours[0]) =>
  phases.length
    ? h(
      "i",
      {
        class: "wb-phase",
        "data-term": phases[phases.length - 1].name,
        style: colour ? `background:${colour}` : null,
      },
      phaseLetters(phases),
    )
    : null;
