// Tune: the loop nest that opts act on, and the opts to try, a pane each.

import { act } from "../../app/actions.js";
import { button, errorBox, hasAny, heading, stageNote } from "../../app/pieces.js";
import { rowAt } from "../../app/store.js";
import { elementsOf, h, refill } from "../../base/elements.js";
import { focusItem } from "../../base/lists.js";
import { cut } from "../../base/text.js";
import { machineOfEdited } from "../../listing/programs.js";
import { stageOf } from "../../record/stage.js";
import { axisBars, loopTable, NestHeight } from "./loops.js";
import { fits, offersPane } from "./offers.js";
import { optsRow } from "./opts_row.js";
import { triedPane } from "./search_tree.js";

/** @import { App } from "../../app/store.js" */
/** @import { Child } from "../../base/elements.d.ts" */
/** @import { OfferRow, VariantRow } from "../../record.d.ts" */
/** @import { Stage } from "../../record/stage.js" */
/** @import { Changes, PanelRow } from "../../types.d.ts" */

/** @satisfies {PanelRow} */
export const panel = {
  place: "pane",
  order: 4,
  panes: [
    { name: "loops", title: "Loops", make: loopsPane },
    { name: "opts", title: "Opts", make: optsPane },
  ],
};

/** The loop nest of the variant.
 * @param {App} app */
function loopsPane(app) {
  const el = h("div", { class: "wb-pane wb-nest-pane" });
  const height = new NestHeight(app, el);
  /** What the loops depend on: times and offers change none of it.
   * @type {unknown[]} */
  let shown = [];
  const update = (/** @type {Changes} */ changes) => {
    const stage = stageOf(app);
    const variant = app.variant();
    const { nothing, variants } = app.record;
    const { loops, axes, error } = variant ?? {};
    const of = [stage?.loops, stage?.words, variant, loops, axes, error, nothing, variants.length];
    const isOther = of.some((part, i) => part !== shown[i]);
    const isCompared = app.partner !== null && changes.has("record");
    if (
      !isOther && !isCompared &&
      !hasAny(changes, "kernel", "variant", "axis", "node", "board", "beside")
    ) {
      return;
    }
    shown = of;
    refill(el, ...nestParts(app, variant, stage));
    height.update();
  };
  const focus = () => {
    const items = elementsOf(el, "[data-item]");
    focusItem(el, items.find((item) => item.getAttribute("aria-selected") === "true") ?? items[0]);
  };
  return { el, update, focus };
}

/** The state of the offers: those that `find` finds, of one op, more than the first; the impossible
 * ones. `shown` are the listed ones; `reported` and `asked` are the last requests.
 * @typedef {{
 *   find: string, op: string | null, all: boolean, refused: boolean,
 *   shown: {askedFor: string, opts: string[]} | null, reported: string,
 *   asked: WeakMap<VariantRow, string>
 * }} OffersState */

const OFFER_CHANGES = [
  "opt",
  "live",
  "pending apply",
  "pending offers",
  "offers",
  "record offers",
  "failure",
  "beside",
];

/** The opts of the variant, those to try, and what a search tried.
 * @param {App} app */
