// Baselines: the user's own functions among the results, timed in turns with the pinned variant.

import { act, canAsk } from "../../app/actions.js";
import { button } from "../../app/pieces.js";
import { h, words } from "../../base/elements.js";
import { timeCells } from "./times.js";

/** @import { App } from "../../app/store.js" */

/** @param {App} app */
export function baselineRows(app) {
  const rows = app.record.baselines.map((b) =>
    h(
      "div",
      {
        class: "wb-row wb-variant wb-baseline",
        title: b.error ? String(b.error) : "a function of your own",
      },
      h("span", { class: "wb-name" }, h("span", { class: "wb-pin" }), words(b.name, "wb-clip", 40)),
      b.error
        ? words(String(b.error), "wb-bad wb-said wb-clip")
        : timeCells(app, b.timing, b.timing?.emulator),
    )
  );
  return rows.length ? h("div", { class: "wb-list" }, ...rows) : null;
}

/** How a variant that a cell made comes to stand here.
 * @param {App} app */
export function addHint(app) {
  const hint = `to show a kernel of a cell: ${app.record.recipes.add}`;
  return canAsk(app) ? h("div", { class: "wb-quiet wb-small wb-hint" }, hint) : null;
}

/** What others are is the user's to say; once they are given they can be timed again.
 * @param {App} app */
export function baselineButton(app) {
  if (app.record.baselines.length) {
    return [
      button(app, "Time baselines", () => act(app, "results", { do: "baseline" }), {
        python: true,
        name: "baselines",
        title: "in turns with the pinned variant",
      }),
    ];
  }
  const hint = `to compare with numpy: ${app.record.recipes.baseline}`;
  return canAsk(app) ? [h("span", { class: "wb-quiet wb-small wb-hint" }, hint)] : [];
}
