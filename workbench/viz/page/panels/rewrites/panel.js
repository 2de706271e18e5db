// Rewrites, as three panes: the passes and their rewrites; the graph around the change, with a ghost
// of the replaced nodes; the rule with the texts before and after, and the picked node.

import { failAt } from "../../app/actions.js";
import { shownPairing } from "../../app/beside.js";
import { failure, hasAny, heading } from "../../app/pieces.js";
import { shownRule, stepUse } from "../../app/rule.js";
import { h, refill } from "../../base/elements.js";
import { focusItem, isAcross } from "../../base/lists.js";
import { stepPass } from "../../record/passes.js";
import { RewriteGraph } from "./graph.js";
import { copyStep, markStep, passTree, rewriteList } from "./pass_lists.js";
import { nodePanel } from "./node.js";
import { Growth, RewritesState } from "./position.js";
import { bisectAnswer, stepBar } from "./step_bar.js";
import { planButton, stepText } from "./step_text.js";

/** @import { Pairing } from "../../app/beside.js" */
/** @import { App } from "../../app/store.js" */
/** @import { Child } from "../../base/elements.d.ts" */
/** @import { Changes, Keys, PanelRow } from "../../types.d.ts" */

/** @satisfies {PanelRow} */
export const panel = {
  place: "pane",
  order: 1,
  panes: [
    { name: "graph", title: "Graph", make: (/** @type {App} */ app) => new StepGraph(app) },
    { name: "passes", title: "Passes", make: (/** @type {App} */ app) => new PassLists(app) },
    { name: "rewrite", title: "Rewrite", make: (/** @type {App} */ app) => new Rewrite(app) },
  ],
};

/** The position of each page, which its panes share.
 * @type {WeakMap<App, RewritesState>} */
const STATES = new WeakMap();

/** @param {App} app */
function stateOf(app) {
  const state = STATES.get(app) ?? new RewritesState(app);
  STATES.set(app, state);
  return state;
}

const POSITION = ["kernel", "variant", "pass", "step"];

/** The passes, and the rewrites of the current one. */
class PassLists {
  passes = h("div", { class: "wb-pane wb-rw-tree" });
  list = h("div", { class: "wb-pane wb-rw-steps" });
  #grown = new Growth();

  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.state = stateOf(app);
    this.filter = h("input", {
      type: "search",
      class: "wb-input",
      placeholder: "filter",
      "aria-label": "filter passes",
      oninput: ({ target }) => ((this.state.filter = target.value), app.changed("filter")),
    });
    const search = h(
      "div",
      { class: "wb-pane wb-rw-search" },
      heading("PASSES"),
      this.#filterRow(),
    );
    this.el = h("div", { class: "wb-rw wb-rw-side" }, search, this.passes, this.list);
    this.keys = rewritesKeys(this);
  }

  /** @param {Changes} changes */
  update(changes) {
    const { app, state } = this;
    const place = state.place();
    state.show(place);
    const isOther = this.#grown.hasGrown(app) || hasAny(changes, "kernel", "variant", "pass");
    if (isOther || hasAny(changes, "filter", "beside")) {
      refill(this.passes, passTree(app, state, place));
      refill(this.list, ...(place === null ? [] : rewriteList(app, state, place)));
    }
    if (place !== null && (isOther || hasAny(changes, "step", "record", "live", "filter"))) {
      markStep(this.list, state.step(place), isOther || changes.has("step"));
    }
  }

  focus() {
    for (const list of [this.list, this.passes]) {
      /** @type {HTMLElement | null} */
      const item = list.querySelector('[aria-selected="true"]');
      if (item) return focusItem(item.closest("[data-walk]"), item);
    }
  }

  #filterRow() {
    const { app, state } = this;
    return h(
      "div",
      { class: "wb-filter" },
      this.filter,
      h(
        "label",
        { "data-term": "unchanged" },
        h("input", {
          type: "checkbox",
          onchange: ({ target }) => ((state.showsIdle = target.checked), app.changed("filter")),
        }),
        "unchanged too",
      ),
    );
  }
}

