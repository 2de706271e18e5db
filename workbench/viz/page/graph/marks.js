// Marks on a drawing, and the numbered discs at the corners of boxes.

/** @import { GraphEdge, GraphNode, Marks } from "./graph.d.ts" */

/** Whether a line reads one of the nodes that are lit.
 * @param {GraphEdge} edge
 * @param {Marks} marks */
export const isLitLine = ({ values }, marks) => values?.some((n) => marks.values.has(n)) ?? false;

/** How large the disc of a node's badge is.
 * @param {Pick<GraphNode, "badge">} node */
export const badgeRadius = ({ badge = "" }) => (badge.length > 2 ? 11.5 : 8.5);
