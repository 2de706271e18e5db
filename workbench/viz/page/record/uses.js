// Where rules fired: in which passes of the exploration, at which steps.

/** @import { PageRecord } from "../record.d.ts" */

/** A pass in which a rule fired, the variant that it led to (null: it belongs to scheduling), and the
 * steps, from 1.
 * @typedef {{pass: number, variant: number | null, steps: number[]}} Use */

/** By record the uses of its rules, by name, and the number of the patch that they are of.
 * @type {WeakMap<PageRecord, {n: number | undefined, uses: Map<string, Use[]>}>} */
const USES = new WeakMap();

/** The uses of every rule that fired, by its name.
 * @param {PageRecord} record */
export function usesByRule(record) {
  const known = USES.get(record);
  if (known && known.n === record.n) return known.uses;
  /** @type {Map<string, Use[]>} */
  const uses = new Map();
  for (const [pass, variant] of ownedPasses(record)) {
    for (const [rule, steps] of stepsByRule(record.passes[pass].rewrites)) {
      const name = record.rules[rule]?.name;
      if (name === undefined) continue; // a decision
      if (!uses.has(name)) uses.set(name, []);
      uses.get(name)?.push({ pass, variant, steps });
    }
  }
  USES.set(record, { n: record.n, uses });
  return uses;
}

/** @param {PageRecord["passes"][number]["rewrites"]} rewrites */
function stepsByRule(rewrites) {
  /** @type {Map<number, number[]>} */
  const steps = new Map();
  rewrites.forEach(([rule], i) => {
    if (!steps.has(rule)) steps.set(rule, []);
    steps.get(rule)?.push(i + 1);
  });
  return steps;
}

/** The passes of scheduling, then those of each variant that is not deleted, each with its variant.
 * @param {PageRecord} record
 * @returns {[pass: number, variant: number | null][]} */
function ownedPasses({ passes, variants }) {
  /** @typedef {[number, number | null]} Owned */
  const shared = passes.flatMap(({ variant }, i) =>
    variant === null ? [/** @type {Owned} */ ([i, null])] : []
  );
  const own = variants.flatMap((row, variant) =>
    row.deleted ? [] : row.passes.map((pass) => /** @type {Owned} */ ([pass, variant]))
  );
  return [...shared, ...own];
}

/** How often a rule fired.
 * @param {Use[]} uses */
export const countUses = (uses) => uses.reduce((sum, { steps }) => sum + steps.length, 0);
