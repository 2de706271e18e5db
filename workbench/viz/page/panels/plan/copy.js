// Copy as Python, in Plan: the code for the plan. The code comes from the record; it begins with
// the lines that bind the exploration.

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
