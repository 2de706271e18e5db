// The search for nodes of a graph by their words.

import assert from "node:assert/strict";
import { graphFind } from "../../../../workbench/viz/page/graph/node_list.js";

const NODES = [
  "net.blocks[0].mlp.weight 2x32",
  "out",
  "net.blocks.20.mlp",
  "net.blocks.2.mlp: linear",
]
  .map((label, n) => ({ n, label, sub: "", op: "" }));
const found = (query) => graphFind({ nodes: NODES }, query).map(({ n }) => n);

Deno.test("a name is found as it is spelled, with its index in either way, whole names first", () => {
  assert.deepEqual(found("blocks.2.mlp"), [3]);
  assert.deepEqual(found("Blocks[2].mlp"), [3]);
  assert.deepEqual(found("blocks.0"), [0]);
  assert.deepEqual(found("blocks.2"), [3, 2]);
});

Deno.test("words are found in any order, those in whole words first", () => {
  assert.deepEqual(found("mlp 2"), [3, 0, 2]);
  assert.deepEqual(found("mlp.net"), [0, 2, 3], "no name has it: its parts");
  assert.deepEqual(found("#1"), [1]);
  assert.deepEqual(found("  "), []);
});
