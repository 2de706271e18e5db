// Rewrites: the passes and their rewrites, each with its rule, the text before and after, and the
// graph around the change with a ghost of the replaced nodes.

import { failAt } from "../../app/actions.js";
import { divider } from "../../app/dividers.js";
import { failure, hasAny, heading } from "../../app/pieces.js";
import { shownRule, stepUse } from "../../app/rule.js";
import { h, refill } from "../../base/elements.js";
import { focusItem, isAcross } from "../../base/lists.js";
import { stepPass } from "../../record/passes.js";
import { RewriteGraph } from "./graph.js";
import { copyStep, markStep, passTree, rewriteList } from "./pass_lists.js";
import { nodePanel } from "./node.js";
import { RewritesState } from "./position.js";
import { bisectAnswer, stepBar } from "./step_bar.js";
import { stepText } from "./step_text.js";

/** @import { App } from "../../app/store.js" */
/** @import { Changes, Keys, PanelRow } from "../../types.d.ts" */

/** @satisfies {PanelRow} */
export const panel = {
  place: "middle",
  order: 2,
  title: "Rewrites",
  make: (/** @type {App} */ app) => new Rewrites(app),
  needsWidth: true,
  aside: { title: "Passes", has: "passes and rewrites" },
};

class Rewrites {
  passes = h("div", { class: "wb-pane wb-rw-tree" });
  list = h("div", { class: "wb-pane wb-rw-steps" });
  head = h("div", { class: "wb-rw-head" });
  text = h("div", { class: "wb-rw-said" });
  node = h("div", { class: "wb-rw-panel" });
  errors = h("div", { class: "wb-rw-failed-ask" });
  bisected = h("div", { class: "wb-rw-found" });

  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.state = new RewritesState(app);
    this.graph = new RewriteGraph(app, this.state);
    this.filter = h("input", {
      type: "search",
      class: "wb-input",
      placeholder: "filter",
      "aria-label": "filter passes",
      oninput: ({ target }) => ((this.state.filter = target.value), app.changed("filter")),
    });
    this.main = h(
      "div",
      { class: "wb-rw-main" },
      h("div", { class: "wb-rw-top" }, this.head, this.graph.view.tools),
      this.errors,
      this.bisected,
      h(
        "div",
        { class: "wb-rw-picture" },
        this.graph.el,
        divider(app, "details", "rule and node", "after"),
        h("div", { class: "wb-rw-details" }, this.text, this.node),
      ),
    );
    const search = h(
      "div",
      { class: "wb-pane wb-rw-search" },
      heading("PASSES"),
      this.#filterRow(),
    );
    const side = h("div", { class: "wb-rw-side" }, search, this.passes, this.list);
    const line = divider(app, "aside", "passes and rewrites", "before");
    this.el = h("div", { class: "wb-rw" }, side, line, this.main);
    this.keys = rewritesKeys(this);
  }

  /** @param {Changes} changes */
  update(changes) {
    const { app, state, graph } = this;
    const place = state.place();
    state.show(place);
    const isOther = state.hasGrown() || hasAny(changes, "kernel", "variant", "pass");
    if (changes.has("theme")) graph.repaint();
    if (isOther || changes.has("filter")) {
      refill(this.passes, passTree(app, state, place));
      refill(this.list, ...(place === null ? [] : rewriteList(app, state, place)));
    }
    // an error belongs to the step at which the request was sent
    if (hasAny(changes, "kernel", "variant", "pass", "node")) failAt(app, "rewrites", null);
    if (changes.has("failure")) refill(this.errors, failure(app, "rewrites"));
    if (hasAny(changes, "bisected", "variant", "pending")) refill(this.bisected, bisectAnswer(app));
    if (place === null) {
      refill(
        this.text,
        h("p", { class: "wb-quiet" }, app.record.nothing || "No pass is recorded."),
      );
    } else this.#updateStep(changes, place, isOther || changes.has("step"));
    if (changes.has("hover")) graph.light();
  }

  /** The current step: its text, its graph, and the picked node.
   * @param {Changes} changes
   * @param {number} place
   * @param {boolean} isOther */
  #updateStep(changes, place, isOther) {
    const { app, state, graph } = this;
    const step = state.step(place);
    const isRenewed = isOther || hasAny(changes, "record", "live", "drawn");
    if (isRenewed) {
      markStep(this.list, step);
      refill(this.head, ...stepBar(app, state, place, step));
    }
    // the button that tries an alternative shows that it is pending
    const isTried = changes.has("pending") && app.record.passes[place].unit === "decision";
    if (isRenewed || isTried) refill(this.text, ...stepText(app, state, place, step));
    const isPicked = app.view.node !== null;
    if ((isOther || hasAny(changes, "node", "live")) && (isPicked || this.node.firstChild)) {
      refill(this.node, nodePanel(app, place, step, state));
    }
    const isOtherView = hasAny(changes, "drawn", "closed");
    if (isOther || isOtherView) {
      this.main.classList.toggle("wb-rw-words", !graph.draw(place, isOtherView));
    }
    if (isOther || hasAny(changes, "node", "drawn")) graph.pick();
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

// The keys of Rewrites.

/** The objects on which keys act.
 * @typedef {{
 *   app: App, state: RewritesState, graph: RewriteGraph, el: HTMLElement, list: HTMLElement,
 *   filter: HTMLInputElement
 * }} KeyTargets */

/** Keys of this mode. In lists other than that of the rewrites, arrows walk the list, and in those
 * of other panes j and k too.
 * @param {KeyTargets} targets
 * @returns {Keys} */
export function rewritesKeys({ app, state, el, list, graph, filter }) {
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
    f: () => graph.fit(),
    g: () => state.draw(null),
    b: () => state.showAs(null),
    "/": () => (graph.view.el.hidden ? filter : graph.view.field).focus(),
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
