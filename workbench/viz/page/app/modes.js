// Modes: the panels that share the middle of the page, and the sections of the record that a panel
// waits for.

import { h, keepingFocus, refill } from "../base/elements.js";
import { errorBox } from "./pieces.js";

/** @import { Changes, Make, Middle, Mode, ModePane, Pane, PanelRow } from "../types.d.ts" */
/** @import { App } from "./store.js" */

/** The middle of the page. A mode is made when first shown, and then gets the changes that it
 * missed.
 * @param {App} app
 * @param {Mode[]} modes
 * @returns {Middle} */
export function modePane(app, modes) {
  const el = h("section", { class: "wb-middle", "aria-label": "workspace" });
  /** The changes that each mode has missed since it was last shown.
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

// Panels that need a section of the record, which Python builds after the opening record.

const WAITING =
  "Python builds this after the loops and the code of all kernels: it comes by itself.";
const MISSING =
  "This file was written before Python had built this: exported again, the page has it.";

/** @param {App} app */
const missing = (app) => app.record.left_out ? "Left out of the saved copy." : MISSING;

/** Return the pane of a panel. A panel with a section is made once the section has arrived; until
 * then its pane says that it waits, or why Python could not build it. A section at the bottom of
 * the page is hidden until then.
 * @template {Pane} P
 * @param {App} app
 * @param {{name: string, place: string, make: Make<P>}} panel
 * @returns {P} */
export function paneOf(app, { name, place, make }) {
  const row = () => app.record.panels[name];
  const pane = make(app, () => row()?.data);
  if (row() === undefined) return pane;
  const { el: own } = pane;
  const updateOwn = pane.update.bind(pane);
  const notice = h("div", { class: "wb-pad wb-quiet" });
  const el = h("div", { class: "wb-section" });
  const isAlone = () => place !== "bottom" || app.view.only === name;
  /** @type {Changes} */
  let missed = new Set();
  const update = (/** @type {Changes} */ changes) => {
    changes.forEach((change) => missed.add(change));
    const section = row();
    const hasData = section && !section.error;
    const shown = hasData ? own : notice;
    if (el.firstChild !== shown) el.replaceChildren(shown);
    el.hidden = !hasData && !section?.error && !isAlone();
    if (!hasData) {
      return refill(
        notice,
        section ? errorBox(section.error) : app.live === "offline" ? missing(app) : WAITING,
      );
    }
    const all = missed;
    missed = new Set();
    updateOwn(all);
  };
  return Object.assign(pane, { el, update }); // a pane may be an instance of a class, with methods
}
