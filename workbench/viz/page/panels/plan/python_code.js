// Copy as Python, in Plan: the code that gets at the plan. It begins with the lines that bind `ex`
// (record.expr.python).

import { copy } from "../../app/actions.js";

/** @import { App } from "../../app/store.js" */

/** Copy the plan, or the decision that is picked.
 * @param {App} app */
export const copyPlan = (app) => copy(app, planPython(app), "the plan as Python");

/** Code that gets at the plan, or at the decision that is picked.
 * @param {App} app */
function planPython(app) {
  const { expr, plan } = app.record;
  const place = plan.decisions.findIndex(({ node }) => node === app.view.node);
  if (place < 0) return `${expr.python}print(ex.plan)\n`;
  const { stored, asked, forced } = plan.decisions[place];
  const other = forced ? "None" : stored ? "False" : "True";
  const lines = [`decision = ex.decisions[${place}]`, "print(decision)"];
  if (!asked) lines.push(`# the other way: ex = ex.replan({decision.node: ${other}})`);
  return `${expr.python}${lines.join("\n")}\n`;
}
