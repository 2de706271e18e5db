// The nodes of a graph as a list, for readers who do not see the picture, and the search for nodes
// by their text.

import { elementsOf, h, refill } from "../base/elements.js";
import { walkable } from "../base/lists.js";
import { plural, search } from "../base/text.js";

/** @import { Drawing, GraphMatch, GraphNode, Key } from "./graph.d.ts" */

const MOST_LISTED = 500;

/** The list, filled when it is opened; `choose(node)` is called for clicks.
 * @param {string} label
 * @param {(node: GraphNode) => void} choose */
export function graphListing(label, choose) {
  const el = h("div", { class: "wb-g-list", hidden: true });
  const button = h("button", {
    class: "wb-button",
    type: "button",
    title: "nodes as a list",
    "aria-expanded": "false",
    onclick: () => {
      el.hidden = !el.hidden;
      button.setAttribute("aria-expanded", String(!el.hidden));
      fill();
    },
  }, "list");
  /** @type {{nodes: GraphNode[], picked: Key | null}} */
  let shown = { nodes: [], picked: null };
  const fill = () => {
    if (el.hidden) return;
    const { nodes, picked } = shown;
    const items = nodes.slice(0, MOST_LISTED).map((node) =>
      listItem(node, node.key === picked, choose)
    );
    const more = nodes.length - items.length;
    refill(
      el,
      walkable("listbox", `${label}: nodes`, {}, ...items),
      more > 0 && h("p", {}, `and ${plural(more, "node")} more: search finds them`),
    );
  };
  return {
    el,
    button,
    /** @type {(nodes: GraphNode[], picked: Key | null) => void} */
    show: (nodes, picked) => ((shown = { nodes, picked }), fill()),
    /** @type {(key: Key | null) => void} */
    pick: (key) => {
      shown.picked = key;
      for (const item of elementsOf(el, "[data-item]")) {
        item.setAttribute("aria-selected", String(item.dataset.key === `g${key}`));
      }
    },
  };
}

/**
 * @param {GraphNode} node
 * @param {boolean} isPicked
 * @param {(node: GraphNode) => void} choose */
function listItem(node, isPicked, choose) {
  const { key, badge, letter, label, sub, state, hint } = node;
  return h(
    "div",
    {
      role: "option",
      "data-item": "",
      "data-key": `g${key}`,
      "aria-selected": String(isPicked),
      onclick: () => choose(node),
    },
    `${badge || letter || ""} ${label} ${sub}${state === "kept" ? "" : ` (${state})`}${
      hint ? `: ${hint}` : ""
    }`,
  );
}

// Search for nodes of a graph by their words.

/** A field that finds nodes: Enter goes to the next, Shift+Enter to the one before.
 * @param {string} label
 * @param {(query: string) => GraphMatch[]} find */
export function graphSearch(label, find) {
  const field = h("input", {
    type: "search",
    class: "wb-input wb-g-search",
    placeholder: "/ find",
    "aria-label": `find in ${label}`,
  });
  const count = h("span", { class: "wb-g-count", role: "status" });
  /** @type {GraphMatch[]} */
  let matches = [];
  let at = -1;
  let query = "";
  const countText = () => {
    if (!field.value) return "";
    if (!matches.length) return "nothing found";
    const all = at < 0 ? plural(matches.length, "match") : `${at + 1} of ${matches.length}`;
    const folded = matches.filter(({ isFolded }) => isFolded).length;
    return folded ? `${all}, ${folded} folded` : all;
  };
  const updateCount = () => (count.textContent = countText());
  const search = () => {
    const last = query === field.value ? matches[at]?.id : undefined; // in another drawing
    query = field.value;
    matches = find(query);
    at = last === undefined ? -1 : matches.findIndex(({ id }) => id === last);
    updateCount();
  };
  const go = (/** @type {number} */ step) => {
    if (!matches.length) return;
    at = (at + step + matches.length + (at < 0 && step < 0 ? 1 : 0)) % matches.length;
    matches[at].go();
    updateCount();
  };
  field.addEventListener("input", search);
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") go(event.shiftKey ? -1 : 1), event.preventDefault();
  });
  return { field, count, search };
}

/** Return the nodes that a query finds: by words of the label, type or shape, or #number.
 * @param {Pick<Drawing, "nodes">} drawing
 * @param {string} query */
export function graphFind({ nodes }, query) {
  const wanted = query.trim();
  if (!wanted) return [];
  if (/^#\d+$/.test(wanted)) return nodes.filter((node) => `#${node.n}` === wanted);
  return search(
    nodes,
    (node) => `${node.label} ${node.sub} ${node.op} ${node.found ?? ""}`,
    wanted,
  );
}
