// A decision of the scheduler: its reason, its numbers (the readers of the value, the cost of each
// way to compute it), and the alternative to try.

import { h, recordText } from "../base/elements.js";
import { planFigure } from "../base/text.js";
import { readersOf } from "../record/film.js";
import { lostVariant } from "../record/variants.js";
import { act, canAsk, NEEDS_PYTHON, notify } from "./actions.js";
import { linked } from "./links.js";
import { button } from "./pieces.js";
import { NO_SELECTION, nodeLink, rowAt } from "./store.js";

/** @import { DecisionRow, RecordedPass, ReplanRequest } from "../record.d.ts" */
/** @import { App } from "./store.js" */

/** Plan again with a choice by hand (node null: without all), and show the same value in the new
 * plan, where values have other numbers.
 * @param {App} app
 * @param {number | null} node
 * @param {Partial<ReplanRequest>} choice */
export async function replan(app, node, choice) {
  const mode = app.arrangements.shows("plan") ? "plan" : "rewrites"; // where it was asked for
  const { record: was, view: { variant } } = app;
  if (!(await act(app, mode, { do: "replan", node, ...choice }))) return;
  const { plan, passes } = app.record;
  const lost = lostVariant(was, app.record, variant);
  if (lost) notify(app, lost, 6000);
  const place = plan.compared?.change;
  if (place === null) return app.select(NO_SELECTION); // the new plan has no decision about it
  const now = rowAt(plan.decisions, place)?.node;
  if (now === undefined) return;
  if (mode === "plan") return app.select({ node: now });
  const stepOf = (/** @type {RecordedPass} */ { unit, rewrites }) =>
    unit === "decision" ? rewrites.findIndex(([, before]) => before === now) : -1;
  const pass = passes.findIndex((p) => stepOf(p) >= 0);
  if (pass >= 0) app.select({ pass, step: stepOf(passes[pass]) + 1 });
}

/** A decision's reason and numbers, with the button that tries the alternative.
 * @param {App} app
 * @param {DecisionRow} decision
 * @param {HTMLElement | null} [more] what else can be tried */
export function decisionParts(app, decision, more = null) {
  const estimates = decision.estimates.map(([name, value]) =>
    h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, planFigure(value)))
  );
  return [
    h(
      "p",
      { class: "wb-reason", "data-term": decision.stored ? "stored" : "fused" },
      recordText(decision.reason, "", 600),
      decision.forced && h("b", {}, " (forced by you)"),
    ),
    h("div", { class: "wb-try" }, ...planButtons(app, decision)),
    more,
    choiceBars(decision),
    h("p", {}, decision.costs),
    estimates.length > 0 &&
    h(
      "table",
      { class: "wb-figures", "data-term": "reads, evaluations, elements" },
      h("tbody", {}, ...estimates),
    ),
  ];
}

/**
 * @param {App} app
 * @param {DecisionRow} decision */
function planButtons(app, decision) {
  const { node, stored, forced } = decision;
  const turn = (/** @type {boolean | null} */ to) => () => replan(app, node, { store: to });
  const waits = app.pending("replan");
  if (decision.is_requested) return []; // it is stored at any cost
  if (waits) return [h("span", { class: "wb-quiet", role: "status" }, "planning again …")];
  const title = "plan again with the opposite decision, and time it";
  return [
    forced
      ? button(app, "undo", turn(null), {
        python: true,
        title: "leave it to the scheduler again",
        name: "replan-undo",
      })
      : button(app, stored ? "fuse anyway" : "cut here", turn(!stored), {
        python: true,
        title,
        name: "replan",
      }),
    !canAsk(app) && h("span", { class: "wb-quiet" }, NEEDS_PYTHON),
  ];
}

// The numbers behind a decision: the readers of the value, and the cost of each way to compute it.

const MOST_READERS = 8;

/** The readers of a value, as buttons.
 * @param {App} app
 * @param {number} n */
export function readersLine(app, n) {
  const { plan, nodes } = app.record;
  const place = plan.nodes.findIndex((node) => node.n === n);
  const readers = place < 0 ? [] : readersOf(plan, place).map((at) => plan.nodes[at]);
  if (!readers.length) return null;
  const more = readers.length - MOST_READERS;
  return h(
    "div",
    { class: "wb-readers" },
    h("span", { class: "wb-quiet", title: "the values that are computed from it" }, "read by"),
    ...readers.slice(0, MOST_READERS).map((reader) =>
      linked(
        h("button", {
          class: "wb-button",
          type: "button",
          "data-key": `reader-${reader.n}`,
          title: "a value that reads it",
          onclick: () => app.select({ node: reader.n }),
        }, recordText(`${reader.label} ${nodes.shape[reader.n]}`, "", 40)),
        nodeLink(reader.n),
      )
    ),
    more > 0 && h("span", { class: "wb-quiet" }, `and ${more} more`),
  );
}

/** A bar for each compared cost: the shortest was chosen, unless the reason says otherwise.
 * @param {DecisionRow} decision */
function choiceBars({ choices }) {
  if (choices.length < 2) return null;
  const most = Math.max(...choices.map(({ cost }) => cost), 1);
  return h(
    "ul",
    {
      class: "wb-choice-bars",
      title: "estimated cost, in operations, beyond computing each element once",
    },
    ...choices.map(({ text, cost, wins }) =>
      h(
        "li",
        { class: wins ? "wb-chosen" : "" },
        h("span", {}, wins ? `✓ ${text}` : text),
        h("b", { class: "wb-figure" }, planFigure(cost)),
        h("i", { style: `width:${((100 * cost) / most).toFixed(1)}%` }),
      )
    ),
  );
}
