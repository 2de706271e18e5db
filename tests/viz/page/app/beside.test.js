// The two sides of a page: what is selected on one is selected on the other, and nothing returns.

import assert from "node:assert/strict";

import { OtherApp, passDifference } from "../../../../workbench/viz/page/app/beside.js";
import { App } from "../../../../workbench/viz/page/app/store.js";
import { withReadings } from "../../../../workbench/viz/page/record/states.js";
import { recordOf } from "../record.js";

const settled = () => new Promise((done) => setTimeout(done));
const comparison = {
  names: ["plain", "auto"],
  plans: [],
  side: null,
  sections: [
    {
      title: "rules that fired",
      text: "",
      rows: [
        ["decompose: a", ["", "2"], true, ["decompose", "a"]],
        ["decompose: b", ["1", ""], true, ["decompose", "b"]],
        ["decompose: c", ["1", "3"], true, ["decompose", "c"]],
        ["decompose: d", ["1", "1"], false, ["decompose", "d"]],
      ],
    },
  ],
};

function sides() {
  const record = withReadings({ ...recordOf(), readings: [] });
  for (const row of record.variants) {
    Object.assign(row, { axes: [{ name: "g0" }], code: [], passes: [] });
  }
  const main = new App(record, { view: { kernel: 0, variant: 1 } });
  const other = new OtherApp(main, comparison, null, { kernel: 0, variant: 0 });
  return { main, other };
}

Deno.test("the other side has a selection of its own, and one page", async () => {
  const { main, other } = sides();
  assert.equal(main.partner, other);
  assert.deepEqual([main.view.variant, other.view.variant], [1, 0]);
  other.select({ mode: "tune", variant: 1 });
  await settled();
  assert.deepEqual([main.view.mode, main.view.variant, other.view.variant], ["tune", 1, 1]);
});

Deno.test("an axis is selected on both sides, whichever was clicked, again and again", async () => {
  const { main, other } = sides();
  for (const [from, to, axis] of [[main, other, "g0"], [other, main, null], [main, other, "g0"]]) {
    from.select({ axis });
    await settled();
    assert.deepEqual([from.view.axis, to.view.axis], [axis, axis]);
  }
  main.select({ axis: "g7" }); // the other side has no such axis
  await settled();
  assert.deepEqual([main.view.axis, other.view.axis], ["g7", "g0"]);
});

Deno.test("a node leads to its partner, and one without a partner to none", async () => {
  const { main, other } = sides();
  const pairing = (partner, alone) => ({ about: "", partner, alone, changed: new Set() });
  main.pairing = pairing(new Map([[1, 0]]), new Set());
  other.pairing = pairing(new Map([[0, 1]]), new Set());
  main.select({ node: 1 });
  await settled();
  assert.deepEqual([main.view.node, other.view.node], [1, 0]);
  main.pairing = pairing(new Map([[1, 0]]), new Set([0]));
  main.select({ node: 0 });
  await settled();
  assert.deepEqual([main.view.node, other.view.node], [0, null]);
  main.select({ node: 1 });
  await settled();
  assert.deepEqual([main.view.node, other.view.node], [1, 0], "the same one again");
  main.light({ by: "node", axes: [], nodes: [1], lines: [] });
  await settled();
  assert.deepEqual(other.hover.nodes, [0]);
  main.light(null);
  await settled();
  assert.equal(other.hover, null);
});

Deno.test("rules that fired on one side, on the other, or not as often", () => {
  const { main, other } = sides();
  assert.deepEqual(passDifference(main, "decompose"), { here: ["a"], there: ["b"], counts: ["c"] });
  assert.deepEqual(passDifference(other, "decompose"), {
    here: ["b"],
    there: ["a"],
    counts: ["c"],
  });
  assert.equal(passDifference(main, "render"), null);
});

Deno.test("another comparison takes the place of the first, another plan ends it", async () => {
  const { main, other } = sides();
  const next = new OtherApp(main, comparison, null, { kernel: 0, variant: 0 });
  assert.equal(main.partner, next);
  other.select({ axis: "g0" });
  await settled();
  assert.equal(main.view.axis, null, "the first one is not heard any more");
  main.replace(withReadings({ ...recordOf(), readings: [] }));
  await settled();
  assert.equal(main.partner, null);
});
