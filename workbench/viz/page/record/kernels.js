// Numbers of the kernels of a plan: time, share and bytes of each, totals, and phases of training.

import { bytesText, search, secondsText } from "../base/text.js";
import { isOfOtherDevice } from "./variants.js";

/** @import { KernelRow, PageRecord, PhaseRow, PlanPicture, PlanRun } from "../record.d.ts" */
/** @import { TimingRow, VariantRow } from "../record.d.ts" */

/** What a time is, if not measured in this session on an idle machine.
 * @typedef {"" | "busy" | "predicted" | "earlier" | "uncertain"} TimeMark */

/** The cost of a kernel with the default opts: the seconds that are shown, null if no time is known,
 * and what they are; the variant (`name`) that they are of; their share of the times of all, and
 * whether one of these is disturbed or predicted; bytes, operations, and its share of the peak, null
 * if it is not known.
 * @typedef {{
 *   seconds: number | null, mark: TimeMark, name: string,
 *   share: number | null, isRough: boolean, bytes: number, operations: number, peak: number | null
 * }} Work */

/** The cost of each kernel of a record: a kernel without a time has that of the first equal one.
 * @param {PageRecord} record
 * @returns {Work[]} */
export function kernelWork(record) {
  const { kernels, plan: { runs } } = record;
  const variants = defaultVariants(record);
  const rows = kernels.map(({ bytes, flops }, k) => {
    const like = runs[k].like;
    const hasOwn = variants[k] || runs[k].measured_s !== null;
    const variant = variants[hasOwn ? k : like];
    const time = shownTime(variant?.timing, runs[hasOwn ? k : like], runs[like].predicted_s);
    const peak = (variant ?? variants[like])?.timing?.share?.fraction ?? null;
    return { ...time, name: variant?.name ?? AUTO, bytes, operations: flops, peak };
  });
  const all = rows.reduce((sum, { seconds }) => sum + (seconds ?? NaN), 0); // NaN: one is unknown
  const isRough = rows.some(({ mark }) => mark === "busy" || mark === "predicted");
  return rows.map((row) => ({
    ...row,
    isRough,
    share: all && row.seconds !== null ? row.seconds / all : null,
  }));
}

/** The time of a kernel, and what it is: its newest timing, its measured run, one that was disturbed,
 * or what is predicted.
 * No mark stands without the figure that it is of.
 * @param {TimingRow | null | undefined} timing
 * @param {PlanRun} run
 * @param {number | null} predicted_s
 * @returns {{seconds: number | null, mark: TimeMark}} */
function shownTime(timing, { measured_s, busy_s = null, is_certain = true }, predicted_s) {
  if (timing) return { seconds: timing.median_s, mark: timingMark(timing) };
  if (measured_s === null && busy_s !== null) return { seconds: busy_s, mark: "busy" };
  if (measured_s === null) return { seconds: predicted_s, mark: "predicted" };
  return { seconds: measured_s, mark: is_certain ? "" : "uncertain" };
}

const AUTO = "auto";

/** @type {(timing: TimingRow) => TimeMark} */
const timingMark = ({ had = null, earlier, doubts = [] }) =>
  had !== null ? "busy" : earlier ? "earlier" : doubts.length ? "uncertain" : "";

/** The variant of each kernel with the default opts of the record's device, where it was timed
 * there; that without opts where those are the default opts, which shows in the time of the run: a
 * run that was disturbed may have been of other opts, and has no time.
 * @param {PageRecord} record
 * @returns {(VariantRow | null)[]} */
