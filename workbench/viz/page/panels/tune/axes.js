// Kinds of axes, and the axis bar: one bar for every axis of the plain kernel, split into the cells
// of its splits.

import { linked } from "../../app/links.js";
import { axisLink } from "../../app/store.js";
import { h, words } from "../../base/elements.js";
import { plural } from "../../base/text.js";

/** @import { AxisRow, VariantRow } from "../../record.d.ts" */
/** @import { App } from "../../app/store.js" */

/** The letter of a kind on its colour; colours and patterns stand in the style of the kinds.
 * @param {App} app
 * @param {string} kind
 * @param {string} [more] */
export function chip(app, kind, more = "") {
  const { letter, name, caption } = app.record.kinds[kind];
  const title = `${[name, more].filter(Boolean).join(", ")}: ${caption}`;
  return h("span", { class: `wb-chip wb-k wb-k-${kind}`, title }, letter);
}

/** A bar for each axis of the plain kernel.
 * @param {App} app
 * @param {VariantRow} variant */
export function axisBars(app, variant) {
  const el = h("div", { class: "wb-axes", "data-term": "axis bars" });
  for (const places of variant.bars) {
    const cells = places.map((place) => variant.axes[place]);
    const bar = h("div", { class: "wb-bar" }, ...cells.map((axis) => axisCell(app, axis)));
    bar.style.flexGrow = String(cells.length); // room for each cell
    el.append(bar);
  }
  return el;
}

/**
 * @param {App} app
 * @param {AxisRow} axis */
function axisCell(app, { name, kind, size }) {
  return linked(
    h(
      "span",
      {
        class: `wb-cell wb-k-${kind}`,
        title: `${name}: ${plural(size, "step")}, ${app.record.kinds[kind].name}`,
        onclick: () => pickAxis(app, name),
      },
      chip(app, kind),
      words(name, "wb-code"),
      h("span", { class: "wb-figure" }, `${size}`),
    ),
    axisLink(app, name),
  );
}

/** Pin an axis, or let it go.
 * @param {App} app
 * @param {string} axis */
export const pickAxis = (app, axis) => app.select({ axis: app.view.axis === axis ? null : axis });
