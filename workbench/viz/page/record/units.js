// The plan folded: what stands for its kernels. A repeat of kernels is one unit until it is
// unfolded, then each of its kernels is one, and of an unfolded kernel its values are shown.

/** @import { PageRecord, PlanPicture, PlanRepeat } from "../record.d.ts" */

const MOST_UNFOLDED = 60; // kernels that are drawn unasked, each as a box
const MOST_AT_FIRST = 20; // boxes that modules are unfolded to

/** What is unfolded, by the keys of units.
 * @typedef {ReadonlySet<string>} Unfolded */

/** Kernels from `first` to before `end`, drawn as one box: a repeat, or (null) one kernel.
 * @typedef {{key: string, first: number, end: number, repeat: PlanRepeat | null}} Unit */

/** A line between two units or values, by their keys; `nodes` are the values that are read, with
 * their bytes; it is `cut` where they go through memory.
 * @typedef {{a: string, b: string, cut: boolean, nodes: Map<number, number>}} UnitLine
 * @typedef {string | undefined} Key */

/** @param {PlanRepeat} repeat */
export const repeatKey = ({ first, size, times }) => `r${first}-${first + size * times}`;

/** @param {number} kernel */
export const kernelKey = (kernel) => `k${kernel}`;

/** @param {number} place */
export const valueKey = (place) => `v${place}`;

/** The units that stand for all kernels, in their order; also those that are unfolded.
 * @param {PlanPicture} plan
 * @param {Unfolded} unfolded
 * @returns {Unit[]} */
export function planUnits({ repeats, runs }, unfolded) {
  /** Those that begin at a kernel, outer ones first.
   * @type {Map<number, PlanRepeat[]>} */
  const starts = new Map();
  for (const repeat of repeats) {
    starts.get(repeat.first)?.push(repeat) ?? starts.set(repeat.first, [repeat]);
  }
  /** @type {Unit[]} */
  const units = [];
  for (let at = 0; at < runs.length; at = units[units.length - 1].end) {
    const repeat = starts.get(at)?.find((r) => !unfolded.has(repeatKey(r))) ?? null;
    const end = repeat ? at + repeat.size * repeat.times : at + 1;
    const key = repeat ? repeatKey(repeat) : kernelKey(at);
    units.push({ key, first: at, end, repeat });
  }
  return units;
}

/** What is unfolded at first: modules, outer ones first, as long as few boxes are drawn; and a
 * plan that is one repeat, which would be one box, unless its kernels are many.
 * @param {PlanPicture} plan
 * @returns {Unfolded} */
export function unfoldedAtFirst(plan) {
  const [only, ...others] = planUnits(plan, new Set());
  const isOne = only?.repeat && !others.length && plan.runs.length <= MOST_UNFOLDED;
  /** @type {Unfolded} */
  let unfolded = new Set(isOne ? [only.key] : []);
  for (let level = 0;; level++) {
    const folds = planUnits(plan, unfolded).filter(({ repeat }) => repeat?.times === 1);
    const all = new Set([...unfolded, ...folds.map(({ key }) => key)]);
    if (!folds.length) break;
    if (planUnits(plan, all).length <= MOST_AT_FIRST) unfolded = all;
    else if (level) break; // a level is unfolded whole, but for the outermost
    else {
      for (const { key } of folds) {
        const next = new Set([...unfolded, key]);
        if (planUnits(plan, next).length <= MOST_AT_FIRST) unfolded = next;
      }
      break;
    }
  }
  return unfolded;
}

/** The repeats that a kernel is in, outer ones first.
 * @param {PlanPicture} plan
 * @param {number} kernel */
export const repeatsAround = ({ repeats }, kernel) =>
  repeats.filter(({ first, size, times }) => first <= kernel && kernel < first + size * times);

/** Unfold a kernel by a step: the outermost folded repeat that it is in, else the kernel.
 * @param {PlanPicture} plan
 * @param {Unfolded} unfolded
 * @param {number} kernel
 * @returns {Unfolded} */
export function unfoldStep(plan, unfolded, kernel) {
  const keys = [...repeatsAround(plan, kernel).map(repeatKey), kernelKey(kernel)];
  const next = keys.find((key) => !unfolded.has(key));
  return next ? new Set([...unfolded, next]) : unfolded;
}

/** Fold a kernel by a step: the kernel, else the innermost unfolded repeat that it is in.
 * @param {PlanPicture} plan
 * @param {Unfolded} unfolded
 * @param {number} kernel
 * @returns {Unfolded} */
export function foldStep(plan, unfolded, kernel) {
  const keys = [...repeatsAround(plan, kernel).map(repeatKey), kernelKey(kernel)];
  const last = keys.findLast((key) => unfolded.has(key));
  return last ? foldUnit(unfolded, last) : unfolded;
}

/** Fold a unit; what is in it is folded, too.
 * @param {Unfolded} unfolded
 * @param {string} key
 * @returns {Unfolded} */
export function foldUnit(unfolded, key) {
  const [first, end] = key.slice(1).split("-").map(Number);
  const isInside = (/** @type {string} */ other) => {
    const [from, to = from + 1] = other.slice(1).split("-").map(Number);
    return from >= first && to <= (end ?? first + 1);
  };
  return new Set([...unfolded].filter((other) => !isInside(other)));
}

/** The values of unfolded kernels, by their places in the plan, with the inputs that they read.
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
export function unitLines({ plan }, units, values) {
  const { nodes, edges, reads } = plan;
  const opened = new Set([...values].flatMap((i) => nodes[i].kernels));
  /** The key of the folded unit that a kernel is in; none where it is unfolded.
   * @type {(string | undefined)[]} */
  const unitOf = [];
  for (const { key, first, end, repeat } of units) {
    const isFolded = repeat || !opened.has(first);
    for (let k = first; k < end; k++) unitOf[k] = isFolded ? key : undefined;
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
  units.find(({ first, end }) => first <= kernel && kernel < end);
