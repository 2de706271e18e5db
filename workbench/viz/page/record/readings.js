// Readings of nodes: their text, and their box in a graph (viz/schema/record.py).

/** @import { NodeColumns, PageRecord, Reading } from "../record.d.ts" */

/** The rows that the columns of nodes refer to.
 * @type {WeakMap<NodeColumns, Reading[]>} */
const ROWS = new WeakMap();

/** Return a record whose nodes lead to how they read.
 * @param {PageRecord} record */
export function withReadings(record) {
  ROWS.set(record.nodes, record.readings);
  return record;
}

/** Let columns be read as those of `nodes` are.
 * @param {NodeColumns} columns
 * @param {NodeColumns} nodes */
export function readAs(columns, nodes) {
  ROWS.set(columns, ROWS.get(nodes) ?? []);
}

/** Return the row of a node.
 * @param {NodeColumns} nodes
 * @param {number} n */
export function readingOf(nodes, n) {
  const rows = ROWS.get(nodes) ?? [];
  return rows[nodes.reading[n]];
}
