// Rules switched off. One that only compiling uses makes a variant; one that scheduling uses
// changes all kernels, so Python sends a new record.

import { act, canAsk } from "../../app/actions.js";
import { button } from "../../app/pieces.js";
import { NOTHING, rowAt } from "../../app/store.js";
import { h, words } from "../../base/elements.js";
import { ruleName } from "../../record/rules.js";

/** @import { App } from "../../app/store.js" */

/** The button of a rule; where there is no Python, the words that do the same from there.
 * @param {App} app
 * @param {number} rule */
export function ruleOffButton(app, rule) {
  const name = ruleName(app, rule);
  const isOff = app.variant()?.rules_off.includes(name);
  const title = isOff
    ? "with this rule again"
    : "plan and compile without this rule: did source, time or answer change?";
  const fromPython = app.record.recipes.without.join(name);
  return h(
    "span",
    { class: "wb-rw-switch" },
    button(app, isOff ? "switch on" : "switch off", () => switchRule(app, rule, Boolean(isOff)), {
      python: true,
      name: "rule-off",
      title,
    }),
    !canAsk(app) && !isOff &&
      h("span", { class: "wb-quiet" }, "from Python: ", h("code", {}, words(fromPython, "", 400))),
  );
}

/** Do without a rule (its place in the record, or its name), or with it again; then check what that
 * made and time it beside what was. A node of the old passes is none of the new ones.
 * @param {App} app
 * @param {number | string} rule
 * @param {boolean} on */
export async function switchRule(app, rule, on) {
  const { kernel, variant: of, pass } = app.view;
  const was = rowAt(app.record.passes, pass)?.name;
  const place = app.record.kernels[kernel] ? kernel : null;
  const reply = await act(app, "rewrites", { do: "rule_off", kernel: place, of, rule, on });
  if (!reply) return;
  const other = reply.result?.variant ?? null;
  if (other === null) return lookAnew(app, was);
  if (!app.record.variants[other]) return;
  app.select(NOTHING);
  if (on && !app.record.variants[other].rules_off.length) return; // known already
  await act(app, "rewrites", { do: "check", variant: other });
  if (of === null) return;
  await act(app, "rewrites", { do: "measure", variants: [other, of], cold: false });
}

/** Everything is another one: look at the same pass, check the answer, and time both plans.
 * @param {App} app
 * @param {string | undefined} passName */
async function lookAnew(app, passName) {
  const { passes, devices, device } = app.record;
  const variant = app.kernel()?.root ?? null;
  const pass = passes.findIndex(({ name }) => name === passName);
  app.select({ ...NOTHING, variant, pass: pass < 0 ? null : pass, step: 0 });
  if (variant === null) return;
  await act(app, "rewrites", { do: "check", variant });
  const isTimed = app.record.plan.compared?.seconds ||
    devices.find(({ name }) => name === device)?.emulator;
  if (!isTimed) await act(app, "rewrites", { do: "plans" });
}
