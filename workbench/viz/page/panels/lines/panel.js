// The user's source lines, which link to everything made from them: those in the cell, and those in
// functions that it called.

import { linked } from "../../app/links.js";
import { hasAny, heading } from "../../app/pieces.js";
import { lineLink } from "../../app/store.js";
import { h, recordText, refill } from "../../base/elements.js";
import { walkable } from "../../base/lists.js";
import { plural } from "../../base/text.js";
import { lineKernels } from "../../record/kernels.js";

/** @import { App } from "../../app/store.js" */
/** @import { LineRow, PageRecord } from "../../record.d.ts" */
/** @import { Changes, PanelRow } from "../../types.d.ts" */

/** @satisfies {PanelRow} */
export const panel = { place: "pane", order: 21, title: "Lines", make: linesPane };

/** The user's lines, from which everything comes.
 * @param {App} app */
function linesPane(app) {
  const el = h("section", { class: "wb-sources", "aria-label": "notebook lines" });
  const update = (/** @type {Changes} */ changes) => {
    if (!hasAny(changes, "record", "line", "picked", "kernel")) return;
    const called = calledLines(app.record);
    const outer = inOrder(app.record.lines).filter((i) => called.has(i));
    const rows = outer.flatMap((i) => sourceRows(app, i, [...called.get(i) ?? []]));
    el.hidden = !rows.length;
    refill(
      el,
      heading("LINES"),
      walkable("listbox", "lines of the notebook", { class: "wb-list" }, ...rows),
    );
  };
  return { el, update };
}

/** Cells and lines in the order in which the user wrote them.
 * @param {LineRow[]} lines */
function inOrder(lines) {
  const compareWhere = (/** @type {number} */ a, /** @type {number} */ b) =>
    lines[a].where.localeCompare(lines[b].where, "en", { numeric: true });
  return lines.map((_, i) => i).sort(compareWhere);
}

/** A line; if it or a line in a function that it called is pinned, also those lines.
 * @param {App} app
 * @param {number} i
 * @param {number[]} inner */
function sourceRows(app, i, inner) {
  const { line, picked } = app.view;
  const isOpen = [line, ...picked?.lines ?? []].some((at) => at !== null && inner.includes(at));
  const isUnfolded = isOpen || line === i;
  const row = sourceRow(app, i, `source-${i}`);
  if (!inner.length) return [row];
  const title = `${plural(inner.length, "line")} in functions that it called`;
  row.append(h("span", { class: "wb-quiet", title }, isUnfolded ? "▾" : `▸ ${inner.length}`));
  if (!isUnfolded) return [row];
  const below = inOrder(app.record.lines).filter((at) => inner.includes(at));
  return [row, ...below.map((at) => sourceRow(app, at, `source-${at}-of-${i}`, "wb-called"))];
}

/**
 * @param {App} app
 * @param {number} i
 * @param {string} key
 * @param {string} [kind] */
function sourceRow(app, i, key, kind = "") {
  const { where, text } = app.record.lines[i];
  const chosen = app.view.line === i;
  const row = h(
    "div",
    {
      class: `wb-row wb-source ${kind}`,
      role: "option",
      "aria-selected": String(chosen),
      "data-item": "",
      "data-key": key,
      title: text.slice(0, 1000),
      onclick: () => app.select({ line: chosen ? null : i }),
    },
    recordText(where, "wb-quiet wb-clip"),
    recordText(text.trim(), "wb-code wb-clip"),
  );
  const kernels = chosen ? lineKernels(app.record, i) : [];
  if (chosen && !kernels.includes(app.view.kernel)) row.append(elsewhere(app, i, kernels));
  return linked(row, lineLink([i]));
}

const MOST_KERNELS = 3; // of a line, by number

/** The kernels of a line that the selected one does not compute: buttons that go there.
 * @param {App} app
 * @param {number} line
 * @param {number[]} kernels */
function elsewhere(app, line, kernels) {
  const go = (/** @type {number} */ kernel) => (/** @type {MouseEvent} */ event) => {
    event.stopPropagation(); // the row would unpick the line
    app.select({ kernel, line });
  };
  const more = kernels.length - MOST_KERNELS;
  return h(
    "span",
    { class: "wb-source-kernels" },
    ...kernels.slice(0, MOST_KERNELS).map((kernel) =>
      h("button", {
        class: "wb-button",
        type: "button",
        "data-key": `line-kernel-${kernel}`,
        title: "another kernel computes what this line made: show it",
        onclick: go(kernel),
      }, `in kernel ${kernel + 1}`)
    ),
    more > 0 && h("span", { class: "wb-quiet" }, `and ${more} more`),
    !kernels.length && h("span", { class: "wb-quiet" }, "in no kernel"),
  );
}

// The user's lines of a record: those in the cell, and those in functions that it called.

/** For each line that made something, the lines in functions that it called. Lines that only such
 * functions have are no keys.
 * @param {PageRecord} record */
function calledLines({ nodes, kernels, expr, lines }) {
  /** @type {Map<number, Set<number>>} */
  const called = new Map();
  const note = (/** @type {number} */ outer, /** @type {number[]} */ inner) => {
    const those = called.get(outer) ?? new Set();
    called.set(outer, those);
    for (const line of inner) those.add(line);
  };
  for (const [outer, ...inner] of nodes.lines.flat()) note(outer, inner);
  for (const { line, inner } of kernels) if (line !== null) note(line, inner);
  if (expr.line !== null) note(expr.line, []);
  const known = new Set([...called].flatMap(([outer, inner]) => [outer, ...inner]));
  lines.forEach((_, i) => known.has(i) || note(i, []));
  return called;
}
