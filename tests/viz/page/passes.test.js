import assert from "node:assert/strict";
import { ownSeconds } from "../../../workbench/viz/page/record/passes.js";

Deno.test("the time of a pass is without that of the passes that it ran", () => {
  /** @type {[number, number][]} */
  const rows = [[0, 8], [1, 5], [2, 1], [1, 2], [0, 3]];
  const passes = rows.map(([depth, seconds]) => ({ depth, seconds }));
  assert.deepEqual(ownSeconds(passes), [1, 4, 1, 2, 3]);
  assert.deepEqual(ownSeconds([{ depth: 1, seconds: 2 }]), [2]); // its parent is not shown
});
