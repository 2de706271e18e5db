// The kernels of a run in groups by what they take of its time, their colours, and what differs from
// another run.

/** @import { Kernel, Run } from "./run.d.ts" */

/** @typedef {"kernel" | "module" | "kind" | "phase"} Grouping
 * A group of kernels: its name, the places of its kernels, and their sums.
 * @typedef {{
 *   name: string, kernels: number[], launches: number, ns: number, share: number, bytes: number,
 *   flops: number, predicted: number | null, ratio: number | null
 * }} Group
 * A part of the icicle: a module, with those inside of it.
 * @typedef {{name: string, path: string, ns: number, inside: Part[]}} Part */

/** The name of the group of a kernel.
 * @type {Record<Grouping, (kernel: Kernel, place: number) => string>} */
const NAME_OF = {
  kernel: (_, place) => String(place),
  module: ({ module }) => module || "no module",
  kind: ({ kind }) => kind || "other",
  phase: ({ phase }) => phase || "no phase",
};

/** The groups of the kernels of a run, the greatest share first.
 * @param {Pick<Run, "kernels">} run
 * @param {Grouping} by
 * @returns {Group[]} */
export function groupsOf({ kernels }, by) {
  /** @type {Map<string, number[]>} */
  const places = new Map();
  kernels.forEach((kernel, place) => {
    const name = NAME_OF[by](kernel, place);
    const own = places.get(name);
    if (own) own.push(place);
    else places.set(name, [place]);
  });
  const all = kernels.reduce((sum, { total_ns: ns }) => sum + ns, 0) || 1;
  return [...places].map(([name, own]) => groupOf(kernels, name, own, all))
    .sort((a, b) => b.ns - a.ns || a.kernels[0] - b.kernels[0]);
}

/**
 * @param {Kernel[]} kernels
 * @param {string} name
 * @param {number[]} places
 * @param {number} all nanoseconds of all kernels
 * @returns {Group} */
function groupOf(kernels, name, places, all) {
  const own = places.map((place) => kernels[place]);
  const sum = (/** @type {(kernel: Kernel) => number} */ of) =>
    own.reduce((total, kernel) => total + of(kernel), 0);
  const ns = sum((kernel) => kernel.total_ns);
  const isKnown = own.every((kernel) => kernel.predicted_ns !== null);
  const predicted = isKnown ? sum((kernel) => (kernel.predicted_ns ?? 0) * kernel.launches) : null;
  const ratio = own.length === 1 ? own[0].ratio : predicted ? ns / predicted : null;
  return {
    name,
    kernels: places,
    launches: sum((kernel) => kernel.launches),
    ns,
    share: ns / all,
    bytes: sum((kernel) => kernel.bytes * kernel.launches),
    flops: sum((kernel) => kernel.flops * kernel.launches),
    predicted,
    ratio,
  };
}

const OFF = 1.5;

/** Whether a time is off by more than 1.5 from the one that was predicted.
 * @param {number | null} ratio */
export const isOff = (ratio) => ratio !== null && (ratio > OFF || ratio < 1 / OFF);

export const COLOURS = 8; // the ninth group and all after it have one together

/** The number of the colour of each kernel, from 0: groups in the order of their shares; the names of
 * those groups.
 * @param {Pick<Run, "kernels">} run
 * @param {Grouping} by
 * @returns {{of: number[], names: string[]}} */
export function coloursOf(run, by) {
  const of = run.kernels.map(() => COLOURS);
  const groups = groupsOf(run, by);
  groups.slice(0, COLOURS).forEach(({ kernels }, colour) => {
    for (const place of kernels) of[place] = colour;
  });
  const names = groups.slice(0, COLOURS).map(({ name }) => name);
  return { of, names: groups.length > COLOURS ? [...names, "all others"] : names };
}

/** The letter of a colour: never colour alone.
 * @param {number} colour */
export const letterOf = (colour) => "ABCDEFGHI"[colour];

const WEIGHTS = "weights"; // the phase of kernels that draw them, in a model that is not trained, too

/** What the kernels of a run are coloured by at first: phases of training, else modules, else kinds.
 * @param {Pick<Run, "kernels">} run
 * @returns {Grouping} */
export function groupingAtFirst({ kernels }) {
  const isTrained = kernels.some(({ phase }) => phase && phase !== WEIGHTS);
  if (isTrained) return "phase";
  return new Set(kernels.map(({ module }) => module)).size > 1 ? "module" : "kind";
}

