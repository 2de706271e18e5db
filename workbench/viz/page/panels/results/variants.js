// The variants of a kernel as a tree: each came from another by an opt, an edit or a search.

import { goTo, pinned } from "../../app/actions.js";
import { h, words } from "../../base/elements.js";
import { walkable } from "../../base/lists.js";
import { timeCells } from "./times.js";

/** @import { VariantRow } from "../../record.d.ts" */
/** @import { App } from "../../app/store.js" */

/** @param {App} app */
export function variantTree(app) {
  const here = app.variantsOf(app.view.kernel);
  const rows = inTreeOrder(app, here).map(([i, level]) => variantRow(app, i, level));
  return walkable("tree", "variants", { class: "wb-list" }, ...rows);
}

/** Return [variant, level] with children under their parents.
 * @param {App} app
 * @param {number[]} here */
function inTreeOrder(app, here) {
  /** @type {Map<number, number[]>} */
  const children = new Map(here.map((i) => [i, []]));
  const tops = here.filter((i) => !children.get(app.record.variants[i].parent ?? -1)?.push(i));
  /** @type {(level: number) => (i: number) => number[][]} */
  const rows = (level) => (i) => [[i, level], ...(children.get(i) ?? []).flatMap(rows(level + 1))];
  return tops.flatMap(rows(1));
}

/**
 * @param {App} app
 * @param {number} i
 * @param {number} level */
function variantRow(app, i, level) {
  const variant = app.record.variants[i];
  const isPinned = i === pinned(app);
  const busy = app.pending("measure", { variants: i });
  return h(
    "div",
    {
      class: "wb-row wb-variant",
      role: "treeitem",
      "aria-level": level,
      "aria-selected": String(i === app.view.variant),
      "data-item": "",
      "data-key": `variant-${i}`,
      title: [variant.opts.join("\n") || "no opts", variant.note].filter(Boolean).join("\n\n"),
      onclick: () => goTo(app, i),
    },
    h(
      "span",
      { class: "wb-name", style: `padding-left:${Math.min(level - 1, 6) * 10}px` },
      h(
        "span",
        { class: "wb-pin", title: isPinned ? "pinned: ratios refer to it" : null },
        isPinned ? "◆" : "",
      ),
      words(variant.name, "wb-clip", 40),
      variant.edited && !variant.name.startsWith("edited") &&
        h("i", { class: "wb-quiet wb-mark" }, "edited"),
      troubleMark(variant),
    ),
    ...(busy
      ? [h("span", { class: "wb-quiet wb-span3" }, "timing…")]
      : timeCells(app, variant.timing, variant.timing?.emulator)),
  );
}

/** A wrong answer is as little to be overlooked as none: its time would be compared.
 * @param {VariantRow} variant */
function troubleMark({ error, check }) {
  if (error) return h("b", { class: "wb-bad wb-mark", title: error.what }, "!");
  return check && !check.ok && h("b", { class: "wb-bad wb-mark", title: check.text }, "\u2717");
}
