// Notices: progress, and a copied text.

import { h, refill, words } from "../base/elements.js";
import { stop } from "./actions.js";
import { button, failure, hasAny } from "./pieces.js";

/** @import { ProgressRow } from "../record.d.ts" */
/** @import { Changes } from "../types.d.ts" */
/** @import { App } from "./store.js" */

const CHANGES = ["status", "notice", "failure", "room", "mode"];

/** What comes and goes, beside the passes: it covers nothing.
 * @param {App} app */
export function notices(app) {
  const el = h("div", { class: "wb-notices", "aria-live": "polite" });
  const update = (/** @type {Changes} */ changes) => {
    if (!hasAny(changes, ...CHANGES)) return;
    refill(
      el,
      app.status && progress(app, app.status),
      app.notice && h("div", { class: "wb-notice" }, h("span", {}, app.notice)),
      // an error must be seen where its pane is folded, too
      ...app.room.isOpen("left") ? [] : ["results", "kernels"].map((where) => failure(app, where)),
    );
  };
  return { el, update };
}

/**
 * @param {App} app
 * @param {ProgressRow} status */
function progress(app, { task, done, total, text }) {
  return h(
    "div",
    { class: "wb-notice", "data-term": "progress" },
    h("b", {}, words(task ?? "")),
    // before what changes its width, so that it stays in its place
    button(app, "Stop", () => stop(app), { python: true }),
    h("progress", { max: total || 1, value: total ? done : null, "aria-label": task }),
    words(text || (total ? `${done} of ${total}` : "")),
  );
}
