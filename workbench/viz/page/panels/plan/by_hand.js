// Choices by hand: those that are made, each with its undo, and those that a value offers, each with
// what is predicted of the plan with it. Python lists the offers of a value when they are unfolded.

import { canAsk, copy } from "../../app/actions.js";
import { replan } from "../../app/decision.js";
import { button, headingOf } from "../../app/pieces.js";
import { h, recordText, refill } from "../../base/elements.js";
import { bytesText, countText, plural, secondsText } from "../../base/text.js";

/** @import { App } from "../../app/store.js" */
/** @import {
 *   ChoiceOffer, ComparedPlans, OfferedChoices, PlanForecast, PlanPicture
 * } from "../../record.d.ts" */

/** The offers of each plan, by value, or by value and number of partial results; null: they were
 * asked for.
 * @type {WeakMap<PlanPicture, Map<string, OfferedChoices | null>>} */
const OFFERS = new WeakMap();
/** The number of partial results in the field of each page.
 * @type {WeakMap<App, string>} */
const PARTS = new WeakMap();

/** The pages whose reader unfolded the offers.
 * @type {WeakSet<App>} */
const UNFOLDED = new WeakSet();

/** The number of choices that are made, their Python, and buttons that undo or list them.
 * @param {App} app
 * @param {() => void} showAll */
export function choicesLine(app, showAll) {
  const { plan: { by_hand: rows }, expr } = app.record;
  if (!rows.length) return null;
  return h(
    "div",
    { class: "wb-plan-hand" },
    headingOf(
      "by hand",
      "BY HAND",
      button(app, plural(rows.length, "choice"), showAll, {
        name: "list-by-hand",
        title: "list them, each with its undo",
      }),
      button(app, "copy", () => copy(app, expr.python, "the plan as Python"), {
        name: "copy-by-hand",
        title: "code that makes these choices again, in any session",
      }),
      button(app, rows.length > 1 ? "undo all" : "undo", () => replan(app, null, {}), {
        python: true,
        name: "undo-all",
        title: "leave the plan to the scheduler again",
      }),
    ),
  );
}

/** The choices that are made, each with a button that undoes it, and the call that makes them.
 * @param {App} app */
export function choicesMade(app) {
  const { plan: { by_hand: rows }, recipes } = app.record;
  if (!rows.length) return null;
  return h(
    "div",
    { class: "wb-plan-hand" },
    h("p", { "data-term": "by hand" }, "Chosen by hand:"),
    h(
      "ul",
      {},
      ...rows.map(({ node, kind, text }) =>
        h(
          "li",
          {},
          recordText(text, "", 300),
          node !== null &&
            button(app, "undo", () => replan(app, node, { kind, undo: true }), {
              python: true,
              name: `undo-${kind}-${node}`,
              title: "leave it to the scheduler again",
            }),
        )
      ),
    ),
    h("code", { class: "wb-plan-call" }, recordText(recipes.replan, "", 4000)),
  );
}

/** What is known of this plan and of the one before it without running them: their predicted times,
 * their operations, the memory they hold.
 * @param {App} app
 * @param {ComparedPlans} compared
 * @returns {string[][]} */
export function predictions(app, { predicted_s, bytes, operations }) {
  const { runs } = app.record.plan;
  const times = runs.map(({ like }) => runs[like].predicted_s);
  const now = times.includes(null) ? null : times.reduce((sum, s) => Number(sum) + Number(s), 0);
  const text = (/** @type {number | null} */ s) => (s === null ? "" : `~${secondsText(s)}`);
  return [text(predicted_s), text(now)].map((time, k) => [
    time,
    `${countText(operations[k])} operations`,
    bytesText(bytes[k]),
  ]);
}

/** The choices that a value offers, folded; they are asked for when they are unfolded.
 * @param {App} app
 * @param {number} node */
export function choiceOffers(app, node) {
  const isOpen = UNFOLDED.has(app);
  if (isOpen) askFor(app, node);
  const offered = offersOf(app, node);
  const fold = () => {
    isOpen ? UNFOLDED.delete(app) : UNFOLDED.add(app);
    app.changed("choices");
  };
  return h(
    "div",
    { class: "wb-plan-offers" },
    button(app, "choose by hand", fold, {
      python: true,
      pressed: isOpen,
      name: "offers",
      title: "what else this value allows, each with what is predicted of the plan",
    }),
    !isOpen || !canAsk(app)
      ? null
      : offered
      ? offerRows(app, node, offered)
      : h("p", { class: "wb-quiet", role: "status" }, "predicting …"),
  );
}

