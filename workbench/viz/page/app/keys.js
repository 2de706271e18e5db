// Keys: their table, and their listener. Keys act only while the focus is inside the widget, and
// never reach the page around it. Tab is not handled, so it leads through the widget and out of it.

import { ACROSS, isAcross, LETTERS, STEPS, walk } from "../base/lists.js";
import { stepPass } from "../record/passes.js";
import {
  applyOpt,
  check,
  copyPython,
  measure,
  notify,
  pin,
  redo,
  toggleDiff,
  toggleExport,
  toggleFull,
  undo,
} from "./actions.js";
import { tabbed } from "./header.js";
import { shownRule } from "./rule.js";
import { NO_SELECTION } from "./store.js";
import { tourKey } from "./tour.js";

/** @import { Board } from "../board/board.js" */
/** @import { Layout } from "../board/layouts.js" */
/** @import { App } from "./store.js" */

/** Runs the action of a key, for the focused element.
 * @typedef {(app: App, target: HTMLElement) => void} KeyAct */

/** A key, its description, and its function; null if a pane handles it.
 * @type {[string, string, KeyAct | null][]} */
export const KEYS = [
  ["j k, arrows", "move in a list; Enter selects", null],
  ["h l", "previous, next pass", null],
  ["/", "search; Enter goes to the first that is found", null],
  ["a", "apply the opt that has the focus, else the marked one; a changed list of OPTS", applyHere],
  ["/ word Enter a", "Tune, by keys alone: find opts, go to the first, apply it", null],
  ["u", "undo: select the parent variant", undo],
  ["U", "redo", redo],
  ["t", "time this variant and the pinned one, in turns", measure],
  ["c", "check against the reference interpreter", check],
  ["p", "pin: ratios and diffs refer to this variant", pin],
  ["d", "diff to the pinned variant", toggleDiff],
  ["Del", "remove the opt, or delete the variant, that has the focus", null],
  ["< >", "move the opt that has the focus earlier, later", null],
  ["F2", "name the variant that has the focus", null],
  ["y", "copy the view as Python", copyPython],
  ["e", "export: the page, pictures, Markdown, Python, a link", toggleExport],
  ["Ctrl+Enter", "in the editor: run the edited code", null],
  ["f", "fit the graph", null],
  ["s", "Plan: step through the decisions, and out; j k step, space plays", null],
  ["o O", "Plan: unfold the selected kernel, fold it, by a step", null],
  ["g", "Rewrites: the nodes near the change, more around them, or the whole graph", null],
  ["b", "Rewrites: one graph, before beside after, or their texts", null],
  ["r", "Rules: all of them, at that of the rewrite that is shown", showRules],
  ["n N", "Rewrites, Rules: the next use of a rule, the previous one", null],
  ["[", "fold or show kernels, results and lines", (app) => app.arrangements.toggle("left")],
  ["]", "fold or show the code", (app) => app.arrangements.toggle("right")],
  ["\\", "fold or show the list beside a graph", (app) => app.arrangements.toggle("aside")],
  ["| _", "split the pane that has the focus: another one to its right, below it", null],
  ["m", "the pane that has the focus alone, and all panes again", null],
  ["X", "close the pane that has the focus", null],
  ["← →", "in the tour: the step before, the next one; Esc ends it", null],
  ["F", "full screen", toggleFull],
  ["Ctrl+S", "save the notebook, without leaving the workbench", null],
  ["Esc", "unpin, leave full screen, then leave the workbench", null],
  ["?", "this sheet: words and keys", (app) => app.select({ help: !app.view.help })],
];

/** Show all rules, at the rule of the current rewrite.
 * @type {KeyAct} */
function showRules(app) {
  app.select({ mode: "rules", rule: shownRule(app) });
}

/** @type {Map<string, KeyAct | null>} */
const ACT_OF = new Map(KEYS.map(([key, , actOn]) => [key, actOn]));

/**
 * @param {App} app
 * @param {HTMLElement} root
 * @param {Board} board
 * @param {Layout[]} layouts */
