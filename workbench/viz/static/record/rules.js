// Rules and decisions of the record by their place.

/** Return [rule, how often] of a pass, the most frequent first. */
export function ruleCounts(pass) {
  const counts = new Map();
  for (const [rule] of pass.rewrites) counts.set(rule, (counts.get(rule) || 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]);
}

export const ruleName = (app, rule) => app.record.rules[rule]?.name ?? "decision";
export const decisionOf = (app, node) =>
  app.record.plan.decisions.find((decision) => decision.node === node);
