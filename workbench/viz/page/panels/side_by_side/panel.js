// Two programs side by side: any two languages of a variant, or two variants. What one statement
// became has its colour on both sides, and lights up on both.

import { failure, hasAny } from "../../app/pieces.js";
import { elementsOf, h, refill } from "../../base/elements.js";
import { focusItem } from "../../base/lists.js";
import { keepPinnedInSight } from "../../listing/lines.js";
import { originLinks } from "../../listing/origin.js";
import { columnPane } from "./column.js";

/** @import { Changes, PanelRow } from "../../types.d.ts" */
/** @import { App } from "../../app/store.js" */

/** @satisfies {PanelRow} */
export const panel = {
  place: "middle",
  order: 4,
  title: "Side by side",
  make: modeSideBySide,
  needsRoom: true,
};

/** @param {App} app */
function modeSideBySide(app) {
  const failed = h("div", {});
  const columns = app.view.columns.map((_, place) => columnPane(app, place));
  const both = h("div", { class: "wb-side-columns" }, ...columns.map(({ el }) => el));
  const origin = h("div", { class: "wb-code-origin", "aria-live": "polite" });
  const el = h("div", { class: "wb-side" }, failed, both, origin);
  const update = (/** @type {Changes} */ changes) => {
    if (hasAny(changes, "record", "failure")) refill(failed, failure(app, "side_by_side"));
    columns.forEach((column) => column.update(changes));
    if (hasAny(changes, "code", "record", "variant", "picked")) {
      refill(origin, originLinks(app));
      keepPinnedInSight(both);
    }
  };
  const focus = () => {
    const item = elementsOf(both, ".wb-lines [data-item]")[0];
    focusItem(item?.closest("[data-walk]"), item);
  };
  return { el, update, focus, keys: {} };
}
