// Over all modes: the rules that scheduling runs without, the changes, and the way back.

import { checkedText } from "../../app/actions.js";
import { button, hasAny } from "../../app/pieces.js";
import { switchRule } from "../../app/rule.js";
import { rowAt } from "../../app/store.js";
import { h, recordText, refill } from "../../base/elements.js";

/** @import { App } from "../../app/store.js" */
/** @import { Changes, PanelRow } from "../../types.d.ts" */

/** @satisfies {PanelRow} */
export const panel = { place: "top", order: 1, make: withoutPane };

/** Shown only while scheduling runs without some rules.
 * @param {App} app */
function withoutPane(app) {
  const el = h("div", { class: "wb-without", hidden: true, "data-term": "without" });
  const update = (/** @type {Changes} */ changes) => {
    if (!hasAny(changes, "record", "kernel", "variant", "live", "pending rule_off")) return;
    const { rules, differs } = app.record.without;
    el.hidden = !rules.length;
    refill(el, ...(rules.length ? withoutParts(app, rules, differs) : []));
  };
  return { el, update };
}

/**
 * @param {App} app
 * @param {string[]} rules
 * @param {string} differs */
function withoutParts(app, rules, differs) {
  const { compared } = app.record.plan;
  const row = rowAt(app.record.variants, app.kernel()?.root); // it was checked then
  const time = compared?.speed && `time: ${compared.speed}`;
  const answer = row &&
    (row.error ? "it fails" : row.check ? checkedText(row.check) : "answer not checked");
  const verdict = answer && `${row.name}: ${answer}`;
  const summary = [differs && `${differs} from before`, time, verdict].filter(Boolean).join(" · ");
  const waits = app.pending("rule_off");
  return [
    h("b", {}, "without ", recordText(rules.join(", "), "", 400)),
    h("span", { role: "status" }, waits ? "planning again …" : summary),
    ...(waits
      ? []
      : rules.map((name) =>
        button(app, rules.length > 1 ? `switch ${name} on` : "switch on", () =>
          switchRule(app, name, true), {
          python: true,
          name: `rule-on-${name}`,
          title: "plan and compile with this rule again",
        })
      )),
  ];
}
