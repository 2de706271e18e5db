// The nodes of a graph as a list, for readers who do not see the picture.

import { elementsOf, h, refill } from "../base/elements.js";
import { walkable } from "../base/lists.js";
import { plural } from "../base/text.js";

/** @import { GraphNode, Key } from "./graph.d.ts" */

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
