// Plan, as three panes: the tensor graph with kernels as coloured regions and bytes on the cut lines;
// the reasons in words (why.js), with the previous plan; the decisions, each of which can be
// reversed.

import { act } from "../../app/actions.js";
import { valueDifference } from "../../app/beside.js";
import { linked } from "../../app/links.js";
import { button, failure, hasAny } from "../../app/pieces.js";
import { NO_SELECTION, nodeLink } from "../../app/store.js";
import { BUSY } from "../../app/timing.js";
import { elementsOf, h, recordText, refill, scrollBack } from "../../base/elements.js";
import { focusItem } from "../../base/lists.js";
import { plural, secondsText } from "../../base/text.js";
import { litValues, planDrawing, planFirst, planLit } from "../../graph/plan_drawing.js";
import { GraphView } from "../../graph/view.js";
import { decidedAt, readersOf } from "../../record/film.js";
import { choicesLine, predictions } from "./by_hand.js";
import { copyPlan, fillDecisions, showPicked } from "./decisions.js";
import { Film } from "./film.js";
import { Levels } from "./levels.js";
import { planDetail } from "./why.js";

/** @import { Pairing } from "../../app/beside.js" */
/** @import { App } from "../../app/store.js" */
/** @import { Drawing, GraphNode } from "../../graph/graph.d.ts" */
/** @import { DecisionRow, PlanNode } from "../../record.d.ts" */
/** @import { Changes, PanelRow } from "../../types.d.ts" */

/** @satisfies {PanelRow} */
export const panel = {
  place: "pane",
  order: 3,
  panes: [
    { name: "plan", title: "Plan", make: planPane },
    { name: "reasons", title: "Reasons", make: reasonsPane },
    { name: "decisions", title: "Decisions", make: decisionsPane },
  ],
};

/** The state of the panel: stored values only, copies, the drawn nodes and the number of decisions,
 * the kernel whose reasons are shown, the folded plan, the unfolded rows of equal decisions, the
 * filters of the list, and the pairs with the plan beside this one that are marked.
 * @typedef {{
 *   storedOnly: boolean, copies: boolean, unfolded: Set<string>, listed: DecisionRow[] | null,
 *   listedAs: string, drawn: PlanNode[] | null, decided: number, kernel: number | null,
 *   isOpen: boolean, folded: Drawing | null, marked: Pairing | null
 * }} PlanState */

/** @type {Omit<PlanState, "unfolded">} */
const START = {
  storedOnly: true,
  copies: false,
  listed: null,
  listedAs: "",
  drawn: null,
  decided: Infinity,
  kernel: null,
  isOpen: false,
  folded: null,
  marked: null,
};

/** What the panes of the plan share: their state, the level of detail, the film of decisions, and the
 * graph, once there is one.
 * @typedef {{state: PlanState, levels: Levels, film: Film, graph?: GraphView}} Plan */

/** @type {WeakMap<App, Plan>} */
const PLANS = new WeakMap();

/** @param {App} app
 * @returns {Plan} */
function planOf(app) {
  const plan = PLANS.get(app) ?? {
    state: { ...START, unfolded: new Set() },
    levels: new Levels(app),
    film: new Film(app),
  };
  PLANS.set(app, plan);
  return plan;
}

/** The tensor graph, and below it the film of the scheduler's decisions.
 * @param {App} app */
function planPane(app) {
  const plan = planOf(app);
  const { state, levels, film } = plan;
  const showKernel = (/** @type {number | null} */ kernel) => showKernelIn(app, state, kernel);
  const graph = planGraph(app, levels, state, showKernel);
  plan.graph = graph;
  const el = h("div", { class: "wb-plan wb-plan-main" }, graph.el, film.el);
  const update = (/** @type {Changes} */ changes) => {
    film.update(changes);
    if (hasAny(changes, "record", "levels")) levels.update();
    updateGraph(app, graph, film, levels, state, changes);
  };
  const keys = {
    f: () => graph.fit(),
    "/": () => graph.field.focus(),
    y: () => copyPlan(app),
    ...film.keys,
    ...levels.keys,
  };
  return { el, update, keys };
}

/** Why there are several kernels, or why one begins and ends where it does, or a value is stored;
 * over it, what another plan has changed.
 * @param {App} app */
function reasonsPane(app) {
  const { state } = planOf(app);
  const showKernel = (/** @type {number | null} */ kernel) => showKernelIn(app, state, kernel);
  const detail = h("div", { class: "wb-pane wb-plan-detail" });
  const [failed, before] = [h("div", {}), h("div", { class: "wb-plan-was" })];
  const el = h("div", { class: "wb-plan wb-plan-reasons" }, failed, before, detail);
  const update = (/** @type {Changes} */ changes) => {
    if (changes.has("kernel") && state.isOpen) state.kernel = app.view.kernel;
    state.isOpen = true;
    if (hasAny(changes, "record", "failure")) refill(failed, failure(app, "plan"));
    if (hasAny(changes, "record", "live", "pending")) {
      refill(before, planBefore(app), choicesLine(app, () => showKernel(null)));
    }
    if (hasAny(changes, "record", "node", "kernel", "live", "pending", "reason", "choices")) {
      refill(detail, ...planDetail(app, state.kernel, showKernel));
    }
    if (hasAny(changes, "node", "kernel", "reason")) scrollBack(el);
  };
  const focus = () => focusIn(detail);
  return { el, update, focus };
}

