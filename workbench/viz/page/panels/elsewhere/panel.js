// Over all modes: the machine of the kernels, if it is not this one.

import { hasAny } from "../../app/pieces.js";
import { h, recordText, refill } from "../../base/elements.js";

/** @import { App } from "../../app/store.js" */
/** @import { Changes, PanelRow } from "../../types.d.ts" */

/** @satisfies {PanelRow} */
export const panel = { place: "top", order: 3, make: elsewherePane };

/** Shown only for kernels of another machine.
 * @param {App} app */
function elsewherePane(app) {
  const el = h("div", { class: "wb-elsewhere", hidden: true });
  const update = (/** @type {Changes} */ changes) => {
    if (!hasAny(changes, "record")) return;
    const { elsewhere } = app.record;
    el.hidden = !elsewhere;
    refill(el, recordText(elsewhere, "", 600));
  };
  return { el, update };
}
