// The keys and what they do, as a table and as the sheet that shows it.

import { h, refill } from "../base/elements.js";
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
import { button, heading } from "./pieces.js";

/** @import { Changes, Mode } from "../types.d.ts" */
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

/**
 * @param {App} app
 * @param {Mode[]} modes */
export function helpPane(app, modes) {
  const el = h("div", { class: "wb-help-place" });
  const update = (/** @type {Changes} */ changes) =>
    changes.has("help") && refill(el, app.view.help && helpSheet(app, modes));
  return { el, update };
}

/**
 * @param {App} app
 * @param {Mode[]} modes */
function helpSheet(app, modes) {
  const [first, second, ...rest] = KEYS;
  const numbers = modes.map((_, i) => i + 1).join(" ");
  const modesRow = [numbers, modes.map(({ title }) => title).join(", ")];
  const rows = [first, second, modesRow, ...rest].map((
    [key, does],
  ) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, does)]);
  return h(
    "div",
    { class: "wb-help", role: "dialog", "aria-label": "keys" },
    heading(
      "KEYS",
      button(app, "close", () => app.select({ help: false }), { key: "Esc" }),
    ),
    h(
      "p",
      {},
      "They act while the workbench has its ring; for JupyterLab's own keys (Ctrl+B, Ctrl+S, ..) leave it first: Esc or a click outside. Ctrl+wheel zooms a graph; a plain wheel scrolls the page.",
    ),
    h("dl", {}, ...rows.flat()),
  );
}
