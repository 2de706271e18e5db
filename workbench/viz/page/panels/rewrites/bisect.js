// The first rewrite that changes the answer of a variant.

import { act } from "../../app/actions.js";
import { button } from "../../app/pieces.js";
import { h, words } from "../../base/elements.js";

/** @import { App } from "../../app/store.js" */

/** Find it.
 * @param {App} app */
export async function bisectRewrites(app) {
  const { variant } = app.view;
  if (variant === null) return;
  const reply = await act(app, "rewrites", { do: "bisect", variant });
  const result = reply?.result;
  if (!result) return;
  const { text, pass, step } = result;
  app.bisected = { variant, text, of: app.record };
  app.changed("bisected");
  if (Number.isInteger(pass) && app.view.variant === variant) app.select({ pass, step });
}

/** What bisecting found, until something else is asked, or another variant or plan is shown.
 * @param {App} app */
export function bisectAnswer(app) {
  if (app.pending("bisect")) {
    return h(
      "div",
      { class: "wb-banner", role: "status", "data-term": "bisect" },
      "bisect: computing states …",
    );
  }
  const { variant, text, of } = app.bisected ?? {};
  const row = app.variant();
  if (of !== app.record || variant !== app.view.variant || !text || !row) return null;
  const name = words(row.name, "", 40);
  const forget = () => ((app.bisected = null), app.changed("bisected"));
  return h(
    "div",
    { class: "wb-banner", role: "status", "data-term": "bisect" },
    h("b", {}, "bisect of ", name),
    words(text, "", 1000),
    button(app, "dismiss", forget, { name: "bisect-done" }),
  );
}
