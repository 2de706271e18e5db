// The switch of a rule. Switching off a rule of compilation makes a variant; a rule of scheduling
// changes all kernels, so Python sends a new record.

import { act, canAsk, goTo } from "../actions.js";
import { button } from "../pieces.js";
import { NOTHING, rowAt } from "../store.js";
import { h, words } from "../../base/elements.js";
import { usesByRule } from "../../record/uses.js";

/** @import { App } from "../store.js" */

/** Whether a rule is off in what is shown.
 * @param {App} app
 * @param {string} name */
export const isRuleOff = (app, name) =>
  (app.variant()?.rules_off ?? app.record.without.rules).includes(name);

/** The button of a rule; where there is no Python, the words that do the same from there.
 * @param {App} app
 * @param {string} name */
export function ruleOffButton(app, name) {
  const isOff = isRuleOff(app, name);
  const title = isOff
    ? "with this rule again"
    : "plan and compile without this rule: did source, time or answer change?";
  const fromPython = app.record.recipes.without.join(name);
  return h(
    "span",
    { class: "wb-rule-switch" },
    button(app, isOff ? "switch on" : "switch off", () => switchRule(app, name, isOff), {
      python: true,
      name: "rule-off",
      title,
    }),
    !canAsk(app) && !isOff &&
      h("span", { class: "wb-quiet" }, "from Python: ", h("code", {}, words(fromPython, "", 400))),
  );
}

/** Show a variant in which a rule fired, unless scheduling or what is shown already used it.
 * @param {App} app
 * @param {string} name */
function showUser(app, name) {
  const uses = usesByRule(app.record).get(name) ?? [];
  const user = uses[0]?.variant ?? null;
  const isUsed = uses.some(({ variant }) => variant === null || variant === app.view.variant);
  if (user !== null && !isUsed) goTo(app, user);
}

/** Do without a rule, where it fired, or with it again; then
 * check what that made and time it beside what was. A node of the old passes is none of the new
 * ones.
 * @param {App} app
 * @param {string} rule
 * @param {boolean} on */
export async function switchRule(app, rule, on) {
  if (!on) showUser(app, rule);
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
