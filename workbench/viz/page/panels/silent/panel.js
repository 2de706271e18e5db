// Over all modes: a notice that Python does not answer, because it is busy or was restarted.

import { notify } from "../../app/actions.js";
import { button, hasAny } from "../../app/pieces.js";
import { h, refill } from "../../base/elements.js";

/** @import { App } from "../../app/store.js" */
/** @import { Changes, PanelRow } from "../../types.d.ts" */

/** @satisfies {PanelRow} */
export const panel = { place: "top", order: 0, make: silentPane };

const BUSY = "Python does not answer: it is busy, or was restarted. ";
const RESTARTED = "Python was restarted, and does not answer this page. ";
const REMEDY = "Browsing still works; to apply, time or check, run the cell again.";

/** Shown only while Python does not answer.
 * @param {App} app */
function silentPane(app) {
  const el = h("div", { class: "wb-silent", role: "status", hidden: true });
  const update = (/** @type {Changes} */ changes) => {
    if (!hasAny(changes, "live")) return;
    el.hidden = app.live !== "silent";
    const askAgain = button(app, "ask again", () => {
      app.channel.ping();
      notify(app, "asking … after a restart, run the cell again");
    });
    refill(
      el,
      ...el.hidden ? [] : [
        h(
          "span",
          { title: "it is asked again every 15 seconds" },
          (app.channel.isRestarted ? RESTARTED : BUSY) + REMEDY,
        ),
        askAgain,
      ],
    );
  };
  return { el, update };
}
