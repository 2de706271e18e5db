// Actions of the reader, by button or key alike. An error is kept under the pane it belongs to.

import { focusedAround, h } from "../base/elements.js";
import { cut } from "../base/text.js";
import { OFFLINE } from "./channel.js";
import { notDeleted, rowAt } from "./store.js";
import { timingText } from "./timing.js";

/** @import { AnyRequest, CheckRow, ErrorWords, VariantReply, VariantRow } from "../record.d.ts" */
/** @import { ReplyTo } from "../types.d.ts" */
/** @import { App } from "./store.js" */

export const NEEDS_PYTHON = "needs the Python session";

/** Send a request to Python; select the variant that it made, unless the reader selected another
 * one meanwhile; keep an error for the pane named `where`.
 * @template {AnyRequest} R
 * @param {App} app
 * @param {string} where
 * @param {R} request
 * @returns {Promise<ReplyTo<R> | null>} */
export async function act(app, where, request) {
  failAt(app, where, null);
  if (where === "rewrites" && app.bisected) {
    app.bisected = null; // the answer to an earlier request
    app.changed("bisected");
  }
  const { variant } = app.view;
  try {
    const reply = await app.ask(request);
    const result = /** @type {Partial<VariantReply> | null} */ (reply.result);
    const place = result?.variant ?? -1;
    if (app.record.variants[place] && app.view.variant === variant) goTo(app, place);
    return reply;
  } catch (error) {
    if (error === OFFLINE) notify(app, NEEDS_PYTHON);
    else failAt(app, where, /** @type {ErrorWords} */ (error));
    return null;
  }
}

/**
 * @param {App} app
 * @param {string} where
 * @param {ErrorWords | null} error */
export function failAt(app, where, error) {
  if (!error && !app.failures[where]) return;
  app.failures[where] = error;
  app.changed("failure");
}

/** Whether Python can be asked; a busy one answers later.
 * @param {App} app */
export const canAsk = (app) => app.live !== "offline" && app.live !== "silent";

/** Select a variant and its kernel; its parents remember it as the way back down.
 * @param {App} app
 * @param {number} variant */
export function goTo(app, variant) {
  const { kernel, parent } = app.record.variants[variant];
  if (parent !== null) app.redo.set(parent, variant);
  app.select({ kernel, variant });
}

/** @param {App} app */
export function undo(app) {
  const parent = notDeleted(app.record, app.variant()?.parent ?? null);
  if (parent === null || app.view.variant === null) return;
  app.redo.set(parent, app.view.variant);
  goTo(app, parent);
}

/** @param {App} app */
export function redo(app) {
  const current = app.view.variant;
  const { variants } = app.record;
  const children = app.variantsOf(app.view.kernel)
    .filter((i) =>
      variants[i].parent !== null && notDeleted(app.record, variants[i].parent) === current
    );
  const known = app.redo.get(current ?? -1); // another plan may lack it
  const next = children.find((i) => i === known) ?? children.at(-1);
  if (next !== undefined) goTo(app, next);
}

/** Apply an opt to the selected variant.
 * @param {App} app
 * @param {string | null} opt */
export async function applyOpt(app, opt) {
  const { variant } = app.view;
  if (opt && variant !== null) await act(app, "offers", { do: "apply", variant, opt });
}

/** Time the selected variant and the pinned one, in turns.
 * @param {App} app */
export function measure(app) {
  const { variant, cold } = app.view;
  if (variant === null) return; // nothing to compute
  const variants = [...new Set([variant, pinned(app) ?? variant])];
  report(
    app,
    variant,
    { do: "measure", variants, cold },
    ({ timing }) => timing && timingText(timing),
  );
}

/** Check the selected variant.
 * @param {App} app */
export function check(app) {
  const { variant } = app.view;
  if (variant === null) return;
  report(app, variant, { do: "check", variant }, (row) => row.check && checkedText(row.check));
}

/** @param {CheckRow} check */
export const checkedText = ({ ok, text }) => `${ok === null ? "?" : ok ? "✓" : "✗"} ${text}`;

/** The class of a verdict's colour; of one on a part, that of a doubt.
 * @param {CheckRow} check */
export const checkClass = ({ ok }) => ok === null ? "wb-doubt" : ok ? "wb-good" : "wb-bad";

/** Send a request, and show its result as a notice: the list of results may be out of sight.
 * @param {App} app
 * @param {number} variant
 * @param {AnyRequest} request
 * @param {(row: VariantRow) => string | null} outcome */
async function report(app, variant, request, outcome) {
  if (!(await act(app, "results", request))) return;
  const row = rowAt(app.record.variants, variant);
  const text = row && outcome(row);
  if (text) notify(app, `${cut(row.name, 40)}: ${text}`, 6000);
}

