// All decisions as a list: the same as the picture, for those who do not see it.

import { linked } from "../../app/links.js";
import { button, heading, kernelNumber } from "../../app/pieces.js";
import { nodeLink } from "../../app/store.js";
import { h, words } from "../../base/elements.js";
import { longList } from "../../base/lists.js";
import { plural } from "../../base/text.js";
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
  const copies = decisions.filter((d) => d.is_copy).length;
  const isWanted = (/** @type {DecisionRow} */ d) =>
    d.is_copy ? state.copies : !state.storedOnly || d.stored || d.forced;
  const shown = decisions.filter((d) => isWanted(d) || d.node === app.view.node);
  return [
    heading(
      "DECISIONS",
      h(
        "span",
        { class: "wb-quiet", title: "listed, of all decisions" },
        `${shown.length} of ${decisions.length}`,
      ),
      listSwitch("stored-only", "stored only", "hide the values that are fused", {
        checked: state.storedOnly,
        set: (checked) => ((state.storedOnly = checked), changed()),
      }),
      copies > 0 &&
        listSwitch("copies", plural(copies, "copy"), "show what is only copied to the device", {
          checked: state.copies,
          set: (checked) => ((state.copies = checked), changed()),
        }),
      button(app, "copy", () => copyPlan(app), {
        key: "y",
        name: "copy-plan",
        title: "as Python: code that selects this plan",
      }),
    ),
    longList("listbox", "decisions", { class: "wb-plan-list" }, {
      count: shown.length,
      row: (place) => decisionItem(app, shown[place]),
      least: shown.findIndex((d) => d.node === app.view.node),
      grown: () => app.changed("rows"),
    }),
  ];
}

/** A box to tick.
 * @param {string} key
 * @param {string} text
 * @param {string} title
 * @param {{checked: boolean, set(checked: boolean): void}} state */
const listSwitch = (key, text, title, { checked, set }) =>
  h(
    "label",
    { class: "wb-filter", title },
    h("input", {
      type: "checkbox",
      "data-key": key,
      checked,
      onchange: ({ target }) => set(target.checked),
    }),
    text,
  );

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
        title: `${name}: ${reason}`,
        onclick: () => app.select({ node }),
      },
      kernelNumber(app, kernel),
      h("b", { "data-term": stored ? "stored" : "fused" }, stored ? "stored" : "fused"),
      words(name, "", 40),
      forced && h("b", { "data-term": "forced" }, "forced"),
      h("span", { class: "wb-quiet wb-plan-why" }, reason),
    ),
    nodeLink(node),
  );
}