/** The scheduler's decisions; in the film those of its steps.
 * @param {App} app */
function decisionsPane(app) {
  const { state, film } = planOf(app);
  const el = h("div", { class: "wb-pane wb-plan wb-plan-side" });
  const update = (/** @type {Changes} */ changes) => {
    if (!hasAny(changes, "record", "node", "kernel", "stored", "step", "beside")) return;
    if (changes.has("record")) state.listed = null;
    const shown = film.at ? film.decisions.map((step) => step.decision) : null;
    fillDecisions(app, el, state, shown, () => update(new Set(["stored"])));
    if (hasAny(changes, "node", "step")) showPicked(el);
  };
  const focus = () => focusIn(el);
  return { el, update, focus, keys: { y: () => copyPlan(app) } };
}

/** Give the focus to the selected row of a pane, else to its first.
 * @param {HTMLElement} pane */
function focusIn(pane) {
  const item = elementsOf(pane, '[aria-selected="true"]')[0] ?? elementsOf(pane, "[data-item]")[0];
  focusItem(item?.closest("[data-walk]"), item);
}

/** Show why a kernel begins and ends at its cuts; null: why there are several kernels.
 * @param {App} app
 * @param {PlanState} state
 * @param {number | null} kernel */
function showKernelIn(app, state, kernel) {
  state.kernel = kernel;
  app.select({ ...NO_SELECTION, ...(kernel === null ? {} : { kernel }) });
  app.changed("reason");
}

/**
 * @param {App} app
 * @param {Levels} levels
 * @param {PlanState} state
 * @param {(kernel: number | null) => void} showKernel */
function planGraph(app, levels, state, showKernel) {
  const graph = new GraphView("plan", {
    node: ({ n, unit, kernel }) => {
      if (unit === undefined) return app.select({ node: n });
      showKernel(kernel ?? null);
      levels.unfold(unit);
    },
    edge: ({ a, values }) => app.select({ node: values?.[0] ?? app.record.plan.nodes[a].n }),
    region: ({ kernel, fold }) => (fold === undefined ? showKernel(kernel) : levels.fold(fold)),
    resize: () => app.changed("levels"),
    find: (query) => (state.folded ? levels.find(query) : null),
    hover: (node) => app.light(node && nodeLink(node.n)),
    open: ({ kernel }) =>
      app.select({
        ...(kernel == null ? {} : { kernel, ...app.arrangements.toSee("loops", "tune") }),
      }),
  });
  graph.el.classList.add("wb-g-tall");
  graph.tools.prepend(levels.el);
  return graph;
}

/**
 * @param {App} app
 * @param {GraphView} graph
 * @param {Film} film
 * @param {Levels} levels
 * @param {PlanState} state
 * @param {Changes} changes */
function updateGraph(app, graph, film, levels, state, changes) {
  const { plan } = app.record;
  const isFilm = film.at > 0 && plan.nodes.length > 0; // it is about values, if they are drawn
  const isFolded = levels.isFolded && !isFilm;
  if (changes.has("theme")) graph.repaint();
  graph.pairWith((app.values && app.partner && PLANS.get(app.partner)?.graph) ?? null);
  const isDrawnAnew = isFolded
    ? showFolded(app, graph, levels, state)
    : showValues(app, graph, film, state);
  if (isFolded) {
    if (isDrawnAnew) graph.pick(levels.picked());
    if (hasAny(changes, "node", "kernel")) graph.lookAt(levels.picked() ?? "");
    if (isDrawnAnew || hasAny(changes, "hover", "node", "picked")) {
      graph.light(levels.lit(), litValues(app));
    }
    return;
  }
  const place = plan.nodes.findIndex((node) => node.n === app.view.node);
  if (isDrawnAnew || hasAny(changes, "node")) {
    if (place < 0) graph.pick(null);
    else graph.lookAt(place);
  }
  if (!isDrawnAnew && !hasAny(changes, "hover", "node", "picked")) return;
  const isLooking = !app.hover && film.at > 0 && place >= 0; // the readers of the decided value
  graph.light(isLooking ? new Set(readersOf(plan, place)) : planLit(app), litValues(app));
}

/** Show all values; return whether the drawing changed.
 * @param {App} app
 * @param {GraphView} graph
 * @param {Film} film
 * @param {PlanState} state */
