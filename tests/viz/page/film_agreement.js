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
  withRewrites,
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
// the rewrites of a value follow its decision, forwards and backwards; the picture stays
const detailed = withRewrites(steps);
const kept = detailed.filter(({ rewrite }) => !rewrite);
assert.deepEqual(kept, steps);
detailed.forEach(({ decision, pass, step, rewrite, place }, i) => {
  assert.equal(filmAt({ view: { pass, step, node: decision.node } }, detailed), i + 1);
  assert.equal(decidedAt(detailed, i + 1), place + 1);
  assert.equal(rewrite, rewrite ? detailed[i - 1].rewrite + 1 : 0);
  assert(record.passes[pass].rewrites[step - 1], "the record has it");
});
const rewritten = new Set(detailed.flatMap(({ rewrite, step }) => rewrite ? [step] : []));
const built = record.passes.filter(({ name }) => name === "rangeify");
assert.equal(rewritten.size, built.reduce((sum, { rewrites }) => sum + rewrites.length, 0));
console.log(`${film.length} steps agree`);
