// The selected node: its properties, its history, its values, and why a rule did not fire on it.

import { headingOf, nodeLines } from "../../../app/pieces.js";
import { h } from "../../../base/elements.js";
import { ancestors } from "../../../record/history.js";
import { passesOf } from "../../../record/passes.js";
import { timelineOf } from "../../../record/states.js";
import { inline } from "../../../record/words.js";
import { historyBox } from "./history.js";
import { valuesBox } from "./values.js";
import { whyNotBox } from "./why_not.js";

/** @import { NodeColumns } from "../../../record.d.ts" */
/** @import { App } from "../../../app/store.js" */
/** @import { State, Timeline } from "../../../record/states.js" */
/** @import { RewritesState } from "../state.js" */

/**
 * @param {App} app
 * @param {number} place
 * @param {number} step
 * @param {RewritesState} state */
export function nodePanel(app, place, step, state) {
  const n = app.view.node;
  if (n === null) return null;
  const timeline = timelineOf(app.record, app.record.passes[place]);
  const { nodes } = timeline;
  const stateNow = timeline.state(step);
  const here = nodeInState(app, timeline, stateNow, n);
  const users = stateNow?.users.get(here);
  const own = timeline.real(here);
  return h(
    "section",
    { class: "wb-rw-node", "aria-label": "the picked node" },
    headingOf(
      nodes.op[here],
      `${nodes.op[here]} #${own}`,
      h("span", { class: "wb-quiet" }, kindText(nodes, here)),
      ...nodeLines(app, n),
      h("button", {
        class: "wb-button",
        type: "button",
        "aria-label": "close",
        title: "Esc",
        onclick: () => app.select({ node: null }),
      }, "×"),
    ),
    h("pre", {}, inline(nodes, here, 160, 4)),
    otherState(nodes, n, own, !stateNow || stateNow.users.has(here)),
    nodeLinks(app, timeline, "from", nodes.src[here]),
    users && nodeLinks(app, timeline, "read by", [...new Set(users)]),
    historyBox(app, n),
    valuesBox(app, own, place, step, state),
    whyNotBox(app, own, place, step, state),
  );
}

/** @type {(nodes: NodeColumns, n: number) => string} */
const kindText = (nodes, n) => [nodes.shape[n], nodes.dtype[n]].filter(Boolean).join(" ");

/** Where the picked node is not in the state that is shown: what of that state becomes it, or that
 * there is none.
 * @param {NodeColumns} nodes
 * @param {number} n
 * @param {number} own
 * @param {boolean} isThere */
function otherState(nodes, n, own, isThere) {
  const name = `${nodes.op[n]} #${n} ${kindText(nodes, n)}`;
  if (!isThere) return h("p", { class: "wb-quiet" }, "It is not in the state that is shown.");
  return own === n ? null : h("p", { class: "wb-quiet" }, `It becomes ${name}, which was picked.`);
}

/**
 * @param {App} app
 * @param {Timeline} timeline
 * @param {string} title
 * @param {number[]} listed */
function nodeLinks(app, timeline, title, listed) {
  if (!listed.length) return null;
  const shown = listed.slice(0, 12).map((n) =>
    h("button", {
      class: "wb-button",
      type: "button",
      title: inline(timeline.nodes, n),
      onclick: () => app.select({ node: timeline.real(n) }),
    }, timeline.nodes.label[n])
  );
  return h(
    "div",
    { class: "wb-rw-links" },
    h("span", { class: "wb-quiet" }, title),
    ...shown,
    listed.length > 12 && `and ${listed.length - 12} more`,
  );
}

/** Return the node of a state that `n` is, or comes from.
 * @param {App} app
 * @param {Timeline} timeline
 * @param {State | null} state
 * @param {number} n */
function nodeInState(app, timeline, state, n) {
  if (!state) return n;
  const byReal = new Map(state.order.map((m) => [timeline.real(m), m]));
  for (const was of ancestors(app.record, passesOf(app), [n])) {
    const now = byReal.get(was);
    if (now !== undefined) return now;
  }
  return n;
}
