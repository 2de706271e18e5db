// Search for nodes of a graph by their words.

import { h } from "../base/elements.js";
import { hasWords, plural } from "../base/text.js";

/** @import { Drawing, GraphNode } from "./graph.d.ts" */

/** A field that finds nodes: Enter goes to the next, Shift+Enter to the one before.
 * @param {string} label
 * @param {{find(query: string): GraphNode[], go(node: GraphNode): void}} on */
export function graphSearch(label, on) {
  const field = h("input", {
    type: "search",
    class: "wb-input wb-g-search",
    placeholder: "/ find",
    "aria-label": `find in ${label}`,
  });
  const count = h("span", { class: "wb-g-count", role: "status" });
  /** @type {GraphNode[]} */
  let matches = [];
  let at = -1;
  const countText = () => {
    if (!field.value) return "";
    if (!matches.length) return "nothing found";
    return at < 0 ? plural(matches.length, "match") : `${at + 1} of ${matches.length}`;
  };
  const sayCount = () => (count.textContent = countText());
  const search = () => {
    matches = on.find(field.value);
    at = -1;
    sayCount();
  };
  const go = (/** @type {number} */ step) => {
    if (!matches.length) return;
    at = (at + step + matches.length + (at < 0 && step < 0 ? 1 : 0)) % matches.length;
    on.go(matches[at]);
    sayCount();
  };
  field.addEventListener("input", search);
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") go(event.shiftKey ? -1 : 1), event.preventDefault();
  });
  return { field, count, search };
}

/** Return the nodes that a query finds: words of the label, type or shape in any order, or #number.
 * @param {Drawing} drawing
 * @param {string} query */
export function graphFind(drawing, query) {
  const wanted = query.trim().toLowerCase();
  if (!wanted) return [];
  if (/^#\d+$/.test(wanted)) return drawing.nodes.filter((node) => `#${node.n}` === wanted);
  return drawing.nodes.filter((node) =>
    hasWords(`${node.label} ${node.sub} ${node.op} ${node.found ?? ""}`, wanted)
  );
}
