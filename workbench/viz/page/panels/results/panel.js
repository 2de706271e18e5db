// RESULTS, on the left: kernels, the variants of the selected one with their times, and the user's
// lines.

import { check, pin, search } from "../../app/actions.js";
import { button, failure, hasAny, heading, timeButton } from "../../app/pieces.js";
import { medianText } from "../../app/timing.js";
import { elementsOf, h, recordText, refill } from "../../base/elements.js";
import { showRow } from "../../base/lists.js";
import { aboutVariant, checkLine } from "./about.js";
import { addHint, baselineButton, baselineHint, baselineRows, staleLine } from "./times.js";
import {
  deletedVariants,
  otherDevices,
  savedEdits,
  savedPlans,
  savedVariants,
  unsavedLines,
  variantTree,
} from "./variant_tree.js";

/** @import { App } from "../../app/store.js" */
/** @import { Changes, PanelRow } from "../../types.d.ts" */

/** @satisfies {PanelRow} */
export const panel = { place: "pane", order: 8, title: "Results", make: resultsPane };

/** @param {App} app */
function resultsPane(app) {
  const el = h("section", { class: "wb-results", "aria-label": "results" });
  /** The variant that was scrolled into sight; the reader may scroll away from it.
   * @type {number | null} */
  let seen = null;
  const update = (/** @type {Changes} */ changes) => {
    if (!hasAny(changes, ...CHANGES)) return;
    const atHand = verdictAndButtons(app);
    // a baseline of all kernels compares with none of several: what is known of this one comes first
    const isOne = app.record.kernels.length < 2;
    const hints = [baselineHint(app), addHint(app)];
    refill(
      el,
      heading("RESULTS", warmth(app)),
      variantTree(app),
      otherDevices(app),
      savedVariants(app),
      savedEdits(app),
      savedPlans(app),
      unsavedLines(app),
      deletedVariants(app),
      baselineRows(app),
      emulated(app),
      atHand,
      ...(isOne ? hints : []),
      failure(app, "results"),
      aboutVariant(app),
      ...(isOne ? [] : hints),
    );
    if (seen !== app.view.variant && showVariant(app, el, atHand)) seen = app.view.variant;
  };
  return { el, update };
}

/** Scroll the row of the selected variant into sight, above what stays at the edge of the pane; return
 * whether there was a pane to scroll.
 * @param {App} app
 * @param {HTMLElement} el
 * @param {HTMLElement | null} atHand */
function showVariant(app, el, atHand) {
  const row = elementsOf(el, `[data-key="variant-${app.view.variant}"]`)[0];
  if (!row || !el.clientHeight) return false; // made before it is in the page, or folded
  showRow(el, row, atHand?.offsetHeight);
  return true;
}

const CHANGES = [
  "record",
  "kernel",
  "variant",
  "cold",
  "live",
  "pending measure",
  "pending check",
  "pending search",
  "failure",
];

/** Warm: caches are as the run before left them. Cold: they were flushed.
 * @param {App} app */
function warmth(app) {
  if (app.record.elsewhere) return null;
  /** @type {(cold: boolean, text: string, title: string) => HTMLElement} */
  const choice = (cold, text, title) =>
    button(app, text, () => app.select({ cold }), { pressed: app.view.cold === cold, title });
  return h(
    "span",
    { class: "wb-switch", role: "group", "aria-label": "caches" },
    choice(false, "warm", "caches are as the run before left them"),
    choice(true, "cold", "caches are flushed before each run"),
  );
}

/** Times of the emulator are shown separately: they say nothing about speed.
 * @param {App} app */
function emulated(app) {
  const rows = app
    .variantsOf(app.view.kernel)
    .map((i) => app.record.variants[i])
    .flatMap(({ name, timing, elsewhere }) =>
      [timing, ...elsewhere].flatMap((row) => row?.emulator ? [{ name, timing: row }] : [])
    );
  if (!rows.length) return null;
  return h(
    "div",
    { class: "wb-list", "data-term": "EMULATOR" },
    h(
      "div",
      { class: "wb-quiet wb-small" },
      `EMULATOR (${rows[0].timing.device}): not the speed of the kernel`,
    ),
    ...rows.map((v) =>
      h(
        "div",
        { class: "wb-row wb-variant" },
        h("span", { class: "wb-name" }, h("span", { class: "wb-pin" }), recordText(v.name)),
        h(
          "span",
          { class: "wb-figure wb-said" },
          medianText(v.timing),
        ),
      )
    ),
  );
}

/** The part that must be in sight however many variants there are: a wrong answer, and the possible
 * requests.
 * @param {App} app */
function verdictAndButtons(app) {
  const variant = app.variant();
  if (!variant) return null; // nothing to compute
  const { check } = variant;
  return h(
    "div",
    { class: "wb-at-hand" },
    check && !check.ok && checkLine(check),
    staleLine(app),
    resultButtons(app),
  );
}

/** @param {App} app */
function resultButtons(app) {
  const { elsewhere } = app.record;
  if (elsewhere) return h("div", { class: "wb-buttons" }, ...elsewhereButtons(app));
  return h(
    "div",
    { class: "wb-buttons" },
    timeButton(app),
    checkButton(app, "against the reference interpreter"),
    searchButton(app, "for 10 s from this variant; it can be stopped"),
    pinButton(app),
    ...baselineButton(app),
  );
}

/** The possible requests for a machine other than this one: all but times.
 * @param {App} app */
function elsewhereButtons(app) {
  const isPredicted = Boolean(app.variant()?.cost);
  return [
    checkButton(app, "emulated, against the reference interpreter"),
    isPredicted &&
    searchButton(app, "for 10 s from this variant, by the predicted times; it can be stopped"),
    pinButton(app),
    isPredicted
      ? h(
        "span",
        { class: "wb-quiet wb-said", "data-term": "predicted" },
        "predicted, not run here",
      )
      : h("span", { class: "wb-quiet wb-said" }, "not run here"),
  ];
}

/**
 * @param {App} app
 * @param {string} title */
function searchButton(app, title) {
  return button(app, app.pending("search") ? "Searching…" : "Search", () => search(app), {
    python: true,
    name: "search",
    title,
  });
}

/**
 * @param {App} app
 * @param {string} title */
function checkButton(app, title) {
  return button(app, app.pending("check") ? "Checking…" : "Check", () => check(app), {
    python: true,
    key: "c",
    name: "check",
    title,
  });
}

/** @param {App} app */
function pinButton(app) {
  return button(app, "Pin", () => pin(app), {
    key: "p",
    title: "ratios and diffs refer to this variant",
  });
}
