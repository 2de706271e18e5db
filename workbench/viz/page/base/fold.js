// A fold: a `details` element that stays open when its pane is refilled.

import { h } from "./elements.js";

/** The keys of those that are open.
 * @type {Set<string>} */
export const OPENED = new Set();

/** A fold that stays open when its pane is filled anew; its body is made when it is opened.
 * @param {string} key
 * @param {string} title
 * @param {() => Node} body */
export function fold(key, title, body) {
  const el = h(
    "details",
    { class: "wb-fold", open: OPENED.has(key) },
    h("summary", { "data-key": `fold-${key}`, "data-term": key }, title),
  );
  const fill = () => el.open && el.childElementCount === 1 && el.append(body());
  el.addEventListener("toggle", () => {
    el.open ? OPENED.add(key) : OPENED.delete(key);
    fill();
  });
  fill();
  return el;
}
