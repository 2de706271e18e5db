// A text field whose content is sent to Python when the reader leaves it. New data rebuild its
// pane; unsent text survives that as a draft.

import { h } from "../base/elements.js";

/** @import { App } from "./store.js" */

/** What is written of one thing, and what of it Python knows.
 * @typedef {{of: number | null, text: string, recordText: string}} Draft */

/** A field named `name` about the thing `of`; `tell` tells Python, and returns null where that failed.
 * @param {App} app
 * @param {string} name
 * @param {number} of
 * @param {string} text
 * @param {(text: string) => Promise<unknown>} tell
 * @param {Record<string, string | number>} [attributes] */
export function draftField(app, name, of, text, tell, attributes = {}) {
  const known = app.drafts.get(name);
  const draft = known?.of === of ? known : { of, text, recordText: text };
  const leave = async () => {
    if (draft.text === draft.recordText) return;
    const before = draft.recordText;
    draft.recordText = draft.text;
    const reply = await tell(draft.text);
    if (reply === null) draft.recordText = before;
    const isSame = app.drafts.get(name) === draft && draft.text === draft.recordText;
    if (reply && isSame) app.drafts.delete(name); // the record has it
  };
  const input = h("input", {
    class: "wb-input",
    type: "text",
    placeholder: name,
    "aria-label": name,
    "data-key": name,
    ...attributes,
    oninput: ({ target }) => {
      draft.text = target.value;
      app.drafts.set(name, draft);
    },
    onchange: leave,
    onblur: leave,
  });
  input.value = draft.text;
  return input;
}
