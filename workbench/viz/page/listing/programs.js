// The programs of a variant in the languages of the record, and requests for missing ones.

import { canAsk, failAt, NEEDS_PYTHON } from "../app/actions.js";
import { OFFLINE } from "../app/channel.js";
import { rowAt } from "../app/store.js";
import { h } from "../base/elements.js";

/** @import { App } from "../app/store.js" */
/** @import { CodeRow, ErrorWords, LanguageRow, PageRecord, VariantRow } from "../record.d.ts" */

/** The row of a language.
 * @param {App} app
 * @param {string} name */
export const languageOf = (app, name) => app.record.languages.find((row) => row.name === name);

/** The program of a variant in a language.
 * @param {VariantRow | null} variant
 * @param {string | undefined} language */
export const codeOf = (variant, language) =>
  variant?.code.find((code) => code.language === language) || null;

/** The program of a variant in a language, as it is for a device (none: the record's). A language
 * of one device alone is the same for all.
 * @param {App} app
 * @param {VariantRow | null} variant
 * @param {string} language
 * @param {string | null} [device] */
export const codeFor = (app, variant, language, device) =>
  isElsewhere(app, language, device)
    ? codeOf(variant && { ...variant, code: elsewhere(variant, device) }, language)
    : codeOf(variant, language);

/** Whether the edited text of a language is only compiled: its device is not on this machine.
 * @param {PageRecord} record
 * @param {string} language */
export function isOnlyCompiled({ languages, devices, device }, language) {
  const own = devices.find(({ name }) => name === device);
  const row = languages.find(({ name }) => name === language);
  const isOwn = row?.role === "text" || own?.languages?.[0] === language;
  const taker = isOwn ? own : devices.find(({ name }) => name === row?.device);
  return Boolean(taker && (taker.elsewhere || !taker.available));
}

/** Whether the edited text of a language runs on the emulator: its device is not on this machine.
 * @param {PageRecord} record
 * @param {string} language */
export const isEmulated = (record, language) =>
  isOnlyCompiled(record, language) &&
  Boolean(record.languages.find(({ name }) => name === language)?.is_emulated);

/** Whether the edited text of a program runs in this page: no device takes it, or there is no
 * Python.
 * @param {App} app
 * @param {CodeRow} code */
export const runsInPage = (app, { language, launch }) =>
  Boolean(launch && !launch.module) && (!canAsk(app) || isOnlyCompiled(app.record, language));

/** The machine for which edited code was compiled, if that is not this one, so that it did not run;
 * null also for code that the emulator ran.
 * @param {PageRecord} record
 * @param {VariantRow} variant */
export function machineOfEdited({ devices }, { edited, code, check, gpu }) {
  const device = devices.find(({ name }) => name === code[0]?.device);
  return edited && device?.elsewhere && !check && !gpu ? device.name : null;
}

/** Whether a program is that of another device than the record's.
 * @param {App} app
 * @param {string} language
 * @param {string | null} [device] */
const isElsewhere = (app, language, device) =>
  Boolean(device) && device !== app.record.device && isOfOneDevice(languageOf(app, language));

/** Whether the program in a language depends on the device: machine code, and statements.
 * @param {LanguageRow | undefined} row */
const isOfOneDevice = (row) => Boolean(row?.role && row.role !== "program");

/** The languages of the record's device, with those that all kernels have: the others are
 * requested. Machine code is that of a device, if it has any (none: the record's).
 * @param {PageRecord} record
 * @param {string | null} [compiler] */
export function ownLanguages({ languages, devices, device }, compiler) {
  const own = devices.find(({ name }) => name === device)?.languages ?? [];
  const by = devices.find(({ name }) => name === (compiler || device));
  return languages.filter((row, i) =>
    !i || own.includes(row.name) ||
    (row.role === "machine" ? by?.machine_code : row.role === "statements")
  );
}

/** The languages that are listed after a device's own: those of other devices, and the IR as text to
 * edit.
 * @param {PageRecord} record
 * @param {LanguageRow[]} own */
