// What can be done, by button or key alike. An error is kept under the pane it belongs to.

import { h } from "../base/elements.js";
import { OFFLINE } from "./channel.js";
import { timingText } from "./timing.js";

export const NEEDS_PYTHON = "needs the Python session";

/** Ask Python; go to the variant it made, unless the reader went to another one meanwhile; keep
 * what went wrong for the pane named `where`. */
export async function act(app, where, request) {
  failAt(app, where, null);
  if (where === "rewrites") app.found = null; // the answer to what was asked before
  const { variant } = app.view;
  try {
    const reply = await app.ask(request);
    const made = reply.result?.variant;
    if (app.record.variants[made] && app.view.variant === variant) goTo(app, made);
    return reply;
  } catch (error) {
    if (error === OFFLINE) say(app, NEEDS_PYTHON);
    else failAt(app, where, error);
    return null;
  }
}

export function failAt(app, where, error) {
  app.failures ??= {};
  if (!error && !app.failures[where]) return;
  app.failures[where] = error;
  app.changed("failure");
}

export const canAsk = (app) => app.live === "live" || app.live === "unknown";

/** Show a variant, with its kernel; remember the way back down. */
export function goTo(app, variant) {
  const { kernel, parent } = app.record.variants[variant];
  if (parent !== null) app.redo.set(parent, variant);
  app.select({ kernel, variant });
}

export function undo(app) {
  const parent = app.variant()?.parent;
  if (parent === null || parent === undefined) return;
  app.redo.set(parent, app.view.variant);
  goTo(app, parent);
}

export function redo(app) {
  const here = app.view.variant;
  const children = app.record.variants
    .map((_, i) => i)
    .filter((i) => app.record.variants[i].parent === here);
  const known = app.redo.get(here); // in another plan it may be none of them
  const next = children.includes(known) ? known : children.at(-1);
  if (next !== undefined) goTo(app, next);
}

export const applyOpt = (app, opt) =>
  opt && act(app, "offers", { do: "apply", variant: app.view.variant, opt });

export const measure = (app) => {
  const { variant, cold } = app.view;
  const variants = [variant, pinned(app)].filter(isNew);
  return told(
    app,
    variant,
    { do: "measure", variants, cold },
    ({ timing }) => timing && timingText(app.record.machine, timing),
  );
};

const isNew = (value, place, all) => all.indexOf(value) === place;

export const check = (app) => {
  const { variant } = app.view;
  return told(app, variant, { do: "check", variant }, (row) => row.check && checkedText(row.check));
};

export const checkedText = ({ ok, text }) => `${ok ? "✓" : "✗"} ${text}`;

/** Ask, and say at once what was found: the list of results may be out of sight. */
async function told(app, variant, request, outcome) {
  if (variant === null) return null; // nothing to compute
  const reply = await act(app, "results", request);
  const row = app.record.variants[variant];
  const found = reply && row && outcome(row);
  if (found) say(app, `${row.name.slice(0, 40)}: ${found}`, 6000);
  return reply;
}

export const search = (app) =>
  act(app, "results", { do: "search", variant: app.view.variant, budget_s: 10 });

export const stop = (app) => act(app, "results", { do: "stop" });

/** The variant that ratios and diffs refer to: the pinned one of this kernel, else the plain one. */
export function pinned(app) {
  const chosen = app.record.variants[app.record.pinned];
  return chosen && chosen.kernel === app.view.kernel
    ? app.record.pinned
    : (app.kernel()?.root ?? null);
}

/** Pin what is shown. It works offline too: it is only a point of reference. */
export function pin(app) {
  const { variant } = app.view;
  if (variant === null) return;
  app.patch({ set: [[["pinned"], variant]] });
  if (canAsk(app)) act(app, "results", { do: "pin", variant });
}

export const toggleDiff = (app) => app.select({ diff: !app.view.diff });

/** Copy text; say in the notice line that it was copied, or why not. */
export async function copy(app, text, what) {
  try {
    await navigator.clipboard.writeText(text);
    say(app, `copied ${what}`);
  } catch {
    say(app, copiedByHand(text) ? `copied ${what}` : "the browser does not let the page copy");
  }
}

/** Pages from disk have no clipboard interface; selecting and copying works there. */
function copiedByHand(text) {
  const area = h("textarea", { style: "position:fixed;opacity:0" });
  const before = document.activeElement;
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  if (before instanceof HTMLElement) before.focus({ preventScroll: true });
  return done;
}

export const copyPython = (app) =>
  app.variant() && copy(app, app.variant().python, "the kernel as Python");

export function say(app, text, forMs = 2500) {
  app.said = text;
  app.changed("said");
  clearTimeout(app.saidUntil);
  app.saidUntil = setTimeout(() => {
    app.said = "";
    app.changed("said");
  }, forMs);
}
