// Copy as Python, in Plan: the code that gets at the plan. The record has it; it begins with the
// lines that bind the exploration.

import { copy } from "../../app/actions.js";
import { decisionOf } from "../../record/rules.js";

/** @import { App } from "../../app/store.js" */

/** Copy the plan, or the decision that is picked.
 * @param {App} app */
export function copyPlan(app) {
  const { expr, recipes } = app.record;
  const code = decisionOf(app, app.view.node)?.python ?? recipes.plan;
  copy(app, expr.python + code, "the plan as Python");
}
