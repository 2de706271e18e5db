// The selected node: its properties, its history, its values, and why a rule did not fire on it.

import { act, canAsk, NEEDS_PYTHON } from "../../app/actions.js";
import { meaningOf } from "../../app/glossary.js";
import { button, chooser, headingOf, nodeLines } from "../../app/pieces.js";
import { debounced, h, recordText } from "../../base/elements.js";
import { walkable } from "../../base/lists.js";
import { plural } from "../../base/text.js";
import { inline } from "../../record/node_text.js";
import { ancestors, nodeHistory, passesOf } from "../../record/passes.js";
import { ruleName } from "../../record/rule_uses.js";
import { NO_VALUES, readingOf, stateOrder, timelineOf } from "../../record/states.js";

/** @import { App } from "../../app/store.js" */
/** @import { Child } from "../../base/elements.d.ts" */
/** @import { NodeColumns, NodeValue, WhyNotReply } from "../../record.d.ts" */
/** @import { Origin } from "../../record/passes.js" */
/** @import { State, Timeline } from "../../record/states.js" */
/** @import { View } from "../../types.d.ts" */
/** @import { RewritesState } from "./position.js" */

/**
 * @param {App} app
 * @param {number} place
 * @param {number} step
 * @param {RewritesState} state */
export function nodePanel(app, place, step, state) {
  const n = app.view.node;
  if (n === null) return null;
  const timeline = timelineOf(app.record, app.record.passes[place]);
  const { nodes } = timeline;
  const stateNow = timeline.state(step);
  const shownNode = nodeInState(app, timeline, stateNow, n);
  const users = stateNow?.users.get(shownNode);
  const own = timeline.real(shownNode);
  return h(
    "section",
    { class: "wb-rw-node", "aria-label": "the picked node" },
    headingOf(
      nodes.op[shownNode],
      `${nodes.op[shownNode]} #${own}`,
      h("span", { class: "wb-quiet", title: "its shape and dtype" }, kindText(nodes, shownNode)),
      ...nodeLines(app, n),
      h("button", {
        class: "wb-button",
        type: "button",
        "aria-label": "close",
        title: "Esc",
        onclick: () => app.select({ node: null }),
      }, "×"),
    ),
    h("pre", {}, inline(nodes, shownNode, 160, 4)),
    otherState(nodes, n, own, !stateNow || stateNow.users.has(shownNode)),
    nodeLinks(app, timeline, "from", nodes.src[shownNode]),
    users && nodeLinks(app, timeline, "read by", [...new Set(users)]),
    historyBox(app, n),
    valuesBox(app, own, place, step, state),
    whyNotBox(app, own, place, step, state),
  );
}

/** @type {(nodes: NodeColumns, n: number) => string} */
const kindText = (nodes, n) => [nodes.shape[n], nodes.dtype[n]].filter(Boolean).join(" ");

/** For a picked node outside of the shown state: the nodes of that state that become it, or that
 * there are none.
 * @param {NodeColumns} nodes
 * @param {number} n
 * @param {number} own
 * @param {boolean} isThere */
function otherState(nodes, n, own, isThere) {
  const name = `${nodes.op[n]} #${n} ${kindText(nodes, n)}`;
  if (!isThere) return h("p", { class: "wb-quiet" }, "It is not in the state that is shown.");
  return own === n ? null : h("p", { class: "wb-quiet" }, `It becomes ${name}, which was picked.`);
}

/**
 * @param {App} app
 * @param {Timeline} timeline
 * @param {string} title
 * @param {number[]} listed */
function nodeLinks(app, timeline, title, listed) {
  if (!listed.length) return null;
  const shown = listed.slice(0, 12).map((n) =>
    h("button", {
      class: "wb-button",
      type: "button",
      title: inline(timeline.nodes, n),
      onclick: () => app.select({ node: timeline.real(n) }),
    }, timeline.nodes.label[n])
  );
  return h(
    "div",
    { class: "wb-rw-links" },
    h("span", { class: "wb-quiet" }, title),
    ...shown,
    listed.length > 12 && `and ${listed.length - 12} more`,
  );
}

/** Return the node of a state that `n` is, or from which it comes.
 * @param {App} app
 * @param {Timeline} timeline
 * @param {State | null} state
 * @param {number} n */
function nodeInState(app, timeline, state, n) {
  if (!state) return n;
  const byReal = new Map(state.order.map((m) => [timeline.real(m), m]));
  for (const was of ancestors(app.record, passesOf(app), [n])) {
    const now = byReal.get(was);
    if (now !== undefined) return now;
  }
  return n;
}

// The history of a node, or of the node that a line of code computes.

/**
 * @param {App} app
 * @param {number} n */
