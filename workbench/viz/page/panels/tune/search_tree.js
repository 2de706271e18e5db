// What a search tried, below the form it found: a tree, each form under the one it came from. The
// way to the best form is open, the rest opens on a click, Enter or the right arrow.

import { h, refill, words } from "../../base/elements.js";
import { fold } from "../../base/fold.js";
import { ACROSS, rove, walkable } from "../../base/lists.js";
import { secondsText, three } from "../../base/text.js";

/** @import { SearchRow } from "../../record.d.ts" */
/** @import { App } from "../../app/store.js" */

/** @param {App} app */
export function triedPane(app) {
  const el = h("div", { class: "wb-pane wb-tried-pane", hidden: true });
  /** @type {SearchRow | null} */
  let shown = null;
  const update = () => {
    const search = app.variant()?.search || null;
    if (search === shown) return; // branches that were opened stay so while figures arrive
    shown = search;
    el.hidden = !search;
    refill(el, search && fold("tried", triedTitle(search), () => triedTree(search)));
  };
  return { el, update };
}

/** @param {SearchRow} search */
function triedTitle({ tried, timed, seconds, speedup, device, ended }) {
  const ratio = speedup === null ? "" : `, ${three(speedup)} times as fast as its start`;
  return `SEARCH on ${device}: ${tried} tried, ${timed} timed in ${
    secondsText(seconds)
  }${ratio}; ${ended}`;
}

/** What a search tried, by its number.
 * @typedef {{
 *   number: number, parent: number | null, how: string, seconds: number | null, note: string
 * }} Form */

/** @param {SearchRow} search */
function triedTree(search) {
  const forms = search.trials.map(([number, parent, how, seconds, note]) => ({
    number,
    parent,
    how,
    seconds,
    note,
  }));
  /** @type {Map<number | null, Form[]>} */
  const below = new Map(forms.map((form) => [form.number, []]));
  for (const form of forms) below.get(form.parent)?.push(form);
  const open = new Set(wayTo(forms, search.best));
  const tree = walkable("tree", "candidates of the search", { class: "wb-list wb-tried" });

  /** @type {(form: Form, level: number) => HTMLElement[]} */
  const rows = (form, level) => {
    const children = below.get(form.number) ?? [];
    const isOpen = open.has(form.number);
    const row = triedRow(form, level, children.length, isOpen, form.number === search.best);
    row.addEventListener("click", () => turn(form.number, !isOpen));
    return [row, ...(isOpen ? children.flatMap((child) => rows(child, level + 1)) : [])];
  };
  const fill = () => {
    refill(tree, ...forms.filter((form) => form.parent === null).flatMap((form) => rows(form, 1)));
    rove(tree, tree.contains(document.activeElement) ? document.activeElement : null);
  };
  /** @type {(number: number, wanted: boolean) => void} */
  const turn = (number, wanted) => {
    wanted ? open.add(number) : open.delete(number);
    fill();
  };
  tree.addEventListener("keydown", ({ key, target }) => {
    if (!(target instanceof HTMLElement)) return;
    const number = Number(target.dataset.key?.replace("tried-", ""));
    if (key in ACROSS && target.hasAttribute("aria-expanded")) turn(number, key === "ArrowRight");
  });
  fill();
  return tree;
}

/** The numbers of a form and of those that it came from.
 * @param {Form[]} forms
 * @param {number} best */
function wayTo(forms, best) {
  const parents = new Map(forms.map((form) => [form.number, form.parent]));
  const way = [];
  for (let at = /** @type {number | null} */ (best); at !== null; at = parents.get(at) ?? null) {
    way.push(at);
  }
  return way;
}

/**
 * @param {Form} form
 * @param {number} level
 * @param {number} children
 * @param {boolean} isOpen
 * @param {boolean} isBest */
function triedRow({ number, how, seconds, note }, level, children, isOpen, isBest) {
  const mark = children ? (isOpen ? "▾" : "▸") : "";
  return h(
    "div",
    {
      class: "wb-row wb-trial",
      role: "treeitem",
      "aria-level": level,
      "aria-expanded": children ? String(isOpen) : null,
      "aria-selected": String(isBest),
      "data-item": "",
      "data-key": `tried-${number}`,
      tabindex: -1,
    },
    h("span", { class: "wb-figure wb-quiet" }, String(number)),
    h("span", { class: "wb-figure" }, seconds === null ? "" : secondsText(seconds)),
    h(
      "span",
      { class: "wb-name", style: `padding-left:${Math.min(level - 1, 12) * 10}px` },
      h("span", { class: "wb-pin", "aria-hidden": "true" }, mark),
      words(how, "wb-code wb-clip"),
      isBest && h("b", { class: "wb-mark" }, "best"),
      note && words(note, "wb-quiet wb-clip", 300),
    ),
  );
}
