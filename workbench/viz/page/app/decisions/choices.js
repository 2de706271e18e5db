// The numbers behind a decision: the readers of the value, and the cost of each way to compute it.

import { linked } from "../links.js";
import { nodeLink } from "../store.js";
import { h, words } from "../../base/elements.js";
import { planFigure } from "../../base/text.js";
import { readersOf } from "../../record/film.js";

/** @import { DecisionRow } from "../../record.d.ts" */
/** @import { App } from "../store.js" */

const MOST_READERS = 8;

/** The values that read one, as buttons.
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
        }, words(`${reader.label} ${nodes.shape[reader.n]}`, "", 40)),
        nodeLink(reader.n),
      )
    ),
    more > 0 && h("span", { class: "wb-quiet" }, `and ${more} more`),
  );
}

/** What was compared, a bar each: the shortest was chosen, unless the reason says otherwise.
 * @param {DecisionRow} decision */
export function choiceBars({ choices }) {
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
