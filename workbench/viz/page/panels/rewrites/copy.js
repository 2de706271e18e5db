// Copy as Python, in Rewrites: the code for the current view. The code comes from the record: the
// lines that bind the exploration, the variant, and the pass.

import { copy } from "../../app/actions.js";
import { rowAt } from "../../app/store.js";

/** @import { PageRecord } from "../../record.d.ts" */
/** @import { App } from "../../app/store.js" */

/** Copy a pass, or one of its steps.
 * @param {App} app
 * @param {number | null} place
 * @param {number} step */
export const copyStep = (app, place, step) =>
  place !== null &&
  copy(
    app,
    stepPython(app.record, place, step),
    step ? "this step as Python" : "this pass as Python",
  );

/** Code that returns a pass, or at one of its steps; a pass that is one function has no matches.
 * @param {Pick<PageRecord, "expr" | "passes" | "variants">} record
 * @param {number} place
 * @param {number} step */
export function stepPython({ expr, passes, variants }, place, step) {
  const { python, rewrites, variant } = passes[place];
  const isMatch = step > 0 && step <= rewrites.length;
  const code = isMatch ? python.match.join(String(step - 1)) : python.outcome;
  return expr.python + (rowAt(variants, variant)?.recipe ?? "") + code;
}