function historyBox(app, n) {
  const { picked } = app.view;
  const ofLine = picked?.by === "code" && picked.nodes[0] === n ? picked.nodes : [n]; // of the line
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
      ? walkable("listbox", "rewrites that led to this node", {}, ...items)
      : h("p", { class: "wb-quiet" }, withoutHistory(app, ofLine)),
  );
  return box;
}

/** The reason for which nothing led to some nodes.
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
    ? "It existed before the first recorded pass."
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

/** The nodes of the tensor graph that all of them stand for.
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
    { node: tensors[0], ...app.arrangements.toSee("plan", "plan") },
    `it stands for ${names} of the tensor graph`,
    at !== undefined && h("span", { class: "wb-quiet" }, " ", recordText(lines[at].where, "", 60)),
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
    recordText(` ${inline(nodes, after, 40, 3)} ← ${inline(nodes, before, 60, 4)}`, "", 110),
  );
  line.title = rule >= 0 ? app.record.rules[rule].doc || pass.doc : pass.doc;
  return line;
}

// The value of a node at a position that the reader selects.

/** Sliders for the axes on which a node depends; its value at their position, from Python.
 * @param {App} app
 * @param {number} n
 * @param {number} place
 * @param {number} step
 * @param {RewritesState} state */
function valuesBox(app, n, place, step, state) {
  const why = NO_VALUES[readingOf(app.record.nodes, n).values ?? ""];
  if (why) return h("div", { class: "wb-rw-valuebox wb-quiet" }, why);
  const axes = axesBelow(app.record.nodes, n);
  const out = state.answersAbout(n, place, step).values;
  const at = Object.fromEntries(
    axes.map(([name, size]) => [name, Math.min(state.at[name] ?? 0, Math.max(0, size - 1))]),
  );
  const ask = async () => {
    const reply = await act(app, "rewrites", {
      do: "values",
      variant: app.view.variant,
      pass: place,
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

/** Return [name, size] of the axes below a node, in the order in which they are found.
 * @param {NodeColumns} nodes
 * @param {number} root */
function axesBelow(nodes, root) {
  const readings = stateOrder(nodes, [root]).map((n) => readingOf(nodes, n));
  const sizes = new Map(readings.map(({ name = "", size = null }) => [name, size ?? 0]));
  return [...sizes].filter(([, size]) => size > 0).slice(0, 8);
}

// Why not: the reason for which a rule did not fire at a node.

/** The form that asks why a rule of this pass did not fire on a node.
 * @param {App} app
 * @param {number} n
 * @param {number} place
 * @param {number} step
 * @param {RewritesState} state */
function whyNotBox(app, n, place, step, state) {
  const pass = app.record.passes[place];
  const fired = new Set(pass.rewrites.map(([rule]) => app.record.rules[rule]?.set));
  /** @type {[number, string][]} */
  const rules = app.record.rules.flatMap(({ file, set, name }, i) =>
    file && (!fired.size || fired.has(set)) ? [[i, name]] : []
  );
  if (!rules.length) return null;
  const answer = state.answersAbout(n, place, step).whyNot;
  let current = rules.find(([i]) => i === state.asked)?.[0] ?? rules[0][0];
  const choice = chooser(
    "rule that did not fire",
    rules,
    current,
    (rule) => ((state.asked = current = rule), answer.replaceChildren()),
  );
  const ask = async () => {
    const rule = current;
    const reply = await act(app, "rewrites", { do: "why_not", pass: place, node: n, rule });
    if (reply?.result && rule === current) answer.replaceChildren(...whyNotLines(reply.result));
  };
  return h(
    "div",
    { class: "wb-rw-whynot", title: "why a rule did not match this node" },
    h("span", {}, "why did"),
    choice,
    h("span", {}, "not fire here?"),
    button(app, "ask", ask, { python: true, name: "why-not" }),
    !canAsk(app) && h("span", { class: "wb-quiet" }, NEEDS_PYTHON),
    answer,
  );
}

/** The text of the rule with a caret line under the first part that failed.
 * @param {WhyNotReply} answer */
function whyNotLines({ text, caret_start, caret_end, because }) {
  const lines = text.slice(0, caret_start).split("\n");
  const before = lines[lines.length - 1].length;
  const lineEnd = text.indexOf("\n", caret_start);
  const shown = lineEnd < 0 ? text : text.slice(0, lineEnd);
  const carets = " ".repeat(before) +
    "^".repeat(Math.max(1, Math.min(caret_end, shown.length) - caret_start));
  const rest = lineEnd < 0 ? "" : text.slice(lineEnd);
  return [
    h("pre", {}, `${shown}\n`, h("b", {}, carets), rest),
    h("p", {}, recordText(because, "", 1000)),
  ];
}
