// Keys, as a table and as the listener that answers them. They act only while the focus is inside the
// widget, and what is typed inside never reaches the page around it. Tab is left alone, so it leads
// on and out.

import { ACROSS, isAcross, LETTERS, STEPS, walk } from "../base/lists.js";
import { stepPass } from "../record/passes.js";
import {
  applyOpt,
  check,
  copyPython,
  measure,
  pin,
  redo,
  toggleDiff,
  toggleFull,
  undo,
} from "./actions.js";
import { NOTHING } from "./store.js";

/** @import { Middle, Mode } from "../types.d.ts" */
/** @import { App } from "./store.js" */

/** A key, what it does, and the function that does it; null where a pane answers it.
 * @type {[string, string, ((app: App) => void) | null][]} */
export const KEYS = [
  ["j k, arrows", "move in a list; Enter selects", null],
  ["h l", "previous, next pass", null],
  ["/", "search", null],
  ["a", "apply the marked opt", (app) => applyOpt(app, app.view.opt)],
  ["u", "undo: select the parent variant", undo],
  ["U", "redo", redo],
  ["t", "time this variant and the pinned one, in turns", measure],
  ["c", "check against the reference interpreter", check],
  ["p", "pin: ratios and diffs refer to this variant", pin],
  ["d", "diff to the pinned variant", toggleDiff],
  ["y", "copy what is shown as Python", copyPython],
  ["f", "fit the graph", null],
  ["g", "Rewrites: the whole graph, or the nodes near the change", null],
  ["F", "full screen", toggleFull],
  ["Esc", "unpin, out of full screen, then out of the widget", null],
  ["?", "this sheet", (app) => app.select({ help: !app.view.help })],
];

/** @type {Map<string, ((app: App) => void) | null>} */
const ACT_OF = new Map(KEYS.map(([key, , actOn]) => [key, actOn]));

/**
 * @param {App} app
 * @param {HTMLElement} root
 * @param {Middle} middle
 * @param {Mode[]} modes */
export function listenKeys(app, root, middle, modes) {
  const pressed = (/** @type {KeyboardEvent} */ event) => {
    event.stopPropagation();
    if (event.ctrlKey || event.metaKey || event.altKey || event.key === "Tab") return;
    if (answerKey(app, root, middle, modes, event)) event.preventDefault();
  };
  const quiet = (/** @type {Event} */ event) => event.stopPropagation();
  // JupyterLab asks the focused element itself whether its shortcuts are wanted
  const focused = (/** @type {Event} */ { target }) =>
    target instanceof Element && target.setAttribute("data-lm-suppress-shortcuts", "true");
  root.setAttribute("data-lm-suppress-shortcuts", "true");
  root.addEventListener("keydown", pressed);
  for (const kind of ["keyup", "keypress"]) root.addEventListener(kind, quiet);
  root.addEventListener("focusin", focused);
}

/** Do what a key asks for; return whether it asked for anything.
 * @param {App} app
 * @param {HTMLElement} root
 * @param {Middle} middle
 * @param {Mode[]} modes
 * @param {KeyboardEvent} event */
export function answerKey(app, root, middle, modes, event) {
  const { key, target } = event;
  if (!(target instanceof HTMLElement)) return false;
  if (key === "Escape") return escapeKey(app, root, target);
  if (target.closest("input, textarea, select, [contenteditable]")) return false;
  const mode = middle.current();
  const own = mode?.keys?.[key];
  if (own && own(event) !== false) return true;
  if (walk(target, key)) return true;
  const other = modes[Number(key) - 1]; // the first is on key 1
  if (other) return (goToMode(app, root, middle, other.name, target), true);
  const actOn = ACT_OF.get(key);
  if (actOn) return (actOn(app), true);
  if (key === "h" || key === "l") return (stepPass(app, key === "l" ? 1 : -1), true);
  if (target === root && (key in STEPS || key in ACROSS)) return (mode?.focus(), true);
  if (LETTERS.includes(key) && isAcross(target)) return (mode?.focus(), true);
  // letters do nothing elsewhere on the page; Enter and space work buttons by themselves
  return key === "/" || key === "f";
}

/** Show a mode; what walks a list walks its lists from now on.
 * @param {App} app
 * @param {HTMLElement} root
 * @param {Middle} middle
 * @param {string} mode
 * @param {HTMLElement} target */
function goToMode(app, root, middle, mode, target) {
  app.select({ mode, pane: "mode" });
  if (target.closest("[data-walk]") && !middle.el.contains(target)) root.focus();
}

/** Esc: out of a field, then the sheet away, then nothing pinned, then out of the widget.
 * @param {App} app
 * @param {HTMLElement} root
 * @param {HTMLElement} target */
function escapeKey(app, root, target) {
  if (target.closest("input, textarea, select")) root.focus();
  else if (app.view.help) app.select({ help: false });
  else if (app.view.picked || app.view.code || app.view.opt) app.select({ ...NOTHING, opt: null });
  else if (document.fullscreenElement === root) document.exitFullscreen();
  else if (target !== root) root.focus();
  else root.blur();
  return true;
}
