// The bar that steps through rewrites, selects the view of the graph, and finds the first rewrite
// that changes the answer.

import { act } from "../../app/actions.js";
import { shownPairing } from "../../app/beside.js";
import { button, chooser } from "../../app/pieces.js";
import { h, recordText } from "../../base/elements.js";
import { lacksPasses } from "../../record/passes.js";
import { FORMS } from "./position.js";

/** @import { App } from "../../app/store.js" */
/** @import { RewritesState } from "./position.js" */

/** The bar of steps: first, back, position, on, last; and the options of the graph.
 * @param {App} app
 * @param {RewritesState} state
 * @param {number} place
 * @param {number} step */
export function stepBar(app, state, place, step) {
  const count = state.count(place);
  const pass = app.record.passes[place];
  return [
    h("b", { title: pass.doc }, recordText(pass.name)),
    lacksOwn(app),
    count > 0 && stepper(state, step, count),
    pass.unit !== "decision" && viewButtons(app, state),
    app.view.variant !== null && !app.arrangements.showsBeside &&
    button(app, "bisect", () => bisectRewrites(app), {
      python: true,
      title: "find the first rewrite that changes the answer of this variant",
      name: "bisect",
    }),
  ];
}

/** Beside another side, the reason why only a pass of the plan can be shown; null: none.
 * @param {App} app */
function lacksOwn(app) {
  const { arrangements, partner } = app;
  const row = app.variant();
  if (!partner || !row || !arrangements.showsBeside || !lacksPasses(row)) return null;
  return h("span", { class: "wb-quiet" }, "not compiled yet: ", recordText(row.name, "", 40));
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

/** The options of the graph: the whole or a neighbourhood, folded or not, loops open or closed.
 * @param {App} app
 * @param {RewritesState} state */
function viewButtons(app, state) {
  const isPaired = Boolean(shownPairing(app)); // both whole graphs are drawn
  return h(
    "span",
    { class: "wb-rw-stepper" },
    !isPaired &&
      chooser(
        "step as (b: the next)",
        FORM_CHOICES,
        FORMS.indexOf(state.form),
        (place) => state.showAs(FORMS[place]),
      ),
    !isPaired &&
      chooser(
        "the drawn nodes (g: the next choice)",
        REACH_CHOICES,
        state.reach,
        (place) => state.draw(place),
      ),
    button(app, "fold indexes", () => state.toggleFold(), {
      pressed: state.isFolded,
      title: "write index arithmetic inside the nodes that use it, as constants always are",
      name: "fold",
    }),
    (state.isWhole || isPaired) &&
      button(app, "fold loops", () => state.closeLoops(), {
        title:
          "hide the contents of loops; a double click on a node hides or shows the nodes that only it uses",
        name: "close",
      }),
  );
}

// The first rewrite that changes the answer of a variant.

/** Start the bisection.
 * @param {App} app */
async function bisectRewrites(app) {
  const { variant } = app.view;
  if (variant === null) return;
  const reply = await act(app, "rewrites", { do: "bisect", variant });
  const result = reply?.result;
  if (!result) return;
  const { text, pass, step } = result;
  app.bisected = { variant, text, of: app.record };
  app.changed("bisected");
  if (Number.isInteger(pass) && app.view.variant === variant) app.select({ pass, step });
}

/** The result of the bisection, until the next request, or until another variant or plan is
 * selected.
 * @param {App} app */
export function bisectAnswer(app) {
  if (app.pending("bisect")) {
    return h(
      "div",
      { class: "wb-banner", role: "status", "data-term": "bisect" },
      "bisect: computing states …",
    );
  }
  const { variant, text, of } = app.bisected ?? {};
  const row = app.variant();
  if (of !== app.record || variant !== app.view.variant || !text || !row) return null;
  const name = recordText(row.name, "", 40);
  const forget = () => ((app.bisected = null), app.changed("bisected"));
  return h(
    "div",
    { class: "wb-banner", role: "status", "data-term": "bisect" },
    h("b", {}, "bisect of ", name),
    recordText(text, "", 1000),
    button(app, "dismiss", forget, { name: "bisect-done" }),
  );
}
