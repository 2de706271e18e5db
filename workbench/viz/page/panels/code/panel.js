// The right: the program of the variant, in the languages of the record. A line
// leads to its loop, its nodes and its notebook line, and they lead back. It can be edited: what
// comes back is checked and timed like any variant.

import { act, reference } from "../../app/actions.js";
import { errorBox, failure, hasAny } from "../../app/pieces.js";
import { h, refill } from "../../base/elements.js";
import { codeBar } from "./bar.js";
import { editor } from "./editor.js";
import { codeView, diffView, markLine, showFirstLit } from "./lines.js";
import { originLinks } from "./origin.js";
import { codeOf, shownCode } from "./programs.js";

/** @import { CodeRow, VariantRow } from "../../record.d.ts" */
/** @import { Changes, PanelRow } from "../../types.d.ts" */
/** @import { Draft } from "./editor.js" */
/** @import { App } from "../../app/store.js" */

/** What is shown: a text that is being edited, whether helpers are unfolded, what the body was
 * filled with, and what code was asked for last.
 * @typedef {{
 *   editing: Draft | null, helpers: boolean, shown: unknown[] | null, asked: unknown[] | null
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
  const state = { editing: null, helpers: false, shown: null, asked: null };
  const redoBody = () => app.changed("editing");
  const edit = (/** @type {CodeRow | null} */ code) => {
    state.editing = code && { language: code.language, text: code.lines.join("\n") };
    redoBody();
  };

  const update = (/** @type {Changes} */ changes) => {
    const variant = app.variant();
    if (changes.has("variant")) state.editing = null;
    const code = shownCode(app, variant);
    if (hasAny(changes, ...BAR_CHANGES)) {
      refill(bar, ...codeBar(app, variant, code, state.editing ? null : () => edit(code)));
    }
    if (hasAny(changes, "failure", "variant", "record")) {
      refill(trouble, failure(app, "code"), variant?.edited && errorBox(variant.error));
    }
    const shown = shownParts(app, variant, code, state);
    if (shown.some((part, i) => part !== state.shown?.[i])) {
      state.shown = shown;
      fillBody(app, body, variant, code, state, redoBody, () => edit(null));
    }
    if (changes.has("code")) markLine(app, body, code);
    if (hasAny(changes, "code", "record", "variant", "picked")) refill(origin, originLinks(app));
    if (hasAny(changes, "picked", "code") && app.view.picked?.by !== "code") {
      showFirstLit(app, body);
    }
    const isLookedAt = hasAny(changes, "variant", "language", "live");
    if (isLookedAt || changes.has("record")) askForCode(app, variant, state, isLookedAt);
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
    state.editing,
    state.helpers,
    app.view.diff,
    codeOf(reference(app), code?.language),
    variant?.error,
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
];

/**
 * @param {App} app
 * @param {VariantRow | null} variant */
function nothingToShow(app, variant) {
  if (app.pending("code")) return "Compiling…";
  if (!variant) return "There is no kernel, so there is no program.";
  if (variant?.edited && variant.error) return "There is no program.";
  return variant?.error ? "There is no program: see the error with the loops." : "No program yet.";
}

/**
 * @param {App} app
 * @param {HTMLElement} body
 * @param {VariantRow | null} variant
 * @param {CodeRow | null} code
 * @param {CodeState} state
 * @param {() => void} again
 * @param {() => void} leave */
function fillBody(app, body, variant, code, state, again, leave) {
  if (state.editing) return refill(body, editor(app, state.editing, leave));
  if (!code) {
    return refill(body, h("p", { class: "wb-quiet wb-pad" }, nothingToShow(app, variant)));
  }
  if (code.error) return refill(body, errorBox(code.error));
  const pinned = reference(app);
  const other = app.view.diff && pinned !== variant ? codeOf(pinned, code.language) : null;
  const lines = other
    ? diffView(app, code, other, state.helpers)
    : codeView(app, code, state, again);
  lines.style.setProperty("--digits", String(String(code.lines.length).length));
  const place = `${app.view.variant} ${code.language} ${Boolean(other)}`;
  refill(body, lines);
  if (body.dataset.place !== place) body.scrollTop = 0;
  body.dataset.place = place;
}

/** Code that is not there is asked for when its tab is looked at; and once where the record has it
 * no more, as on another device.
 * @param {App} app
 * @param {VariantRow | null} variant
 * @param {CodeState} state
 * @param {boolean} isLookedAt */
function askForCode(app, variant, state, isLookedAt) {
  const { variant: place, language } = app.view;
  const wanted = [variant, app.record.device, language];
  if (
    !variant ||
    place === null ||
    variant.edited ||
    app.live !== "live" ||
    codeOf(variant, language) ||
    variant.error ||
    app.pending("code", { variant: place, language }) ||
    (!isLookedAt && wanted.every((part, i) => part === state.asked?.[i]))
  ) {
    return;
  }
  state.asked = wanted;
  act(app, "code", { do: "code", variant: place, language });
}
