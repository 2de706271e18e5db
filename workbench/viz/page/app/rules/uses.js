// Navigation from one use of a rule to the next, in all passes, kernels and variants.

import { button } from "../pieces.js";
import { rowAt } from "../store.js";
import { h } from "../../base/elements.js";
import { plural } from "../../base/text.js";
import { countUses, usesByRule } from "../../record/uses.js";

/** @import { Use } from "../../record/uses.js" */
/** @import { App } from "../store.js" */

/** Show a use of a rule in Rewrites, with the kernel and the variant that it belongs to.
 * @param {App} app
 * @param {Use} use
 * @param {number} [step] */
export function goToUse(app, { pass, variant, steps }, step = steps[0]) {
  const kernel = rowAt(app.record.variants, variant)?.kernel ?? app.record.passes[pass].kernel;
  const whose = { ...(kernel !== null && { kernel }), ...(variant !== null && { variant }) };
  app.select({ mode: "rewrites", ...whose, pass, step });
}

/** @param {App} app
 * @param {string} name */
const usesOf = (app, name) => usesByRule(app.record).get(name) ?? [];

/** The place of the step that Rewrites shows among all steps of the uses of a rule; -1: it is none.
 * @param {App} app
 * @param {Use[]} uses */
function placeShown({ view: { mode, pass, step } }, uses) {
  const at = mode === "rewrites" ? uses.findIndex((use) => use.pass === pass) : -1;
  const own = at < 0 ? -1 : uses[at].steps.indexOf(step);
  return own < 0 ? -1 : countUses(uses.slice(0, at)) + own;
}

/** Go to the next use of a rule, or to the one before; after the last comes the first.
 * @param {App} app
 * @param {string | null} name
 * @param {number} by */
export function stepUse(app, name, by) {
  const uses = name === null ? [] : usesOf(app, name);
  const count = countUses(uses);
  if (!count) return;
  const shown = placeShown(app, uses);
  let place = ((shown < 0 && by < 0 ? 0 : shown) + by + count) % count;
  for (const use of uses) {
    if (place < use.steps.length) return goToUse(app, use, use.steps[place]);
    place -= use.steps.length;
  }
}

/** The rule of the step that Rewrites shows, else the one that Rules shows.
 * @param {App} app
 * @returns {string | null} */
export function shownRule({ record, view }) {
  if (view.mode === "rules") return view.rule;
  const [rule] = rowAt(record.passes, view.pass)?.rewrites[view.step - 1] ?? [];
  return rowAt(record.rules, rule)?.name ?? view.rule;
}

/** The buttons that lead from one use of a rule to the next.
 * @param {App} app
 * @param {string} name */
export function useStepper(app, name) {
  const uses = usesOf(app, name);
  const count = countUses(uses);
  if (!count) return null;
  const at = placeShown(app, uses);
  /** @type {(text: string, word: string, by: number, key: string) => HTMLElement} */
  const step = (text, word, by, key) =>
    button(app, text, () => stepUse(app, name, by), {
      key,
      title: `${word} use of ${name}, in all passes, kernels and variants`,
      name: `use-${word}`,
    });
  return h(
    "span",
    { class: "wb-uses" },
    step("‹", "previous", -1, "N"),
    h(
      "span",
      { title: "where the rule fired, in all passes" },
      at < 0 ? plural(count, "use") : `use ${at + 1} of ${count}`,
    ),
    step("›", "next", 1, "n"),
  );
}
