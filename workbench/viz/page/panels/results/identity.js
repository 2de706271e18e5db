// The name and the age of the selected variant, which can be renamed and deleted.

import { act, canAsk, deleteVariant } from "../../app/actions.js";
import { draftField } from "../../app/draft_field.js";
import { button } from "../../app/pieces.js";
import { h } from "../../base/elements.js";
import { dateText } from "../../base/text.js";

/** @import { VariantRow } from "../../record.d.ts" */
/** @import { App } from "../../app/store.js" */

/** The first and the default variant have names that mean something: they have no date either.
 * @param {App} app
 * @param {VariantRow} row */
export function identityRow(app, row) {
  const { variant } = app.view;
  if (variant === null || !row.when) return null;
  const tell = (/** @type {string} */ text) => act(app, "results", { do: "name", variant, text });
  const of = row.opts.join("\n") || "no opts";
  return h(
    "div",
    { class: "wb-identity" },
    canAsk(app) && draftField(app, "name", variant, row.name, tell, {
      maxlength: 80,
      title: `the name of this variant; empty: by its opts · key F2\n\n${of}`,
    }),
    h(
      "span",
      { class: "wb-quiet", title: new Date(row.when * 1000).toString() },
      dateText(row.when),
    ),
    button(app, "Delete", () => deleteVariant(app, variant), {
      python: true,
      key: "Del",
      name: "delete",
      title: "this variant; its children stay, and it can be brought back",
    }),
  );
}
