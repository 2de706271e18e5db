// The loop nest: a line per loop with its kind, trip count, and per buffer the stride and the
// touched bytes, beside the caches; the statements in their loops; and the axis bar.

import { loopDiffers } from "../../app/beside.js";
import { linked } from "../../app/links.js";
import { withNames } from "../../app/pieces.js";
import { axisLink, NO_SELECTION } from "../../app/store.js";
import { h, recordText } from "../../base/elements.js";
import { rove } from "../../base/lists.js";
import { plural } from "../../base/text.js";

/** @import { App } from "../../app/store.js" */
/** @import { AxisRow, BufferRow, NestRow, UseRow, VariantRow } from "../../record.d.ts" */
/** @import { Link } from "../../types.d.ts" */

/**
 * @param {App} app
 * @param {VariantRow} variant */
export function loopTable(app, variant) {
  const nest = variant.loops;
  if (!nest) {
    return h(
      "p",
      { class: "wb-quiet" },
      variant.error ? "" : "The loops of this variant are not computed yet.",
    );
  }
  const buffers = nest.buffers;
  const table = h(
    "div",
    { class: "wb-loops wb-list", role: "listbox", "aria-label": "loops", "data-walk": "" },
    h(
      "div",
      { class: "wb-loop wb-heads", role: "presentation" },
      h("span", { "data-term": "loop" }, "loop"),
      h("span", { class: "wb-figure", "data-term": "steps" }, "steps"),
      ...buffers.map((buffer) => bufferHead(buffer)),
    ),
    ...nest.rows.map((row, i) => loopRow(app, row, i, buffers)),
  );
  table.style.setProperty("--buffers", String(buffers.length));
  rove(table);
  return table; // the pane scrolls, both ways: its bar is in sight
}

/** @param {BufferRow} buffer */
function bufferHead({ name, user, dtype, size, role }) {
  const userText = user && `, your ${user}`;
  return h(
    "span",
    {
      class: "wb-buffer",
      title: `${name}${userText}: ${dtype}, ${size.toLocaleString("en")} elements, ${role}`,
    },
    user && h("b", {}, recordText(user, "wb-code", 16), " "),
    recordText(name, "wb-code", 16),
    h("span", { class: "wb-quiet" }, ` ${role}`),
  );
}

/**
 * @param {App} app
 * @param {NestRow} row
 * @param {number} i
 * @param {BufferRow[]} buffers */
function loopRow(app, row, i, buffers) {
  const statement = row.kind === "statement";
  const chosen = statement
    ? row.nodes[0] === app.view.node && app.view.node !== null
    : app.view.axis === row.axis;
  /** @type {Link} */
  const link = statement
    ? statementLink(row)
    : { by: "loop", axes: [row.axis], nodes: row.nodes, lines: row.lines };
  const kind = app.record.kinds[row.axis_kind];
  const of = statement ? "" : `${kind.name} ${row.axis}, ${plural(row.size, "step")}`;
  const differs = !statement && loopDiffers(app, row.axis);
  const title = `${of}: ${kind?.caption}${differs ? "\ndiffers from that beside" : ""}`;
  const el = h(
    "div",
    {
      class: `wb-loop wb-row wb-${row.kind}${differs ? " wb-differs" : ""}`,
      role: "option",
      "aria-selected": String(chosen),
      "data-item": "",
      "data-key": `loop-${i}`,
      "aria-label": statement ? row.text : of,
      "data-term": statement ? "statement" : null,
      title: statement ? null : title,
      onclick: () => (statement ? pickStatement(app, row) : pickAxis(app, row.axis)),
    },
    loopName(app, row),
    !statement && h("span", { class: "wb-figure" }, row.size.toLocaleString("en")),
    ...(statement ? [] : buffers.map((buffer) => useCell(app, row, row.uses[buffer.name]))),
  );
  return linked(el, link);
}

/** A statement is its first node; its operands are the others.
 * @param {NestRow} row
 * @returns {Link} */
function statementLink({ nodes: [node], lines }) {
  return { by: "statement", axes: [], nodes: node === undefined ? [] : [node], lines };
}

/**
 * @param {App} app
 * @param {NestRow} row */
function pickStatement(app, row) {
  const [node] = row.nodes;
  if (node === undefined || app.view.node === node) return app.select(NO_SELECTION);
  app.select({ ...NO_SELECTION, node, picked: statementLink(row) });
}

/** A bar per loop around it, then the loop's own letter and axis, or the statement.
 * @param {App} app
 * @param {NestRow} row */
function loopName(app, row) {
  const bars = row.around.map((kind) => h("i", { class: `wb-around wb-k wb-k-${kind}` }));
  if (row.kind === "statement") {
    return h(
      "span",
      { class: "wb-nest wb-stmt" },
      ...bars,
      h("bdi", { class: "wb-words wb-code" }, ...withNames(app.variant(), row.text)),
    );
  }
  return h(
    "span",
    { class: "wb-nest" },
    ...bars,
    chip(app, row.axis_kind, row.vector ? "vector lanes" : ""),
    recordText(row.axis, "wb-code"),
  );
}

