// The phases of training that kernels belong to: forward, backward, optimiser.

import { togetherWork, workShare } from "./kernels.js";

/** @import { PageRecord, PhaseRow } from "../record.d.ts" */
/** @import { Work } from "./kernels.js" */

/** The phases of kernels from `first` to before `end`, in the order in which they run.
 * @param {PageRecord} record
 * @param {number} first
 * @param {number} end
 * @returns {PhaseRow[]} */
export function phasesOf({ plan, kernels }, first, end) {
  const names = new Set(kernels.slice(first, end).flatMap(({ phases }) => phases));
  return plan.phases.filter(({ name }) => names.has(name));
}

/** The letters of phases: "B", or "B+O" of several.
 * @param {PhaseRow[]} phases */
export const phaseLetters = (phases) => phases.map(({ letter }) => letter).join("+");

/** The colour of a kernel in Plan.
 * @param {PageRecord} record
 * @param {number} kernel */
export const kernelColour = ({ plan }, kernel) => plan.regions[kernel]?.colour;

/** What kernels are called beside the letters of their phases, which their titles and folds name
 * too.
 * @param {string} title
 * @param {PhaseRow[]} phases */
export function withoutPhases(title, phases) {
  const names = phases.map(({ name }) => name).join(", ");
  const head = `${names}: `, tail = `, ${names}`;
  if (names && title.startsWith(head)) return title.slice(head.length);
  return names && title.endsWith(tail) ? title.slice(0, -tail.length) : title;
}

/** How many kernels a phase has, and their share of the time of all; those of several phases count
 * in the last.
 * @param {PageRecord} record
 * @param {Work[]} work
 * @param {PhaseRow} phase */
export function phaseCount({ kernels }, work, { name }) {
  const own = work.filter((_, k) => kernels[k].phases.at(-1) === name);
  return { count: own.length, share: workShare(togetherWork(own)) };
}
