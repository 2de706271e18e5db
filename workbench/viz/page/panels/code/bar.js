// Over the code: its languages, and what can be done with it.

import { copy, reference, toggleDiff } from "../../app/actions.js";
import { button, heading, tab } from "../../app/pieces.js";
import { h } from "../../base/elements.js";
import { walkable } from "../../base/lists.js";
import { codeOf, languageOf, mayCome, ownLanguages } from "../../listing/programs.js";

/** @import { CodeRow, LanguageRow, VariantRow } from "../../record.d.ts" */
/** @import { App } from "../../app/store.js" */

/** `edit()` begins to edit; null: it has begun.
 * @param {App} app
 * @param {VariantRow | null} variant
 * @param {CodeRow | null} code
 * @param {(() => void) | null} edit */
export function codeBar(app, variant, code, edit) {
  const other = reference(app);
  const own = ownLanguages(app.record);
  const isThere = (/** @type {LanguageRow} */ { name }) =>
    codeOf(variant, name) || mayCome(app, variant, name);
  const tabs = own
    .filter(isThere)
    .map(({ name, title }) =>
      tab(
        name,
        (code?.language || app.view.language) === name,
        () => app.select({ language: name }),
        `code-${name}`,
        title,
      )
    );
  return [
    heading("CODE"),
    walkable(
      "tablist",
      "language",
      { class: "wb-tabs", "aria-orientation": "horizontal" },
      ...tabs,
    ),
    otherLanguages(app, app.record.languages.filter((row) => !own.includes(row) && isThere(row))),
    h("span", { class: "wb-gap" }),
    button(
      app,
      "diff",
      () => toggleDiff(app),
      {
        pressed: Boolean(app.view.diff) && other !== variant, // against itself there is none
        key: "d",
        name: "diff",
        title: other && other !== variant
          ? `against ${other.name.slice(0, 40)}, the pinned variant`
          : "this is the pinned variant: choose another one to see what differs",
      },
    ),
    button(app, "copy", () => code && copy(app, code.lines.join("\n"), code.language), {
      name: "copy-code",
      title: "the program as text",
    }),
    code &&
    edit &&
    languageOf(app, code.language)?.device && // something runs what is edited
    button(
      app,
      "edit",
      edit,
      { python: true, title: "what you write becomes a variant, checked and timed" },
    ),
  ];
}

/** The languages of other devices, in which a kernel can be read as well: one at a time.
 * @param {App} app
 * @param {LanguageRow[]} rows */
function otherLanguages(app, rows) {
  if (!rows.length) return null;
  const shown = rows.some(({ name }) => name === app.view.language);
  return h(
    "select",
    {
      class: `wb-language ${shown ? "wb-on" : ""}`,
      "aria-label": "other languages",
      "data-key": "other-languages",
      title: "the same kernel as other devices would get it",
      onchange: ({ target }) => target.value && app.select({ language: target.value }),
    },
    h("option", { value: "", selected: !shown, disabled: shown }, "other…"),
    ...rows.map(({ name, title }) =>
      h("option", { value: name, title, selected: name === app.view.language }, name)
    ),
  );
}
