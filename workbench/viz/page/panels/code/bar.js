// The bar over the code: languages and actions.

import { copy, reference, toggleDiff } from "../../app/actions.js";
import { button, heading, tab } from "../../app/pieces.js";
import { h } from "../../base/elements.js";
import { walkable } from "../../base/lists.js";
import { otherLanguages } from "../../listing/other_languages.js";
import {
  codeOf,
  isOnlyCompiled,
  languageOf,
  mayCome,
  ownLanguages,
  runsInPage,
} from "../../listing/programs.js";

/** @import { CodeRow, LanguageRow, VariantRow } from "../../record.d.ts" */
/** @import { App } from "../../app/store.js" */

/** `edit()` begins to edit; null: it has begun.
 * @param {App} app
 * @param {VariantRow | null} variant
 * @param {CodeRow | null} code
 * @param {(() => void) | null} edit */
export function codeBar(app, variant, code, edit) {
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
    otherLanguages(
      app,
      app.record.languages.filter((row) => row.role === "program" && !own.includes(row)),
      isThere,
      app.view.language,
      "other languages",
      (language) => app.select({ language }),
    ),
    h("span", { class: "wb-gap" }),
    diffButton(app, variant),
    button(app, "copy", () => code && copy(app, code.lines.join("\n"), code.language), {
      name: "copy-code",
      title: "the program as text",
    }),
    code &&
    edit &&
    languageOf(app, code.language)?.device && // something runs what is edited
    editButton(app, code, edit),
  ];
}

/**
 * @param {App} app
 * @param {VariantRow | null} variant */
function diffButton(app, variant) {
  const other = reference(app);
  return button(app, "diff", () => toggleDiff(app), {
    pressed: Boolean(app.view.diff) && other !== variant, // against itself there is none
    key: "d",
    name: "diff",
    title: other && other !== variant
      ? `against ${other.name.slice(0, 40)}, the pinned variant`
      : "this is the pinned variant: choose another one to see what differs",
  });
}

/**
 * @param {App} app
 * @param {CodeRow} code
 * @param {() => void} edit */
function editButton(app, code, edit) {
  const isHere = runsInPage(app, code);
  const title = isHere
    ? "what you write runs in this browser, checked and timed"
    : isOnlyCompiled(app.record, code.language)
    ? "what you write becomes a variant, compiled for a machine that is not here"
    : "what you write becomes a variant, checked and timed";
  return button(app, "edit", edit, { python: !isHere, title });
}
