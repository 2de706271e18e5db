// The film of scheduling: one step for each decision about a value that a kernel computes, and, if
// the reader wants them, one for each rewrite by which its kernel is built. The record has the
// decisions, and for each drawn value the number of decisions after which its kernels are known; a
// step leaves out everything undecided.

/** @import { DecisionRow, PageRecord, PlanNode, PlanPicture } from "../record.d.ts" */
/** @import { App } from "../app/store.js" */

/** A step: its decision, that decision's place among all, and the rewrite that recorded it; of a
 * rewrite of the value (`rewrite`: its number among these, 0 of the decision itself) that one.
 * @typedef {{
 *   decision: DecisionRow, place: number, pass: number, step: number, rewrite: number
 * }} FilmStep */

/** The steps of the film, in the order in which the scheduler decided.
 * @param {Pick<PageRecord, "plan" | "passes">} record
 * @returns {FilmStep[]} */
export function filmOf({ plan, passes }) {
  /** @type {FilmStep[]} */
  const film = [];
  passes.forEach(({ unit, rewrites }, pass) => {
    if (unit !== "decision") return;
    const first = decidedIn({ passes }, pass, 0);
    rewrites.forEach((_, i) => {
      const decision = plan.decisions[first + i];
      if (decision && decision.kernel !== null) {
        film.push({ decision, place: first + i, pass, step: i + 1, rewrite: 0 });
      }
    });
  });
  return film;
}

/** The steps of a film, each followed by the rewrites of its value.
 * @param {FilmStep[]} film
 * @returns {FilmStep[]} */
export function withRewrites(film) {
  return film.flatMap((at) => {
    const { rewritten_by: pass, rewrites } = at.decision;
    if (pass === null) return [at];
    return [at, ...rewrites.map((step, i) => ({ ...at, pass, step, rewrite: i + 1 }))];
  });
}

/** The current step, from 1; 0: the whole plan. A rewrite may be about several values.
 * @param {App} app
 * @param {FilmStep[]} film */
export function filmAt({ view }, film) {
  if (!view.step) return 0;
  const same = film.filter(({ pass, step }) => pass === view.pass && step === view.step);
  const shown = same.find(({ decision }) => decision.node === view.node) ?? same[0];
  if (shown) return film.indexOf(shown) + 1;
  return film.findLastIndex(({ pass, step, rewrite }) =>
    !rewrite && pass === view.pass && step <= view.step
  ) + 1;
}

/** The number of decisions after which the plan is shown at a step; all of them at step 0.
 * @param {FilmStep[]} film
 * @param {number} at */
export const decidedAt = (film, at) => (at ? film[at - 1].place + 1 : Infinity);

/** The number of decisions after which a step of a pass is: those that are made before the pass, too.
 * @param {Pick<PageRecord, "passes">} record
 * @param {number} pass
 * @param {number} step */
export const decidedIn = ({ passes }, pass, step) =>
  passes.slice(0, pass).filter(({ unit }) => unit === "decision")
    .reduce((sum, { matches }) => sum + matches, step);

/** Whether the kernels of a drawn value are decided.
 * @param {PlanNode} node
 * @param {number} decided */
export const isDecided = (node, decided) => node.step <= decided;

/** The ground of a kernel, as far as it is decided, as an SVG path.
 * @param {PlanPicture} plan
 * @param {number} kernel
 * @param {number} decided */
export function groundPath({ nodes, edges }, kernel, decided) {
  const isOn = (/** @type {PlanNode} */ node) =>
    node.kernels[0] === kernel && isDecided(node, decided);
  return [
    ...nodes.filter(isOn).map(({ patch }) => patch),
    ...edges.filter(({ a, b }) => isOn(nodes[a]) && isOn(nodes[b])).map(({ band }) => band),
  ].join("");
}

/** The indexes of the drawn values that read one, directly or through movement.
 * @param {PlanPicture} plan
 * @param {number} place */
export function readersOf({ nodes, edges }, place) {
  const seen = new Set([place]);
  for (const at of seen) { // a Set grows on the way
    if (at !== place && nodes[at].role !== "movement") continue;
    for (const { a, b } of edges) if (a === at) seen.add(b);
  }
  return [...seen].filter((at) => at !== place && nodes[at].role !== "movement");
}
