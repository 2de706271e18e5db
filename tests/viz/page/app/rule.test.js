// Where rules fired, and the way from one use to the next.

import assert from "node:assert/strict";
import { shownRule, stepUse } from "../../../../workbench/viz/page/app/rule.js";
import { App } from "../../../../workbench/viz/page/app/store.js";
import { LAYOUTS } from "../../../../workbench/viz/page/board/layouts.js";
import { panesOf } from "../../../../workbench/viz/page/board/tree.js";
import { countUses, usesByRule } from "../../../../workbench/viz/page/record/rule_uses.js";
import { recordOf } from "../record.js";

const ADD_ZERO = 0;
const FORM_FMA = 1;
const pass = (variant, kernel, ...rules) => ({
  variant,
  kernel,
  rewrites: rules.map((rule) => [rule, 0, 0, 0]),
});

/** Scheduling, kernel 0 with two variants, kernel 1; the pass of a device that was left is nobody's. */
function record() {
  const passes = [
    pass(null, null, ADD_ZERO, FORM_FMA, ADD_ZERO, -1),
    pass(0, 0, FORM_FMA),
    pass(1, 0, ADD_ZERO),
    pass(2, 1, FORM_FMA, FORM_FMA),
    pass(0, 0, ADD_ZERO),
  ];
  const rules = [{ name: "add-zero" }, { name: "form-fma" }];
  const all = { ...recordOf(), passes, rules };
  all.variants.forEach((row, i) => (row.passes = [i + 1]));
  return all;
}

Deno.test("each use is listed once, with the variant that it led to", () => {
  const uses = usesByRule(record());
  assert.deepEqual(uses.get("add-zero"), [
    { pass: 0, variant: null, steps: [1, 3] },
    { pass: 2, variant: 1, steps: [1] },
  ]);
  assert.equal(countUses(uses.get("form-fma")), 4);
  assert.deepEqual([...uses.keys()], ["add-zero", "form-fma"], "a decision is no rule");
});

Deno.test("a patch of the record is counted, and so is a variant that is deleted", () => {
  const now = record();
  assert.equal(usesByRule(now), usesByRule(now));
  now.variants[1].deleted = true;
  now.n += 1;
  assert.equal(countUses(usesByRule(now).get("add-zero")), 2);
});

Deno.test("figures that arrive are no reason to count again, passes are", () => {
  const app = new App(record());
  const before = usesByRule(app.record);
  app.patch({ append: {}, set: [[["variants", 0, "timing"], null], [["n"], 2]] });
  assert.equal(usesByRule(app.record), before);
  const added = { passes: [pass(0, 0, ADD_ZERO)] };
  app.patch({ append: added, set: [[["variants", 0, "passes"], [1, 5]], [["n"], 3]] });
  assert.equal(countUses(usesByRule(app.record).get("add-zero")), 4);
});

Deno.test("stepping leads through all passes, kernels and variants, and round", () => {
  const app = new App(record());
  app.arrangements.open(LAYOUTS, LAYOUTS.flatMap(({ trees }) => panesOf(trees.wide)));
  app.select({ mode: "rules" });
  const seen = [1, 1, 1, 1, 1].map((by) => {
    stepUse(app, "form-fma", by);
    const { mode, kernel, variant, pass, step } = app.view;
    return [mode, kernel, variant, pass, step].join(" ");
  });
  assert.deepEqual(seen, [
    "rewrites 0 0 0 2",
    "rewrites 0 0 1 1",
    "rewrites 1 2 3 1",
    "rewrites 1 2 3 2",
    "rewrites 1 2 0 2",
  ]);
  stepUse(app, "form-fma", -1);
  assert.deepEqual([app.view.pass, app.view.step], [3, 2]);
  stepUse(app, "no-such-rule", 1);
  assert.equal(app.view.pass, 3);
});

Deno.test("backwards the last use comes first", () => {
  const app = new App(record(), { view: { mode: "rules", rule: "form-fma" } });
  stepUse(app, shownRule(app), -1);
  assert.deepEqual([app.view.pass, app.view.step], [3, 2]);
  assert.equal(shownRule(app), "form-fma");
  app.select({ step: 0, rule: "add-zero" });
  assert.equal(shownRule(app), "add-zero", "before all steps there is none");
});
