// OPTS TO TRY: the legal opts, best first, and why the others are not legal.

import { applyOpt, canAsk, NEEDS_PYTHON } from "../../app/actions.js";
import { offerDifference } from "../../app/beside.js";
import { optCaptions, optMeaning } from "../../app/glossary.js";
import { linked } from "../../app/links.js";
import { button, failure } from "../../app/pieces.js";
import { axisLink } from "../../app/store.js";
import { WIDE, withinText } from "../../app/timing.js";
import {
  elementsOf,
  focusedAround,
  h,
  keepingFocus,
  recordText,
  refill,
  setChildren,
} from "../../base/elements.js";
import { focusItem, rove, walkable } from "../../base/lists.js";
import { hasWords, search, secondsText, three } from "../../base/text.js";

/** @import { App } from "../../app/store.js" */
/** @import { OfferRow, RefusedRow, VariantRow } from "../../record.d.ts" */
/** @import { Link } from "../../types.d.ts" */
/** @import { OffersState } from "./panel.js" */

const SHOWN_AT_FIRST = 24;
const LEAST_GAIN = 1.01; // times faster: an opt below that gains nothing

/** Return a function that sets a part of the state, and redraws.
 * @typedef {(change: Partial<OffersState>) => () => void} Again */

/** The list of possible opts, or of impossible ones. Its rows stay in place while the reader is in
 * the list, however the times change: nothing moves under the pointer.
 * @param {App} app
 * @param {OffersState} state */
export function offersPane(app, state) {
  const filters = h("div", { class: "wb-filters", role: "group", "aria-label": "opts by name" });
  const errors = h("div", {});
  const list = walkable("grid", "legal opts", { class: "wb-offer-list wb-list" });
  const rest = h("div", {});
  const refused = h("div", {});
  const parts = [filters, errors, list, rest, refused];
  const el = h("div", { class: "wb-offers", tabindex: "-1" }, ...parts);
  /** @type {Again} */
  const again = (change) => () => (Object.assign(state, change), app.changed("offers"));
  list.addEventListener("pointerleave", again({}));

  const update = (/** @type {VariantRow | null} */ variant) => {
    // after an apply, the first of the new opts gets the focus; until they have arrived, the pane
    const focused = focusedAround(el);
    const hadFocus = list.contains(focused) || focused === el;
    const ops = [...new Set(variant?.offers.map((offer) => offer.op))];
    if (state.op && !ops.includes(state.op)) ops.push(state.op);
    const refusals = state.refused ? variant?.refused ?? [] : [];
    const showsRefused = refusals.length > 0;
    const shown = variant && !showsRefused ? shownOffers(app, variant, state, list) : [];
    const left = variant && !showsRefused
      ? fitting(variant.offers, state).length - shown.length
      : 0;
    for (const part of [filters, list, rest]) part.hidden = showsRefused || !variant;
    list.hidden ||= !shown.length;
    refill(filters, ...(ops.length > 1 || state.op ? filterButtons(app, ops, state, again) : []));
    refill(errors, failure(app, "offers"));
    fillOfferList(app, list, shown);
    refill(
      rest,
      variant && !variant.offers.length &&
        h("p", { class: "wb-quiet", "data-term": "opts to try" }, nothingNext(app, variant)),
      variant && variant.offers.length > 0 && !shown.length && noMatches(),
      variant && !shown.length && hiddenByKind(app, variant, state, again),
      variant && left > 0 && moreButton(app, variant, state, left, again),
    );
    refill(refused, showsRefused && refusedList(refusals.filter((row) => fits(row, state))));
    if (hadFocus && !list.contains(focusedAround(list))) focusFirst() || focusQuietly(el);
  };
  /** Focus the first opt; return whether there is one. */
  const focusFirst = () => {
    const [first] = list.hidden ? [] : elementsOf(list, "[data-item]");
    focusItem(list, first);
    return first !== undefined;
  };
  const holds = (/** @type {Node} */ node) => list.contains(node);
  return { el, update, focusFirst, holds };
}

/** @param {HTMLElement} element */
const focusQuietly = (element) => element.focus({ preventScroll: true });

/**
 * @param {App} app
 * @param {string[]} ops
 * @param {OffersState} state
 * @param {Again} again */
function filterButtons(app, ops, state, again) {
  return [
    button(app, "all", again({ op: null }), {
      pressed: state.op === null,
      name: "op-all",
      title: "opts of all kinds",
    }),
    ...ops.map((op) =>
      button(app, op, again({ op }), {
        pressed: state.op === op,
        name: `op-${op}`,
        title: optMeaning(app.record, op),
      })
    ),
  ];
}

/** The button of the offers that are not listed at first.
 * @param {App} app
 * @param {VariantRow} variant
 * @param {OffersState} state
 * @param {number} left how many these are
 * @param {Again} again */