/** The offers of a value, or one number of partial results; null: they are not known yet.
 * @param {App} app
 * @param {number} node
 * @param {number} parts */
const offersOf = (app, node, parts = 0) =>
  OFFERS.get(app.record.plan)?.get(`${node} ${parts}`) ?? null;

/** Ask for the offers of a value, or for one number of partial results, once.
 * @param {App} app
 * @param {number} node
 * @param {number} parts */
function askFor(app, node, parts = 0) {
  const { plan } = app.record;
  const offers = OFFERS.get(plan) ?? new Map();
  OFFERS.set(plan, offers);
  const key = `${node} ${parts}`;
  if (!canAsk(app) || offers.has(key)) return;
  offers.set(key, null);
  app.ask({ do: "choices", node, parts }).then(
    ({ result }) => offers.set(key, result),
    () => offers.delete(key),
  ).finally(() => app.changed("choices"));
}

/** now  3 kernels, 52 µs, 513 KiB; and a row for each choice.
 * @param {App} app
 * @param {number} node
 * @param {OfferedChoices} offered */
function offerRows(app, node, { offers, now, most_parts }) {
  const possible = offers.filter(({ forecast }) => forecast);
  const refused = offers.filter(({ forecast }) => !forecast);
  return h(
    "div",
    {},
    h("p", { class: "wb-quiet", "data-term": "predicted plan" }, `now ${forecastText(now)}`),
    h(
      "ul",
      {},
      ...possible.map((offer, place) => offerRow(app, offer, place)),
      most_parts > 1 && partsRow(app, node, most_parts),
      ...refused.map(({ title, refused: why }) =>
        h(
          "li",
          { class: "wb-quiet" },
          h("s", {}, recordText(title, "", 120)),
          recordText(` ${why}`, "", 400),
        )
      ),
    ),
  );
}

/**
 * @param {App} app
 * @param {ChoiceOffer} offer
 * @param {number} place */
function offerRow(app, { title, node, forecast, kind, store, others, parts, undo }, place) {
  return h(
    "li",
    {},
    button(app, title, () => replan(app, node, { kind, store, others, parts, undo }), {
      python: true,
      name: `offer-${place}`,
      title: "plan again with this choice, and compare both plans",
    }),
    forecast && h("span", { class: "wb-quiet" }, forecastText(forecast)),
  );
}

/** @param {PlanForecast} forecast */
const forecastText = ({ kernels, seconds, bytes }) =>
  [
    plural(kernels, "kernel"),
    seconds !== null && `~${secondsText(seconds)}`,
    `at most ${bytesText(bytes)}`,
  ].filter(Boolean).join(", ");

/** A field for another number of partial results, with what is predicted of it.
 * @param {App} app
 * @param {number} node
 * @param {number} most */
function partsRow(app, node, most) {
  const said = h("span", { class: "wb-quiet", role: "status" });
  const field = h("input", {
    type: "number",
    class: "wb-field wb-plan-parts",
    min: "2",
    max: String(most),
    value: PARTS.get(app) ?? "3",
    "aria-label": "partial results",
    "data-key": "parts",
    onchange: () => predict(),
  });
  const predict = () => {
    PARTS.set(app, field.value);
    const parts = Math.trunc(Number(field.value));
    if (!(parts > 0)) return refill(said, "a whole number, 2 or more");
    askFor(app, node, parts);
    const offer = offersOf(app, node, parts)?.offers[0];
    refill(
      said,
      !offer ? "predicting …" : offer.forecast ? forecastText(offer.forecast) : offer.refused,
    );
  };
  if (PARTS.has(app)) predict();
  const split = () => replan(app, node, { kind: "split", parts: Number(field.value) });
  return h(
    "li",
    {},
    field,
    button(app, "partial results", split, {
      python: true,
      name: "split",
      title: `split it into so many, 2 to ${most}`,
    }),
    said,
  );
}
