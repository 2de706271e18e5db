// CODE, on the right: the program of the variant, in the languages of the record. A line links to
// its loop, its nodes and its notebook line, and they link back. The program can be edited: the
// result is checked and timed like any variant.

import { reference } from "../../app/actions.js";
import { errorBox, failure, hasAny } from "../../app/pieces.js";
import { h, refill, scrollBack } from "../../base/elements.js";
import { codeBar } from "./bar.js";
import { lineCosts } from "../../listing/accesses.js";
import { beginEdit, draftHere, draftOf } from "../../listing/drafts.js";
import { editorIn } from "../../listing/editor.js";
import {
  codeView,
  diffView,
  keepPinnedInSight,
  markLine,
  showFirstLit,
} from "../../listing/lines.js";
import { askForCosts } from "../../listing/machine.js";
import { askForCode, codeOf, missing, shownCode } from "../../listing/programs.js";
import { originLinks } from "../../listing/origin.js";

/** @import { CodeRow, VariantRow } from "../../record.d.ts" */
/** @import { Changes, PanelRow } from "../../types.d.ts" */
/** @import { App } from "../../app/store.js" */

/** What is shown: whether helpers are unfolded, what the body was filled with, and what code was
 * asked for last, and the costs of which.
 * @typedef {{
 *   helpers: boolean, shown: unknown[] | null, asked: unknown[] | null, priced: unknown
 * }} CodeState */

/** @satisfies {PanelRow} */
export const panel = { place: "right", order: 1, make: codePane };

/** @param {App} app */
function codePane(app) {
  const el = h("section", { class: "wb-code-pane", "aria-label": "code" });
  const bar = h("div", { class: "wb-code-bar" });
  const trouble = h("div", { class: "wb-trouble" });
  const body = h("div", { class: "wb-code-body" });
  const origin = h("div", { class: "wb-code-origin", "aria-live": "polite" });
  el.append(bar, trouble, body, origin);
  /** @type {CodeState} */
  const state = { helpers: false, shown: null, asked: null, priced: null };
  const editor = editorIn(app);

  const update = (/** @type {Changes} */ changes) => {
    const variant = app.variant();
    const { variant: place, language } = app.view;
    const code = draftOf(app, place, language) ?? shownCode(app, variant);
    // where it is folded, what is edited stands elsewhere
    const draft = app.room.isOpen("right") ? draftHere(app, place, code?.language) : null;
    if (hasAny(changes, ...BAR_CHANGES)) {
      const edit = place !== null && code && !draft ? () => beginEdit(app, place, code) : null;
      refill(bar, ...codeBar(app, variant, code, edit));
    }
    if (hasAny(changes, "failure", "variant", "record")) {
      refill(trouble, failure(app, "code"), variant?.edited && errorBox(variant.error));
    }
    const shown = [draft, ...shownParts(app, variant, code, state)];
    if (shown.some((part, i) => part !== state.shown?.[i])) {
      state.shown = shown;
      if (draft) editor.show(body, draft);
      else fillBody(app, body, variant, code, state, () => app.changed("editing"));
    }
    if (changes.has("draft")) editor.update();
    if (changes.has("code")) markLine(app, body, code);
    if (hasAny(changes, "code", "record", "variant", "picked")) {
      refill(origin, originLinks(app));
      keepPinnedInSight(body); // which has less room now
    }
    if (hasAny(changes, "picked", "code") && app.view.picked?.by !== "code") {
      showFirstLit(app, body);
    }
    askForCosts(app, place, code, state);
    const isLookedAt = hasAny(changes, "variant", "language", "live");
    if (isLookedAt || changes.has("record")) {
      askForCode(app, "code", place, language, state, isLookedAt);
    }
  };
  return { el, update };
}

/** What the body shows depends on; it is filled anew only where one of them is another.
 * @param {App} app
 * @param {VariantRow | null} variant
 * @param {CodeRow | null} code
 * @param {CodeState} state */
function shownParts(app, variant, code, state) {
  return [
    code,
    state.helpers,
    app.view.diff,
    codeOf(reference(app), code?.language),
    variant?.error,
    variant?.gpu,
    app.pending("code"),
  ];
}

const BAR_CHANGES = [
  "record",
  "kernel",
  "variant",
  "language",
  "diff",
  "live",
  "pending",
  "editing",
  "draft",
  "room",
  "mode",
];

/**
 * @param {App} app
 * @param {VariantRow | null} variant */
function nothingToShow(app, variant) {
  if (variant && app.pending("code")) return "Compiling…";
  return variant?.edited && variant.error ? "There is no program." : missing(app, variant);
}

/**
 * @param {App} app
 * @param {HTMLElement} body
 * @param {VariantRow | null} variant
 * @param {CodeRow | null} code
 * @param {CodeState} state
 * @param {() => void} again */
function fillBody(app, body, variant, code, state, again) {
  if (!code) {
    return refill(body, h("p", { class: "wb-quiet wb-pad" }, nothingToShow(app, variant)));
  }
  if (code.error) return refill(body, errorBox(code.error));
  const pinned = reference(app);
  const other = app.view.diff && pinned !== variant ? codeOf(pinned, code.language) : null;
  const listing = { code, variant: app.view.variant, costs: lineCosts(variant, code) };
  const lines = other
    ? diffView(app, listing, other, state.helpers)
    : codeView(app, listing, state, again);
  lines.style.setProperty("--digits", String(String(code.lines.length).length));
  const place = `${app.view.variant} ${code.language} ${Boolean(other)}`;
  const note = code.note ? h("p", { class: "wb-quiet wb-pad" }, code.note) : null;
  refill(body, note, lines);
  if (body.dataset.place !== place) scrollBack(body);
  body.dataset.place = place;
}