/** stride | bytes, the cache that holds them, and their share of it.
 * @param {App} app
 * @param {NestRow} row
 * @param {UseRow | undefined} use */
function useCell(app, row, use) {
  if (!use) return h("span", { class: "wb-use" });
  const [bytes, cacheName] = use.cell;
  const cache = app.record.machine.caches.find(([name]) => name === use.level);
  const share = cache ? Math.min(1, (use.held || use.n) / cache[1]) : 1;
  const inLines = use.lines ? ` in ${use.lines} of cache lines` : "";
  const level = use.level
    ? `, ${
      cache ? `${Math.max(1, Math.round(share * 100))}% of ${use.level}` : "larger than the caches"
    }`
    : "";
  const stride = use.stride === "0"
    ? "the same element at every step"
    : `${use.stride} ${use.stride === "1" ? "element" : "elements"} from step to step`;
  const isVector = row.vector && use.stride === "1";
  const vector = isVector ? ", as one vector" : "";
  return h(
    "span",
    {
      class: "wb-use",
      title: `${stride}${vector}; ${use.bytes}${inLines} touched by one run of this loop${level}`,
    },
    h("span", { class: "wb-stride" }, isVector ? "1 vec" : use.stride),
    h("span", { class: "wb-touched" }, bytes),
    h(
      "span",
      { class: `wb-level wb-${use.level || "none"}` },
      cacheName,
      use.level && h("i", { style: `width:${Math.max(6, share * 100)}%` }),
    ),
  );
}

// Kinds of axes, and the axis bar: one bar for every axis of the plain kernel, split into the cells
// of its splits.

/** The letter of a kind on its colour; colours and patterns stand in the style of the kinds.
 * @param {App} app
 * @param {string} kind
 * @param {string} [more] */
function chip(app, kind, more = "") {
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
      recordText(name, "wb-code"),
      h("span", { class: "wb-figure" }, `${size}`),
    ),
    axisLink(app, name),
  );
}

/** Pin an axis, or unpin it.
 * @param {App} app
 * @param {string} axis */
const pickAxis = (app, axis) => app.select({ axis: app.view.axis === axis ? null : axis });

// The height of the loop nest: that of the kernel's longest variant, so that no pane moves when
// another variant is selected.

const ROW = 21; // pixels of a loop or a statement, as tune.css has it
const NEST_HEIGHT = "--wb-nest-height";
const BARS = 31; // pixels of a line of axis bars

export class NestHeight {
  /** The key of the height: the kernel, and the width of the pane.
   * @type {string} */
  #about = "";
  /** In pixels, of all variants that were shown. */
  #height = 0;

  /**
   * @param {App} app
   * @param {HTMLElement} pane */
  constructor(app, pane) {
    this.app = app;
    this.pane = pane;
  }

  /** Compute it before the next frame, when the loops are laid out: no frame without it is seen. */
  update() {
    requestAnimationFrame(() => this.#reserve());
  }

  #reserve() {
    const { app, pane } = this;
    const last = pane.lastElementChild;
    if (!last || !pane.clientWidth) return; // another mode is shown
    pane.toggleAttribute("data-wide", pane.scrollWidth > pane.clientWidth);
    const about = `${app.view.kernel} ${pane.clientWidth}`;
    if (about !== this.#about) this.#height = 0;
    this.#about = about;
    const top = pane.getBoundingClientRect().top - pane.scrollTop;
    const [below, margin] = [
      getComputedStyle(pane).paddingBottom,
      getComputedStyle(last).marginBottom,
    ]
      .map(parseFloat);
    const shown = last.getBoundingClientRect().bottom - top + margin + below;
    this.#height = Math.max(this.#height, Math.ceil(shown) + this.#missing());
    const height = `${this.#height}px`;
    const style = app.root?.style; // an equal value, too, would have all styles computed again
    if (style?.getPropertyValue(NEST_HEIGHT) !== height) style?.setProperty(NEST_HEIGHT, height);
  }

  /** How much higher the longest variant is than the selected one, by the number of its rows. */
  #missing() {
    const { app } = this;
    const places = app.variantsOf(app.view.kernel);
    if (!places.length) return 0; // nothing to compute, or a question hides it
    const most = (/** @type {typeof rowsOf} */ count) =>
      places.reduce((high, place) => Math.max(high, count(app, place)), 0) -
      count(app, app.view.variant);
    return most(rowsOf) * ROW + (most(axesOf) > 0 ? BARS : 0);
  }
}

/** The number of loops and statements of a variant.
 * @param {App} app
 * @param {number | null} place */
const rowsOf = (app, place) =>
  place === null ? 0 : app.record.variants[place].loops?.rows.length ?? 0;

/** The number of axes of a variant: their bars stand in lines.
 * @type {typeof rowsOf} */
const axesOf = (app, place) => place === null ? 0 : app.record.variants[place].axes.length;
