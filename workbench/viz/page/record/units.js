// Units of the folded plan: the kernels that each box represents. Repeated kernels, the kernels of
// a module, and kernels that draw weights are one unit each. Unfolded, each of its kernels is a unit,
// and an unfolded kernel shows its values.

import { WEIGHTS } from "./kernels.js";

/** @import { PageRecord, PlanPicture, PlanRepeat } from "../record.d.ts" */

const MOST_UNFOLDED = 60; // kernels that are drawn unasked, each as a box
const MOST_AT_FIRST = 20; // boxes that modules are unfolded to

/** The keys of unfolded units.
 * @typedef {ReadonlySet<string>} Unfolded */

/** Kernels that are drawn as one box: one (null), or several folded ones.
 * @typedef {{key: string, kernels: number[], repeat: PlanRepeat | null}} Unit */

/** A line between two units or values, by their keys; `nodes` are the values that are read, with
 * their bytes; it is `cut` if they go through memory.
 * @typedef {{a: string, b: string, cut: boolean, nodes: Map<number, number>}} UnitLine
 * @typedef {string | undefined} Key */

/** @param {PlanRepeat} repeat */
export const repeatKey = ({ first, size, times }) => `r${first}-${first + size * times}`;

/** @param {number} kernel */
export const kernelKey = (kernel) => `k${kernel}`;

/** @param {number} place */
export const valueKey = (place) => `v${place}`;

/** The folds of a plan, outer ones before those in them.
 * @param {PageRecord} record
 * @returns {Unit[]} */
export const planFolds = ({ plan: { repeats } }) =>
  repeats.map((repeat) => {
    const { first, size, times } = repeat;
    const kernels = Array.from({ length: size * times }, (_, i) => first + i);
    return { key: repeatKey(repeat), kernels, repeat };
  });

/** Whether a unit is the fold of the kernels that draw weights.
 * @param {PageRecord} record
 * @param {Unit} unit */
export const isWeightsFold = ({ kernels }, { kernels: [first, ...others] }) =>
  others.length > 0 && kernels[first].phases.includes(WEIGHTS);

/** The folds that contain each kernel, outer ones first.
 * @param {PageRecord} record */
function foldsAround(record) {
  /** @type {Unit[][]} */
  const around = record.kernels.map(() => []);
  for (const fold of planFolds(record)) {
    for (const k of fold.kernels) around[k].push(fold);
  }
  return around;
}

/** The units that represent all kernels, in the order of their first ones, with those that draw
 * weights last; also the unfolded ones.
 * @param {PageRecord} record
 * @param {Unfolded} unfolded
 * @returns {Unit[]} */
export function planUnits(record, unfolded) {
  /** @type {Map<string, Unit>} */
  const units = new Map();
  foldsAround(record).forEach((folds, k) => {
    const fold = folds.find(({ key }) => !unfolded.has(key));
    const unit = fold ?? { key: kernelKey(k), kernels: [k], repeat: null };
    units.set(unit.key, unit);
  });
  const isWeights = (/** @type {Unit} */ unit) => isWeightsFold(record, unit);
  const all = [...units.values()];
  return [...all.filter((unit) => !isWeights(unit)), ...all.filter(isWeights)];
}

/** The units that are unfolded at first: modules, outer ones first, as long as few boxes are drawn;
 * and a plan that is one repeat, which would be one box, unless its kernels are many.
 * @param {PageRecord} record
 * @returns {Unfolded} */
export function unfoldedAtFirst(record) {
  const isModel = (/** @type {Unit} */ unit) => !isWeightsFold(record, unit);
  const [only, ...others] = planUnits(record, new Set()).filter(isModel);
  const isOne = only?.repeat && !others.length && only.kernels.length <= MOST_UNFOLDED;
  /** @type {Unfolded} */
  let unfolded = new Set(isOne ? [only.key] : []);
  for (let level = 0;; level++) {
    const folds = planUnits(record, unfolded)
      .filter((unit) => unit.repeat?.times === 1 && isModel(unit));
    const all = new Set([...unfolded, ...folds.map(({ key }) => key)]);
    if (!folds.length) break;
    if (planUnits(record, all).length <= MOST_AT_FIRST) unfolded = all;
    else if (level) break; // a level is unfolded whole, but for the outermost
    else {
      for (const { key } of folds) {
        const next = new Set([...unfolded, key]);
        if (planUnits(record, next).length <= MOST_AT_FIRST) unfolded = next;
      }
      break;
    }
  }
  return unfolded;
}

/** The repeats that contain a kernel, outer ones first.
 * @param {PlanPicture} plan
 * @param {number} kernel */
export const repeatsAround = ({ repeats }, kernel) =>
  repeats.filter(({ first, size, times }) => first <= kernel && kernel < first + size * times);

/** The keys that unfold a kernel, one after the other: those of its folds, then its own.
 * @param {PageRecord} record
 * @param {number} kernel */
