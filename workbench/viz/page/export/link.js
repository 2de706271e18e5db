// A link into an exported page: the view as the fragment of its address, written on request. An
// address comes from anywhere, so invalid fields are left out.

import { copy, notify } from "../app/actions.js";
import { openingView } from "../app/store.js";
import { OPENED } from "../base/elements.js";

/** @import { App } from "../app/store.js" */
/** @import { Change } from "../board/arrangement.js" */
/** @import { View } from "../types.d.ts" */

const HEAD = "#view=";

/** @param {unknown} value */
const isText = (value) => typeof value === "string" && value.length < 500;
/** @param {unknown} value */
const isFlag = (value) => typeof value === "boolean";
/** @param {unknown} value
 * @returns {value is number} */
const isPlace = (value) => Number.isSafeInteger(value) && Number(value) >= 0;
/** @type {(fits: (one: unknown) => boolean) => (value: unknown) => boolean} */
const isList = (fits) => (value) => Array.isArray(value) && value.every(fits);
/** @param {unknown} value
 * @returns {value is Record<string, unknown>} */
const isRecord = (value) => typeof value === "object" && value !== null;

/** @param {unknown} value */
const isColumn = (value) =>
  isRecord(value) && isText(value.language) && (value.variant === null || isPlace(value.variant)) &&
  (value.device === undefined || value.device === null || isText(value.device));

/** Whether a value fits a field of the view. An unknown field is left out.
 * @type {Partial<Record<keyof View, (value: unknown) => boolean>>} */
const FITS = {
  mode: isText,
  kernel: isPlace,
  variant: isPlace,
  pass: isPlace,
  step: isPlace,
  rule: isText,
  node: isPlace,
  axis: isText,
  line: isPlace,
  opt: isText,
  picked: (value) =>
    isRecord(value) && isText(value.by) && isList(isText)(value.axes) &&
    isList(isPlace)(value.nodes) && isList(isPlace)(value.lines),
  code: (value) => isRecord(value) && isText(value.language) && isPlace(value.line),
  language: isText,
  columns: (value) => Array.isArray(value) && value.length === 2 && value.every(isColumn),
  heat: isFlag,
  cold: isFlag,
  diff: isFlag,
  only: isText,
};
const FIELDS = /** @type {(keyof View)[]} */ (Object.keys(FITS));

/** The looks of a page beside its view: unfolded details, and the reader's arrangement of panes.
 * @typedef {{folds: string[], board: Change}} Looks */

/** Return the fragment of a view: the fields that differ from an opening page, and its looks.
 * @param {Pick<App, "record" | "view">} app
 * @param {Looks} [looks] */
export function linkOf({ record, view }, looks) {
  const opening = openingView(record);
  const isOther = (/** @type {keyof View} */ name) =>
    JSON.stringify(view[name]) !== JSON.stringify(opening[name]);
  const fields = FIELDS.filter(isOther);
  const rows = Object.fromEntries(fields.map((name) => [name, view[name]]));
  const { folds = [], board = {} } = looks ?? {};
  const changed = { ...(folds.length && { folds }), ...(Object.keys(board).length && { board }) };
  return HEAD + encodeURIComponent(JSON.stringify({ ...rows, ...changed }));
}

/** Return the view that a fragment names, without invalid fields; null if it names none.
 * @param {string} fragment
 * @returns {Partial<View> | null} */
export function viewOf(fragment) {
  const named = namedBy(fragment);
  const rows = FIELDS.filter((name) => FITS[name]?.(named?.[name]));
  return named && Object.fromEntries(rows.map((name) => [name, named[name]]));
}

/** Return the looks that a fragment names: the default ones if it names none.
 * @param {string} fragment
 * @returns {Looks} */
export function looksOf(fragment) {
  const { folds, board } = namedBy(fragment) ?? {};
  return {
    folds: isList(isText)(folds) ? /** @type {string[]} */ (folds) : [],
    board: isRecord(board) ? board : {}, // the page takes what is valid
  };
}

/** @param {string} fragment
 * @returns {Record<string, unknown> | null} */
function namedBy(fragment) {
  if (!fragment.startsWith(HEAD)) return null;
  try {
    const named = JSON.parse(decodeURIComponent(fragment.slice(HEAD.length)));
    return isRecord(named) ? named : null;
  } catch {
    return null; // cut off, or written by hand
  }
}

/** Whether the document's address is that of this page, so that others can open it.
 * @param {App} app */
export const canLink = (app) => app.live === "offline" && location.protocol !== "about:";

/** Write the view into the address, and copy the address.
 * @param {App} app */
export function copyLink(app) {
  if (!canLink(app)) return notify(app, "links are for exported pages: Export, HTML");
  location.hash = linkOf(app, { folds: [...OPENED], board: app.arrangements.current });
  copy(app, location.href, "a link to this view");
}

/** Show the view of the address, now and after changes, such as by the back button; return a
 * function that ends that.
 * @param {App} app */
export function listenLink(app) {
  if (!canLink(app)) return () => {};
  const first = app.view;
  const show = () => {
    const view = viewOf(location.hash);
    const { folds, board } = looksOf(location.hash);
    OPENED.clear();
    folds.forEach((key) => OPENED.add(key));
    app.select({ ...first, ...view });
    if (view) app.arrangements.current = board;
    app.changed("record"); // elements with folds are made anew
  };
  if (viewOf(location.hash)) show();
  addEventListener("hashchange", show);
  return () => removeEventListener("hashchange", show);
}
