// The bar that steps through rewrites, and selects the view of the graph.

import { button, chooser } from "../../app/pieces.js";
import { h, words } from "../../base/elements.js";
import { bisectRewrites } from "./bisect.js";
import { FORMS } from "./state.js";

/** @import { App } from "../../app/store.js" */
/** @import { RewritesState } from "./state.js" */

/** The line with which one steps: first, back, where, on, last; and what the graph shows.
 * @param {App} app
 * @param {RewritesState} state
 * @param {number} place
 * @param {number} step */
export function stepBar(app, state, place, step) {
  const count = state.count(place);
  const pass = app.record.passes[place];
  return [
    h("b", { title: pass.doc }, words(pass.name)),
    count > 0 && stepper(state, step, count),
    pass.unit !== "decision" && viewButtons(app, state),
    app.view.variant !== null &&
    button(app, "bisect", () => bisectRewrites(app), {
      python: true,
      title: "find the first rewrite that changes the answer of this variant",
      name: "bisect",
    }),
  ];
}

/**
 * @param {RewritesState} state
 * @param {number} step
 * @param {number} count */
function stepper(state, step, count) {
  /** @typedef {(text: string, title: string, act: () => void, key: string, off: boolean) => HTMLElement} Tool */
  /** @type {Tool} */
  const tool = (text, title, actOn, key, off) =>
    h("button", {
      class: "wb-button",
      type: "button",
      title: `${title} (${key})`,
      "aria-label": title,
      "data-key": `step-${title}`,
      disabled: off,
      onclick: actOn,
    }, text);
  const at = step === 0 ? `before the first of ${count}` : `${step} of ${count}`;
  return h(
    "span",
    { class: "wb-rw-stepper" },
    tool("«", "first", () => state.go(0), "Home", step === 0),
    tool("‹", "back", () => state.stepBy(-1), "k", step === 0),
    h("span", { class: "wb-rw-at", role: "status", "data-term": "rewrite" }, at),
    tool("›", "next", () => state.stepBy(1), "j", step >= count),
    tool("»", "last", () => state.go(count), "End", step >= count),
  );
}

/** @type {[number, string][]} */
const FORM_CHOICES = [[0, "one graph"], [1, "before | after"], [2, "texts"]];

/** @type {[number, string][]} */
const REACH_CHOICES = [[0, "near the change"], [1, "wider"], [2, "whole graph"]];

/** What the graph shows: the whole or what is near, folded or not, loops open or closed.
 * @param {App} app
 * @param {RewritesState} state */
function viewButtons(app, state) {
  return h(
    "span",
    { class: "wb-rw-stepper" },
    chooser(
      "step as (b: the next)",
      FORM_CHOICES,
      FORMS.indexOf(state.form),
      (place) => state.showAs(FORMS[place]),
    ),
    chooser(
      "what is drawn (g: the next)",
      REACH_CHOICES,
      state.reach,
      (place) => state.draw(place),
    ),
    button(app, "fold indexes", () => state.toggleFold(), {
      pressed: state.isFolded,
      title: "write index arithmetic inside the nodes that use it, as constants always are",
      name: "fold",
    }),
    state.isWhole &&
      button(app, "fold loops", () => state.closeLoops(), {
        title:
          "hide what stands in loops; a double click on a node hides or shows the nodes that only it uses",
        name: "close",
      }),
  );
}
