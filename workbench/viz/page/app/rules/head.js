// The head of a rule: its name, its source line, the links to its uses, and its switch.

import { h, words } from "../../base/elements.js";
import { ruleOffButton } from "./switch.js";
import { useStepper } from "./uses.js";

/** @import { App } from "../store.js" */
/** @import { RuleRow } from "../../record.d.ts" */

/** A step of the default opts has neither a file nor uses.
 * @param {App} app
 * @param {Pick<RuleRow, "name" | "set" | "file" | "line"> & {is_fixed?: boolean}} row */
export const ruleHead = (app, { name, set, file, line, is_fixed: isFixed }) =>
  h(
    "div",
    { class: "wb-rule-head" },
    h("b", { "data-term": "rule" }, words(name)),
    set &&
      h("span", { class: "wb-quiet", title: "the table that the rule stands in" }, ` of ${set}`),
    file &&
      h("span", { class: "wb-quiet", title: "the file and line of the rule" }, `${file}:${line}`),
    file && useStepper(app, name),
    file && !isFixed && ruleOffButton(app, name),
  );