const stepKeys = (record, kernel) => [
  ...(foldsAround(record)[kernel] ?? []).map(({ key }) => key),
  kernelKey(kernel),
];

/** Unfold a kernel by a step: the outermost folded unit around it, else the kernel.
 * @param {PageRecord} record
 * @param {Unfolded} unfolded
 * @param {number} kernel
 * @returns {Unfolded} */
export function unfoldStep(record, unfolded, kernel) {
  const next = stepKeys(record, kernel).find((key) => !unfolded.has(key));
  return next ? new Set([...unfolded, next]) : unfolded;
}

/** Unfold all units around a kernel, so that it has a box of its own; with `isOpen` its values have.
 * @param {PageRecord} record
 * @param {Unfolded} unfolded
 * @param {number} kernel
 * @param {boolean} isOpen
 * @returns {Unfolded} */
export function unfoldTo(record, unfolded, kernel, isOpen) {
  const folded = stepKeys(record, kernel).filter((key) => !unfolded.has(key));
  const next = isOpen ? folded : folded.filter((key) => key !== kernelKey(kernel));
  return next.length ? new Set([...unfolded, ...next]) : unfolded;
}

/** Fold a kernel by a step: the kernel, else the innermost unfolded repeat that it is in.
 * @param {PageRecord} record
 * @param {Unfolded} unfolded
 * @param {number} kernel
 * @returns {Unfolded} */
export function foldStep(record, unfolded, kernel) {
  const last = stepKeys(record, kernel).findLast((key) => unfolded.has(key));
  return last ? foldUnit(record, unfolded, last) : unfolded;
}

/** The kernels of a unit.
 * @param {PageRecord} record
 * @param {string} key */
export const unitKernels = (record, key) =>
  planFolds(record).find((fold) => fold.key === key)?.kernels ?? [Number(key.slice(1))];

/** Fold a unit, with all units in it.
 * @param {PageRecord} record
 * @param {Unfolded} unfolded
 * @param {string} key
 * @returns {Unfolded} */
export function foldUnit(record, unfolded, key) {
  const own = new Set(unitKernels(record, key));
  const isInside = (/** @type {string} */ other) =>
    unitKernels(record, other).every((k) => own.has(k));
  return new Set([...unfolded].filter((other) => !isInside(other)));
}

/** The values of unfolded kernels, by their indexes in the plan, with the inputs that they read.
 * @param {PlanPicture} plan
 * @param {Unfolded} unfolded */
export function unfoldedValues({ nodes, edges }, unfolded) {
  const values = new Set(
    nodes.map((_, i) => i).filter((i) => nodes[i].kernels.some((k) => unfolded.has(kernelKey(k)))),
  );
  for (const { a, b } of edges) {
    if (values.has(b) && !nodes[a].kernels.length) values.add(a);
  }
  return values;
}

/** The lines between folded units, and of the values of unfolded kernels.
 * @param {PageRecord} record
 * @param {Unit[]} units
 * @param {ReadonlySet<number>} values
 * @returns {UnitLine[]} */
export function unitLines(record, units, values) {
  const { nodes, edges, reads } = record.plan;
  const opened = new Set([...values].flatMap((i) => nodes[i].kernels));
  /** The key of the folded unit that contains a kernel; none if it is unfolded. Weights have no
   * lines in a plan, nor have the folded kernels that draw them.
   * @type {(string | undefined)[]} */
  const unitOf = [];
  for (const unit of units) {
    const { key, kernels } = unit;
    const hasLines = !isWeightsFold(record, unit) &&
      (kernels.length > 1 || !opened.has(kernels[0]));
    for (const k of kernels) unitOf[k] = hasLines ? key : undefined;
  }
  /** @type {Map<string, UnitLine>} */
  const lines = new Map();
  /** @type {(a: Key, b: Key, node: number, bytes: number, cut?: boolean) => void} */
  const add = (a, b, node, bytes, cut = true) => {
    if (a === undefined || b === undefined || a === b) return;
    const line = lines.get(`${a} ${b}`) ?? { a, b, cut, nodes: new Map() };
    line.nodes.set(node, bytes);
    lines.set(`${a} ${b}`, line);
  };
  for (const [source, reader, node, bytes] of reads) {
    add(unitOf[source], unitOf[reader], node, bytes);
  }
  for (const { a, b, bytes, cut } of edges) {
    const { n, stored_by } = nodes[a];
    if (values.has(a) && values.has(b)) add(valueKey(a), valueKey(b), n, bytes, cut);
    else if (!cut || stored_by === null) continue;
    else if (values.has(b)) add(unitOf[stored_by], valueKey(b), n, bytes);
    else if (values.has(a)) {
      for (const k of nodes[b].kernels) add(valueKey(a), unitOf[k], n, bytes);
    }
  }
  return [...lines.values()];
}

/** The unit that a kernel is in.
 * @param {Unit[]} units
 * @param {number} kernel */
export const unitOfKernel = (units, kernel) =>
  units.find(({ kernels }) => kernels.includes(kernel));
