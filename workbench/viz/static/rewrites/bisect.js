// The first rewrite that changes the answer of a variant.

import { act } from "../app/actions.js";
import { button } from "../app/pieces.js";
import { h, words } from "../base/elements.js";

export async function bisectRewrites(app) {
  const { variant } = app.view;
  const reply = await act(app, "rewrites", { do: "bisect", variant });
  const found = reply?.result;
  if (!found) return;
  app.found = { variant, text: found.text, of: app.record };
  app.changed("found");
  if (Number.isInteger(found.pass) && app.view.variant === variant) {
    app.select({ pass: found.pass, step: found.step });
  }
}

/** What bisecting found, until something else is asked, or another variant or plan is shown. */
export function bisectAnswer(app) {
  if (app.pending("bisect")) {
    return h("div", { class: "wb-rw-banner", role: "status" }, "bisect: computing states …");
  }
  const { variant, text, of } = app.found || {};
  if (of !== app.record || variant !== app.view.variant || !text) return null;
  const name = words(app.record.variants[variant].name, "", 40);
  const forget = () => ((app.found = null), app.changed("found"));
  return h(
    "div",
    { class: "wb-rw-banner", role: "status" },
    h("b", {}, "bisect of ", name),
    words(text, "", 1000),
    button(app, "dismiss", forget, { name: "bisect-done" }),
  );
}
