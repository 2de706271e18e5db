// Why a node, or what a line of code computes, is here.

import { h, words } from "../base/elements.js";
import { walkable } from "../base/lists.js";
import { exprInline } from "../record/expression.js";
import { nodeHistory } from "../record/history.js";
import { passesOf } from "../record/passes.js";
import { ruleName } from "../record/rules.js";
import { timelineOf } from "../record/states.js";

export function historyBox(app, n) {
  const { picked } = app.view;
  const ofLine = picked?.by === "code" && picked.nodes[0] === n ? picked.nodes : [n]; // all that it computes
  const rows = nodeHistory(app.record, passesOf(app), ofLine);
  const box = h(
    "details",
    { class: "wb-rw-history", open: true },
    h("summary", {}, `why is this ${ofLine.length > 1 ? "line" : "node"} here?`),
  );
  if (!rows.length) {
    box.append(
      h("p", { class: "wb-quiet" }, "It was there before the first pass that is recorded."),
    );
  } else {box.append(walkable(
      "listbox",
      "what led to this node",
      {},
      ...rows.map((row, i) => historyItem(app, row, i)),
    ));}
  return box;
}

function historyItem(app, row, i) {
  const { nodes, passes, lines } = app.record;
  const item = (select, ...inner) =>
    h("div", {
      role: "option",
      "data-item": "",
      "data-key": `why-${i}`,
      onclick: () => app.select(select),
    }, ...inner);
  if (row.origin) {
    const names = row.origin.slice(0, 4).map((n) => nodes.label[n]).join(", ");
    const at = row.origin.map((n) => nodes.line[n]).find((line) => line >= 0);
    return item(
      { node: row.origin[0], mode: "plan" },
      `it stands for ${names} of the tensor graph`,
      at !== undefined && h("span", { class: "wb-quiet" }, " ", words(lines[at].where, "", 60)),
    );
  }
  const pass = passes[row.pass];
  const isOpt = pass.unit === "opt" && pass.rewrites.length;
  const [rule, before, after] = row.step
    ? pass.rewrites[row.step - 1]
    : [isOpt ? pass.rewrites[0][0] : -1, row.from, row.node];
  const step = row.step || timelineOf(app.record, pass).steps.length;
  const line = item(
    { pass: row.pass, step, node: row.step ? after : row.node },
    h("b", {}, rule >= 0 ? ruleName(app, rule) : pass.name),
    row.step > 0 && h("span", { class: "wb-quiet" }, ` ${pass.name} ${row.step}`),
    words(` ${exprInline(nodes, after, 40, 3)} ← ${exprInline(nodes, before, 60, 4)}`, "", 110),
  );
  line.title = rule >= 0 ? app.record.rules[rule].doc || pass.doc : pass.doc;
  return line;
}
