// The value of a node at a position that the reader selects.

import { act, canAsk, NEEDS_PYTHON } from "../../../app/actions.js";
import { meaningOf } from "../../../app/glossary.js";
import { button } from "../../../app/pieces.js";
import { debounced, h } from "../../../base/elements.js";
import { plural } from "../../../base/text.js";
import { readingOf } from "../../../record/readings.js";
import { stateOrder } from "../../../record/states.js";

/** @import { NodeColumns, NodeValue } from "../../../record.d.ts" */
/** @import { App } from "../../../app/store.js" */
/** @import { RewritesState } from "../state.js" */

/** Why the values of a node cannot be computed. */
const NO_VALUES = {
  "": "",
  lowered: "no values here: they are in registers. Pick the node in a pass before statement-tree.",
  none: "no values: it is not computed from anything",
};

/** Sliders for the axes that a node depends on; its value there, from Python.
 * @param {App} app
 * @param {number} n
 * @param {number} place
 * @param {number} step
 * @param {RewritesState} state */
export function valuesBox(app, n, place, step, state) {
  const why = NO_VALUES[readingOf(app.record.nodes, n).values ?? ""];
  if (why) return h("div", { class: "wb-rw-valuebox wb-quiet" }, why);
  const axes = axesBelow(app.record.nodes, n);
  const out = state.answersAbout(n, place, step).values;
  const at = Object.fromEntries(
    axes.map(([name, size]) => [name, Math.min(state.at[name] ?? 0, Math.max(0, size - 1))]),
  );
  const ask = async () => {
    const variant = app.record.passes[place].kernel === null ? null : app.view.variant;
    const reply = await act(app, "rewrites", {
      do: "values",
      variant,
      pass: place,
      step,
      node: n,
      at,
    });
    if (reply?.result) out.textContent = valuesText(reply.result);
  };
  const askSoon = debounced(ask, 120);
  const sliders = axes.map(([name, size]) => {
    const shown = h("span", {}, String(at[name]));
    const field = h("input", {
      type: "range",
      min: 0,
      max: Math.max(0, size - 1),
      value: at[name],
      "aria-label": `position on ${name}`,
      disabled: !canAsk(app),
      oninput: ({ target }) => {
        at[name] = state.at[name] = Number(target.value);
        shown.textContent = String(at[name]);
        askSoon();
      },
    });
    return h("label", {}, h("b", {}, name), field, shown);
  });
  const title = meaningOf(app.record, "values at a position");
  return h(
    "div",
    { class: "wb-rw-valuebox" },
    button(app, "show values", ask, { python: true, name: "values", title }),
    ...sliders,
    out,
    !canAsk(app) && h("span", { class: "wb-quiet" }, NEEDS_PYTHON),
  );
}

/** @param {NodeValue} answer */
function valuesText({ value, min, max, nan, shape }) {
  const span = min === undefined || min === null
    ? ""
    : `  min ${min}  max ${max}${nan ? `  ${plural(nan, "NaN")}` : ""}`;
  return `${JSON.stringify(value)}${span}${shape?.length ? `  shape ${shape.join("x")}` : ""}`;
}

/** Return [name, size] of the axes below a node, in the order in which they are met.
 * @param {NodeColumns} nodes
 * @param {number} root */
function axesBelow(nodes, root) {
  const readings = stateOrder(nodes, [root]).map((n) => readingOf(nodes, n));
  const sizes = new Map(readings.map(({ name = "", size = null }) => [name, size ?? 0]));
  return [...sizes].filter(([, size]) => size > 0).slice(0, 8);
}
