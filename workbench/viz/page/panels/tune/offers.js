// NEXT: the opts that are possible, best first; why the others are not; opts pasted as text.

import { act, applyOpt, canAsk, copyPython, NEEDS_PYTHON } from "../../app/actions.js";
import { linked } from "../../app/links.js";
import { button, failure } from "../../app/pieces.js";
import { axisLink } from "../../app/store.js";
import { withinText } from "../../app/timing.js";
import { elementsOf, h, keepingFocus, refill, setChildren, words } from "../../base/elements.js";
import { rove, walkable } from "../../base/lists.js";
import { hasWords, secondsText, three } from "../../base/text.js";

/** @import { OfferRow, RefusedRow, VariantRow } from "../../record.d.ts" */
/** @import { Link } from "../../types.d.ts" */
/** @import { OffersState } from "./panel.js" */
/** @import { App } from "../../app/store.js" */

const SHOWN_AT_FIRST = 24;

/** Return what sets a part of the state, and shows that.
 * @typedef {(change: Partial<OffersState>) => () => void} Again */

/** The list of what can be done, or of what cannot. Its rows stay in place while the reader is
 * among them, however the figures change: nothing moves under the pointer.
 * @param {App} app
 * @param {OffersState} state */
export function offersPane(app, state) {
  const filters = h("div", { class: "wb-filters", role: "group", "aria-label": "opts by name" });
  const trouble = h("div", {});
  const list = walkable("listbox", "legal opts", { class: "wb-offer-list wb-list" });
  const rest = h("div", {});
  const refused = h("div", {});
  const el = h("div", { class: "wb-offers" }, filters, trouble, list, rest, refused);
  /** @type {Again} */
  const again = (change) => () => (Object.assign(state, change), app.changed("offers"));
  list.addEventListener("pointerleave", again({}));

  const update = (/** @type {VariantRow | null} */ variant) => {
    const ops = [...new Set(variant?.offers.map((offer) => offer.op))];
    if (state.op && !ops.includes(state.op)) state.op = null;
    const refusals = state.refused ? variant?.refused ?? [] : [];
    const showsRefused = refusals.length > 0;
    const shown = variant && !showsRefused ? shownOffers(app, variant, state, list) : [];
    const left = variant && !showsRefused
      ? fitting(variant.offers, state).length - shown.length
      : 0;
    for (const part of [filters, list, rest]) part.hidden = showsRefused || !variant;
    list.hidden ||= !shown.length;
    refill(filters, ...(ops.length > 1 ? filterButtons(app, ops, state, again) : []));
    refill(trouble, failure(app, "offers"));
    fillOfferList(app, list, shown);
    refill(
      rest,
      variant && !variant.offers.length && h("p", { class: "wb-quiet" }, nothingNext(app, variant)),
      variant && variant.offers.length > 0 && !shown.length && noMatches(),
      left > 0 && button(app, `${left} more`, again({ all: true }), { name: "more" }),
    );
    refill(refused, showsRefused && refusedList(refusals.filter((row) => fits(row, state))));
  };
  return { el, update };
}

/**
 * @param {App} app
 * @param {string[]} ops
 * @param {OffersState} state
 * @param {Again} again */
function filterButtons(app, ops, state, again) {
  return [
    button(app, "all", again({ op: null }), { pressed: state.op === null, name: "op-all" }),
    ...ops.map((op) =>
      button(app, op, again({ op }), { pressed: state.op === op, name: `op-${op}` })
    ),
  ];
}

/**
 * @param {{opt: string, why: string}} row
 * @param {OffersState} state */
const fits = (row, { find }) => hasWords(`${row.opt} ${row.why}`, find);

/**
 * @param {OfferRow[]} offers
 * @param {OffersState} state */
const fitting = (offers, state) =>
  offers.filter((offer) => fits(offer, state) && (!state.op || offer.op === state.op));

/** The offers to show, best first; those of before, in their order, while the reader is there.
 * @param {App} app
 * @param {VariantRow} variant
 * @param {OffersState} state
 * @param {HTMLElement} list */