/** Delete a variant, unless it is the reference of the others.
 * @param {App} app
 * @param {number} variant */
export async function deleteVariant(app, variant) {
  const { name } = app.record.variants[variant];
  if (!(await act(app, "results", { do: "delete", variants: [variant], back: false }))) return;
  notify(app, `deleted ${cut(name, 40)}`);
}

/** Search for faster opts from the selected variant.
 * @param {App} app */
export function search(app) {
  const { variant } = app.view;
  if (variant !== null) act(app, "results", { do: "search", variant, budget_s: 10 });
}

/** @param {App} app */
export const stop = (app) => act(app, "results", { do: "stop" });

/** The index of the variant that ratios and diffs refer to: the pinned one of this kernel, else the
 * plain one.
 * @param {App} app */
export function pinned(app) {
  const { pinned, variants } = app.record;
  return rowAt(variants, pinned)?.kernel === app.view.kernel
    ? pinned
    : (app.kernel()?.root ?? null);
}

const MOST_LISTED = 300; // variants of a kernel that are listed

/** The variants of the selected kernel that lists show: all, or of very many the selected and the
 * pinned one, the first, and the fastest.
 * @param {App} app
 * @returns {number[]} */
export function listedVariants(app) {
  const all = app.variantsOf(app.view.kernel);
  if (all.length <= MOST_LISTED) return all;
  const { variants } = app.record;
  const time = (/** @type {number} */ i) => variants[i].timing?.median_s ?? Infinity;
  const own = new Set(all);
  const wanted = [app.view.variant, pinned(app), ...all.slice(0, 2)];
  const fastest = all.filter((i) => variants[i].timing).sort((a, b) => time(a) - time(b));
  const listed = new Set();
  for (const i of [...wanted, ...fastest, ...all]) {
    if (listed.size < MOST_LISTED && own.has(i ?? -1)) listed.add(i);
  }
  return all.filter((i) => listed.has(i));
}

/** The variant that ratios and diffs refer to.
 * @param {App} app */
export const reference = (app) => rowAt(app.record.variants, pinned(app));

/** Pin the selected variant. It works offline too: it is only a reference.
 * @param {App} app */
export function pin(app) {
  const { variant } = app.view;
  if (variant === null) return;
  app.patch({ append: {}, set: [[["pinned"], variant]] });
  if (canAsk(app)) act(app, "results", { do: "pin", variant });
}

/** @param {App} app */
export const toggleDiff = (app) => app.select({ diff: !app.view.diff });

/** Show or hide the export sheet.
 * @param {App} app */
export const toggleExport = (app) => app.select({ exporting: !app.view.exporting, help: false });

/** Copy text; a notice confirms it, or gives the error.
 * @param {App} app
 * @param {string} text
 * @param {string} what */
export async function copy(app, text, what) {
  try {
    await navigator.clipboard.writeText(text);
    notify(app, `copied ${what}`);
  } catch {
    notify(
      app,
      copiedByHand(app, text) ? `copied ${what}` : "the browser does not let the page copy",
    );
  }
}

/** Pages from disk have no clipboard interface; selecting and copying works there.
 * @param {App} app
 * @param {string} text */
function copiedByHand(app, text) {
  const area = h("textarea", { style: "position:fixed;opacity:0" });
  const before = app.root && focusedAround(app.root);
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  if (before instanceof HTMLElement) before.focus({ preventScroll: true });
  return done;
}

/** Copy the selected variant.
 * @param {App} app */
export function copyPython(app) {
  const variant = app.variant();
  if (variant) copyVariant(app, variant);
}

/** Copy a variant as Python; a record of many kernels has none before one is selected.
 * @param {App} app
 * @param {VariantRow} variant */
export function copyVariant(app, { name, python }) {
  if (python) copy(app, python, `${cut(name, 40)} as Python`);
  else notify(app, `${cut(name, 40)} has no Python yet: select it first`);
}

/** Whether something is shown in full screen. */
export const isFull = () => document.fullscreenElement !== null;

/** Show one pane of the page alone, or all of them again.
 * @param {App} app */
export function toggleFull(app) {
  if (isFull()) document.exitFullscreen();
  else {
    app.root?.requestFullscreen?.()
      .catch(() => notify(app, "the browser does not allow full screen here"));
  }
}

const READING_MS = 60; // a character

/** Show a notice, at least as long as it takes to read.
 * @param {App} app
 * @param {string} text
 * @param {number} [forMs] */
export function notify(app, text, forMs = Math.max(2500, READING_MS * text.length)) {
  app.notice = text;
  app.changed("notice");
  clearTimeout(app.noticeTimer);
  app.noticeTimer = setTimeout(() => {
    app.notice = "";
    app.changed("notice");
  }, forMs);
}
