// Drafts: code while the reader edits it, and the compiler's messages. A draft is compiled after a
// pause in typing, one text at a time, so that typing never waits. What a page can run itself is
// compiled and run by the browser, and stays a draft; all else goes to Python.

import { act, notify } from "../app/actions.js";
import { rowAt } from "../app/store.js";
import { debounced } from "../base/elements.js";
import { refusalOf, runCode, runHere, runOf } from "../browser/run.js";
import { codeOf, languageOf, runsInPage } from "./programs.js";

/** @import { App } from "../app/store.js" */
/** @import { CodeRow, ErrorWords, PageLaunch } from "../record.d.ts" */

const COMPILE_AFTER_MS = 300;

/** An edited program, `of` which it was made. `launch` runs it in the page; null: Python runs it.
 * `code` is the outcome of the last text that compiled, `error` that of the present one; `compiled`
 * is the text that the compiler has seen, `seen` the line, from 0, that the reader saw.
 * @typedef {{
 *   variant: number, language: string, text: string, of: CodeRow, launch: PageLaunch | null,
 *   code: CodeRow[], error: ErrorWords | null, compiled: string | null, isCompiling: boolean,
 *   isRunning: boolean, seen: number | null
 * }} CodeDraft */

/** Start editing a program of a variant, or continue an earlier edit.
 * @param {App} app
 * @param {number} variant
 * @param {CodeRow} code
 * @param {number | null} [seen] */
export function beginEdit(app, variant, code, seen = null) {
  keepDraft(app);
  app.editing = draftBefore(app, variant, code) ?? newDraft(app, variant, code);
  app.editing.seen = seen;
  app.changed("editing");
  compile(app, app.editing);
}

/** Start editing a program in the pane of its own, which takes the room of the board; of a statement
 * tree, which is for reading, the text that parses.
 * @param {App} app
 * @param {number} variant
 * @param {CodeRow} code
 * @param {number | null} seen */
export async function editCode(app, variant, code, seen) {
  const { languages, variants } = app.record;
  if (languageOf(app, code.language)?.role !== "statements") {
    return editAlone(app, variant, code, seen);
  }
  const text = languages.find(({ role }) => role === "text");
  if (!text) return;
  const { name } = text;
  const isThere = Boolean(codeOf(rowAt(variants, variant), name));
  const asked = isThere || act(app, "code", { do: "code", variant, language: name });
  app.select({ language: name });
  if (!(await asked)) return;
  const own = codeOf(rowAt(app.record.variants, variant), name);
  const { view } = app;
  if (own && view.variant === variant && view.language === name) editAlone(app, variant, own);
}

/**
 * @param {App} app
 * @param {number} variant
 * @param {CodeRow} code
 * @param {number | null} [seen] */
function editAlone(app, variant, code, seen) {
  beginEdit(app, variant, code, seen);
  app.arrangements.makeRoom(app);
}

/** @param {App} app
 * @param {number} variant
 * @param {CodeRow} code
 * @returns {CodeDraft} */
function newDraft(app, variant, code) {
  const { language } = code;
  const launch = launchOf(app, code);
  const state = {
    code: [],
    error: null,
    compiled: null,
    isCompiling: false,
    isRunning: false,
    seen: null,
  };
  return { variant, language, text: textOf(code), of: code, launch, ...state };
}

/** The launch of a program in the page; null if Python runs it.
 * @param {App} app
 * @param {CodeRow} code */
const launchOf = (app, code) => runsInPage(app, code) ? code.launch ?? null : null;

/** @param {CodeRow} code */
const textOf = ({ lines }) => lines.join("\n");

/** Whether a draft differs from its program.
 * @param {CodeDraft} draft */
export const isChanged = ({ text, of }) => text !== textOf(of);

/** The stored draft of a program; none if the program has changed since.
 * @param {App} app
 * @param {number} variant
 * @param {CodeRow} code */
function draftBefore(app, variant, code) {
  const draft = app.codeDrafts.get(`${variant} ${code.language}`);
  if (!draft || textOf(draft.of) !== textOf(code)) return null;
  const launch = launchOf(app, code); // the device may have changed
  return Object.assign(draft, { of: code, launch, compiled: null });
}

/** Store a draft for the next edit of the program.
 * @param {App} app */
function keepDraft({ editing, codeDrafts }) {
  if (!editing) return;
  const key = `${editing.variant} ${editing.language}`;
  if (isChanged(editing)) codeDrafts.set(key, editing);
  else codeDrafts.delete(key);
}

/** Close the editor; the draft is stored for the next time.
 * @param {App} app */
export function leaveEdit(app) {
  keepDraft(app);
  closeEditor(app);
}

/** Restore the program's own text.
 * @param {App} app
 * @param {CodeDraft} draft */
export function undoEdit(app, draft) {
  write(app, draft, textOf(draft.of));
}

/** Close the editor, whose text has become a variant.
 * @param {App} app
 * @param {CodeDraft} draft */
function endEdit(app, draft) {
  app.codeDrafts.delete(`${draft.variant} ${draft.language}`);
  closeEditor(app);
}

/** @param {App} app */
function closeEditor(app) {
  app.editing = null;
  app.changed("editing");
  app.arrangements.makeRoom(app); // for none
}