/** The modules of a run, each inside the one whose path begins its own.
 * @param {Pick<Run, "kernels">} run
 * @returns {Part} */
export function icicleOf({ kernels }) {
  /** @type {Part} */
  const whole = { name: "all", path: "", ns: 0, inside: [] };
  for (const { module, total_ns: ns } of kernels) {
    let at = whole;
    at.ns += ns;
    const names = module ? module.split(".") : [];
    names.forEach((name, depth) => {
      const path = names.slice(0, depth + 1).join(".");
      let part = at.inside.find((each) => each.path === path);
      if (!part) at.inside.push(part = { name, path, ns: 0, inside: [] });
      part.ns += ns;
      at = part;
    });
  }
  return whole;
}

/** A kernel of two runs: the median of its launches in each (null: it is not there), and what a round
 * saves now. Units: nanoseconds.
 * @typedef {{title: string, before: number | null, now: number | null, saved: number}} Pair */

/** The kernels of two runs that differ beyond the noise: the middle halves of their times have nothing in
 * common. What saves or costs most comes first; `same` counts those within it, `unknown` those with too
 * few launches to tell.
 * @param {Pick<Run, "kernels" | "rounds">} before
 * @param {Pick<Run, "kernels" | "rounds">} now
 * @returns {{pairs: Pair[], same: number, unknown: number}} */
export function comparedRuns(before, now) {
  const [roundsBefore, rounds] = [before, now].map((run) => Math.max(1, run.rounds.length));
  const earlier = new Map(before.kernels.map((kernel) => [kernel.key, kernel]));
  const there = new Map(before.kernels.map((kernel) => [placeOf(kernel), kernel]));
  const pairs = now.kernels.map((kernel) => {
    const old = there.get(placeOf(kernel)) ?? earlier.get(kernel.key);
    return {
      title: kernel.title,
      before: old?.median_ns ?? null,
      now: kernel.median_ns,
      saved: aRound(old, roundsBefore) - aRound(kernel, rounds),
      differs: !old || differ(old, kernel),
      isKnown: !old || isKnown(old, kernel),
    };
  });
  const present = new Set(now.kernels.map(({ key }) => key));
  const gone = before.kernels.filter(({ key }) => !present.has(key))
    .map((old) => ({
      title: old.title,
      before: old.median_ns,
      now: null,
      saved: aRound(old, roundsBefore),
    }));
  const differing = pairs.filter(({ differs }) => differs)
    .map(({ title, before, now, saved }) => ({ title, before, now, saved }));
  const unknown = pairs.filter(({ isKnown }) => !isKnown).length;
  return {
    pairs: [...differing, ...gone].sort((a, b) => Math.abs(b.saved) - Math.abs(a.saved)),
    same: pairs.length - differing.length - unknown,
    unknown,
  };
}

/** What a kernel is, and where: equal kernels of several lines are apart.
 * @param {Pick<Kernel, "key" | "module" | "line">} kernel */
const placeOf = ({ key, module, line }) => `${key} ${module} ${line}`;

const LEAST_LAUNCHES = 4; // of each, that tell a difference from noise, as in run/difference.py
const LEAST_RATIO = 1.02;

/** Whether there are enough launches of both.
 * @param {Kernel} old
 * @param {Kernel} kernel */
const isKnown = (old, kernel) => Math.min(old.launches, kernel.launches) >= LEAST_LAUNCHES;

/** Whether the times of a kernel in two runs differ by more than the noise.
 * @param {Kernel} old
 * @param {Kernel} kernel */
function differ(old, kernel) {
  if (!isKnown(old, kernel)) return false;
  const isApart = kernel.low_ns > old.high_ns || kernel.high_ns < old.low_ns;
  const [less, more] = [old.median_ns, kernel.median_ns].sort((a, b) => a - b);
  return isApart && more >= less * LEAST_RATIO;
}

/** The time of a kernel in a round, by the median of its launches: one launch that waited says nothing.
 * @param {Kernel | undefined} kernel
 * @param {number} rounds */
const aRound = (kernel, rounds) => kernel ? (kernel.median_ns * kernel.launches) / rounds : 0;

/** The median time of a round; of a profile, all of its time.
 * @param {Pick<Run, "rounds" | "length_ns">} run */
export function roundOf({ rounds, length_ns: length }) {
  if (!rounds.length) return length;
  const lengths = rounds.map((start, i) => (rounds[i + 1] ?? length) - start).sort((a, b) => a - b);
  return lengths[lengths.length >> 1];
}
