// Tune: the loop nest that opts act on, and what can be done next.

import { act, checkedText } from "../../app/actions.js";
import { button, errorBox, failure, hasAny, heading } from "../../app/pieces.js";
import { spreadText, timingText } from "../../app/timing.js";
import { elementsOf, h, refill, words } from "../../base/elements.js";
import { focusItem } from "../../base/lists.js";
import { secondsText } from "../../base/text.js";
import { axisBars } from "./axes.js";
import { loopTable } from "./loops.js";
import { offersPane, pasteBox } from "./offers.js";
import { triedPane } from "./search_tree.js";

/** @import { VariantRow } from "../../record.d.ts" */
/** @import { Changes, PanelRow } from "../../types.d.ts" */
/** @import { Child } from "../../base/elements.d.ts" */
/** @import { App } from "../../app/store.js" */

/** @satisfies {PanelRow} */
export const panel = { place: "middle", order: 1, title: "Tune", make: modeTune };

/** What of the opts is shown: those that `find` finds, of one op, more than the first; those that
 * are not possible; what is being pasted. `shown` is what the list has; `lookedAt` and `asked`
 * are what Python was told.
 * @typedef {{
 *   find: string, op: string | null, all: boolean, refused: boolean, pasted: string,
 *   shown: {askedFor: string, opts: string[]} | null, lookedAt: string,
 *   asked: WeakMap<VariantRow, string>
 * }} OffersState
 * @param {App} app */
function modeTune(app) {
  /** @type {OffersState} */
  const state = {
    find: "",
    op: null,
    all: false,
    refused: false,
    pasted: "",
    shown: null,
    lookedAt: "",
    asked: new WeakMap(),
  };
  const find = searchField(app, state);
  const choice = h("span", { class: "wb-switch", role: "group", "aria-label": "opts" });
  const list = offersPane(app, state);
  const top = h("div", { class: "wb-pane wb-nest-pane" });
  const next = h("div", { class: "wb-pane wb-next-pane" }, heading("NEXT", find, choice), list.el);
  const pasting = h("div", { class: "wb-foot" });
  const tried = triedPane(app);
  const el = h("div", { class: "wb-tune" }, top, tried.el, next, pasting);

  const update = (/** @type {Changes} */ changes) => {
    const variant = app.variant();
    const renewed = hasAny(changes, "record", "kernel", "variant");
    if (renewed || hasAny(changes, "axis", "node", "failure")) {
      refill(top, ...nestParts(app, variant));
    }
    if (renewed || hasAny(changes, "opt", "live", "pending", "offers", "failure")) {
      find.hidden = !variant || variant.offers.length + variant.refused.length === 0;
      refill(choice, ...nextChoice(app, variant, state));
      list.update(variant);
    }
    if (renewed) tried.update();
    if (hasAny(changes, "live", "variant", "pasted")) {
      pasting.hidden = !variant;
      refill(pasting, variant && pasteBox(app, state));
    }
    if (renewed || changes.has("live")) askForOffers(app, variant, state);
  };
  const focus = () => {
    const items = elementsOf(top, "[data-item]");
    focusItem(top, items.find((item) => item.getAttribute("aria-selected") === "true") ?? items[0]);
  };
  return { el, update, focus, keys: { "/": () => find.focus() } };
}

/**
 * @param {App} app
 * @param {OffersState} state */
function searchField(app, state) {
  return h("input", {
    class: "wb-input wb-find",
    type: "search",
    placeholder: "search opts",
    "aria-label": "search opts",
    title: "key /",
    oninput: ({ target }) => ((state.find = target.value), app.changed("offers")),
  });
}

/**
 * @param {App} app
 * @param {VariantRow | null} variant */
function nestParts(app, variant) {
  if (!variant) return [heading("LOOPS"), h("p", { class: "wb-quiet" }, app.record.nothing)];
  const legend = "stride | bytes one run of the loop touches, and the cache that holds them";
  return [
    heading("LOOPS", h("span", { class: "wb-quiet" }, legend)),
    verdict(app, variant),
    errorBox(variant.error),
    axisBars(app, variant),
    loopTable(app, variant),
  ];
}

/** What the results say of this variant, where there is no room for them beside the loops.
 * @param {App} app
 * @param {VariantRow} variant */
function verdict(app, { name, timing, check }) {
  return h(
    "div",
    { class: "wb-verdict" },
    failure(app, "results"),
    (timing || check) &&
      h(
        "p",
        {},
        words(name, "", 40),
        timing &&
          h(
            "b",
            { title: timingText(app.record.machine, timing) },
            ` ${secondsText(timing.median_s)} ${spreadText(timing)}${
              timing.emulator ? " EMULATOR" : ""
            }`,
          ),
        check &&
          h(
            "span",
            { class: check.ok ? "wb-good" : "wb-bad" },
            " ",
            words(checkedText(check), "", 400),
          ),
      ),
  );
}

/** How many opts are possible; what is not, and why, takes the place of the list.
 * @param {App} app
 * @param {VariantRow | null} variant
 * @param {OffersState} state */
function nextChoice(app, variant, state) {
  /** @type {(refused: boolean, n: number, text: string) => Child} */
  const choice = (refused, n, text) =>
    n > 0 &&
    button(app, `${n} ${text}`, () => ((state.refused = refused), app.changed("offers")), {
      pressed: state.refused === refused,
      name: `refused-${refused}`,
    });
  if (!variant) return [];
  return [
    choice(false, variant.offers.length, "possible"),
    choice(true, variant.refused.length, "not legal: why"),
  ];
}

/** Python is told which variant is looked at: it lists what can be done, and measures some. Again
 * where the device has changed, and nothing is known of it.
 * @param {App} app
 * @param {VariantRow | null} variant
 * @param {OffersState} state */
function askForOffers(app, variant, state) {
  const { device } = app.record;
  const { variant: place } = app.view;
  const lookedAt = `${device} ${place}`;
  if (!variant || place === null || app.live !== "live") return;
  const isKnown = variant.offers.length + variant.refused.length > 0;
  if (isKnown ? state.lookedAt === lookedAt : state.asked.get(variant) === device) return;
  state.lookedAt = lookedAt;
  state.asked.set(variant, device);
  act(app, "offers", { do: "offers", variant: place }).then(
    (reply) => reply || state.asked.delete(variant),
  );
}
