// OPTS: the list of opts of the selected variant, as chips or as text, to change, drag and apply.

import { canAsk, copyPython, NEEDS_PYTHON, notify } from "../../app/actions.js";
import { optMeaning } from "../../app/glossary.js";
import { linked } from "../../app/links.js";
import { button } from "../../app/pieces.js";
import { axisLink } from "../../app/store.js";
import { elementsOf, h, recordText, refill } from "../../base/elements.js";
import { focusItem, walkable } from "../../base/lists.js";
import { plural } from "../../base/text.js";
import { OptsDrafts } from "./opts_drafts.js";

/** @import { App } from "../../app/store.js" */
/** @import { Child } from "../../base/elements.d.ts" */
/** @import { ErrorWords, VariantRow } from "../../record.d.ts" */
/** @import { Keys } from "../../types.d.ts" */

/** The inputs of the row: the selected variant, and the draft of its list.
 * @typedef {{app: App, drafts: OptsDrafts, variant: VariantRow}} Shown */

/** @param {App} app */
export function optsRow(app) {
  const el = h("div", { class: "wb-foot" });
  const drafts = new OptsDrafts(app);
  let asText = false; // without opts, a list can only be typed
  /** The variant that was shown last.
   * @type {VariantRow | null} */
  let last = null;
  const update = () => {
    const variant = app.variant();
    if (last && last !== variant && drafts.hasFailed(last)) drafts.forget(last);
    last = variant;
    el.hidden = !variant;
    if (!variant) return;
    const shown = { app, drafts, variant };
    const isText = asText || !variant.opts.length;
    const turn = () => {
      asText = !isText;
      app.changed("optlist");
      if (asText) app.onceShown(() => elementsOf(el, "[data-key=paste]")[0]?.focus());
    };
    refill(
      el,
      h(
        "div",
        { class: "wb-opts-row" },
        h("h3", { "data-term": "opts" }, "OPTS"),
        h(
          "span",
          { class: "wb-quiet", title: "the kernel to which the opts are applied" },
          `on ${rootName(app, variant)}:`,
        ),
        isText ? textField(shown) : chips(shown),
        ...buttons(shown, isText),
        variant.opts.length > 0 && button(app, isText ? "as chips" : "as text", turn, {
          name: "opts-as",
          title: isText ? "one by one" : "to copy, or to write and paste another list",
        }),
        button(app, "Copy as Python", () => copyPython(app), { key: "y" }),
      ),
      !isText && openOpt(shown),
      verdictLine(shown),
    );
  };
  return { el, update, keys: optKeys(app, drafts, el) };
}

/** The name of the kernel without opts.
 * @param {App} app
 * @param {VariantRow} variant */
function rootName({ record }, { kernel }) {
  const { name } = record.variants[record.kernels[kernel].root];
  return name.slice(0, 20);
}

/** Keys on the focused opt; the focus moves with it.
 * @param {App} app
 * @param {OptsDrafts} drafts
 * @param {HTMLElement} el
 * @returns {Keys} */
function optKeys(app, drafts, el) {
  /** @type {(actOn: (variant: VariantRow, place: number) => void) => (event: KeyboardEvent) => boolean} */
  const onOpt = (actOn) => ({ target }) => {
    const place = target instanceof HTMLElement ? target.dataset?.chip : undefined;
    const variant = app.variant();
    if (place === undefined || !variant || !canAsk(app)) return false;
    actOn(variant, Number(place));
    return true;
  };
  /** @type {(variant: VariantRow, place: number) => void} */
  const focusSoon = (variant, place) =>
    app.onceShown(() => {
      const chips = elementsOf(el, "[data-chip]");
      const last = drafts.of(variant).opts.length - 1;
      focusItem(chips[0]?.closest("[data-walk]"), chips[Math.max(0, Math.min(place, last))]);
    });
  /** @type {(variant: VariantRow, place: number, by: number) => void} */
  const moveBy = (variant, place, by) => (
    drafts.move(variant, place, by), focusSoon(variant, place + by)
  );
  return {
    a: onOpt((variant) => {
      if (drafts.canApply(variant)) drafts.apply(variant);
      else notify(app, drafts.isChanged(variant) ? "the list is not legal" : "nothing was changed");
    }),
    Delete: onOpt((variant, place) => (drafts.remove(variant, place), focusSoon(variant, place))),
    "<": onOpt((variant, place) => moveBy(variant, place, -1)),
    ">": onOpt((variant, place) => moveBy(variant, place, 1)),
  };
}