/** The graph of the current step, and the bar that steps. */
class StepGraph {
  head = h("div", { class: "wb-rw-head" });
  bisected = h("div", { class: "wb-rw-found" });
  nothing = h("p", { class: "wb-quiet wb-pad" });
  #grown = new Growth();
  /** The pairs with the graph beside it that were drawn.
   * @type {Pairing | null} */
  #pairing = null;

  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.state = stateOf(app);
    this.graph = new RewriteGraph(app, this.state);
    this.el = h(
      "div",
      { class: "wb-rw wb-rw-main" },
      h("div", { class: "wb-rw-top" }, this.head, this.graph.view.tools),
      this.bisected,
      this.graph.el,
      this.nothing,
    );
    this.keys = {
      f: () => this.graph.fit(),
      g: () => this.state.draw(null),
      b: () => this.state.showAs(null),
      "/": () => this.graph.view.el.hidden ? false : this.graph.view.field.focus(),
    };
  }

  /** @param {Changes} changes */
  update(changes) {
    const { app, state, graph } = this;
    const place = state.place();
    const isOther = this.#grown.hasGrown(app) || hasAny(changes, ...POSITION);
    const pairing = shownPairing(app);
    const isOtherView = hasAny(changes, "drawn", "closed") || pairing !== this.#pairing;
    this.#pairing = pairing;
    if (changes.has("theme")) graph.repaint();
    if (hasAny(changes, "bisected", "variant", "pending bisect")) {
      refill(this.bisected, bisectAnswer(app));
    }
    if (place !== null && (isOther || isOtherView || hasAny(changes, "record", "live", "board"))) {
      refill(this.head, ...stepBar(app, state, place, state.step(place)));
    }
    if (place !== null && (isOther || isOtherView)) {
      state.isDrawn = graph.draw(place, isOtherView);
      refill(this.nothing, ...(state.isDrawn ? [] : this.#reason(place)));
    }
    if (place === null) refill(this.nothing, app.record.nothing || NO_PASS);
    if (place !== null && (isOther || hasAny(changes, "node", "drawn"))) graph.pick(isOther);
    if (isOther || isOtherView || hasAny(changes, "hover", "picked")) graph.light();
  }

  /** The reason why a step has no graph.
   * @param {number} place
   * @returns {Child[]} */
  #reason(place) {
    const { app, state } = this;
    const { unit, name, rewrites } = app.record.passes[place];
    const step = state.step(place);
    if (unit === "decision") {
      if (!app.record.kernels.length) {
        return ["Nothing is computed here: there is no plan to draw."];
      }
      const node = rewrites[step - 1]?.[1] ?? null;
      return [NO_PICTURE, planButton(app, node)];
    }
    return [
      step
        ? `The nodes of step ${step} of ${name} were not recorded.`
        : `${name} begins with what the pass before it left.`,
    ];
  }
}

const NO_PASS = "No pass is recorded.";
const NO_PICTURE =
  "No picture of all values is recorded: the plan is too large for one, or Python has not drawn it yet. Plan has the kernels and the reasons. ";

/** What is said of the current step: its rule, its texts, and the picked node. */
class Rewrite {
  text = h("div", { class: "wb-rw-said" });
  node = h("div", { class: "wb-rw-panel" });
  errors = h("div", { class: "wb-rw-failed-ask" });
  #grown = new Growth();

  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.state = stateOf(app);
    this.el = h("div", { class: "wb-rw wb-rw-details" }, this.errors, this.text, this.node);
  }

  /** @param {Changes} changes */
  update(changes) {
    const { app, state } = this;
    const place = state.place();
    const isOther = this.#grown.hasGrown(app) || hasAny(changes, ...POSITION);
    // an error belongs to the step at which the request was sent
    if (hasAny(changes, "kernel", "variant", "pass", "node")) failAt(app, "rewrites", null);
    if (changes.has("failure")) refill(this.errors, failure(app, "rewrites"));
    if (place === null) {
      return refill(this.text, h("p", { class: "wb-quiet" }, app.record.nothing || NO_PASS));
    }
    const step = state.step(place);
    // the button that tries an alternative shows that it is pending
    const isTried = changes.has("pending") && app.record.passes[place].unit === "decision";
    if (isOther || isTried || hasAny(changes, "record", "record texts", "live", "drawn", "board")) {
      refill(this.text, ...stepText(app, state, place, step));
    }
    const isPicked = app.view.node !== null;
    if ((isOther || hasAny(changes, "node", "live")) && (isPicked || this.node.firstChild)) {
      refill(this.node, nodePanel(app, place, step, state));
    }
  }
}

// The keys of Rewrites.

/** The objects on which keys act.
 * @typedef {{
 *   app: App, state: RewritesState, el: HTMLElement, list: HTMLElement, filter: HTMLInputElement
 * }} KeyTargets */

/** Keys of the passes. In lists other than that of the rewrites, arrows walk the list, and in those
 * of other panes j and k too.
 * @param {KeyTargets} targets
 * @returns {Keys} */
export function rewritesKeys({ app, state, el, list, filter }) {
  /** @type {(pane: HTMLElement, act: () => void) => Keys[string]} */
  const unlessOutside = (pane, act) => ({ target }) =>
    isInListOutside(target, pane) ? false : act();
  const letter = (/** @type {number} */ by) => unlessOutside(el, () => state.stepBy(by));
  const arrow = (/** @type {() => void} */ act) => unlessOutside(list, act);
  const [next, back] = [arrow(() => state.stepBy(1)), arrow(() => state.stepBy(-1))];
  return {
    j: letter(1),
    k: letter(-1),
    ArrowDown: next,
    ArrowRight: next,
    ArrowUp: back,
    ArrowLeft: back,
    Home: arrow(() => state.go(0)),
    End: arrow(() => state.go(state.count(state.place()))),
    h: () => stepPass(app, -1, state.place()),
    l: () => stepPass(app, 1, state.place()),
    "/": () => state.isDrawn && app.arrangements.shows("graph") ? false : filter.focus(),
    n: () => stepUse(app, shownRule(app), 1),
    N: () => stepUse(app, shownRule(app), -1),
    y: () => copyStep(app, state.place(), state.step(state.place())),
  };
}

/** Whether a key was pressed in a list outside of a pane.
 * @param {EventTarget | null} target
 * @param {HTMLElement} pane */
const isInListOutside = (target, pane) =>
  target instanceof Element && target.closest("[data-walk]") && !isAcross(target) &&
  !pane.contains(target);
