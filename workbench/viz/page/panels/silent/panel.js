// Over all modes: a sentence that Python does not answer, why, what still works, and what to do; a quiet
// one while it is busy.

import { notify } from "../../app/actions.js";
import { WORKING } from "../../app/channel.js";
import { button, hasAny } from "../../app/pieces.js";
import { h, refill } from "../../base/elements.js";

/** @import { App } from "../../app/store.js" */
/** @import { Changes, PanelRow } from "../../types.d.ts" */

/** @satisfies {PanelRow} */
export const panel = { place: "top", order: 0, make: silentPane };

const REMEDY = " Browsing still works; to apply, time or check, run the cell again.";
const SAVED =
  "Saved without Python: what was recorded can be read; to apply, time or check, run the code in a notebook.";

/** Shown only while Python does not answer.
 * @param {App} app */
function silentPane(app) {
  const el = h("div", { class: "wb-silent", role: "status", hidden: true });
  const update = (/** @type {Changes} */ changes) => {
    if (!hasAny(changes, "live")) return;
    const isSaved = app.live === "offline";
    const isBusy = app.live === "busy";
    el.hidden = app.live !== "silent" && !isSaved && !isBusy;
    el.classList.toggle("wb-saved", isSaved || isBusy);
    const askAgain = button(app, "ask again", () => {
      app.channel.ping();
      notify(app, "asking … after a restart, run the cell again");
    });
    if (el.hidden) refill(el);
    else if (isSaved || isBusy) refill(el, isSaved ? SAVED : WORKING);
    else {
      refill(
        el,
        h("span", { title: "it is asked again every 15 seconds" }, app.channel.silence + REMEDY),
        askAgain,
      );
    }
  };
  return { el, update };
}