/**
 * @param {Shown} shown
 * @param {boolean} isText */
function buttons({ app, drafts, variant }, isText) {
  const isChanged = isText ? drafts.has(variant) : drafts.isChanged(variant);
  return [
    (isText || drafts.canApply(variant)) &&
    button(app, "Apply these", () => drafts.apply(variant), {
      python: true,
      ...(isText ? {} : { key: "a" }),
      title: "to the kernel without opts: that is a variant",
    }),
    isChanged && button(app, "Reset", () => drafts.reset(variant), {
      title: "to the opts of this variant",
    }),
  ];
}

/** @param {Shown} shown */
function chips(shown) {
  const items = shown.drafts.of(shown.variant).opts.map((_, place) => chipOf(shown, place));
  return walkable(
    "listbox",
    "opts of this variant",
    { class: "wb-opt-chips", "aria-orientation": "horizontal" },
    ...items,
  );
}

/**
 * @param {Shown} shown
 * @param {number} place */
function chipOf({ app, drafts, variant }, place) {
  const { opts, open } = drafts.of(variant);
  const { row, because } = opts[place];
  const kind = app.record.opt_kinds[row.op];
  const titles = [because && `not legal: ${because}`, kind && `${row.op}: ${kind.here}`];
  const el = h(
    "span",
    {
      class: `wb-opt ${because ? "wb-opt-illegal" : ""}`,
      role: "option",
      "aria-selected": String(place === open),
      "data-item": "",
      "data-key": `opt-${place}`,
      "data-chip": String(place),
      title: titles.filter(Boolean).join("\n"),
      onclick: () => drafts.toggle(variant, place),
    },
    recordText(row.words, "wb-code", 60),
    because && h("b", { class: "wb-bad" }, " ✗"),
  );
  if (canAsk(app)) makeDraggable(el, drafts, variant, place);
  return row.axis ? linked(el, axisLink(app, row.axis)) : el;
}

/** The meaning of the open opt, and its possible changes.
 * @param {Shown} shown */
function openOpt({ app, drafts, variant }) {
  const { opts, open, amounts } = drafts.of(variant);
  if (open === null || !opts[open]) return null;
  const { row } = opts[open];
  const kind = app.record.opt_kinds[row.op];
  const set = (/** @type {number} */ amount) => drafts.setAmount(variant, open, amount);
  /** @type {(text: string, actOn: () => void, key: string, name: string, title: string) => Node} */
  const change = (text, actOn, key, name, title) =>
    button(app, text, actOn, { python: true, key, name, title });
  return h(
    "div",
    { class: "wb-opt-open" },
    kind && h(
      "span",
      { class: "wb-quiet", title: optMeaning(app.record, row.op) },
      recordText(`${row.op}: ${optMeaning(app.record, row.op).split("\n")[0]}`, "wb-clip", 200),
    ),
    row.amount !== null && amountField(app, row.amount, set),
    ...amounts.map((amount) =>
      button(app, amount ? String(amount) : "whole", () => set(amount), {
        python: true,
        pressed: amount === row.amount,
        name: `amount-${amount}`,
        title: "a legal amount",
      })
    ),
    open > 0 &&
      change("‹", () => drafts.move(variant, open, -1), "<", "opt-earlier", "apply it earlier"),
    open + 1 < opts.length &&
      change("›", () => drafts.move(variant, open, 1), ">", "opt-later", "apply it later"),
    change("Remove", () => drafts.remove(variant, open), "Del", "opt-remove", "from the list"),
  );
}

/**
 * @param {App} app
 * @param {number} amount
 * @param {(amount: number) => void} set */
