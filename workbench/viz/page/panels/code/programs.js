// The programs of a variant, in the languages of the record.

import { canAsk } from "../../app/actions.js";

/** @import { VariantRow } from "../../record.d.ts" */
/** @import { App } from "../../app/store.js" */

/** What the record says of a language.
 * @param {App} app
 * @param {string} name */
export const languageOf = (app, name) => app.record.languages.find((row) => row.name === name);

/** The program of a variant in a language.
 * @param {VariantRow | null} variant
 * @param {string | undefined} language */
export const codeOf = (variant, language) =>
  variant?.code.find((code) => code.language === language) || null;

/** The program in the language that is looked at; another one where this cannot be made.
 * @param {App} app
 * @param {VariantRow | null} variant */
export function shownCode(app, variant) {
  const code = codeOf(variant, app.view.language);
  return code || (mayCome(app, variant) ? null : variant?.code[0] || null);
}

/** Whether Python can make a program that is not there.
 * @param {App} app
 * @param {VariantRow | null} variant */
export const mayCome = (app, variant) => canAsk(app) && !variant?.edited;
