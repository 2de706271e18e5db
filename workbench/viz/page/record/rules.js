// Rules and decisions of the record by their source line.

/** @import { RecordedPass } from "../record.d.ts" */
/** @import { App } from "../app/store.js" */

/** Return [rule, how often] of a pass, the most frequent first.
 * @param {RecordedPass} pass */
export function ruleCounts(pass) {
  /** @type {Map<number, number>} */
  const counts = new Map();
  for (const [rule] of pass.rewrites) counts.set(rule, (counts.get(rule) || 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]);
}

/** The name of a rule; of a decision there is none.
 * @param {App} app
 * @param {number} rule */
export const ruleName = (app, rule) => app.record.rules[rule]?.name ?? "decision";
/** What was decided about a node.
 * @param {App} app
 * @param {number | null} node */
export const decisionOf = (app, node) =>
  app.record.plan.decisions.find((decision) => decision.node === node);
