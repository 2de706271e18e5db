// The discs with numbers at the corners of boxes.

/** @import { GraphNode } from "./graph.d.ts" */

/** How large the disc of a node's badge is.
 * @param {Pick<GraphNode, "badge">} node */
export const badgeRadius = ({ badge = "" }) => (badge.length > 2 ? 11.5 : 8.5);
