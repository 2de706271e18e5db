// The passes of the selected variant, and the history of a node through them.

import { readingOf } from "./states.js";

/** @import { App } from "../app/store.js" */
/** @import { NodeColumns, PageRecord, RecordedPass, VariantRow } from "../record.d.ts" */

/** The passes of scheduling that concern the kernel, then those of the selected variant.
 * @param {App} app */
export function passesOf(app) {
  const { passes } = app.record;
  const isShown = (/** @type {RecordedPass} */ { variant, kernel }) =>
    variant === null && (kernel === null || kernel === app.view.kernel);
  const shared = passes.map((_, i) => i).filter((i) => isShown(passes[i]));
  return [...shared, ...(app.variant()?.passes || [])];
}

/** The pass that is shown: the selected one, or in another variant that of its name, else the first
 * that rules rewrote, or that has steps (decisions have no graph); beside another side the first
 * that lowers the kernel, which begins with the kernel as its opts left it, of those by name that
 * both sides have.
 * @param {App} app
 * @returns {number | null} */
export function shownPass(app) {
  const { record: { passes }, view: { pass }, partner } = app;
  const all = passesOf(app);
  if (pass !== null && all.includes(pass)) return pass;
  const name = passes[pass ?? -1]?.name;
  const isBeside = app.arrangements.showsBeside;
  const theirs = isBeside && partner && new Set(passNames(partner));
  const common = all.filter((place) => !theirs || theirs.has(passes[place].name));
  const places = common.length ? common : all;
  const own = isBeside ? places.filter((place) => app.variant()?.passes.includes(place)) : [];
  return places.find((place) => passes[place].name === name) ??
    own.find((place) => !["opt", "rewrite"].includes(passes[place].unit)) ??
    places.find((place) => passes[place].unit === "rewrite" && passes[place].rewrites.length) ??
    places.find((place) => passes[place].unit !== "decision" && passes[place].rewrites.length) ??
    places[0] ?? null;
}

/** The names of the passes of the selected variant.
 * @param {App} app */
export const passNames = (app) => passesOf(app).map((place) => app.record.passes[place].name);

/** Whether a variant has no passes of its own: it was not compiled yet.
 * @param {VariantRow | null} variant */
export const lacksPasses = (variant) =>
  variant !== null && !variant.passes.length && !variant.edited && !variant.error;

/** The next or previous pass with changes; null if there is none.
 * @param {App} app
 * @param {number} step
 * @param {number | null} from */
export function passBeside(app, step, from) {
  const passes = passesOf(app).filter((place) => app.record.passes[place].changed);
  const current = from === null ? -1 : passes.indexOf(from);
  const other = current < 0 ? (step > 0 ? 0 : passes.length - 1) : current + step;
  return passes[other] ?? null;
}

/** Go to the next or previous pass with changes.
 * @param {App} app
 * @param {number} step
 * @param {number | null} [from] */
export function stepPass(app, step, from = app.view.pass) {
  const place = passBeside(app, step, from) ?? from;
  if (place !== null) {
    app.select({ pass: place, step: 0, ...app.arrangements.toSee("graph", "rewrites") });
  }
}

/** The seconds of each of some passes, without those of the passes that it ran, which follow it.
 * @param {Pick<RecordedPass, "depth" | "seconds">[]} passes */
export function ownSeconds(passes) {
  const own = passes.map(({ seconds }) => seconds);
  /** @type {number[]} */
  const around = []; // the passes around this one, outermost first
  passes.forEach(({ depth, seconds }, i) => {
    around.length = Math.min(around.length, depth);
    const parent = around.at(-1);
    if (parent !== undefined) own[parent] = Math.max(0, own[parent] - seconds);
    around.push(i);
  });
  return own;
}

// The history of a node: the rewrites that made it, back to the tensor graph.

const MOST_ROWS = 40; // of the history of a node

/** A rewrite that led to a node: its target and its result. Step 0 is a pass that is one function.
 * @typedef {{pass: number, step: number, node: number, from: number}} Origin */

/** Return the rewrites that led to some nodes, and to the indexes at which they read or write, the
 * latest first, each once; and `tensors`, the nodes of the tensor graph that they stand for.
 * @param {PageRecord} record
 * @param {number[]} passes
 * @param {number[]} start */
export function nodeHistory(record, passes, start) {
  const rank = new Map(passes.map((place, i) => [place, i]));
  /** By pass and step.
   * @type {Map<string, Origin>} */
  const origins = new Map();
  const before = ancestors(
    record,
    passes,
    start.flatMap((n) => withIndex(record.nodes, n)),
    (pass, step, n, from) => {
      const key = `${pass} ${step}`;
      const known = origins.get(key);
      if (step >= 0 && !known) origins.set(key, { pass, step, node: n, from });
      else if (known?.from === n) known.from = from; // the same pass continued from it
    },
  );
  const rows = [...origins.values()].sort((a, b) =>
    (rank.get(b.pass) ?? 0) - (rank.get(a.pass) ?? 0) || b.step - a.step
  );
  const drawn = new Map(record.plan.nodes.map(({ n, role }) => [n, role]));
  const decided = new Set(record.plan.decisions.map((decision) => decision.node));
  const tensors = [...before].filter((n) => drawn.has(n) || decided.has(n));
  const values = tensors.filter((n) => drawn.get(n) === "value"); // and no memory, nor its movement
  return { rows: rows.slice(0, MOST_ROWS), tensors: values.length ? values : tensors };
}

/** Return nodes and all their origins in some passes, the nearest first, as a Set. The operands of
 * an index are part of it: a sum that lowering sorts anew.
 * @param {PageRecord} record
 * @param {number[]} passes
 * @param {number[]} start
 * @param {(pass: number, step: number, node: number, from: number) => void} visit */
export function ancestors({ nodes }, passes, start, visit = () => {}) {
  const shown = new Set(passes);
  const seen = new Set(start);
  for (const n of seen) { // a Set grows on the way
    for (const [pass, step, from] of nodes.causes[n] || []) {
      if (shown.has(pass)) {
        visit(pass, step, n, from);
        seen.add(from);
      }
    }
    if (readingOf(nodes, n).is_index) {
      for (const s of nodes.src[n]) if (readingOf(nodes, s).is_index) seen.add(s);
    }
  }
  return seen;
}

/** A node, and the indexes at which it reads or writes memory.
 * @param {NodeColumns} nodes
 * @param {number} n */
function withIndex(nodes, n) {
  const place = readingOf(nodes, n).role === "access" ? nodes.src[n][0] : n;
  return readingOf(nodes, place).role === "place" ? [n, ...nodes.src[place].slice(1)] : [n];
}
