// Panels that need a section of the record, which Python builds after what is looked at first.

import { h, refill } from "../base/elements.js";
import { errorBox } from "./pieces.js";

/** @import { Changes, Make, Pane, PanelRow } from "../types.d.ts" */
/** @import { App } from "./store.js" */

/** Return the pane of a panel. Where it has a section, it is updated once that is there; until then
 * it says so, and where Python could not build it, why.
 * @template {Pane} P
 * @param {App} app
 * @param {{name: string, make: Make<P>}} panel
 * @returns {P} */
export function paneOf(app, { name, make }) {
  const row = () => app.record.panels[name];
  const pane = make(app, () => row()?.data);
  if (row() === undefined) return pane;
  const { el: own } = pane;
  const updateOwn = pane.update.bind(pane);
  const notice = h("div", { class: "wb-pad" });
  const el = h("div", { class: "wb-section" });
  /** @type {Changes} */
  let missed = new Set();
  const update = (/** @type {Changes} */ changes) => {
    changes.forEach((change) => missed.add(change));
    const section = row();
    const hasData = section && !section.error;
    const shown = hasData ? own : notice;
    if (el.firstChild !== shown) el.replaceChildren(shown);
    if (!hasData) return refill(notice, section ? errorBox(section.error) : "not built yet …");
    const all = missed;
    missed = new Set();
    updateOwn(all);
  };
  return Object.assign(pane, { el, update }); // a pane may be of a class, with methods
}
