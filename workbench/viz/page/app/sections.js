// Panels that need a section of the record, which Python builds after the opening record.

import { h, refill } from "../base/elements.js";
import { errorBox } from "./pieces.js";

/** @import { Changes, Make, Pane } from "../types.d.ts" */
/** @import { App } from "./store.js" */

const WAITING =
  "Python builds this after the loops and the code of all kernels: it comes by itself.";
const MISSING =
  "This file was written before Python had built this: exported again, the page has it.";

/** @param {App} app */
const missing = (app) => app.record.left_out ? "Left out of the saved copy." : MISSING;

/** Return the pane of a panel. A panel with a section is made once the section has arrived; until
 * then its pane says that it waits, or why Python could not build it. An optional one is hidden
 * until then, unless it is alone.
 * @template {Pane} P
 * @param {App} app
 * @param {{name: string, make: Make<P>, isOptional?: boolean}} panel
 * @returns {P} */
export function paneOf(app, { name, make, isOptional = false }) {
  const row = () => app.record.panels[name];
  const pane = make(app, () => row()?.data);
  if (row() === undefined) return pane;
  const { el: own } = pane;
  const updateOwn = pane.update.bind(pane);
  const notice = h("div", { class: "wb-pad wb-quiet" });
  const el = h("div", { class: "wb-section" });
  const isQuiet = () => isOptional && app.view.only !== name;
  /** @type {Changes} */
  let missed = new Set();
  const update = (/** @type {Changes} */ changes) => {
    changes.forEach((change) => missed.add(change));
    const section = row();
    const hasData = section && !section.error;
    const shown = hasData ? own : notice;
    if (el.firstChild !== shown) el.replaceChildren(shown);
    el.hidden = !hasData && !section?.error && isQuiet();
    if (!hasData) {
      return refill(
        notice,
        section ? errorBox(section.error) : app.live === "offline" ? missing(app) : WAITING,
      );
    }
    const all = missed;
    missed = new Set();
    updateOwn(all);
    el.hidden = own.hidden;
  };
  return Object.assign(pane, { el, update }); // a pane may be an instance of a class, with methods
}
