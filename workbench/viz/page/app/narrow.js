// Where there is little room: kernel and variant as a line, and one pane at a time.

import { h, keepingFocus, setChildren, steady } from "../base/elements.js";
import { walkable } from "../base/lists.js";
import { secondsText } from "../base/text.js";
import { goTo } from "./actions.js";
import { chooser, hasAny, tab } from "./pieces.js";
import { spreadText } from "./timing.js";

/** @import { Changes, Mode } from "../types.d.ts" */
/** @import { App } from "./store.js" */

/** Where there is little room: kernel and variant as a line, and one pane at a time.
 * @param {App} app
 * @param {Mode[]} modes */
export function paneTabs(app, modes) {
  const el = h("nav", { class: "wb-narrow", "aria-label": "panes" });
  /** @typedef {(rows: [number, string][], chosen: number | null) => HTMLElement} Choice */
  const kernelChoice = steady(
    /** @type {Choice} */
    (rows, chosen) => chooser("kernel", rows, chosen, (kernel) => app.select({ kernel })),
  );
  const variantChoice = steady(
    /** @type {Choice} */
    (rows, chosen) => chooser("variant", rows, chosen, (variant) => goTo(app, variant)),
  );
  const update = (/** @type {Changes} */ changes) => {
    if (!hasAny(changes, "record", "kernel", "variant", "mode", "pane")) return;
    const titles = {
      results: "Results",
      mode: modes.find(({ name }) => name === app.view.mode)?.title ?? "",
      code: "Code",
    };
    const tabs = Object.entries(titles).map(([pane, title]) =>
      tab(title, app.view.pane === pane, () => app.select({ pane }), `pane-${pane}`)
    );
    const parts = [
      walkable("tablist", "pane", { class: "wb-tabs", "aria-orientation": "horizontal" }, ...tabs),
      kernelChoice(app.record.kernels.map((k, i) => [i, `${i + 1}  ${k.title}`]), app.view.kernel),
      variantChoice(
        app.variantsOf(app.view.kernel).map((i) => [i, brief(app, i)]),
        app.view.variant,
      ),
    ];
    keepingFocus(el, () => setChildren(el, parts));
  };
  return { el, update };
}

/**
 * @param {App} app
 * @param {number} i */
function brief(app, i) {
  const { name, timing } = app.record.variants[i];
  return timing
    ? `${name}  ${secondsText(timing.median_s)} ${spreadText(timing)}${
      timing.emulator ? " EMULATOR" : ""
    }`
    : name;
}
