// What of a drawing is marked.

/** @import { GraphEdge, Marks } from "./graph.d.ts" */

/** Whether a line reads one of the nodes that are lit.
 * @param {GraphEdge} edge
 * @param {Marks} marks */
export const isLitLine = ({ values }, marks) => values?.some((n) => marks.values.has(n)) ?? false;
