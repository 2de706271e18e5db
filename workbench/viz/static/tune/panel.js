// Tune: the loop nest that opts act on, and what can be done next.

import { act, checkedText } from "../app/actions.js";
import { button, errorBox, failure, hasAny, heading } from "../app/pieces.js";
import { spreadText, timingText } from "../app/timing.js";
import { h, refill, words } from "../base/elements.js";
import { focusItem } from "../base/lists.js";
import { secondsText } from "../base/text.js";
import { axisBars } from "./axes.js";
import { loopTable } from "./loops.js";
import { offersPane, pasteBox } from "./offers.js";
import { triedPane } from "./search_tree.js";

export const panel = { place: "middle", order: 1, title: "Tune", make: modeTune };

function modeTune(app) {
  const state = {
    find: "",
    op: null,
    all: false,
    refused: false,
    pasted: "",
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

  const update = (changes) => {
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
  const focus = () =>
    focusItem(
      top,
      top.querySelector('[data-item][aria-selected="true"]') || top.querySelector("[data-item]"),
    );
  return { el, update, focus, keys: { "/": () => find.focus() } };
}

function searchField(app, state) {
  const field = h("input", {
    class: "wb-input wb-find",
    type: "search",
    placeholder: "search opts",
    "aria-label": "search opts",
    title: "key /",
    oninput: () => ((state.find = field.value), app.changed("offers")),
  });
  return field;
}

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

/** What the results say of this variant, where there is no room for them beside the loops. */
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

/** How many opts are possible; what is not, and why, takes the place of the list. */
function nextChoice(app, variant, state) {
  const choice = (refused, n, text) =>
    n > 0 &&
    button(app, `${n} ${text}`, () => ((state.refused = refused), app.changed("offers")), {
      pressed: state.refused === refused,
      name: `refused-${refused}`,
    });
  if (!variant) return [];
  return [
    choice(false, variant.offers.length, "possible"),
    choice(true, variant.refused.length, "not possible: why"),
  ];
}

/** Python is told which variant is looked at: it lists what can be done, and measures some. Again
 * where the device has changed, and nothing is known of it. */
function askForOffers(app, variant, state) {
  const { device } = app.record;
  const lookedAt = `${device} ${app.view.variant}`;
  if (!variant || app.live !== "live") return;
  const isKnown = variant.offers.length + variant.refused.length > 0;
  if (isKnown ? state.lookedAt === lookedAt : state.asked.get(variant) === device) return;
  state.lookedAt = lookedAt;
  state.asked.set(variant, device);
  act(app, "offers", { do: "offers", variant: app.view.variant }).then(
    (reply) => reply || state.asked.delete(variant),
  );
}
