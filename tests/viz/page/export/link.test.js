// Links to a view: what a fragment says comes back, and what is no view is left out.

import assert from "node:assert/strict";
import { App, START } from "../../../../workbench/viz/page/app/store.js";
import { linkOf, looksOf, viewOf } from "../../../../workbench/viz/page/export/link.js";
import { LAYOUTS } from "../../../../workbench/viz/page/board/layouts.js";
import { panesOf, removed } from "../../../../workbench/viz/page/board/tree.js";
import { recordOf } from "../record.js";

Object.defineProperty(globalThis, "localStorage", { value: null }); // nothing is stored

const PANES = [...new Set(LAYOUTS.flatMap(({ trees }) => panesOf(trees.wide)))];

Deno.test("a link has what differs from a page that opens, and comes back", () => {
  const app = new App(recordOf());
  app.select({ mode: "plan", kernel: 1, node: 1, cold: true, step: 3, language: "LLVM" });
  const { mode, kernel, variant, node, cold, step, language, picked } = app.view;
  assert.deepEqual(viewOf(linkOf(app)), {
    ...{ mode, kernel, variant, step, node, picked, language, cold },
  });
  const other = new App(recordOf());
  other.select({ ...START, ...viewOf(linkOf(app)) });
  assert.deepEqual(other.view, app.view);
  assert.ok(linkOf(app).length < 300);
});

/** Values that each field of a view may have, in a record of two kernels. */
const VALUES = {
  mode: ["tune", "rewrites", "plan", "side_by_side"],
  kernel: [0, 1],
  variant: [0, 1, 2],
  node: [null, 0, 1],
  axis: [null, "g0"],
  line: [null, 0],
  step: [0, 3],
  opt: [null, 'UPCAST("g1", 4)'],
  language: ["C", "LLVM"],
  code: [null, { language: "C", device: "LLVM", line: 7 }],
  columns: [
    [{ variant: 0, language: "C", device: null }, { variant: null, language: "LLVM" }],
    [{ variant: 2, language: "LLVM", device: "C" }, { variant: 1, language: "C" }],
  ],
  heat: [true, false],
  cold: [true, false],
  diff: [true, false],
  only: [null, "loops"],
};

Deno.test("whatever is looked at, its link opens exactly that", () => {
  let seed = 7;
  const pick = (values) => values[(seed = seed * 48271 % 2147483647) % values.length];
  for (let count = 0; count < 300; count++) {
    const [app, other] = [0, 1].map(() => {
      const record = recordOf();
      record.devices = [{ name: "C", available: true }];
      return new App(record);
    });
    for (let steps = pick([1, 2, 5, 9]); steps > 0; steps--) {
      const field = pick(Object.keys(VALUES));
      app.select({ [field]: pick(VALUES[field]) });
    }
    for (const each of [app, other]) each.arrangements.open(LAYOUTS, PANES);
    const pane = pick(PANES);
    if (pick([true, false])) app.arrangements.toggle(pick(["left", "right", "aside"]));
    if (pick([true, false])) {
      app.arrangements.change({ tree: removed(app.arrangements.tree, pane) });
    }
    if (pick([true, false])) app.arrangements.change({ large: pane, bars: pick([true, false]) });
    const folds = pick([[], ["estimate", "counts"]]);
    const link = linkOf(app, { folds, board: app.arrangements.current });
    other.select({ ...START, ...viewOf(link) });
    other.arrangements.current = looksOf(link).board;
    assert.deepEqual(other.view, app.view, link);
    assert.deepEqual(other.arrangements.current, app.arrangements.current, link);
    assert.deepEqual(other.arrangements.shown, app.arrangements.shown, link);
    assert.deepEqual(looksOf(link).folds, folds);
  }
});

Deno.test("how a page looks is left out where it is nonsense", () => {
  const looks = (named) => looksOf("#view=" + encodeURIComponent(JSON.stringify(named)));
  for (const named of [{}, null, { folds: [1], board: 3 }, { folds: "x" }]) {
    assert.deepEqual(looks(named), { folds: [], board: {} });
  }
  const app = new App(recordOf());
  app.select({ mode: "gpu" });
  app.arrangements.open(LAYOUTS, PANES);
  app.arrangements.current = { tree: { pane: "none" }, large: 3, bars: "x", other: 1 };
  assert.deepEqual(app.arrangements.current, {});
});

Deno.test("a sheet that is open is not in a link", () => {
  const app = new App(recordOf());
  app.select({ exporting: true, help: true });
  const names = Object.keys(viewOf(linkOf(app)) ?? {});
  assert.deepEqual(names, []);
});

Deno.test("what is no view is left out", () => {
  for (const fragment of ["", "#", "#view", "#other=1", "#view=%", "#view=%7B", "#view=null"]) {
    assert.equal(viewOf(fragment), null, fragment);
  }
  const link = (view) => viewOf("#view=" + encodeURIComponent(JSON.stringify(view)));
  const wrong = {
    mode: 4,
    kernel: -1,
    variant: "1",
    step: 0.5,
    node: [1],
    cold: 1,
    help: true,
    picked: { by: "node", axes: [1], nodes: [], lines: [] },
    code: { language: "C", line: null },
    only: "x".repeat(1000),
    __proto__: { axis: {} },
  };
  assert.deepEqual(link(wrong), {});
  assert.deepEqual(link([]), {});
  assert.deepEqual(link({ kernel: 1, nothing: 2 }), { kernel: 1 });
});
