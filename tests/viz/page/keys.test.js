// Keys without a page: who answers a key, and what it does. Elements are played by objects that say
// what they stand in.

import assert from "node:assert/strict";
import { answerKey } from "../../../workbench/viz/page/app/keys.js";
import { App } from "../../../workbench/viz/page/app/store.js";
import { placeAfter, stepOf } from "../../../workbench/viz/page/base/lists.js";
import { rewritesKeys } from "../../../workbench/viz/page/panels/rewrites/panel.js";
import { recordOf } from "./record.js";

/** An element that stands in what some selectors find. */
class Played {
  constructor(around = {}) {
    this.around = around;
  }
  closest(selector) {
    return this.around[selector] ?? null;
  }
  contains(other) {
    return other === this;
  }
  getAttribute() {
    return null;
  }
  focus() {
    this.isFocused = true;
  }
}
globalThis.HTMLElement ??= Played;
globalThis.Element ??= Played;

const FIELDS = "input, textarea, select, [contenteditable]";
const LAYOUTS = [
  { name: "board" },
  { name: "tune" },
  { name: "rewrites" },
  { name: "teach", isMore: true },
  { name: "plan" },
];

/** Whether a key was answered, and the app; `keys` are those of a pane that answers. */
function press(key, { app = new App(recordOf()), target = new Played(), keys = {} } = {}) {
  const root = new Played();
  const board = { app, keys: {}, answering: () => [{ keys }], nameAt: () => null, focus() {} };
  const isAnswered = answerKey(app, root, board, LAYOUTS, { key, target });
  return { isAnswered, app };
}

Deno.test("a number shows a layout that has a tab, and no other number does anything", () => {
  assert.equal(press("2").app.view.mode, "rewrites");
  assert.equal(press("0").app.view.mode, "board");
  assert.equal(press("3").app.view.mode, "plan");
  assert.deepEqual([press("4").isAnswered, press(" ").isAnswered], [false, false]);
});

Deno.test("a pane answers its keys first, and leaves those that it says false to", () => {
  const asked = [];
  const keys = { t: () => void asked.push("t"), 2: () => false };
  assert.equal(press("t", { keys }).isAnswered, true);
  assert.equal(press("2", { keys }).app.view.mode, "rewrites");
  assert.deepEqual(asked, ["t"]);
});

Deno.test("undo and redo walk the tree of variants", () => {
  const app = new App(recordOf());
  press("U", { app });
  assert.equal(app.view.variant, 1);
  press("u", { app });
  assert.equal(app.view.variant, 0);
});

Deno.test("redo knows nothing of another plan", () => {
  const app = new App(recordOf());
  press("U", { app });
  press("u", { app });
  const record = recordOf();
  record.variants = [{ kernel: 0, parent: null, loops: null }];
  app.replace(record);
  press("U", { app });
  assert.equal(app.view.variant, 0);
});

Deno.test("the sheet of keys comes and goes", () => {
  const { app } = press("?");
  assert.equal(app.view.help, true);
  assert.equal(press("Escape", { app }).app.view.help, false);
});

Deno.test("Esc lets go of what is picked", () => {
  const app = new App(recordOf());
  app.select({ node: 1 });
  assert.equal(press("Escape", { app }).app.view.node, null);
});

Deno.test("what is typed into a field asks for nothing", () => {
  const target = new Played({ [FIELDS]: new Played() });
  const { isAnswered, app } = press("2", { target });
  assert.deepEqual([isAnswered, app.view.mode], [false, ""]);
});

Deno.test("letters that mean something elsewhere in the page do nothing, others go on", () => {
  assert.deepEqual(["/", "f"].map((key) => press(key).isAnswered), [true, true]);
  assert.deepEqual(["b", "x", "Enter"].map((key) => press(key).isAnswered), [false, false, false]);
});

Deno.test("letters walk lists that stand, arrows both", () => {
  assert.deepEqual(["j", "k", "ArrowDown", "ArrowUp"].map((key) => stepOf(key, false)), [
    1,
    -1,
    1,
    -1,
  ]);
  assert.deepEqual(["j", "ArrowRight", "ArrowLeft"].map((key) => stepOf(key, true)), [
    undefined,
    1,
    -1,
  ]);
  assert.equal(stepOf("ArrowRight", false), undefined);
  assert.deepEqual([placeAfter(0, -1, 5), placeAfter(3, 10, 5), placeAfter(4, -Infinity, 5)], [
    0,
    4,
    0,
  ]);
});

Deno.test("passes: letters step but in lists of other panes, arrows but in any other list", () => {
  const steps = [];
  const state = { stepBy: (by) => void steps.push(by), go() {}, count: () => 0, place: () => 0 };
  const [el, list] = [new Played(), new Played()];
  const keys = rewritesKeys({ app: null, state, el, list, filter: null });
  const target = new Played();
  keys.j({ target });
  keys.ArrowUp({ target });
  assert.deepEqual(steps, [1, -1]);
  const elsewhere = new Played({ "[data-walk]": new Played() });
  assert.deepEqual([keys.j, keys.ArrowDown].map((act) => act({ target: elsewhere })), [
    false,
    false,
  ]);
  assert.deepEqual(steps, [1, -1]);
});