export function listenKeys(app, root, board, layouts) {
  const pressed = (/** @type {KeyboardEvent} */ event) => {
    event.stopPropagation();
    if (isSave(event)) passOn(root, event);
    if (event.ctrlKey || event.metaKey || event.altKey || event.key === "Tab") return;
    if (answerKey(app, root, board, layouts, event)) event.preventDefault();
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

/** @param {KeyboardEvent} event */
const isSave = ({ key, ctrlKey, metaKey, altKey, shiftKey }) =>
  (ctrlKey || metaKey) && !altKey && !shiftKey && key.toLowerCase() === "s";

/** Dispatch a key to the page around the widget, as if that had the focus; if it handles the key,
 * the browser does not.
 * @param {HTMLElement} root
 * @param {KeyboardEvent} event */
function passOn(root, event) {
  const copy = new KeyboardEvent(event.type, event);
  if (root.parentElement?.dispatchEvent(copy) === false) event.preventDefault();
}

/** Apply the opt of the focused row, else of the marked one.
 * @type {KeyAct} */
function applyHere(app, target) {
  /** @type {HTMLElement | null} */
  const row = target.closest("[data-opt]");
  const opt = row?.dataset.opt ?? app.view.opt;
  if (opt) applyOpt(app, opt);
  else notify(app, noOpt(app));
}

/** Why no opt is applied, and what to do.
 * @param {App} app */
function noOpt({ view }) {
  const marked = view.axis ? `${view.axis} is a loop: ` : "";
  return `${marked}no opt is marked: in Tune, / searches OPTS TO TRY, Enter and arrows go to one, and a applies it`;
}

/** Run the action of a key; return whether it has one.
 * @param {App} app
 * @param {HTMLElement} root
 * @param {Board} board
 * @param {Layout[]} layouts
 * @param {KeyboardEvent} event */
export function answerKey(app, root, board, layouts, event) {
  const { key, target } = event;
  if (!(target instanceof HTMLElement)) return false;
  if (key === "Escape") return escapeKey(app, root, target);
  if (target.closest("input, textarea, select, [contenteditable]")) return false;
  if (tourKey(app, key)) return true;
  const panes = [board, ...board.answering(target)];
  if (panes.some(({ keys }) => keys?.[key] && keys[key](event) !== false)) {
    if (key === "/") selectField(root);
    return true;
  }
  if (walk(target, key)) return true;
  const other = /^\d$/.test(key) ? tabbed(layouts)[Number(key)] : null;
  if (other) return (goToLayout(app, root, board, other.name, target), true);
  const actOn = ACT_OF.get(key);
  if (actOn) return (actOn(app, target), true);
  if (key === "h" || key === "l") return (stepPass(app, key === "l" ? 1 : -1), true);
  if (target === root && (key in STEPS || key in ACROSS)) return (board.focus(), true);
  if (LETTERS.includes(key) && isAcross(target)) return (board.focus(), true);
  // letters act only inside the widget; Enter and space press buttons by themselves
  return key === "/" || key === "f";
}

/** Select what the search field that has the focus holds: typing begins another search.
 * @param {HTMLElement} root */
function selectField(root) {
  const tree = root.getRootNode();
  const field = tree instanceof Document || tree instanceof ShadowRoot ? tree.activeElement : null;
  if (field instanceof HTMLInputElement) field.select();
}

/** Show a layout; keys that walk lists walk its own from then on.
 * @param {App} app
 * @param {HTMLElement} root
 * @param {Board} board
 * @param {string} mode
 * @param {HTMLElement} target */
function goToLayout(app, root, board, mode, target) {
  app.select({ mode });
  const name = board.nameAt(target);
  const isMain = name && board.app.arrangements.layout?.main.includes(name);
  if (target.closest("[data-walk]") && !isMain) root.focus();
}

/** Esc: leave a field, then close the sheet, then unpin, then leave the widget.
 * @param {App} app
 * @param {HTMLElement} root
 * @param {HTMLElement} target */
function escapeKey(app, root, target) {
  const isInHelp = target.closest(".wb-words-sheet");
  if (target.closest("input, textarea, select") && !isInHelp) root.focus();
  else if (tourKey(app, "Escape")) return true;
  else if (app.view.help || app.view.exporting) app.select({ help: false, exporting: false });
  else if (app.view.picked || app.view.code || app.view.opt) {
    app.select({ ...NO_SELECTION, opt: null });
  } else if (root.matches(":fullscreen")) document.exitFullscreen();
  else if (target !== root) root.focus();
  else leave(root);
  return true;
}

/** Give the focus back to what is around the page: the cell of a notebook, whose keys would be dead
 * if nothing had the focus.
 * @param {HTMLElement} root */
function leave(root) {
  root.blur();
  const around = /** @type {HTMLElement | null | undefined} */ (
    root.parentElement?.closest(".jp-Cell[tabindex], .jp-Notebook[tabindex]")
  );
  around?.focus();
}
