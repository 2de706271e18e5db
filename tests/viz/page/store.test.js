import assert from "node:assert/strict";
import { pin, pinned, redo, undo } from "../../../workbench/viz/page/app/actions.js";
import { lostVariant } from "../../../workbench/viz/page/record/variants.js";
import { App } from "../../../workbench/viz/page/app/store.js";
import { recordOf } from "./record.js";

/** What is heard until the next microtask. */
async function heard(app, act) {
  const changes = [];
  const off = app.on((names) => changes.push(...names));
  act();
  await Promise.resolve();
  off();
  return changes;
}

Deno.test("a view points at things that exist", () => {
  const view = { kernel: 7, variant: 9, node: 99, line: 4, pass: 3, language: null };
  const { kernel, variant, node, line, pass, language } = new App(recordOf(), { view }).view;
  assert.deepEqual([kernel, variant, node, line, pass], [0, 0, null, null, null]);
  assert.equal(language, "C");
});

Deno.test("a page opens with the first kernel that does more than to draw random numbers", () => {
  const record = (...drawn) => {
    const whole = recordOf();
    const [variant] = whole.variants;
    whole.variants = drawn.map((_, k) => ({ ...variant, kernel: k }));
    whole.kernels = drawn.map((draws_numbers, root) => ({
      ...whole.kernels[0],
      root,
      draws_numbers,
    }));
    return whole;
  };
  const kernelOf = (of, view) => new App(of, { view }).view.kernel;
  assert.equal(kernelOf(record(true, true, false, true)), 2);
  assert.equal(kernelOf(record(true, true)), 0, "all do");
  assert.equal(kernelOf(record(true, false), { kernel: 0 }), 0, "as it is asked to");
  assert.equal(kernelOf(record(true, false, true), { variant: 2 }), 2, "that of a variant");
  assert.equal(kernelOf({ ...record(true, false), ask: { hides: [] } }), 0, "a question");
});

Deno.test("listeners hear of all changes at once, and of none twice", async () => {
  const app = new App(recordOf());
  assert.deepEqual(await heard(app, () => (app.select({ step: 2 }), app.select({ step: 2 }))), [
    "step",
  ]);
  assert.deepEqual(await heard(app, () => app.select({ step: 2 })), []);
});

Deno.test("nothing is drawn while the pointer is pressed", async () => {
  const app = new App(recordOf());
  assert.deepEqual(await heard(app, () => (app.hold(true), app.select({ step: 3 }))), []);
  assert.deepEqual(await heard(app, () => app.hold(false)), ["step"]);
});

Deno.test("to select a node, an axis or a line pins what belongs to it", () => {
  const app = new App(recordOf());
  app.select({ node: 1 });
  assert.deepEqual(app.view.picked, { by: "node", axes: [], nodes: [1], lines: [0] });
  app.select({ axis: "g0" });
  assert.deepEqual(app.view.picked, { by: "loop", axes: ["g0"], nodes: [1], lines: [0] });
  app.select({ line: 0 });
  assert.deepEqual([app.view.picked.by, app.view.axis, app.view.node], ["line", null, null]);
  app.unpick();
  assert.deepEqual([app.view.picked, app.view.line], [null, null]);
});

Deno.test("another variant leaves the opt and the code behind that were marked", () => {
  const app = new App(recordOf());
  app.select({ opt: "UNROLL", code: { language: "C", line: 3 }, picked: null });
  app.select({ variant: 1 });
  assert.deepEqual([app.view.opt, app.view.code], [null, null]);
});

Deno.test("a patch appends rows and columns, and sets values at paths", async () => {
  const app = new App(recordOf());
  const patch = {
    append: { nodes: { op: ["MUL"], lines: [[]], causes: [[]] }, texts: ["a"] },
    set: [[["variants", 0, "note"], "good"], [["pinned"], 1]],
  };
  assert.deepEqual(await heard(app, () => app.patch(patch)), ["record"]);
  const { nodes, texts, variants } = app.record;
  assert.deepEqual([nodes.op.at(-1), texts, variants[0].note], ["MUL", ["a"], "good"]);
});

Deno.test("ratios refer to the pinned variant of the kernel, else to the plain one", () => {
  const app = new App(recordOf());
  assert.equal(pinned(app), 0);
  app.select({ variant: 1 });
  pin(app);
  assert.equal(pinned(app), 1);
  app.select({ kernel: 1 });
  assert.equal(pinned(app), 2);
});

Deno.test("undo leads to the parent, redo back to where one came from", () => {
  const app = new App(recordOf());
  app.select({ variant: 1 });
  undo(app);
  assert.equal(app.view.variant, 0);
  redo(app);
  assert.equal(app.view.variant, 1);
});

Deno.test("what was chosen stays in the next plan, where it is there", () => {
  const app = new App(recordOf(), { view: { kernel: 0, variant: 1 } });
  const next = recordOf();
  const row = { ...next.variants[1], name: "mine" };
  next.kernels = [{ root: 0 }];
  next.variants = [next.variants[0], { ...row, name: "another" }, row];
  next.plan.compared = { number: 7, kernels_now: [0], variants_now: [0, 2] };
  const columns = [{ variant: 1, language: "C" }, { variant: null, language: "C" }];
  app.select({ columns });
  app.replace(next);
  assert.deepEqual([app.view.kernel, app.view.variant], [0, 2]);
  assert.deepEqual(app.view.columns.map(({ variant }) => variant), [2, null]);
  app.replace({ ...next }); // of the same plan: places are the same
  assert.equal(app.view.variant, 2);
  const last = recordOf();
  last.plan.compared = { number: 8, kernels_now: [null], variants_now: [null, null, null] };
  assert.equal(lostVariant(next, last, 2).includes("does not apply"), true);
  assert.equal(lostVariant(next, last, 0), "");
  app.replace(last);
  assert.equal(app.view.variant, 0);
});