function shownOffers(app, variant, state, list) {
  const askedFor = [app.view.variant, state.op, state.find, state.all].join();
  const isThere = list.matches(":hover, :focus-within") && state.shown?.askedFor === askedFor;
  const byName = new Map(variant.offers.map((offer) => [offer.opt, offer]));
  const before = isThere ? state.shown?.opts ?? [] : [];
  const still = before.flatMap((opt) => byName.get(opt) ?? []);
  if (still.length && still.length === before.length) return still;
  const sorted = bestFirst(fitting(variant.offers, state));
  const isNarrow = state.all || state.op || state.find;
  const shown = isNarrow ? sorted : varied(sorted, SHOWN_AT_FIRST);
  state.shown = { askedFor, opts: shown.map((offer) => offer.opt) };
  return shown;
}

const noMatches = () => h("p", { class: "wb-quiet wb-none", role: "status" }, "nothing found");

/**
 * @param {App} app
 * @param {VariantRow} variant */
function nothingNext(app, variant) {
  if (app.pending("offers", { variant: app.view.variant })) return "Looking for opts…";
  if (variant.refused.length) return "No other opt is legal here.";
  return canAsk(app)
    ? "No opts are known for this variant yet."
    : `No opts are known for this variant: that ${NEEDS_PYTHON}.`;
}

/** Measured ones first, fastest first; then predicted ones; then as the action table has them.
 * @param {OfferRow[]} offers */
function bestFirst(offers) {
  const key = (/** @type {OfferRow} */ o) => [o.measured ?? Infinity, -(o.predicted ?? 0)];
  return offers
    .map((offer, i) => ({ offer, i, key: key(offer) }))
    .sort((a, b) => compare(a.key[0], b.key[0]) || compare(a.key[1], b.key[1]) || a.i - b.i)
    .map(({ offer }) => offer);
}

/**
 * @param {number} a
 * @param {number} b */
const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

/** The first `most`, taking turns among the ops where no figure says which is better.
 * @param {OfferRow[]} offers
 * @param {number} most */
function varied(offers, most) {
  const known = offers.filter((o) => o.measured !== null || o.predicted !== null);
  /** @type {Map<string, OfferRow[]>} */
  const queues = new Map();
  for (const offer of offers) {
    if (known.includes(offer)) continue;
    const key = `${offer.op} ${offer.axes}`;
    queues.get(key)?.push(offer) ?? queues.set(key, [offer]);
  }
  const first = known.slice(0, most);
  for (const queue of queues.values()) {
    if (first.length < most) first.push(...queue.slice(0, Math.ceil(most / queues.size / 1.5)));
  }
  return first.slice(0, most);
}

/** Rows that say the same stay the same elements: a click does not miss them.
 * @param {App} app
 * @param {HTMLElement} list
 * @param {OfferRow[]} offers */
function fillOfferList(app, list, offers) {
  const best = Math.min(...offers.map((o) => o.measured ?? Infinity));
  const before = new Map(elementsOf(list, "[data-says]").map((row) => [row.dataset.says, row]));
  const rows = offers.map((offer) => {
    const chosen = app.view.opt === offer.opt;
    const busy = app.pending("apply", { variant: app.view.variant, opt: offer.opt });
    const state = [app.view.variant, chosen, busy, canAsk(app), offer.measured === best];
    const says = JSON.stringify([offer, ...state]);
    return before.get(says) || offerRow(app, offer, { chosen, busy, best, says });
  });
  const heads = before.get("heads") || offerHeads();
  keepingFocus(list, () => {
    setChildren(list, offers.length ? [heads, ...rows] : []);
    const at = document.activeElement?.closest("[data-item]") ?? null;
    rove(list, list.contains(at) ? at : null);
  });
}