function moreButton(app, variant, state, left, again) {
  const others = fitting(variant.offers, state).filter((offer) => !gains(offer));
  const isListed = others.some(({ opt }) => state.shown?.opts.includes(opt));
  const few = !isListed && others.length ? `, ${others.length} of them no faster` : "";
  return button(app, `${left} more${few}`, again({ all: true }), {
    name: "more",
    title: "the other legal opts; those that are predicted to gain nothing come last",
  });
}

/** Whether an opt may make the kernel faster, as far as is predicted; a measured one shows its own
 * ratio.
 * @param {OfferRow} offer */
const gains = ({ measured, predicted }) =>
  measured !== null || predicted === null || predicted >= LEAST_GAIN;

/** Whether a row has the searched words.
 * @param {{opt: string, why: string}} row
 * @param {OffersState} state */
export const fits = (row, { find }) => hasWords(`${row.opt} ${row.why}`, find);

/**
 * @param {OfferRow[]} offers
 * @param {OffersState} state */
const fitting = (offers, state) =>
  offers.filter((offer) => fits(offer, state) && (!state.op || offer.op === state.op));

/** The offers to show, best first, at first without those that gain nothing; in their former order
 * while the reader is in the list.
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
  const sorted = namedFirst(measuredFirst(fitting(variant.offers, state)), state.find);
  const isNarrow = state.all || state.op || state.find;
  const gaining = sorted.filter(gains);
  const shown = isNarrow ? sorted : (gaining.length ? gaining : sorted).slice(0, SHOWN_AT_FIRST);
  state.shown = { askedFor, opts: shown.map((offer) => offer.opt) };
  return shown;
}

/** Offers in which the searched words are in the opts, and not in the reason, first; and one opt
 * before several together.
 * @param {OfferRow[]} offers
 * @param {string} find */
function namedFirst(offers, find) {
  if (!find.trim()) return offers;
  const count = (/** @type {OfferRow} */ { opt }) => opt.split(")").length;
  const named = search(offers, ({ opt }) => opt, find).sort((a, b) => count(a) - count(b));
  return [...new Set([...named, ...offers])];
}

/** If the chosen kind hides all matches of the search: a button that shows those.
 * @param {App} app
 * @param {VariantRow} variant
 * @param {OffersState} state
 * @param {Again} again */
function hiddenByKind(app, variant, state, again) {
  const others = fitting(variant.offers, { ...state, op: null }).length;
  if (!state.op || !others) return null;
  return button(app, `${others} of other kinds than ${state.op}: show`, again({ op: null }), {
    name: "other-kinds",
  });
}

const noMatches = () => h("p", { class: "wb-quiet wb-none", role: "status" }, "nothing found");

/**
 * @param {App} app
 * @param {VariantRow} variant */
function nothingNext(app, variant) {
  if (app.record.nothing) return app.record.nothing;
  if (canAsk(app) && app.pending("offers", { variant: app.view.variant })) {
    return "Looking for opts…";
  }
  if (variant.refused.length) return "No other opt is legal here.";
  return canAsk(app)
    ? "No opts are known for this variant yet."
    : `No opts are known for this variant: that ${NEEDS_PYTHON}.`;
}

/** Measured ones first, the fastest first, and among them those that a busy machine disturbed, by
 * their prediction; the others in the record's order, best first.
 * @param {OfferRow[]} offers */
function measuredFirst(offers) {
  const rank = (/** @type {OfferRow} */ { measured, predicted, busy }) =>
    measured ?? (busy ? predicted ?? 0 : 0);
  return [...offers].sort((a, b) => rank(b) - rank(a));
}

/** Equal rows stay the same elements: a click does not miss them.
 * @param {App} app
 * @param {HTMLElement} list
 * @param {OfferRow[]} offers */
function fillOfferList(app, list, offers) {
  const best = Math.max(1, ...offers.map((o) => o.differs ? o.measured ?? 0 : 0));
  const before = new Map(elementsOf(list, "[data-says]").map((row) => [row.dataset.says, row]));
  const rows = offers.map((offer) => {
    const chosen = app.view.opt === offer.opt;
    const busy = app.pending("apply", { variant: app.view.variant, opt: offer.opt });
    const differs = offerDifference(app, offer.opt);
    const state = [app.view.variant, chosen, busy, canAsk(app), offer.measured === best, differs];
    const says = JSON.stringify([offer, ...state]);
    return before.get(says) || offerRow(app, offer, { chosen, busy, best, says, differs });
  });
  const heads = before.get("heads") || offerHeads();
  keepingFocus(list, () => {
    setChildren(list, offers.length ? [heads, ...rows] : []);
    const at = focusedAround(list)?.closest("[data-item]") ?? null;
    rove(list, list.contains(at) ? at : null);
  });
}

