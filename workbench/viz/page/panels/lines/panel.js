// The user's lines: where everything comes from.

import { linked } from "../../app/links.js";
import { hasAny, heading } from "../../app/pieces.js";
import { lineLink } from "../../app/store.js";
import { h, refill, words } from "../../base/elements.js";
import { walkable } from "../../base/lists.js";

/** @import { LineRow } from "../../record.d.ts" */
/** @import { Changes, PanelRow } from "../../types.d.ts" */
/** @import { App } from "../../app/store.js" */

/** @satisfies {PanelRow} */
export const panel = { place: "left", order: 3, make: linesPane };

/** The user's lines: where everything comes from.
 * @param {App} app */
function linesPane(app) {
  const el = h("section", { class: "wb-sources", "aria-label": "notebook lines" });
  const update = (/** @type {Changes} */ changes) => {
    if (!hasAny(changes, "record", "line")) return;
    const rows = inOrder(app.record.lines).map((i) => sourceRow(app, app.record.lines[i], i));
    el.hidden = !rows.length;
    refill(
      el,
      heading("LINES"),
      walkable("listbox", "lines of the notebook", { class: "wb-list" }, ...rows),
    );
  };
  return { el, update };
}

/** Cells and lines in the order in which the user wrote them.
 * @param {LineRow[]} lines */
function inOrder(lines) {
  const compareWhere = (/** @type {number} */ a, /** @type {number} */ b) =>
    lines[a].where.localeCompare(lines[b].where, "en", { numeric: true });
  return lines.map((_, i) => i).sort(compareWhere);
}

/**
 * @param {App} app
 * @param {LineRow} line
 * @param {number} i */
function sourceRow(app, { where, text }, i) {
  const chosen = app.view.line === i;
  const row = h(
    "div",
    {
      class: "wb-row wb-source",
      role: "option",
      "aria-selected": String(chosen),
      "data-item": "",
      "data-key": `source-${i}`,
      title: text.slice(0, 1000),
      onclick: () => app.select({ line: chosen ? null : i }),
    },
    words(where, "wb-quiet wb-clip"),
    words(text.trim(), "wb-code wb-clip"),
  );
  return linked(row, lineLink([i]));
}