function amountField(app, amount, set) {
  const off = !canAsk(app);
  const input = h("input", {
    class: "wb-input wb-opt-amount",
    type: "number",
    min: 0,
    "aria-label": "amount",
    "data-key": "opt-amount",
    disabled: off,
    title: off ? NEEDS_PYTHON : "the amount; 0: the whole axis",
    onchange: ({ target }) => target.value && set(Math.trunc(Number(target.value))),
  });
  input.value = String(amount);
  return input;
}

/** @param {Shown} shown */
function textField({ app, drafts, variant }) {
  const off = !canAsk(app);
  const input = h("input", {
    class: "wb-input wb-code",
    type: "text",
    "aria-label": "opts as text",
    "data-key": "paste",
    disabled: off,
    title: "applied to the kernel without opts, in place of the list of this variant",
    placeholder: off ? NEEDS_PYTHON : `on the kernel without opts: ${app.record.recipes.opts}`,
    oninput: ({ target }) => {
      drafts.set(variant, { text: target.value });
      drafts.askSoon(variant, { opts: [target.value] });
    },
    onkeydown: (event) => event.key === "Enter" && drafts.apply(variant),
  });
  input.value = drafts.of(variant).text;
  return input;
}

/** Python's answer about an edited list.
 * @param {Shown} shown */
function verdictLine({ drafts, variant }) {
  const { opts, isAnswered, error } = drafts.of(variant);
  if (!drafts.isChanged(variant) && !error) return null;
  const refused = opts.find((opt) => opt.because);
  if (error) return refusal(error);
  if (!isAnswered) return verdict("…");
  if (!refused) return verdict(`legal: ${plural(opts.length, "opt")}`);
  return refusal({ ...refused, what: `cannot apply ${refused.row.words}` });
}

/** @param {ErrorWords} error */
function refusal({ what, because, try: hint }) {
  return verdict(
    h("b", { class: "wb-bad" }, `✗ ${what}`),
    h("i", { class: "wb-quiet" }, " because "),
    recordText(because, "", 400),
    hint && h("i", { class: "wb-quiet" }, " try "),
    hint && recordText(hint, "", 400),
  );
}

/** @type {(...parts: Child[]) => Node} */
const verdict = (...parts) => h("p", { class: "wb-opt-verdict", role: "status" }, ...parts);

// Opts dragged to another position in their list: before or after the opt under the pointer.

const SIDES = ["wb-opt-before", "wb-opt-after"];

/** Make a chip draggable, and a target of others. As text it is the opt as Python.
 * @param {HTMLElement} chip
 * @param {OptsDrafts} drafts
 * @param {VariantRow} variant
 * @param {number} place */
function makeDraggable(chip, drafts, variant, place) {
  const mark = (/** @type {boolean | null} */ isAfter) =>
    SIDES.forEach((name, i) => chip.classList.toggle(name, isAfter === Boolean(i)));
  const isOurs = () => drafts.dragged?.variant === variant;
  chip.draggable = true;
  chip.addEventListener("dragstart", ({ dataTransfer }) => {
    drafts.dragged = { variant, place };
    dataTransfer?.setData("text/plain", drafts.of(variant).opts[place].text);
  });
  chip.addEventListener("dragend", () => (drafts.dragged = null));
  chip.addEventListener("dragleave", () => mark(null));
  chip.addEventListener("dragover", (event) => {
    if (!isOurs()) return;
    event.preventDefault(); // it may be dropped here
    mark(isSecondHalf(chip, event));
  });
  chip.addEventListener("drop", (event) => {
    if (!isOurs() || !drafts.dragged) return;
    event.preventDefault();
    mark(null);
    const from = drafts.dragged.place;
    drafts.dragged = null;
    drafts.moveTo(variant, from, placeOf(from, place, isSecondHalf(chip, event)));
  });
}

/** Whether a pointer is nearer to the end of a chip than to its beginning.
 * @param {HTMLElement} chip
 * @param {DragEvent} event */
function isSecondHalf(chip, { clientX }) {
  const { left, width } = chip.getBoundingClientRect();
  return clientX > left + width / 2;
}

/** The index of the opt at `from` after it is dropped before or after another.
 * @param {number} from
 * @param {number} other
 * @param {boolean} isAfter */
const placeOf = (from, other, isAfter) => other + Number(isAfter) - Number(from < other);
