import assert from "node:assert/strict";
import { mapScale } from "../../../../workbench/viz/page/graph/minimap.js";

Deno.test("a map takes a small share of a small pane", () => {
  const bounds = { left: 0, top: 0, right: 500, bottom: 1000 };
  const side = (/** @type {number} */ width, /** @type {number} */ height) =>
    1000 * mapScale({ bounds, size: { width, height } });
  assert.deepEqual([side(900, 600), side(900, 200), side(100, 600)], [110, 80, 60]);
});
