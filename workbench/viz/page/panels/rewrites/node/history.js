// The history of a node, or of the node that a line of code computes.

import { h, words } from "../../../base/elements.js";
import { walkable } from "../../../base/lists.js";
import { nodeHistory } from "../../../record/history.js";
import { passesOf } from "../../../record/passes.js";
import { ruleName } from "../../../record/rules.js";
import { stateOrder, timelineOf } from "../../../record/states.js";
import { inline } from "../../../record/words.js";

/** @import { View } from "../../../types.d.ts" */
/** @import { Child } from "../../../base/elements.d.ts" */
/** @import { Origin } from "../../../record/history.js" */
/** @import { App } from "../../../app/store.js" */

/**
 * @param {App} app
 * @param {number} n */
export function historyBox(app, n) {
  const { picked } = app.view;
  const ofLine = picked?.by === "code" && picked.nodes[0] === n ? picked.nodes : [n]; // all that it computes
  const { rows, tensors } = nodeHistory(app.record, passesOf(app), ofLine);
  const box = h(
    "details",
    { class: "wb-rw-history", open: true },
    h("summary", {}, `why is this ${ofLine.length > 1 ? "line" : "node"} here?`),
  );
  const items = rows.map((row, i) => historyItem(app, row, i));
  if (tensors.length) items.push(tensorsItem(app, tensors, rows.length));
  box.append(
    items.length
      ? walkable("listbox", "what led to this node", {}, ...items)
      : h("p", { class: "wb-quiet" }, withoutHistory(app, ofLine)),
  );
  return box;
}

/** Why nothing led to some nodes.
 * @param {App} app
 * @param {number[]} nodes */
function withoutHistory(app, nodes) {
  const { record } = app;
  const isThere = passesOf(app).some((place) => {
    const { before, after } = record.passes[place];
    const state = new Set(stateOrder(record.nodes, [...before, ...after]));
    return nodes.some((n) => state.has(n));
  });
  return isThere
    ? "It was there before the first pass that is recorded."
    : "No pass of this variant has it: it was picked in another variant.";
}

/** @type {(app: App, i: number, place: Partial<View>, ...inner: Child[]) => HTMLElement} */
const itemOf = (app, i, place, ...inner) =>
  h("div", {
    role: "option",
    "data-item": "",
    "data-key": `why-${i}`,
    onclick: () => app.select(place),
  }, ...inner);

/** The nodes of the tensor graph that all stands for.
 * @param {App} app
 * @param {number[]} tensors
 * @param {number} i */
function tensorsItem(app, tensors, i) {
  const { nodes, lines } = app.record;
  const names = tensors.slice(0, 4).map((n) => nodes.label[n]).join(", ");
  const [[at] = []] = tensors.flatMap((n) => nodes.lines[n]);
  return itemOf(
    app,
    i,
    { node: tensors[0], mode: "plan" },
    `it stands for ${names} of the tensor graph`,
    at !== undefined && h("span", { class: "wb-quiet" }, " ", words(lines[at].where, "", 60)),
  );
}

/**
 * @param {App} app
 * @param {Origin} row
 * @param {number} i */
function historyItem(app, row, i) {
  const { nodes, passes } = app.record;
  const pass = passes[row.pass];
  const isOpt = pass.unit === "opt" && pass.rewrites.length;
  const [rule, before, after] = row.step
    ? pass.rewrites[row.step - 1]
    : [isOpt ? pass.rewrites[0][0] : -1, row.from, row.node];
  const step = row.step || timelineOf(app.record, pass).steps.length;
  const line = itemOf(
    app,
    i,
    { pass: row.pass, step, node: row.step ? after : row.node },
    h("b", {}, rule >= 0 ? ruleName(app, rule) : pass.name),
    row.step > 0 && h("span", { class: "wb-quiet" }, ` ${pass.name} ${row.step}`),
    words(` ${inline(nodes, after, 40, 3)} ← ${inline(nodes, before, 60, 4)}`, "", 110),
  );
  line.title = rule >= 0 ? app.record.rules[rule].doc || pass.doc : pass.doc;
  return line;
}