function offerHeads() {
  return h(
    "div",
    { class: "wb-offer wb-heads", role: "presentation", "data-says": "heads" },
    h("span", {}, "opt"),
    h("span", {}, "why"),
    h("span", { class: "wb-figure" }, "predicted"),
    h("span", { class: "wb-figure" }, "measured"),
    h("span"),
  );
}

/**
 * @param {App} app
 * @param {OfferRow} offer
 * @param {{chosen: boolean, busy: boolean, best: number, says: string}} how */
function offerRow(app, offer, { chosen, busy, best, says }) {
  /** @type {Link} */
  const link = {
    by: "offer",
    axes: offer.axes,
    nodes: offer.axes.flatMap((axis) => axisLink(app, axis).nodes),
    lines: [],
  };
  const apply = button(app, busy ? "…" : "apply", () => applyOpt(app, offer.opt), {
    python: true,
    key: "a",
    name: `apply-${offer.opt}`,
  });
  apply.tabIndex = -1;
  const row = h(
    "div",
    {
      class: "wb-offer wb-row",
      role: "option",
      "aria-selected": String(chosen),
      "data-item": "",
      "data-key": `offer-${offer.opt}`,
      "data-says": says,
      onclick: () => app.select({ opt: chosen ? null : offer.opt, picked: chosen ? null : link }),
    },
    words(offer.opt, "wb-code wb-clip"),
    words(offer.why, "wb-quiet wb-clip", 400),
    h("span", { class: "wb-figure" }, offer.predicted === null ? "" : `x${three(offer.predicted)}`),
    h(
      "span",
      { class: `wb-figure ${offer.measured === best ? "wb-best" : ""}` },
      offerTime(offer),
    ),
    apply,
    chosen &&
      h(
        "div",
        { class: "wb-does" },
        h("div", {}, h("i", { class: "wb-quiet" }, "here "), words(offer.does, "", 600)),
        h("div", {}, h("i", { class: "wb-quiet" }, "on a GPU "), words(offer.on_gpu, "", 600)),
        offer.why !== offer.does &&
          h("div", {}, h("i", { class: "wb-quiet" }, "why "), words(offer.why, "", 600)),
      ),
  );
  return linked(row, link);
}

/** What is slow beside the others has one sample: then there is no spread.
 * @param {OfferRow} offer */
const offerTime = ({ measured, spread }) => [
  measured === null ? "" : secondsText(measured),
  measured !== null &&
  h("span", { class: "wb-quiet" }, ` ${spread === null ? "one run" : withinText(spread)}`),
];

/** @param {RefusedRow[]} refused */
function refusedList(refused) {
  if (!refused.length) return noMatches();
  return h(
    "div",
    { class: "wb-refused" },
    ...refused.flatMap(({ opt, why }) => [words(opt, "wb-code"), words(why, "wb-quiet", 600)]),
  );
}

/** Opts as text, as `copy as Python` and a search print them; what is being written stays.
 * @param {App} app
 * @param {OffersState} state */
export function pasteBox(app, state) {
  const input = h("input", {
    class: "wb-input wb-code",
    type: "text",
    "aria-label": "paste opts",
    "data-key": "paste",
    disabled: !canAsk(app),
    placeholder: canAsk(app)
      ? `paste opts: ${app.record.recipes.opts}`
      : `paste opts: ${NEEDS_PYTHON}`,
    oninput: ({ target }) => (state.pasted = target.value),
    onkeydown: (event) => event.key === "Enter" && paste(app, state),
  });
  input.value = state.pasted;
  return h(
    "div",
    { class: "wb-paste" },
    input,
    button(app, "Apply these", () => paste(app, state), { python: true }),
    button(app, "Copy as Python", () => copyPython(app), { key: "y" }),
  );
}

/**
 * @param {App} app
 * @param {OffersState} state */
async function paste(app, state) {
  const text = state.pasted.trim();
  const { variant } = app.view;
  if (!text || variant === null) return;
  if (!(await act(app, "offers", { do: "paste", variant, text }))) return;
  if (state.pasted.trim() !== text) return; // something else is being written by now
  state.pasted = "";
  app.changed("pasted");
}
