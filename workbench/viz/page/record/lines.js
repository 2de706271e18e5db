// The user's lines of a record: those in the cell, and those in functions that it called.

/** @import { PageRecord } from "../record.d.ts" */

/** Of each line that made something the lines in functions that it called. What only such functions
 * have is no key.
 * @param {PageRecord} record */
export function calledLines({ nodes, kernels, expr, lines }) {
  /** @type {Map<number, Set<number>>} */
  const called = new Map();
  const note = (/** @type {number} */ outer, /** @type {number[]} */ inner) => {
    const those = called.get(outer) ?? new Set();
    called.set(outer, those);
    for (const line of inner) those.add(line);
  };
  for (const [outer, ...inner] of nodes.lines.flat()) note(outer, inner);
  for (const { line, inner } of kernels) if (line !== null) note(line, inner);
  if (expr.line !== null) note(expr.line, []);
  const known = new Set([...called].flatMap(([outer, inner]) => [outer, ...inner]));
  lines.forEach((_, i) => known.has(i) || note(i, []));
  return called;
}
