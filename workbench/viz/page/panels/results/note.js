// The reader's note about a variant.

import { act, canAsk } from "../../app/actions.js";
import { draftField } from "../../app/draft_field.js";
import { meaningOf } from "../../app/glossary.js";
import { h, words } from "../../base/elements.js";

/** @import { VariantRow } from "../../record.d.ts" */
/** @import { App } from "../../app/store.js" */

/**
 * @param {App} app
 * @param {VariantRow} row */
export function noteField(app, row) {
  const { variant } = app.view;
  if (!canAsk(app)) {
    return row.note ? h("p", { class: "wb-note" }, words(row.note, "", 2000)) : null;
  }
  if (variant === null) return null;
  const tell = (/** @type {string} */ text) => act(app, "results", { do: "note", variant, text });
  return draftField(app, "note", variant, row.note, tell, {
    maxlength: 2000,
    title: meaningOf(app.record, "note"),
  });
}