export const furtherLanguages = ({ languages }, own) =>
  languages.filter((row) =>
    ["program", "text"].includes(row.role ?? "program") && !own.includes(row)
  );

/** Whether a program can be edited: a device runs its language, or it is IR.
 * @param {App} app
 * @param {string} language */
export function mayEdit(app, language) {
  const { device = "", role = "program" } = languageOf(app, language) ?? {};
  return Boolean(device) || role === "text" || role === "statements";
}

/** The programs of a variant for another device.
 * @param {VariantRow} variant
 * @param {string | null} [device] */
const elsewhere = ({ code_elsewhere: rows = [] }, device) =>
  rows.filter((code) => code.device === device);

/** The program in the selected language; in another one if Python cannot make this.
 * @param {App} app
 * @param {VariantRow | null} variant */
export function shownCode(app, variant) {
  const code = codeOf(variant, app.view.language);
  return code || (mayCome(app, variant, app.view.language) ? null : variant?.code[0] || null);
}

/** Whether Python can make a missing program: of edited code its machine code; those of another
 * device come all at once.
 * @param {App} app
 * @param {VariantRow | null} variant
 * @param {string} language
 * @param {string | null} [device] */
export function mayCome(app, variant, language, device) {
  if (!canAsk(app)) return false;
  if (variant && isElsewhere(app, language, device)) {
    return !variant.edited && !elsewhere(variant, device).length;
  }
  return !variant?.edited || (!variant.error && language === machineCode(app.record));
}

/** The name of machine code.
 * @param {{languages: LanguageRow[]}} record */
export const machineCode = ({ languages }) =>
  (languages.find(({ role }) => role === "machine") ?? languages[0]).name;

/** The last request, so that it is sent once; the program that is looked at, and its error.
 * @typedef {{asked: unknown[] | null, about?: string, failed?: ErrorWords | null}} Asked */

/** Request a missing program when it is selected; and again if the record loses it, as on another
 * device. An error is shown in the pane named `where`, until another program is looked at.
 * @param {App} app
 * @param {string} where
 * @param {number | null} place
 * @param {string} language
 * @param {Asked} state
 * @param {boolean} isLookedAt
 * @param {string | null} [device] */
export function askForCode(app, where, place, language, state, isLookedAt, device) {
  const variant = rowAt(app.record.variants, place);
  const other = isElsewhere(app, language, device) ? device : null;
  const wanted = [variant, app.record.device, language, other];
  const about = [place, ...wanted.slice(1)].join();
  if (state.about !== about) {
    if (state.failed && app.failures[where] === state.failed) failAt(app, where, null);
    Object.assign(state, { about, failed: null });
  }
  if (
    !variant ||
    place === null ||
    !mayCome(app, variant, language, device) ||
    app.live !== "live" ||
    codeFor(app, variant, language, device) ||
    variant.error ||
    app.pending("code", { variant: place, language, ...(other && { device: other }) }) ||
    app.pending("compile", { variant: place, language }) ||
    (!isLookedAt && wanted.every((part, i) => part === state.asked?.[i]))
  ) {
    return;
  }
  state.asked = wanted;
  failAt(app, where, null);
  const answer = variant.edited
    ? app.ask({ do: "compile", variant: place, language, text: null })
    : app.ask({ do: "code", variant: place, language, ...(other && { device: other }) });
  answer.catch((/** @type {ErrorWords} */ error) => {
    if (error === OFFLINE || state.about !== about) return; // another is looked at by now
    state.failed = error;
    failAt(app, where, error);
  });
}

/** The text in place of a missing program.
 * @type {(app: App, variant: VariantRow | null) => string} */
export function missing(app, variant) {
  if (!variant) return app.record.nothing;
  if (variant.error) return "There is no program: see the error with the loops.";
  return app.record.left_out ? "Left out of the saved copy." : "No program yet.";
}

// Further languages of a kernel, shown one at a time to leave room for those of its own device.

/** A selector of languages; null if there is none. Without Python, it has those that the record
 * lacks, disabled.
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
      title: "the same kernel in the languages of other devices, and as IR text to edit",
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
