// PASSES: a block per pass, as high as the number of its rewrites, and on demand as wide as its time.
// A block links to the pass in
// Rewrites. A variant has passes of its own once it is compiled, which the page requests when the
// variant is selected.

import { button, hasAny, heading } from "../../app/pieces.js";
import { h, refill } from "../../base/elements.js";
import { walkable } from "../../base/lists.js";
import { plural, secondsText } from "../../base/text.js";
import { lacksPasses, ownSeconds, passesOf } from "../../record/passes.js";

/** @import { App } from "../../app/store.js" */
/** @import { VariantRow } from "../../record.d.ts" */
/** @import { Changes, PanelRow } from "../../types.d.ts" */

/** @satisfies {PanelRow} */
export const panel = { place: "bottom", order: 1, make: strip };

const BY_TIME =
  "blocks as wide as the time of the pass, without that of passes that it ran; it was observed, and is faster without";

/** @param {App} app */
function strip(app) {
  const el = h("section", { class: "wb-strip", "aria-label": "passes" });
  /** The device on which a variant was last requested.
   * @type {WeakMap<VariantRow, string>} */
  const devices = new WeakMap();
  let isTimed = false;
  /** What the blocks depend on: the times of kernels change none of it.
   * @type {unknown[]} */
  let shown = [];
  const update = (/** @type {Changes} */ changes) => {
    if (changes.has("answers")) askForPasses(app, devices);
    if (!hasAny(changes, "record", "kernel", "variant", "pass", "mode", "board", "live")) return;
    askForPasses(app, devices);
    const passes = passesOf(app);
    const of = [
      app.record.passes,
      passes.join(),
      app.view.pass,
      lacksPasses(app.variant()),
      app.live,
      isTimed,
    ];
    if (of.every((part, i) => part === shown[i])) return;
    shown = of;
    const seconds = ownSeconds(passes.map((place) => app.record.passes[place]));
    const blocks = walkable(
      "listbox",
      "passes",
      {
        class: `wb-blocks ${isTimed ? "wb-timed" : ""}`,
        "aria-orientation": "horizontal",
        "data-key": "blocks",
      },
      ...passes.map((place, i) => passBlock(app, place, seconds[i], isTimed)),
    );
    const byTime = button(app, "by time", () => {
      isTimed = !isTimed;
      update(new Set(["mode"]));
    }, { pressed: isTimed, title: BY_TIME });
    refill(el, heading("PASSES", seconds.some(Boolean) && byTime), blocks, rest(app));
    showChosen(blocks);
  };
  return { el, update };
}

/** Where its program is in sight, the selected variant is compiled anyway.
 * @param {App} app
 * @param {WeakMap<VariantRow, string>} devices */
function askForPasses(app, devices) {
  const variant = app.variant();
  const { variant: place } = app.view;
  const { device } = app.record;
  if (app.live !== "live" || app.arrangements.shows("code") || place === null) return;
  if (!variant || !lacksPasses(variant) || devices.get(variant) === device) return;
  devices.set(variant, device);
  const answer = app.ask({ do: "passes", variant: place });
  answer.catch(() => {}); // an error of the variant stands with its loops
}

/** The reason why the passes of a variant are missing.
 * @param {App} app */
function rest(app) {
  if (!lacksPasses(app.variant())) return null;
  const why = app.live === "offline"
    ? "this variant's own are not in this file: it was not compiled when that was written"
    : "more once this variant is compiled";
  return h("span", { class: "wb-quiet wb-strip-rest", title: why }, why);
}

/** Scroll the blocks, and none of their ancestors, so that the chosen one can be seen.
 * @param {HTMLElement} blocks */
function showChosen(blocks) {
  const chosen = blocks.querySelector('[aria-selected="true"]');
  if (!chosen) return;
  const [outer, inner] = [blocks, chosen].map((e) => e.getBoundingClientRect());
  blocks.scrollLeft += Math.min(0, inner.left - outer.left) +
    Math.max(0, inner.right - outer.right);
}

/**
 * @param {App} app
 * @param {number} place
 * @param {number} seconds
 * @param {boolean} isTimed */
function passBlock(app, place, seconds, isTimed) {
  const pass = app.record.passes[place];
  const n = pass.matches;
  const result = pass.error
    ? "failed"
    : pass.changed
    ? n ? plural(n, pass.unit) : "changed"
    : "changed nothing";
  const time = secondsText(seconds);
  const height = pass.changed ? Math.min(18, 4 + 3 * Math.log2(1 + n)) : 2;
  return h(
    "div",
    {
      class: `wb-block wb-unit-${pass.unit} ${pass.changed ? "" : "wb-idle"} ${
        pass.error ? "wb-failed" : ""
      }`,
      role: "option",
      "data-item": "",
      "data-key": `pass-${place}`,
      "aria-selected": String(app.view.pass === place),
      "aria-label": `${pass.name}, ${result}${isTimed ? `, ${time}` : ""}`,
      title: `${pass.name}: ${result}, in ${time}\n${pass.doc}`.slice(0, 600),
      style: isTimed ? `flex-grow:${seconds * 1e6}` : null,
      onclick: () =>
        app.select({ pass: place, step: 0, ...app.arrangements.toSee("graph", "rewrites") }),
    },
    h("i", { style: `height:${height}px` }),
    h("span", {}, pass.name, isTimed && ` ${time}`),
  );
}