function defaultVariants(record) {
  const { kernels, variants, device, plan: { runs } } = record;
  const names = [AUTO, `${AUTO} on ${device}`];
  const isTimed = (/** @type {VariantRow} */ { timing }) =>
    timing && !timing.emulator && !timing.machine;
  /** @type {Map<number, VariantRow>} */
  const autos = new Map();
  for (const row of variants) {
    const isAuto = names.includes(row.name) && !row.edited && !row.deleted;
    if (isAuto && !isOfOtherDevice(record, row)) autos.set(row.kernel, row);
  }
  return kernels.map(({ root }, k) => {
    const auto = autos.get(k);
    if (auto) return isTimed(auto) ? auto : null;
    const plain = variants[root], timing = plain?.timing;
    if (!timing || !isTimed(plain)) return null;
    return runs[k].measured_s === timing.median_s ? plain : null;
  });
}

/** The checked variants of kernels as the device of the record runs them: source that was edited has
 * a device, and a verdict, of its own.
 * @param {PageRecord} record
 * @param {number[]} places */
export const checkedVariants = ({ variants }, places) =>
  variants.filter(({ kernel, check, edited, deleted }) =>
    places.includes(kernel) && check && !edited && !deleted
  );

/** The cost of several kernels together; without seconds if those of one are unknown.
 * @param {Work[]} rows
 * @returns {Work} */
export function togetherWork(rows) {
  /** @type {(value: (row: Work) => number | null) => number | null} */
  const sum = (value) =>
    rows.reduce(
      (/** @type {number | null} */ all, row) => {
        const own = value(row);
        return all === null || own === null ? null : all + own;
      },
      0,
    );
  const has = (/** @type {TimeMark} */ mark) => rows.some((row) => row.mark === mark);
  const isOne = rows.every(({ name }) => name === rows[0].name);
  return {
    seconds: rows.length ? sum((row) => row.seconds) : null,
    mark: MARKS.find(has) ?? "",
    name: rows.length && isOne ? rows[0].name : AUTO,
    share: rows.length ? sum((row) => row.share) : null,
    isRough: rows.some((row) => row.isRough),
    bytes: sum((row) => row.bytes) ?? 0,
    operations: sum((row) => row.operations) ?? 0,
    peak: peakTogether(rows),
  };
}

/** The mean share of the peak over the time of several kernels; null where one is not known.
 * @param {Work[]} rows */
function peakTogether(rows) {
  let [seconds, used] = [0, 0];
  for (const row of rows) {
    if (row.peak === null || row.seconds === null) return null;
    seconds += row.seconds;
    used += row.seconds * row.peak;
  }
  return seconds ? used / seconds : null;
}

/** The marks of times, the one that matters most in a sum first.
 * @type {TimeMark[]} */
const MARKS = ["predicted", "busy", "earlier", "uncertain"];

/** The time: "1.20 ms"; "~1.20 ms" where it is predicted, or a part of it, "*1.20 ms" of an earlier
 * session; "" where it is unknown.
 * @param {Work} work */
export const workTime = (work) =>
  work.seconds === null ? "" : `${timeSign(work)}${secondsText(work.seconds)}`;

/** The sign before a time.
 * @param {Work} work */
export const timeSign = ({ mark }) => SIGNS[mark];

/** @type {Record<TimeMark, string>} */
const SIGNS = { "": "", busy: "", predicted: "~", earlier: "*", uncertain: "" };

/** What the times of kernels are, if not measured here undisturbed: "predicted", or "predicted for 3
 * of 4" of several.
 * @param {Work[]} rows */
export function timeWords(rows) {
  /** @type {[string, (row: Work) => boolean][]} */
  const kinds = [
    ["predicted", ({ mark, seconds }) => mark === "predicted" && seconds !== null],
    ["on a busy machine", ({ mark }) => mark === "busy"],
    ["measured earlier", ({ mark }) => mark === "earlier"],
    ["not certain", ({ mark }) => mark === "uncertain"],
  ];
  return kinds.flatMap(([words, isOf]) => {
    const count = rows.filter(isOf).length;
    const some = count < rows.length ? ` for ${count} of ${rows.length}` : "";
    return count ? [`${words}${some}`] : [];
  }).join(", ");
}

/** "12%", of the time of all kernels; "~12%" while some of these are disturbed or predicted; "" where
 * it is unknown.
 * @param {Work} work */
