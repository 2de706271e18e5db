// A note that the reader writes about a variant.

import { act, canAsk } from "../../app/actions.js";
import { h, words } from "../../base/elements.js";

/** @import { VariantRow } from "../../record.d.ts" */
/** @import { App } from "../../app/store.js" */

/** Figures that arrive make the pane anew: what is being written outlives that, as a draft.
 * @param {App} app
 * @param {VariantRow} variant */
export function noteField(app, variant) {
  const off = !canAsk(app);
  if (off) return variant.note ? h("p", { class: "wb-note" }, words(variant.note, "", 2000)) : null;
  const { variant: of } = app.view;
  if (of === null) return null;
  const draft = app.draft?.of === of
    ? app.draft
    : { of, text: variant.note, recordText: variant.note };
  const tell = async () => {
    if (draft.text === draft.recordText) return;
    draft.recordText = draft.text;
    const reply = await act(app, "results", { do: "note", variant: of, text: draft.text });
    if (reply && app.draft === draft && draft.text === draft.recordText) app.draft = null; // the record has it
  };
  const input = h("input", {
    class: "wb-input",
    type: "text",
    placeholder: "note",
    "aria-label": "note",
    "data-key": "note",
    maxlength: 2000,
    oninput: ({ target }) => {
      draft.text = target.value;
      app.draft = draft;
    },
    onchange: tell,
    onblur: tell,
  });
  input.value = draft.text;
  return input;
}
