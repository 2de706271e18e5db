// The languages of other devices, in which a kernel can be read as well: one at a time, so that they
// take no room beside those of its own device.

import { h } from "../base/elements.js";

/** @import { LanguageRow } from "../record.d.ts" */

/** A selector of languages; nothing where there is none.
 * @param {LanguageRow[]} rows
 * @param {string} chosen
 * @param {string} label
 * @param {(language: string) => void} choose */
export function otherLanguages(rows, chosen, label, choose) {
  if (!rows.length) return null;
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
    ...rows.map(({ name, title }) =>
      h("option", { value: name, title, selected: name === chosen }, name)
    ),
  );
}
