// Rules of the record: their source lines, and their uses in the passes of the exploration.

/** @import { App } from "../app/store.js" */
/** @import { DecisionRow, PageRecord, RecordedPass } from "../record.d.ts" */

/** Return [rule, number of matches] of a pass, the most frequent first.
 * @param {RecordedPass} pass */
export function ruleCounts(pass) {
  /** @type {Map<number, number>} */
  const counts = new Map();
  for (const [rule] of pass.rewrites) counts.set(rule, (counts.get(rule) || 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]);
}

/** The name of a rule; a decision has none.
 * @param {App} app
 * @param {number} rule */
export const ruleName = (app, rule) => app.record.rules[rule]?.name ?? "decision";

/** The decisions of a plan, by their nodes.
 * @type {WeakMap<DecisionRow[], Map<number | null, DecisionRow>>} */
const DECISIONS = new WeakMap();

/** The decision about a node.
 * @param {App} app
 * @param {number | null} node */
export function decisionOf({ record: { plan: { decisions } } }, node) {
  const known = DECISIONS.get(decisions);
  const byNode = known ?? new Map(decisions.map((decision) => [decision.node, decision]));
  if (!known) DECISIONS.set(decisions, byNode);
  return byNode.get(node);
}

// Uses of rules: the passes of the exploration, and the steps in them.

/** A pass in which a rule fired, the variant to which it led (null: it belongs to scheduling), and
 * the steps, from 1.
 * @typedef {{pass: number, variant: number | null, steps: number[]}} Use */

/** Uses by table of rules and name, and the counted passes: their rewrites, and variants.
 * @type {WeakMap<object, {counted: unknown[], uses: Map<string, Use[]>}>} */
const USES = new WeakMap();

/** The uses of every rule that fired, by its name.
 * @param {PageRecord} record */
export function usesByRule(record) {
  const owned = ownedPasses(record);
  const counted = owned.flatMap(([pass, variant]) => [record.passes[pass].rewrites, variant]);
  const known = USES.get(record.rules);
  if (known && isSame(known.counted, counted)) return known.uses;
  /** @type {Map<string, Use[]>} */
  const uses = new Map();
  for (const [pass, variant] of owned) {
    for (const [rule, steps] of stepsByRule(record.passes[pass].rewrites)) {
      const name = record.rules[rule]?.name;
      if (name === undefined) continue; // a decision
      if (!uses.has(name)) uses.set(name, []);
      uses.get(name)?.push({ pass, variant, steps });
    }
  }
  USES.set(record.rules, { counted, uses });
  return uses;
}

/**
 * @param {unknown[]} before
 * @param {unknown[]} now */
const isSame = (before, now) =>
  before.length === now.length && before.every((part, i) => part === now[i]);

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

/** The number of times that a rule fired.
 * @param {Use[]} uses */
export const countUses = (uses) => uses.reduce((sum, { steps }) => sum + steps.length, 0);
