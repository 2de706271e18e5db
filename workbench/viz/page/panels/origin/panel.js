// Over all modes: the file of a loaded exploration, or the missing parts of a saved copy.

import { hasAny } from "../../app/pieces.js";
import { h, recordText, refill } from "../../base/elements.js";

/** @import { App } from "../../app/store.js" */
/** @import { Changes, PanelRow } from "../../types.d.ts" */

/** @satisfies {PanelRow} */
export const panel = { place: "top", order: 2, make: originPane };

/** Shown only for an exploration of a file or a saved copy.
 * @param {App} app */
function originPane(app) {
  const el = h("div", { class: "wb-origin", hidden: true });
  const update = (/** @type {Changes} */ changes) => {
    if (!hasAny(changes, "record")) return;
    const { origin = "", left_out: leftOut = "" } = app.record;
    const lacks = leftOut &&
      `left out of the saved copy: ${leftOut}. Run the cell again to have all.`;
    el.hidden = !origin && !lacks;
    refill(el, recordText([origin, lacks].filter(Boolean).join(" "), "", 600));
  };
  return { el, update };
}
