// Modes: the panels that share the middle of the page.

import { h, keepingFocus } from "../base/elements.js";
import { paneOf } from "./sections.js";

/** @import { Changes, Middle, Mode, ModePane } from "../types.d.ts" */
/** @import { App } from "./store.js" */

/** The middle: modes are made when first shown, and then get the changes that they missed.
 * @param {App} app
 * @param {Mode[]} modes
 * @returns {Middle} */
export function modePane(app, modes) {
  const el = h("section", { class: "wb-middle", "aria-label": "workspace" });
  /** What each has missed since it was last shown.
   * @type {Map<string, {pane: ModePane, missed: Changes}>} */
  const shown = new Map();
  const current = () => shown.get(app.view.mode)?.pane;
  const update = (/** @type {Changes} */ changes) => {
    const panel = modes.find((mode) => mode.name === app.view.mode) || modes[0];
    for (const { missed } of shown.values()) changes.forEach((change) => missed.add(change));
    const mode = shown.get(panel.name) ?? {
      pane: paneOf(app, panel),
      missed: new Set([...Object.keys(app.view), "record", "live", "hover"]),
    };
    shown.set(panel.name, mode);
    const { pane, missed } = mode;
    const hadFocus = el.contains(document.activeElement);
    const isOther = el.firstChild !== pane.el;
    if (isOther) keepingFocus(el, () => el.replaceChildren(pane.el));
    mode.missed = new Set();
    pane.update(missed);
    if (isOther && hadFocus) pane.focus();
  };
  return { el, update, current };
}
