// A step in words: its rule, the change, the whole text; or the totals of a pass.

import { decisionParts } from "../../app/decision.js";
import { errorBox } from "../../app/pieces.js";
import { ruleCode, ruleHead, rulesOffBanner } from "../../app/rule.js";
import { rowAt } from "../../app/store.js";
import { h, recordText } from "../../base/elements.js";
import { inline, stateLines } from "../../record/node_text.js";
import { decisionOf, ruleCounts, ruleName } from "../../record/rule_uses.js";
import { changeText, textDifference } from "./differences.js";

/** @import { App } from "../../app/store.js" */
/** @import { Child } from "../../base/elements.d.ts" */
/** @import { RewritesState } from "./position.js" */

/** The text of a step: its rule, its change, the whole text; of a pass: its totals.
 * @param {App} app
 * @param {RewritesState} state
 * @param {number} place
 * @param {number} step
 * @returns {Child[]} */
export function stepText(app, state, place, step) {
  const pass = app.record.passes[place];
  const timeline = state.timeline(place);
  if (step === 0) return passText(app, state, place);
  if (pass.unit === "decision") return decisionWords(app, pass.rewrites[step - 1][1]);
  const change = timeline.steps[step - 1];
  const { nodes } = timeline;
  const both = [timeline.roots(step - 1), timeline.roots(step)];
  return [
    rulesOffBanner(app),
    ruleCard(app, change.rule, pass.rewrites[step - 1]?.[4]),
    changeText(nodes, change),
    both.every((roots) => roots?.length === 1) &&
    textDifference(
      "whole text, with differences",
      state.showsTexts,
      () => both.map((roots) => roots?.flatMap((root) => stateLines(nodes, root)) ?? []),
      (isOpen) => (state.showsTexts = isOpen),
    ),
  ];
}

/** The totals of a pass, and its texts before and after.
 * @param {App} app
 * @param {RewritesState} state
 * @param {number} place
 * @returns {Child[]} */
function passText(app, state, place) {
  const { text_before, text_after } = app.record.passes[place];
  const texts = [text_before, text_after].map((k) => rowAt(app.record.texts, k)?.split("\n"));
  const [before, after] = [texts[0] ?? texts[1], texts[1] ?? texts[0]];
  const differs = texts[0] && texts[1] && text_before !== text_after;
  const title = differs ? "changes of the whole pass" : "the text";
  return [
    rulesOffBanner(app),
    ...passOverview(app, state, place),
    before && after && textDifference(title, true, () => [before, after], () => {}),
  ];
}

/** The reason why a value is stored or fused; Plan has more.
 * @param {App} app
 * @param {number} node
 * @returns {Child[]} */
function decisionWords(app, node) {
  const decision = decisionOf(app, node);
  if (!decision) return [h("p", { class: "wb-quiet" }, "The reason is not recorded.")];
  return [
    h("pre", {}, `${decision.name}: ${inline(app.record.nodes, node, 120)}`),
    ...decisionParts(app, decision),
    planButton(app, node),
  ];
}

/** A button that leads to a value in Plan; null: to Plan.
 * @param {App} app
 * @param {number | null} node */
export const planButton = (app, node) =>
  h("button", {
    class: "wb-button",
    type: "button",
    onclick: () => app.select({ ...app.arrangements.toSee("plan", "plan"), node }),
  }, "see it in Plan");

/** The rule of a step: its text, its reason, its source line.
 * @param {App} app
 * @param {number} rule
 * @param {string} [about] */
function ruleCard(app, rule, about) {
  const row = app.record.rules[rule];
  if (!row) return null;
  return h(
    "div",
    { class: "wb-rw-rule" },
    ruleHead(app, row),
    about && h("div", { title: "the subject of this step" }, recordText(about)),
    row.text && h("code", { class: "wb-rw-pattern" }, recordText(row.text, "", 1000)),
    row.doc && h("div", { class: "wb-rw-doc" }, recordText(row.doc, "", 1500)),
    ruleCode(app, row),
  );
}

/** A pass as a whole: its purpose, and the matches of its rules.
 * @param {App} app
 * @param {RewritesState} state
 * @param {number} place */
function passOverview(app, state, place) {
  const pass = app.record.passes[place];
  const counts = ruleCounts(pass).filter(([rule]) => rule >= 0).slice(0, 12);
  return [
    h("p", { class: "wb-rw-doc" }, recordText(pass.doc, "", 1500)),
    errorBox(pass.error ? { what: pass.error } : null),
    counts.length > 0 &&
    h(
      "div",
      { class: "wb-rw-counts" },
      ...counts.map(([rule, n]) =>
        h("button", {
          class: "wb-button",
          type: "button",
          title: app.record.rules[rule].doc,
          onclick: () => state.go(pass.rewrites.findIndex((r) => r[0] === rule) + 1),
        }, `${ruleName(app, rule)} × ${n}`)
      ),
    ),
  ];
}
