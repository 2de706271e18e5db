// A decision of the scheduler: its reason, its numbers, and the alternative to try.

import { act, canAsk, NEEDS_PYTHON, say } from "../actions.js";
import { button } from "../pieces.js";
import { NOTHING, rowAt } from "../store.js";
import { h, words } from "../../base/elements.js";
import { planFigure } from "../../base/text.js";
import { choiceBars } from "./choices.js";
import { lostVariant } from "./next_plan.js";

/** @import { DecisionRow, RecordedPass } from "../../record.d.ts" */
/** @import { App } from "../store.js" */

/** Turn a decision round, and show what became of it: in another plan values have other numbers.
 * @param {App} app
 * @param {number} node
 * @param {boolean | null} store */
async function replan(app, node, store) {
  const mode = app.view.mode === "rewrites" ? "rewrites" : "plan";
  const { record: was, view: { variant } } = app;
  if (!(await act(app, mode, { do: "replan", node, store }))) return;
  const { plan, passes } = app.record;
  const lost = lostVariant(was, app.record, variant);
  if (lost) say(app, lost, 6000);
  const place = plan.compared?.change;
  if (place === null) return app.select(NOTHING); // nothing is to be decided about it now
  const now = rowAt(plan.decisions, place)?.node;
  if (now === undefined) return;
  if (mode === "plan") return app.select({ node: now });
  const stepOf = (/** @type {RecordedPass} */ { unit, rewrites }) =>
    unit === "decision" ? rewrites.findIndex(([, before]) => before === now) : -1;
  const pass = passes.findIndex((p) => stepOf(p) >= 0);
  if (pass >= 0) app.select({ pass, step: stepOf(passes[pass]) + 1 });
}

/** A decision's reason and figures, with the button that tries the other way.
 * @param {App} app
 * @param {DecisionRow} decision */
export function decisionParts(app, decision) {
  const estimates = decision.estimates.map(([name, value]) =>
    h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, planFigure(value)))
  );
  return [
    h(
      "p",
      { class: "wb-reason", "data-term": decision.stored ? "stored" : "fused" },
      words(decision.reason, "", 600),
      decision.forced && h("b", {}, " (forced by you)"),
    ),
    h("div", { class: "wb-try" }, ...planButtons(app, decision)),
    choiceBars(decision),
    h("p", {}, decision.costs),
    estimates.length > 0 &&
    h(
      "table",
      { class: "wb-figures", title: "estimated cost, in operations" },
      h("tbody", {}, ...estimates),
    ),
  ];
}

/**
 * @param {App} app
 * @param {DecisionRow} decision */
function planButtons(app, decision) {
  const { node, stored, forced } = decision;
  const turn = (/** @type {boolean | null} */ to) => () => replan(app, node, to);
  const waits = app.pending("replan");
  if (decision.is_requested) return []; // it is stored whatever it costs
  if (waits) return [h("span", { class: "wb-quiet", role: "status" }, "planning again …")];
  const title = "plan again with the opposite decision, and time it";
  return [
    forced
      ? button(app, "undo", turn(null), {
        python: true,
        title: "leave it to the scheduler again",
        name: "replan-undo",
      })
      : button(app, stored ? "fuse anyway" : "cut here", turn(!stored), {
        python: true,
        title,
        name: "replan",
      }),
    !canAsk(app) && h("span", { class: "wb-quiet" }, NEEDS_PYTHON),
  ];
}
