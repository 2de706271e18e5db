// Lists with arrow keys and letters: one tab stop each, Enter picks.

import { elementsOf, h, noteScroll } from "./elements.js";

/** @import { Attributes, Child } from "./elements.d.ts" */

/** A list whose items are walked with arrows or j/k and picked with Enter; one tab stop. Items
 * carry data-item. keys.js moves the focus; `role` is listbox, tree or tablist.
 * @param {string} role
 * @param {string} label
 * @param {Attributes<HTMLDivElement>} [attributes]
 * @param {...Child} items */
export function walkable(role, label, attributes = {}, ...items) {
  const list = h("div", { role, "aria-label": label, "data-walk": "", ...attributes }, ...items);
  rove(list);
  return list;
}

const ROWS_AT_ONCE = 50; // rows of a long list that are made at once: as many as a tall pane shows

/** Makes more rows of a list: up to an index, or (without one) some. Returns whether there were
 * any.
 * @type {WeakMap<Element, (place?: number) => boolean>} */
const ROW_MAKERS = new WeakMap();

/** A walkable list of any length: rows are made when the reader comes near them, by scrolling or by
 * keys. `grown` is called after that.
 * @param {string} role
 * @param {string} label
 * @param {Attributes<HTMLDivElement>} attributes
 * @param {{count: number, row: (place: number) => HTMLElement, least?: number, grown: () => void}} rows */
export function longList(role, label, attributes, { count, row, least = 0, grown }) {
  const list = walkable(role, label, attributes);
  const more = (/** @type {number} */ place = list.childElementCount) => {
    const first = list.childElementCount;
    if (first === count || place < first) return false;
    const end = Math.min(count, Math.max(place + 1, first + ROWS_AT_ONCE));
    const items = Array.from({ length: end - first }, (_, i) => row(first + i));
    items.forEach((item, i) => {
      item.tabIndex = -1;
      item.ariaSetSize = String(count);
      item.ariaPosInSet = String(first + i + 1);
    });
    list.append(...items);
    near.disconnect();
    const coming = end < count
      ? [items[items.length - ROWS_AT_ONCE / 2], items[items.length - 1]]
      : [];
    for (const item of coming) near.observe(item); // the last one where the reader jumps to the end
    return true;
  };
  const near = new IntersectionObserver((entries) => {
    if (entries.some(({ isIntersecting }) => isIntersecting) && more()) grown();
  });
  ROW_MAKERS.set(list, (place) => {
    const isMore = more(place);
    if (isMore) grown();
    return isMore;
  });
  more(Math.max(0, least));
  rove(list);
  return list;
}

/** The row of a list that has a key, made if it is missing.
 * @param {HTMLElement} list
 * @param {string} key
 * @returns {HTMLElement | undefined} */
export function rowWith(list, key) {
  do {
    const item = elementsOf(list, "[data-item]").find(({ dataset }) => dataset.key === key);
    if (item) return item;
  } while (ROW_MAKERS.get(list)?.());
}

/** Give one item of a list the tab stop: the selected one, else the first.
 * @param {HTMLElement} list
 * @param {Element | null} [item] */
export function rove(list, item = null) {
  const items = elementsOf(list, "[data-item]");
  const stop = item || items.find((i) => i.getAttribute("aria-selected") === "true") || items[0];
  items.forEach((i) => (i.tabIndex = i === stop ? 0 : -1));
}

/** @type {Record<string, number>} */
export const STEPS = {
  j: 1,
  ArrowDown: 1,
  k: -1,
  ArrowUp: -1,
  Home: -Infinity,
  End: Infinity,
  PageDown: 10,
  PageUp: -10,
};

export const LETTERS = ["j", "k"];
/** @type {Record<string, number>} */
export const ACROSS = { ArrowRight: 1, ArrowLeft: -1 };

/** Whether an element is in a horizontal list: tabs and passes. Letters walk vertical ones.
 * @param {Element} target */
export const isAcross = (target) =>
  target.closest("[data-walk]")?.getAttribute("aria-orientation") === "horizontal";

/** Move the focus inside the list that contains it.
 * @param {HTMLElement} target
 * @param {string} key */
export function walk(target, key) {
  /** @type {HTMLElement | null} */
  const list = target.closest("[data-walk]");
  /** @type {HTMLElement | null} */
  const item = target.closest("[data-item]");
  if (!list || !item) return false;
  if ((key === "Enter" || key === " ") && target === item) return (item.click(), true);
  const step = stepOf(key, isAcross(target));
  if (step === undefined) return false;
  ROW_MAKERS.get(list)?.(elementsOf(list, "[data-item]").indexOf(item) + step);
  const items = elementsOf(list, "[data-item]").filter((i) => i.offsetParent);
  focusItem(list, items[placeAfter(items.indexOf(item), step, items.length)]);
  return true;
}

/** The number of items by which a key moves, in a horizontal or vertical list; undefined: it does
 * not.
 * @param {string} key
 * @param {boolean} across
 * @returns {number | undefined} */
export function stepOf(key, across) {
  if (across && LETTERS.includes(key)) return undefined;
  return STEPS[key] ?? (across ? ACROSS[key] : undefined);
}

/** The index `step` items after `place`, within a list of `count`.
 * @param {number} place
 * @param {number} step
 * @param {number} count */
export const placeAfter = (place, step, count) => Math.max(0, Math.min(count - 1, place + step));

/**
 * @param {HTMLElement | null} list
 * @param {HTMLElement | null | undefined} item */
export function focusItem(list, item) {
  if (!list || !item) return;
  rove(list, item);
  item.focus({ preventScroll: true });
  item.scrollIntoView({ block: "nearest", inline: "nearest" });
  noteScroll(item);
}

/** Scroll a list, and none of its ancestors, so that a row can be seen.
 * @param {HTMLElement} list
 * @param {HTMLElement} row
 * @param {number} [covered] pixels at the bottom of the list that something lies over */
export function showRow(list, row, covered = 0) {
  const [inside, around] = [row, list].map((el) => el.getBoundingClientRect());
  const above = around.top - inside.top;
  const below = inside.bottom - around.bottom + covered;
  if (above > 0 || inside.height > around.height) list.scrollTop -= above;
  else if (below > 0) list.scrollTop += below;
  noteScroll(row);
}
