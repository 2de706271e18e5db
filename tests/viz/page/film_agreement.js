// Holds the film's pictures against Python's: {record: {plan, passes}, film: [[title, kernels]..]} in
// the file that is named, where `kernels` has per drawn value those that it is in so far, null
// before that is decided.

import assert from "node:assert/strict";
import {
  decidedAt,
  filmAt,
  filmOf,
  groundPath,
  isDecided,
  readersOf,
} from "../../../workbench/viz/page/record/film.js";

const { record, film, readers } = JSON.parse(Deno.readTextFileSync(Deno.args[0]));
const { plan } = record;
const steps = filmOf(record);
assert.deepEqual(steps.map(({ decision }) => decision.value), film.map(([value]) => value));
film.forEach(([, kernels], i) => {
  const { pass, step } = steps[i];
  const at = filmAt({ view: { pass, step } }, steps);
  assert.equal(at, i + 1);
  const decided = decidedAt(steps, at);
  const shown = plan.nodes.map((node) => isDecided(node, decided) ? node.kernels : null);
  assert.deepEqual(shown, kernels);
  for (const { kernel } of plan.regions) {
    const isBegun = kernels.some((inside) => inside?.[0] === kernel);
    assert.equal(groundPath(plan, kernel, decided) !== "", isBegun);
  }
});
const whole = decidedAt(steps, 0);
assert(plan.nodes.every((node) => isDecided(node, whole)));
assert.deepEqual(
  plan.nodes.map((_, place) => readersOf(plan, place).sort((a, b) => a - b)),
  readers,
);
console.log(`${film.length} steps agree`);