function optsPane(app) {
  /** @type {OffersState} */
  const state = {
    find: "",
    op: null,
    all: false,
    refused: false,
    shown: null,
    reported: "",
    asked: new WeakMap(),
  };
  const find = searchField(app, state);
  const choice = h("span", { class: "wb-switch", role: "group", "aria-label": "opts" });
  const list = offersPane(app, state);
  find.onkeydown = (event) => {
    const entersList = ["Enter", "ArrowDown"].includes(event.key);
    if (entersList && list.focusFirst()) event.preventDefault();
  };
  const head = heading("OPTS TO TRY", find, choice);
  const next = h("div", { class: "wb-pane wb-next-pane" }, head, list.el);
  const opts = optsRow(app);
  const tried = triedPane(app);
  const el = h("div", { class: "wb-opts-pane" }, tried.el, next, opts.el);

  const update = (/** @type {Changes} */ changes) => {
    const variant = app.variant();
    const renewed = hasAny(changes, "record", "kernel", "variant");
    if (renewed || hasAny(changes, ...OFFER_CHANGES)) {
      find.hidden = !variant || variant.offers.length + variant.refused.length === 0;
      refill(choice, ...nextChoice(app, variant, state));
      list.update(variant);
    }
    if (renewed) tried.update();
    if (renewed || hasAny(changes, "live", "optlist")) opts.update();
    if (renewed || changes.has("answers")) askForOffers(app, variant, state);
  };
  /** From anywhere in the pane but a list or a tree, which walks by itself.
   * @param {KeyboardEvent} event */
  const enterList = ({ target }) =>
    target instanceof Element && el.contains(target) && !list.holds(target) &&
    !target.closest("[role=tree]") && list.focusFirst();
  const keys = { ...opts.keys, "/": () => find.focus(), j: enterList, k: enterList };
  return { el, update, keys };
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
 * @param {VariantRow | null} variant
 * @param {Stage | null} stage */
function nestParts(app, variant, stage) {
  if (!variant) return [heading("LOOPS"), h("p", { class: "wb-quiet" }, app.record.nothing)];
  const legend = "stride | bytes one run of the loop touches, and the cache that holds them";
  return [
    heading("LOOPS", h("span", { class: "wb-quiet", "data-term": "stride" }, legend)),
    // that of edited code stands with the code, unless it is out of sight
    !(variant.edited && app.arrangements.shows("code")) && errorBox(variant.error),
    variant.edited && h("p", { class: "wb-quiet" }, editedNote(app, variant)),
    stage?.words && stageNote(app, stage.words),
    ...loopsOf(app, stage ? stage.loops : variant),
  ];
}

/** @param {App} app
 * @param {VariantRow | null} variant */
const loopsOf = (app, variant) => variant ? [axisBars(app, variant), loopTable(app, variant)] : [];

/** The variant whose loops are shown for edited code.
 * @param {App} app
 * @param {VariantRow} variant */
function editedNote(app, variant) {
  /** @type {VariantRow | null} */
  let source = variant;
  while (source?.edited) source = rowAt(app.record.variants, source.parent);
  const of = cut(source?.name ?? "the kernel", 40);
  const machine = machineOfEdited(app.record, variant);
  const compiled = machine
    ? ` It was compiled for ${machine}, another machine, and did not run.`
    : "";
  return `The code was edited: these are the loops of ${of}, from which it was made.${compiled}`;
}

/** The hover text of the count: the number of offers of each kind.
 * @param {OfferRow[]} offers */
function kindsText(offers) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const { op } of offers) counts.set(op, (counts.get(op) ?? 0) + 1);
  const kinds = [...counts].map(([op, count]) => `${count} ${op}`).join(", ");
  return `legal opts with usual amounts: ${kinds}; other amounts can be written in OPTS`;
}

/** The number of possible opts; the impossible ones, with reasons, take the place of the list.
 * @param {App} app
 * @param {VariantRow | null} variant
 * @param {OffersState} state */
function nextChoice(app, variant, state) {
  /** @type {(refused: boolean, rows: {opt: string, why: string}[], text: string, title: string) => Child} */
  const choice = (refused, rows, text, title) => {
    const count = rows.filter((row) => fits(row, state)).length;
    const of = count < rows.length ? `${count} of ${rows.length}` : `${count}`;
    return rows.length > 0 &&
      button(app, `${of} ${text}`, () => ((state.refused = refused), app.changed("offers")), {
        pressed: state.refused === refused,
        name: `refused-${refused}`,
        title,
      });
  };
  if (!variant) return [];
  return [
    choice(false, variant.offers, "possible", kindsText(variant.offers)),
    choice(true, variant.refused, "not legal: why", "each with its reason"),
  ];
}

/** Tell Python which variant is selected: it lists the offers, and measures some. Again if the
 * device has changed, and none are known.
 * @param {App} app
 * @param {VariantRow | null} variant
 * @param {OffersState} state */
function askForOffers(app, variant, state) {
  const { device } = app.record;
  const { variant: place } = app.view;
  const reported = `${device} ${place}`;
  if (!variant || place === null || app.live !== "live") return;
  const isKnown = variant.offers.length + variant.refused.length > 0;
  if (isKnown ? state.reported === reported : state.asked.get(variant) === device) return;
  state.reported = reported;
  state.asked.set(variant, device);
  act(app, "offers", { do: "offers", variant: place }).then(
    (reply) => reply || state.asked.delete(variant),
  );
}
