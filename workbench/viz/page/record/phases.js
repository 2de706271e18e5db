// The phases of training that kernels belong to: forward, backward, optimiser.

import { togetherWork, workShare } from "./kernels.js";

/** @import { PageRecord, PhaseRow } from "../record.d.ts" */
/** @import { Work } from "./kernels.js" */

/** The phases of kernels, in the order in which they run.
 * @param {PageRecord} record
 * @param {number[]} places
 * @returns {PhaseRow[]} */
export function phasesOf({ plan, kernels }, places) {
  const names = new Set(places.flatMap((k) => kernels[k].phases));
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

/** The phase whose colour kernels have: the forward, in which they have to run, or else the last.
 * @param {PageRecord} record
 * @param {string[]} names of their phases
 * @returns {PhaseRow | undefined} */
export function mainPhase({ plan: { phases } }, names) {
  const own = phases.filter(({ name }) => names.includes(name));
  return own[0] === phases[0] ? own[0] : own.at(-1);
}

/** How many kernels have the colour of a phase, and their share of the time of all.
 * @param {PageRecord} record
 * @param {Work[]} work
 * @param {PhaseRow} phase */
export function phaseCount(record, work, phase) {
  const own = work.filter((_, k) => mainPhase(record, record.kernels[k].phases) === phase);
  return { count: own.length, share: workShare(togetherWork(own)) };
}