function offerHeads() {
  return h(
    "div",
    { class: "wb-offer wb-heads", role: "row", "data-says": "heads" },
    h("span", { role: "columnheader", "data-term": "opt" }, "opt"),
    h("span", { role: "columnheader", "data-term": "why" }, "why"),
    h("span", { role: "columnheader", class: "wb-figure", "data-term": "predicted" }, "predicted"),
    h("span", { role: "columnheader", class: "wb-figure", "data-term": "measured" }, "measured"),
    h("span", { role: "columnheader", "aria-label": "apply" }),
  );
}

/** The link from an offer to its axes, and to all that belongs to them.
 * @param {App} app
 * @param {OfferRow} offer
 * @returns {Link} */
const offerLink = (app, { axes }) => ({
  by: "offer",
  axes,
  nodes: axes.flatMap((axis) => axisLink(app, axis).nodes),
  lines: [],
});

/**
 * @param {App} app
 * @param {OfferRow} offer
 * @param {{chosen: boolean, busy: boolean, best: number, says: string, differs: string}} how */
function offerRow(app, offer, { chosen, busy, best, says, differs }) {
  const link = offerLink(app, offer);
  const apply = button(app, busy ? "…" : "apply", () => applyOpt(app, offer.opt), {
    python: true,
    key: "a",
    name: `apply-${offer.opt}`,
  });
  apply.tabIndex = -1;
  const row = h(
    "div",
    {
      class: `wb-offer wb-row${differs ? " wb-differs" : ""}`,
      role: "row",
      "aria-selected": String(chosen),
      "data-item": "",
      "data-key": `offer-${offer.opt}`,
      "data-opt": offer.opt,
      "data-says": says,
      title: [...captions(app, offer).map((caption) => caption.join(": ")), differs]
        .filter(Boolean).join("\n"),
      onclick: () => app.select({ opt: chosen ? null : offer.opt, picked: chosen ? null : link }),
    },
    h("span", { role: "gridcell", class: "wb-code" }, recordText(offer.opt)),
    whyCell(offer),
    h(
      "span",
      { role: "gridcell", class: "wb-figure" },
      offer.predicted === null ? "" : `x${three(offer.predicted)}`,
    ),
    measuredCell(offer, best),
    h("span", { role: "gridcell", class: "wb-apply" }, apply),
    chosen && openOffer(app, offer),
  );
  return linked(row, link);
}

/** The purpose of an opt; a line never ends within an arrow.
 * @param {OfferRow} offer */
const whyCell = ({ why, counts }) => {
  const all = [counts, why].filter(Boolean).join("; ");
  return h(
    "span",
    { role: "gridcell", class: "wb-quiet wb-why", title: all },
    recordText(all.replaceAll(" -> ", " \u2192 "), "", 400),
  );
};

/** @type {(app: App, offer: OfferRow) => [string, string][]} */
const captions = (app, { does, on_gpu }) => optCaptions(app.record, does, on_gpu);

/** The effect of a chosen offer, as text.
 * @param {App} app
 * @param {OfferRow} offer */
function openOffer(app, offer) {
  const { does, why, counts } = offer;
  const line = (/** @type {string} */ name, /** @type {string} */ text) =>
    h("div", {}, h("i", { class: "wb-quiet" }, `${name} `), recordText(text, "", 600));
  return h(
    "div",
    { role: "gridcell", class: "wb-does" },
    ...captions(app, offer).map(([where, text]) => line(where, text)),
    why !== does && line("why", why),
    counts && line("counts", counts.replaceAll(" -> ", " \u2192 ")),
  );
}

const NOT_MEASURED = "not measured: other programs had the kernel's cores in its runs";

/** The measured speed-up, as the predicted one; ≈ if the samples show no difference. A slow kernel
 * ran once or a few times: then there is no spread.
 * @param {OfferRow} offer
 * @param {number} best */
function measuredCell({ measured, spread, differs, seconds, busy }, best) {
  if (busy && measured === null) { // "busy" stands beside times, and here is none
    return h("span", { role: "gridcell", class: "wb-figure wb-quiet", title: NOT_MEASURED }, "–");
  }
  const isBest = differs && measured === best && spread !== null && spread < WIDE;
  const title = seconds === null
    ? null
    : `${differs || spread === null ? "" : "≈: no measurable difference; "}${
      secondsText(seconds)
    }, timed in turns with this variant`;
  return h(
    "span",
    { role: "gridcell", class: `wb-figure ${isBest ? "wb-best" : ""}`, title },
    measured === null ? "" : differs || spread === null ? `x${three(measured)}` : "≈",
    measured !== null &&
      h("span", {
        class: "wb-quiet",
        "data-term": spread === null ? "few runs" : "±",
      }, ` ${spread === null ? "few runs" : withinText(spread)}`),
  );
}

/** @param {RefusedRow[]} refused */
function refusedList(refused) {
  if (!refused.length) return noMatches();
  return h(
    "div",
    { class: "wb-refused" },
    ...refused.flatMap((
      { opt, why },
    ) => [recordText(opt, "wb-code"), recordText(why, "wb-quiet", 600)]),
  );
}
