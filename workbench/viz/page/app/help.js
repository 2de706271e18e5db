// Help: the sheet that shows the keys and what they do.

import { h, refill } from "../base/elements.js";
import { KEYS } from "./keys.js";
import { button, heading } from "./pieces.js";

/** @import { Changes, Mode } from "../types.d.ts" */
/** @import { App } from "./store.js" */

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