export const workShare = ({ share, isRough }) =>
  share === null ? "" : share < 0.01 ? "<1%" : `${isRough ? "~" : ""}${Math.round(share * 100)}%`;

/** "21 of 48 timed, 3 disturbed" while some kernels are, and others are not; else "".
 * @param {Work[]} work of all kernels */
export function timedCount(work) {
  const count = work.filter(({ mark }) => mark === "" || mark === "uncertain").length;
  const disturbed = work.filter(({ mark }) => mark === "busy").length;
  if (!(count || disturbed) || count === work.length) return "";
  return `${count} of ${work.length} timed${disturbed ? `, ${disturbed} disturbed` : ""}`;
}

/** "1.20 ms, 40 MiB": of several kernels together.
 * @param {Work[]} rows */
export function workTotal(rows) {
  const all = togetherWork(rows);
  return [workTime(all), bytesText(all.bytes)].filter(Boolean).join(", ");
}

/** The indexes of the kernels that are equal to one, with its own.
 * @param {PlanPicture} plan
 * @param {number} kernel */
export function equalKernels({ runs }, kernel) {
  const { like } = runs[kernel];
  return runs.flatMap((run, k) => (run.like === like ? [k] : []));
}

const LEAST_FOLDED = 2; // kernels that are worth a fold

/** The indexes of the kernels that draw weights and are folded; none if all do.
 * @param {PageRecord} record
 * @returns {number[]} */
export function weightKernels({ kernels }) {
  const places = kernels.flatMap(({ phases }, k) => (phases.includes(WEIGHTS) ? [k] : []));
  return places.length < LEAST_FOLDED || places.length === kernels.length ? [] : places;
}

export const WEIGHTS = "weights"; // their phase

/** The kernels of a row of the list: one, equal ones, or those of a fold, which has a name (else "").
 * `inside` are the rows that it unfolds to.
 * @typedef {{
 *   places: number[], name: string, isWeights: boolean, inside: KernelGroup[]
 * }} KernelGroup */

/** The orders of kernels: their index in the plan, their module, as the model has them, or a number,
 * the greatest first.
 * @typedef {"place" | "time" | "bytes" | "module"} KernelOrder */

/** A row of one kernel.
 * @param {number} place
 * @returns {KernelGroup} */
const alone = (place) => ({ places: [place], name: "", isWeights: false, inside: [] });

/** A row of several kernels.
 * @param {number[]} places
 * @param {Partial<KernelGroup>} [more]
 * @returns {KernelGroup} */
const together = (places, more = {}) => ({
  ...{ places, name: "", isWeights: false, inside: places.length > 1 ? places.map(alone) : [] },
  ...more,
});

/** The kernels that a query finds, in an order. Without a query, those that draw weights are the
 * last group in every order.
 * @param {PageRecord} record
 * @param {KernelOrder} order
 * @param {string} query
 * @returns {KernelGroup[]} */
export function kernelGroups(record, order, query) {
  const { kernels, lines } = record;
  const textOf = (/** @type {number} */ k) => {
    const { title, name, line, modules, phases } = kernels[k];
    const where = line === null ? "" : lines[line].where;
    return `${k + 1} ${title} ${name} ${where} ${modules.join(" ")} ${phases.join(" ")}`;
  };
  const found = search(kernels.map((_, k) => k), textOf, query);
  const places = order === "place" ? found : found.sort((a, b) => a - b);
  const weights = query.trim() ? [] : weightKernels(record);
  const others = places.filter((k) => !weights.includes(k));
  const groups = sortedGroups(record, order, others);
  const rows = order === "module" && query.trim() ? kernelsOf(groups).map(alone) : groups;
  if (!weights.length) return rows;
  const own = kernelsOf(sortedGroups(record, order, weights));
  return [...rows, together(own, { name: "weights, computed before", isWeights: true })];
}

