// Plan: the tensor graph with kernels as coloured regions and bytes on the lines that are cut, and
// beside it, in words, why it is cut there (why.js); every decision can be tried the other way.

import { failure, hasAny } from "../../app/pieces.js";
import { nodeLink, NOTHING } from "../../app/store.js";
import { elementsOf, h, refill } from "../../base/elements.js";
import { focusItem } from "../../base/lists.js";
import { GraphView } from "../../graph/view.js";
import { planBefore } from "./compared.js";
import { planList } from "./decisions.js";
import { planDrawing, planFirst, planLit } from "./drawing.js";
import { copyPlan } from "./copy.js";
import { planDetail } from "./why.js";

/** @import { PlanNode } from "../../record.d.ts" */
/** @import { Changes, PanelRow } from "../../types.d.ts" */
/** @import { App } from "../../app/store.js" */

/** @satisfies {PanelRow} */
export const panel = { place: "middle", order: 3, title: "Plan", make: modePlan };

/** What is shown: stored values only, the nodes that are drawn, the kernel whose reasons are said.
 * @typedef {{
 *   storedOnly: boolean, drawn: PlanNode[] | null, kernel: number | null, isOpen: boolean
 * }} PlanState
 * @param {App} app */
function modePlan(app) {
  const detail = h("div", { class: "wb-pane wb-plan-detail" });
  const side = h("div", { class: "wb-pane wb-plan-side" });
  const [failed, before] = [h("div", {}), h("div", { class: "wb-plan-was" })];
  /** @type {PlanState} */
  const state = { storedOnly: true, drawn: null, kernel: null, isOpen: false };
  /** Say why a kernel begins and ends where it does; null: why there are several. */
  const tellOf = (/** @type {number | null} */ kernel) => {
    state.kernel = kernel;
    app.select({ ...NOTHING, ...(kernel === null ? {} : { kernel }) });
    app.changed("reason");
  };
  const graph = planGraph(app, tellOf);
  const aside = h("div", { class: "wb-plan-aside" }, failed, before, detail, side);
  const el = h("div", { class: "wb-plan" }, h("div", { class: "wb-plan-main" }, graph.el), aside);

  const update = (/** @type {Changes} */ changes) => {
    if (changes.has("kernel") && state.isOpen) state.kernel = app.view.kernel;
    state.isOpen = true;
    updateGraph(app, graph, state, changes);
    if (hasAny(changes, "record", "failure")) refill(failed, failure(app, "plan"));
    if (hasAny(changes, "record", "live", "pending")) refill(before, planBefore(app));
    if (hasAny(changes, "record", "node", "kernel", "live", "pending", "reason")) {
      refill(detail, ...planDetail(app, state.kernel, tellOf));
    }
    if (hasAny(changes, "node", "kernel", "reason")) detail.scrollTop = 0;
    if (hasAny(changes, "record", "node", "kernel", "stored")) {
      refill(side, ...planList(app, state, () => update(new Set(["stored"]))));
    }
  };
  const focus = () => {
    const item = elementsOf(aside, '[aria-selected="true"]')[0] ??
      elementsOf(aside, "[data-item]")[0];
    focusItem(item?.closest("[data-walk]"), item);
  };
  const keys = {
    f: () => graph.fit(),
    "/": () => graph.field.focus(),
    y: () => copyPlan(app),
  };
  return { el, update, focus, keys };
}

/**
 * @param {App} app
 * @param {(kernel: number | null) => void} tellOf */
function planGraph(app, tellOf) {
  const graph = new GraphView("plan", {
    node: (node) => app.select({ node: node.n }),
    edge: (edge) => app.select({ node: app.record.plan.nodes[edge.a].n }),
    region: ({ kernel }) => tellOf(kernel),
    hover: (node) => app.light(node && nodeLink(node.n)),
    open: ({ kernel }) => app.select({ ...(kernel == null ? {} : { kernel, mode: "tune" }) }),
  });
  graph.el.classList.add("wb-g-tall");
  return graph;
}

/**
 * @param {App} app
 * @param {GraphView} graph
 * @param {PlanState} state
 * @param {Changes} changes */
function updateGraph(app, graph, state, changes) {
  const { plan } = app.record;
  const isDrawnAnew = state.drawn !== plan.nodes;
  if (changes.has("theme")) graph.repaint();
  if (isDrawnAnew) {
    state.drawn = plan.nodes;
    graph.el.hidden = !plan.nodes.length;
    if (plan.nodes.length) graph.show(planDrawing(app.record), planFirst(plan));
  }
  if (isDrawnAnew || hasAny(changes, "node")) {
    const place = plan.nodes.findIndex((node) => node.n === app.view.node);
    if (place < 0) graph.pick(null);
    else graph.lookAt(place);
  }
  if (changes.has("hover")) graph.light(planLit(app));
}
