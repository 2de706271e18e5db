// This plan compared with the previous one: kernels, time, and other changed cuts.

import { act } from "../../app/actions.js";
import { linked } from "../../app/links.js";
import { button } from "../../app/pieces.js";
import { nodeLink } from "../../app/store.js";
import { h, words } from "../../base/elements.js";
import { plural, secondsText } from "../../base/text.js";

/** @import { DecisionRow } from "../../record.d.ts" */
/** @import { App } from "../../app/store.js" */

const MOST_MOVED = 3; // that are told of; the list of decisions has all

/** @param {App} app */
export function planBefore(app) {
  const { compared, decisions } = app.record.plan;
  if (!compared) return null;
  const { kernels, seconds, verdict, moved } = compared;
  const timed = seconds !== null;
  /** @type {(name: string, k: 0 | 1) => HTMLElement[]} */
  const row = (name, k) => [
    h("b", {}, name),
    h("span", {}, plural(kernels[k], "kernel")),
    h("span", { class: "wb-figure" }, seconds ? secondsText(seconds[k]) : ""),
  ];
  const hint =
    "with the default opts: the sum of the kernels' times, each warm; both plans in turns, in one run";
  return h(
    "div",
    { class: "wb-plan-before", role: "status", "data-term": "before, now" },
    h("div", { class: "wb-plan-pair", title: hint }, ...row("before", 0), ...row("now", 1)),
    h(
      "div",
      { class: "wb-plan-told" },
      timed
        ? h("b", { class: "wb-plan-verdict" }, verdict)
        : h("span", { class: "wb-quiet" }, "not timed yet"),
      ...timePlans(app, timed),
    ),
    kernels[0] === kernels[1] &&
      h("p", {}, `still ${plural(kernels[1], "kernel")}${moved.length ? ":" : "."}`),
    ...moved.slice(0, MOST_MOVED).map((place) => movedItem(app, decisions[place])),
    moved.length > MOST_MOVED &&
      h("p", { class: "wb-quiet" }, `and ${moved.length - MOST_MOVED} more`),
  );
}

/**
 * @param {App} app
 * @param {boolean} timed */
function timePlans(app, timed) {
  if (app.pending("plans")) return [h("span", { class: "wb-quiet" }, "timing both …")];
  const title = "time the kernels of both plans, in turns";
  return [
    button(app, timed ? "again" : "time both", () => act(app, "plan", { do: "plans" }), {
      python: true,
      name: "time-plans",
      title,
    }),
  ];
}

/** What became of another value, and why: it was not asked for.
 * @param {App} app
 * @param {DecisionRow} decision */
function movedItem(app, { node, name, stored, reason }) {
  const go = h("button", {
    class: "wb-button",
    type: "button",
    "data-key": `moved-${node}`,
    onclick: () => app.select({ node }),
  }, words(name, "", 40));
  return linked(
    h("p", {}, go, stored ? " is stored now: " : " is no longer stored: ", words(reason, "", 300)),
    nodeLink(node),
  );
}