/** @param {KernelGroup[]} groups */
const kernelsOf = (groups) => groups.flatMap(({ places }) => places);

/** Kernels in an order: each alone, but ordered by module, those of one together, and ordered by a
 * number, equal ones together, by their total.
 * @param {PageRecord} record
 * @param {KernelOrder} order
 * @param {number[]} places
 * @returns {KernelGroup[]} */
function sortedGroups(record, order, places) {
  const { kernels, plan: { runs } } = record;
  if (order === "module") return moduleGroups(kernels, places);
  if (order === "place") return places.map(alone);
  const work = kernelWork(record);
  /** @type {Map<number, number[]>} */
  const groups = new Map();
  for (const k of places) {
    groups.get(runs[k].like)?.push(k) ?? groups.set(runs[k].like, [k]);
  }
  /** @type {(group: number[]) => number} */
  const figure = (group) => {
    const { bytes, seconds } = togetherWork(group.map((k) => work[k]));
    return order === "bytes" ? bytes : seconds ?? -1;
  };
  const sorted = [...groups.values()].sort((a, b) => figure(b) - figure(a) || a[0] - b[0]);
  return sorted.map((group) => together(group));
}

/** The modules of kernels as folds within each other, in the order in which they run; kernels of no
 * module are last.
 * @param {KernelRow[]} kernels
 * @param {number[]} places
 * @returns {KernelGroup[]} */
function moduleGroups(kernels, places) {
  const pathsOf = new Map(places.map((k) => [k, outerPaths(kernels[k].module)]));
  /** @type {(own: number[], depth: number) => KernelGroup[]} */
  const groupsOf = (own, depth) => {
    const pathOf = (/** @type {number} */ k) => pathsOf.get(k)?.[depth] ?? `kernel ${k}`;
    const groups = [...grouped(own, pathOf)];
    if (groups.length === 1 && own.length > 1) return groupsOf(own, depth + 1);
    return groups.map((group) => {
      if (group.length === 1) return alone(group[0]);
      const inside = groupsOf(group, depth + 1);
      return together(group, { name: sharedPath(group.map((k) => pathsOf.get(k) ?? [])), inside });
    });
  };
  const isOfNone = (/** @type {number} */ k) => Number(!kernels[k].module);
  return groupsOf(places.toSorted((a, b) => isOfNone(a) - isOfNone(b) || a - b), 0);
}

/** The paths of the modules around a module, from outside, with its own: "h", "h.0", "h.0.mlp".
 * @param {string} path */
const outerPaths = (path) =>
  [...path.matchAll(/[^./[\]]+\]?/g)].map(({ 0: part, index }) =>
    path.slice(0, index + part.length)
  );

/** The innermost of the paths that all have.
 * @param {string[][]} all */
const sharedPath = (all) =>
  all[0].findLast((path, depth) => all.every((other) => other[depth] === path)) ?? "";

/** What tells each kernel from others with the same title: the sizes of its loops, which its name has,
 * and if those are the same, too, the modules that not all of them belong to; "" if no other kernel
 * has the title. Equal kernels are no others.
 * @param {PageRecord} record
 * @returns {string[]} */
export function distinctions({ kernels, plan: { runs } }) {
  const words = kernels.map(() => "");
  const places = kernels.map((_, k) => k);
  for (const titled of grouped(places, (k) => kernels[k].title)) {
    if (titled.every((k) => runs[k].like === runs[titled[0]].like)) continue;
    for (const named of grouped(titled, (k) => kernels[k].name)) {
      const all = new Counts(), having = new Counts();
      for (const k of named) {
        all.add("", runs[k].like);
        for (const path of new Set(kernels[k].modules)) having.add(path, runs[k].like);
      }
      for (const k of named) {
        const { like } = runs[k];
        const others = all.ofOthers("", like);
        const own = kernels[k].modules.filter((path) => having.ofOthers(path, like) < others);
        words[k] = [kernels[k].name.split("_").slice(1).join("x"), ...own].join(" ");
      }
    }
  }
  return words;
}

