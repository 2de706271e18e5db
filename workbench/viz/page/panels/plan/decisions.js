// All decisions as a list: the same as the picture, for those who do not see it.

import { linked } from "../../app/links.js";
import { button, heading, kernelNumber } from "../../app/pieces.js";
import { nodeLink } from "../../app/store.js";
import { h, words } from "../../base/elements.js";
import { walkable } from "../../base/lists.js";
import { copyPlan } from "./copy.js";

/** @import { DecisionRow } from "../../record.d.ts" */
/** @import { PlanState } from "./panel.js" */
/** @import { App } from "../../app/store.js" */

/** All decisions as a list: the same as the picture, for those who do not see it.
 * @param {App} app
 * @param {PlanState} state
 * @param {() => void} changed */
export function planList(app, state, changed) {
  const { decisions } = app.record.plan;
  const most = 400;
  const shown = decisions.filter((d) =>
    !state.storedOnly || d.stored || d.forced || d.node === app.view.node
  );
  const items = shown.slice(0, most).map((decision) => decisionItem(app, decision));
  return [
    heading(
      "DECISIONS",
      h("span", { class: "wb-quiet" }, `${shown.length} of ${decisions.length}`),
      h(
        "label",
        { class: "wb-rw-filter" },
        h("input", {
          type: "checkbox",
          "data-key": "stored-only",
          checked: state.storedOnly,
          onchange: ({ target }) => ((state.storedOnly = target.checked), changed()),
        }),
        "stored only",
      ),
      button(app, "copy", () => copyPlan(app), {
        key: "y",
        name: "copy-plan",
        title: "as Python: code that selects this plan",
      }),
    ),
    walkable("listbox", "decisions", { class: "wb-plan-list" }, ...items),
    shown.length > most &&
    h(
      "p",
      { class: "wb-quiet" },
      `and ${shown.length - most} more: search finds them in the picture`,
    ),
  ];
}

/**
 * @param {App} app
 * @param {DecisionRow} decision */
function decisionItem(app, decision) {
  const { node, name, stored, forced, reason, kernel } = decision;
  return linked(
    h(
      "div",
      {
        role: "option",
        "data-item": "",
        "data-key": `decision-${node}`,
        "aria-selected": String(app.view.node === node),
        title: reason,
        onclick: () => app.select({ node }),
      },
      kernelNumber(app, kernel),
      h("b", {}, stored ? "stored" : "fused"),
      words(name, "", 40),
      forced && h("b", {}, "forced"),
      h("span", { class: "wb-quiet wb-plan-why" }, reason),
    ),
    nodeLink(node),
  );
}
