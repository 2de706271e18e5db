// Lists that are walked by arrows and letters: one tab stop each, Enter picks.

import { h } from "./elements.js";

/** A list whose items are walked with arrows or j/k and picked with Enter; one tab stop. Items
 * carry data-item. keys.js moves the focus; `role` is listbox, tree or tablist. */
export function walkable(role, label, attributes = {}, ...items) {
  const list = h("div", { role, "aria-label": label, "data-walk": "", ...attributes }, ...items);
  rove(list);
  return list;
}

/** Let one item of a list take the tab stop: the selected one, else the first. */
export function rove(list, item = null) {
  const items = [...list.querySelectorAll("[data-item]")];
  const stop = item || items.find((i) => i.getAttribute("aria-selected") === "true") || items[0];
  items.forEach((i) => (i.tabIndex = i === stop ? 0 : -1));
}

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
export const ACROSS = { ArrowRight: 1, ArrowLeft: -1 };

/** Whether an element is in a list that lies: tabs and passes. Letters walk those that stand. */
export const isAcross = (target) =>
  target.closest("[data-walk]")?.getAttribute("aria-orientation") === "horizontal";

/** Move the focus inside the list that has it. */
export function walk(target, key) {
  const list = target.closest("[data-walk]");
  const item = target.closest("[data-item]");
  if (!list || !item) return false;
  if ((key === "Enter" || key === " ") && target === item) return (item.click(), true);
  const across = isAcross(target);
  if (across && LETTERS.includes(key)) return false;
  const step = STEPS[key] ?? (across ? ACROSS[key] : undefined);
  if (step === undefined) return false;
  const items = [...list.querySelectorAll("[data-item]")].filter((i) => i.offsetParent);
  const place = Math.max(0, Math.min(items.length - 1, items.indexOf(item) + step));
  focusItem(list, items[place]);
  return true;
}

export function focusItem(list, item) {
  if (!item) return;
  rove(list, item);
  item.focus({ preventScroll: true });
  item.scrollIntoView({ block: "nearest", inline: "nearest" });
}