/** Numbers in groups of one key each.
 * @param {number[]} places
 * @param {(place: number) => string} keyOf
 * @returns {Iterable<number[]>} */
function grouped(places, keyOf) {
  /** @type {Map<string, number[]>} */
  const groups = new Map();
  for (const place of places) {
    const key = keyOf(place);
    groups.get(key)?.push(place) ?? groups.set(key, [place]);
  }
  return groups.values();
}

/** How often each text came, in all and with each number. */
class Counts {
  /** @type {Map<string, {all: number, by: Map<number, number>}>} */
  #rows = new Map();

  /** @type {(text: string, number: number) => void} */
  add(text, number) {
    const row = this.#rows.get(text) ?? { all: 0, by: new Map() };
    this.#rows.set(text, row);
    row.all += 1;
    row.by.set(number, (row.by.get(number) ?? 0) + 1);
  }

  /** How often a text came with other numbers.
   * @type {(text: string, number: number) => number} */
  ofOthers(text, number) {
    const row = this.#rows.get(text);
    return row ? row.all - (row.by.get(number) ?? 0) : 0;
  }
}

/** The lines of the notebook that several kernels have.
 * @param {KernelRow[]} kernels
 * @returns {Set<number | null>} */
export function sharedLines(kernels) {
  const [seen, shared] = [new Set(), new Set()];
  for (const { line } of kernels) (seen.has(line) ? shared : seen).add(line);
  return shared;
}

/** The path that modules share, with * in place of differing numbers; "" if they share none.
 * @param {KernelRow[]} kernels */
export function sharedModule(kernels) {
  const paths = kernels.map(({ modules }) => modules[0] ?? "");
  const pattern = (/** @type {string} */ path) => path.replace(/\d+/g, "*");
  const [path] = paths;
  if (paths.every((other) => other === path)) return path;
  return paths.every((other) => pattern(other) === pattern(path)) ? pattern(path) : "";
}

// The phases that kernels belong to: weights, forward, backward, optimiser.

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

/** The names of kernels beside the letters of their phases, which their titles and folds contain.
 * @param {string} title
 * @param {PhaseRow[]} phases */
export function withoutPhases(title, phases) {
  const names = phases.map(({ name }) => name).join(", ");
  const head = `${names}: `, tail = `, ${names}`;
  if (names && title.startsWith(head)) return title.slice(head.length);
  return names && title.endsWith(tail) ? title.slice(0, -tail.length) : title;
}

const FORWARD = "forward";

/** The phase whose colour kernels have: the forward, if they run in it, or else the last.
 * @param {PageRecord} record
 * @param {string[]} names of their phases
 * @returns {PhaseRow | undefined} */
export function mainPhase({ plan: { phases } }, names) {
  const own = phases.filter(({ name }) => names.includes(name));
  return own.find(({ name }) => name === FORWARD) ?? own.at(-1);
}

/** The number of kernels with the colour of a phase, and their share of the time of all.
 * @param {PageRecord} record
 * @param {Work[]} work
 * @param {PhaseRow} phase */
export function phaseCount(record, work, phase) {
  const own = work.filter((_, k) => mainPhase(record, record.kernels[k].phases) === phase);
  return { count: own.length, share: workShare(togetherWork(own)) };
}

/** The kernels that compute what a line made; of an input those that read it.
 * @param {PageRecord} record
 * @param {number} line */
export function lineKernels({ plan, nodes }, line) {
  const isMade = plan.nodes.map(({ n }) => nodes.lines[n].some((row) => row.includes(line)));
  const own = plan.nodes.flatMap(({ kernels }, i) => isMade[i] ? kernels : []);
  const readers = plan.edges.flatMap(({ a, b }) => isMade[a] ? plan.nodes[b].kernels : []);
  return [...new Set(own.length ? own : readers)].sort((a, b) => a - b);
}
