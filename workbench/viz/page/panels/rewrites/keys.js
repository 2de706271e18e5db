// The keys of Rewrites.

import { isAcross } from "../../base/lists.js";
import { shownRule, stepUse } from "../../app/rules/uses.js";
import { stepPass } from "../../record/passes.js";
import { copyStep } from "./copy.js";

/** @import { App } from "../../app/store.js" */
/** @import { Keys } from "../../types.d.ts" */
/** @import { RewriteGraph } from "./graph.js" */
/** @import { RewritesState } from "./state.js" */

/** What keys act on.
 * @typedef {{
 *   app: App, state: RewritesState, graph: RewriteGraph, el: HTMLElement, list: HTMLElement,
 *   filter: HTMLInputElement
 * }} Rewrites */

/** Keys of this mode. In lists other than that of the rewrites, arrows walk the list, and in those
 * of other panes j and k too.
 * @param {Rewrites} rewrites
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

/** Whether a key was pressed in a list that stands outside of a pane.
 * @param {EventTarget | null} target
 * @param {HTMLElement} pane */
const isInListOutside = (target, pane) =>
  target instanceof Element && target.closest("[data-walk]") && !isAcross(target) &&
  !pane.contains(target);