/** Take the typed text.
 * @param {App} app
 * @param {CodeDraft} draft
 * @param {string} text */
export function write(app, draft, text) {
  draft.text = text;
  app.changed("draft");
  compileSoon(app, draft);
}

const compileSoon = debounced(compile, COMPILE_AFTER_MS);

/** Compile a draft; once more if it was changed meanwhile.
 * @param {App} app
 * @param {CodeDraft} draft */
export async function compile(app, draft) {
  const { text, launch } = draft;
  if (app.editing !== draft || draft.isCompiling || draft.compiled === text) return;
  draft.isCompiling = true;
  app.changed("draft");
  draft.error = launch ? await refusalHere(draft, launch) : await refusalThere(app, draft);
  Object.assign(draft, { isCompiling: false, compiled: text });
  app.changed("draft");
  compile(app, draft);
}

/** The message of the browser's compiler about a draft, with a remedy.
 * @param {CodeDraft} draft
 * @param {PageLaunch} launch
 * @returns {Promise<ErrorWords | null>} */
async function refusalHere({ text, of }, launch) {
  const error = await refusalOf(text, launch);
  return error && !error.try ? { ...error, try: beforeEdit(of.lines, text, error.line) } : error;
}

/** The remedy for a line of an edited text: its former text.
 * @param {string[]} before
 * @param {string} text
 * @param {number | null | undefined} line */
export function beforeEdit(before, text, line) {
  const { start, end, added } = changedLines(before, text.split("\n"));
  if (added === 0 && start === end) return "another device, since this text was not edited";
  const place = (line ?? 0) - 1;
  const isEdited = start <= place && place < start + added;
  if (isEdited && added === end - start) return `line ${line} as it was: ${before[place].trim()}`;
  return `the text as it was before the edit, which begins at line ${start + 1}`;
}

/** The difference of two texts: lines `start` to `end` of the first are `added` lines in the
 * second.
 * @param {string[]} before
 * @param {string[]} lines */
export function changedLines(before, lines) {
  const shorter = Math.min(before.length, lines.length);
  let start = 0;
  while (start < shorter && before[start] === lines[start]) start++;
  let common = 0;
  while (common < shorter - start && before.at(-1 - common) === lines.at(-1 - common)) common++;
  return { start, end: before.length - common, added: lines.length - common - start };
}

/** The message of Python's compiler about a draft; else the draft takes its outcome.
 * @param {App} app
 * @param {CodeDraft} draft
 * @returns {Promise<ErrorWords | null>} */
async function refusalThere(app, draft) {
  const { variant, language, text } = draft;
  try {
    const { result } = await app.ask({ do: "compile", variant, language, text });
    if (result && !result.error) draft.code = result.code;
    return result?.error ?? null;
  } catch (error) {
    return /** @type {ErrorWords} */ (error);
  }
}

/** Run a draft in this page, and after it the kernel from which it was edited, for its time.
 * @param {App} app
 * @param {CodeDraft} draft */
export async function runDraft(app, draft) {
  const { variant, text, launch, of } = draft;
  if (!launch || draft.isRunning) return;
  const { kernel } = app.record.variants[variant];
  draft.isRunning = true;
  app.changed("draft");
  await runHere(app, draft, kernel, { text, launch, isEdited: true });
  if (runOf(draft)?.timing && !runOf(of)) await runCode(app, kernel, of);
  draft.isRunning = false;
  app.changed("draft");
}

/** Run a draft as a variant, and select it; a refused text stays in the editor.
 * @param {App} app
 * @param {CodeDraft} draft */
export async function run(app, draft) {
  if (draft.launch) await runDraft(app, draft);
  else await runInPython(app, draft);
}

/** Run a draft as a variant in Python, and select it.
 * @param {App} app
 * @param {CodeDraft} draft */
export async function runInPython(app, draft) {
  const { variant, language, text } = draft;
  if (draft.isRunning) return;
  draft.isRunning = true;
  app.changed("draft");
  const reply = await act(app, "code", { do: "edit", variant, language, text });
  draft.isRunning = false;
  const error = app.failures.code;
  if (error?.line) { // the message stands beside the text, once
    Object.assign(draft, { error, compiled: text });
    app.failures.code = null;
    app.changed("failure");
  }
  app.changed("draft");
  if (reply?.result?.said) notify(app, reply.result.said);
  if (reply && app.editing === draft) endEdit(app, draft);
}

/** The program of a variant in its edited form, and for a device (none: for any); null if it is not
 * edited, or the language has no program.
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

/** The draft of a program; null if it is not edited.
 * @param {App} app
 * @param {number | null} variant
 * @param {string | undefined} language */
export const draftHere = ({ editing }, variant, language) =>
  editing?.variant === variant && editing.language === language ? editing : null;

/** The message of the compiler, without the position.
 * @param {ErrorWords} error */
export function faultOf({ what, because }) {
  const fault = /^line [\d,]+, column [\d,]+: (.*)/.exec(what);
  if (fault) return [fault[1], because.split("\n")[0]].filter(Boolean).join(": ");
  const words = /error: ([^\n]*)/.exec(because);
  return words ? words[1] : because.split("\n")[0] || what;
}
