// The languages of other devices for a kernel, shown one at a time to leave room for those of its
// own device.

import { canAsk, NEEDS_PYTHON } from "../app/actions.js";
import { h } from "../base/elements.js";

/** @import { LanguageRow } from "../record.d.ts" */
/** @import { App } from "../app/store.js" */

/** A selector of languages; nothing where there is none. Without Python, those that the record does
 * not have stand in it and say so.
 * @param {App} app
 * @param {LanguageRow[]} rows
 * @param {(row: LanguageRow) => unknown} isThere
 * @param {string} chosen
 * @param {string} label
 * @param {(language: string) => void} choose */
export function otherLanguages(app, rows, isThere, chosen, label, choose) {
  const shown = canAsk(app) ? rows.filter(isThere) : rows;
  if (!shown.length) return null;
  const isOne = rows.some(({ name }) => name === chosen);
  return h(
    "select",
    {
      "aria-label": label,
      "data-key": label,
      title: "the same kernel as other devices would get it",
      onchange: ({ target }) => target.value && choose(target.value),
    },
    h("option", { value: "", selected: !isOne, disabled: isOne }, "other…"),
    ...shown.map((row) => {
      const { name, title } = row;
      if (isThere(row)) return h("option", { value: name, title, selected: name === chosen }, name);
      return h("option", { value: name, title, disabled: true }, `${name} (${NEEDS_PYTHON})`);
    }),
  );
}
