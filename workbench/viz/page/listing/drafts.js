// Code that is being edited: what is written, and what the compiler says of it. It is compiled when
// nothing was typed for a moment, one text at a time, so that typing waits for nobody.

import { act } from "../app/actions.js";
import { debounced } from "../base/elements.js";

/** @import { CodeRow, ErrorWords } from "../record.d.ts" */
/** @import { App } from "../app/store.js" */

const COMPILE_AFTER_MS = 300;

/** What is being written. `code` is what the last text that compiled became, `error` what is wrong
 * with the present one; `compiled` is the text that the compiler has seen.
 * @typedef {{
 *   variant: number, language: string, text: string, code: CodeRow[], error: ErrorWords | null,
 *   compiled: string | null, isCompiling: boolean, isRunning: boolean
 * }} CodeDraft */

/** Begin to edit a program of a variant.
 * @param {App} app
 * @param {number} variant
 * @param {CodeRow} code */
export function beginEdit(app, variant, { language, lines }) {
  const state = { code: [], error: null, compiled: null, isCompiling: false, isRunning: false };
  app.editing = { variant, language, text: lines.join("\n"), ...state };
  app.changed("editing");
  compile(app, app.editing);
}

/** @param {App} app */
export function endEdit(app) {
  app.editing = null;
  app.changed("editing");
}

/** Hear what was typed.
 * @param {App} app
 * @param {CodeDraft} draft
 * @param {string} text */
export function write(app, draft, text) {
  draft.text = text;
  app.changed("draft");
  compileSoon(app, draft);
}

const compileSoon = debounced(compile, COMPILE_AFTER_MS);

/** Compile what is written; once more where it was changed meanwhile.
 * @param {App} app
 * @param {CodeDraft} draft */
export async function compile(app, draft) {
  const { variant, language, text } = draft;
  if (app.editing !== draft || draft.isCompiling || draft.compiled === text) return;
  draft.isCompiling = true;
  app.changed("draft");
  try {
    const { result } = await app.ask({ do: "compile", variant, language, text });
    if (result && !result.error) draft.code = result.code;
    draft.error = result?.error ?? null;
  } catch (error) {
    draft.error = /** @type {ErrorWords} */ (error);
  }
  Object.assign(draft, { isCompiling: false, compiled: text });
  app.changed("draft");
  compile(app, draft);
}

/** Run what is written as a variant, and go there; what the compiler refuses stays to be edited.
 * @param {App} app
 * @param {CodeDraft} draft */
export async function run(app, draft) {
  const { variant, language, text } = draft;
  if (draft.isRunning) return;
  draft.isRunning = true;
  app.changed("draft");
  const reply = await act(app, "code", { do: "edit", variant, language, text });
  draft.isRunning = false;
  const error = app.failures.code;
  if (error?.line) { // it is said where it is, and once
    Object.assign(draft, { error, compiled: text });
    app.failures.code = null;
    app.changed("failure");
  }
  app.changed("draft");
  if (reply && app.editing === draft) endEdit(app);
}

/** The program of a variant as it is edited, and for a device (nothing: for any); null where it is
 * not, or there is none in a language.
 * @param {App} app
 * @param {number | null} variant
 * @param {string} language
 * @param {string | null} [device] */
export function draftOf({ editing }, variant, language, device = null) {
  if (editing?.variant !== variant) return null;
  return editing.code.find((code) =>
    code.language === language && (device === null || code.device === device)
  ) ?? null;
}

/** The draft of a program; null where it is not edited.
 * @param {App} app
 * @param {number | null} variant
 * @param {string | undefined} language */
export const draftHere = ({ editing }, variant, language) =>
  editing?.variant === variant && editing.language === language ? editing : null;

/** What the compiler says is wrong, without the place.
 * @param {ErrorWords} error */
export function faultOf({ what, because }) {
  const words = /error: ([^\n]*)/.exec(because);
  return words ? words[1] : because.split("\n")[0] || what;
}