function showValues(app, graph, film, state) {
  const { plan } = app.record;
  const isOther = state.drawn !== plan.nodes;
  const decided = decidedAt(film.film, film.at);
  const isOtherPair = state.marked !== app.values;
  if (!isOther && state.decided === decided && !isOtherPair) return false;
  Object.assign(state, { drawn: plan.nodes, decided, folded: null, marked: app.values });
  graph.el.hidden = !plan.nodes.length;
  const drawing = withDifferences(app, planDrawing(app.record, decided), ({ n }) => [n]);
  if (plan.nodes.length) {
    graph.show(drawing, openingWish(graph, isOtherPair) ?? (isOther ? planFirst(plan) : null));
  }
  return true;
}

/** Show the kernels, folded; return whether the drawing changed.
 * @param {App} app
 * @param {GraphView} graph
 * @param {Levels} levels
 * @param {PlanState} state */
function showFolded(app, graph, levels, state) {
  const { drawing, wish } = levels.drawing(graph.camera.size);
  const isOtherPair = state.marked !== app.values;
  if (state.folded === drawing && !isOtherPair) return false;
  const keys = drawing.nodes.map(({ key }) => key);
  const whole = state.folded ? null : { keys, first: keys.slice(0, 2), whole: true };
  Object.assign(state, { drawn: null, folded: drawing, marked: app.values });
  graph.el.hidden = false;
  const { decisions } = app.record.plan;
  const valuesOf = (/** @type {GraphNode} */ node) => {
    if (node.unit === undefined) return [node.n];
    const kernels = levels.kernelsOf(node.unit);
    return decisions.filter((d) => kernels.includes(d.kernel ?? -1)).map((d) => d.node);
  };
  const opening = openingWish(graph, isOtherPair);
  graph.show(withDifferences(app, drawing, valuesOf), opening ?? wish ?? whole);
  return true;
}

/** How two plans that stand beside each other are shown at first.
 * @param {GraphView} graph
 * @param {boolean} isOtherPair
 * @returns {"start" | null} */
const openingWish = (graph, isOtherPair) => isOtherPair && graph.isPaired ? "start" : null;

/** A drawing with a mark on each box that has a value which differs from the plan beside it.
 * @param {App} app
 * @param {Drawing} drawing
 * @param {(node: GraphNode) => number[]} valuesOf
 * @returns {Drawing} */
function withDifferences(app, drawing, valuesOf) {
  if (!app.values) return drawing;
  const { alone } = app.values;
  const lone = app.comparison?.column ? "new" : "gone";
  const nodes = drawing.nodes.map((node) => {
    const values = node.state === "kept" ? valuesOf(node) : [];
    const words = values.flatMap((n) => valueDifference(app, n) || []);
    if (!words.length) return node;
    const isAlone = values.every((n) => alone.has(n));
    /** @type {GraphNode} */
    const marked = { ...node, state: isAlone ? lone : "changed", sign: words[0] };
    return marked;
  });
  return { ...drawing, nodes };
}

// This plan compared with the previous one: kernels, time, and other changed cuts.

const MOST_MOVED = 3; // that are shown; the list of decisions has all

/** @param {App} app */
function planBefore(app) {
  const { compared, decisions } = app.record.plan;
  if (!compared) return null;
  const { kernels, seconds, busy_s = null, verdict, moved } = compared;
  const timed = seconds !== null;
  const predicted = predictions(app, compared);
  /** @type {(name: string, k: 0 | 1) => HTMLElement[]} */
  const row = (name, k) => [
    h("b", {}, name),
    h("span", {}, plural(kernels[k], "kernel")),
    ...predicted[k].map((text) => h("span", { class: "wb-figure wb-quiet" }, text)),
    seconds || !busy_s
      ? h("span", { class: "wb-figure" }, seconds ? secondsText(seconds[k]) : "")
      : h(
        "span",
        { class: "wb-figure wb-stale", "data-term": BUSY },
        `${secondsText(busy_s[k])} ${BUSY}`,
      ),
  ];
  const hint =
    "~ predicted, the operations of the kernels, the most memory that is held, then measured: the sum of the kernels' times with the default opts, each warm; both plans in turns, in one run";
  return h(
    "div",
    { class: "wb-plan-before", role: "status", "data-term": "before, now" },
    h("div", { class: "wb-plan-pair", title: hint }, ...row("before", 0), ...row("now", 1)),
    h(
      "div",
      { class: "wb-plan-told" },
      timed
        ? h("b", { class: "wb-plan-verdict" }, verdict)
        : h("span", { class: "wb-quiet" }, verdict || "not timed yet"),
      ...timePlans(app, timed || busy_s !== null),
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

/** The new decision about another value, and its reason: the reader did not request it.
 * @param {App} app
 * @param {DecisionRow} decision */
function movedItem(app, { node, name, stored, reason }) {
  const go = h("button", {
    class: "wb-button",
    type: "button",
    "data-key": `moved-${node}`,
    onclick: () => app.select({ node }),
  }, recordText(name, "", 40));
  return linked(
    h(
      "p",
      {},
      go,
      stored ? " is stored now: " : " is no longer stored: ",
      recordText(reason, "", 300),
    ),
    nodeLink(node),
  );
}
