// Holds the page's words of states against Python's: {nodes, readings, states: [[root, text]]} in
// the file that is named. Python's text begins with what it declares, which the page does not say.

import assert from "node:assert/strict";
import { withReadings } from "../../../workbench/viz/page/record/states.js";
import { stateLines } from "../../../workbench/viz/page/record/node_text.js";

const DECLARED = /^(kernel |order |no work-groups|\w+ = (PARAM|RANGE|DEFINE|BUFFER) )/;

const { nodes, states } = withReadings(JSON.parse(Deno.readTextFileSync(Deno.args[0])));
for (const [root, text] of states) {
  const lines = text.split("\n");
  while (lines.length && DECLARED.test(lines[0])) lines.shift();
  assert.deepEqual(stateLines(nodes, root), lines);
}
console.log(`${states.length} states agree`);
