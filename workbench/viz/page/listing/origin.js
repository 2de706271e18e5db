// The rules that led to a line of code.

import { h, recordText } from "../base/elements.js";
import { nodeHistory, passesOf } from "../record/passes.js";
import { timelineOf } from "../record/states.js";
import { partsOf } from "./line_costs.js";
import { languageOf } from "./programs.js";

/** @import { App } from "../app/store.js" */
/** @import { CodeRow } from "../record.d.ts" */
/** @import { Timeline } from "../record/states.js" */

export const NO_LINE =
  "no line: the compiler made it (a constant, an address, a mask), moved it, or joined several lines";
const MOST_MAKERS = 3; // rules that a line names

/** The position of a rewrite.
 * @typedef {{pass: number, step: number, node: number}} Place */

/** The rules that made the nodes of the pinned line, the latest first, else the pass that did: each
 * leads to its rewrite.
 * @param {App} app */
export function originLinks(app) {
  const { code, picked } = app.view;
  if (code && !picked) return noLine(app, code);
  if (!code || picked?.by !== "code") return null;
  const { passes, rules } = app.record;
  const { rows: history } = nodeHistory(app.record, passesOf(app), picked.nodes);
  /** By name, so that each is listed once.
   * @type {Map<string, {doc: string, place: Place}>} */
  const named = new Map();
  for (const { pass, step, node } of history) {
    const rule = step ? passes[pass].rewrites[step - 1][0] : -1;
    if (rule >= 0 && !named.has(rules[rule].name)) {
      named.set(rules[rule].name, { doc: rules[rule].doc, place: { pass, step, node } });
    }
  }
  const isRule = named.size > 0;
  if (!isRule && history.length) {
    const [{ pass, node }] = history;
    const step = stepThatMade(timelineOf(app.record, passes[pass]), node);
    named.set(passes[pass].name, { doc: passes[pass].doc, place: { pass, step, node } });
  }
  const links = [...named].slice(0, MOST_MAKERS).map(([name, { doc, place }]) =>
    makerLink(app, name, doc, place)
  );
  return links.length
    ? [
      h(
        "span",
        { class: "wb-quiet", "data-term": "made by" },
        isRule ? "made by rule" : "made by pass",
      ),
      ...links,
    ]
    : null;
}

/** The reason for which the pinned line, an instruction, has no origin.
 * @param {App} app
 * @param {{language: string, device: string, line: number}} at */
function noLine(app, { language, device, line }) {
  const code = app.variant()?.code.find((row) =>
    row.language === language && row.device === device
  );
  return code && hasNoLine(app, code, line) ? [h("span", { class: "wb-quiet" }, NO_LINE)] : null;
}

/** Whether a line of machine code is an instruction that the compiler assigns to no line.
 * @param {App} app
 * @param {CodeRow} code
 * @param {number} i */
export function hasNoLine(app, { language, lines, links }, i) {
  const isMachine = languageOf(app, language)?.role === "machine";
  return isMachine && !links[i] && partsOf(lines[i]) !== null;
}

/** The first step of a pass after which a node exists; its last, if no state has it.
 * @param {Timeline} timeline
 * @param {number} node */
function stepThatMade(timeline, node) {
  const at = timeline.steps.findIndex((_, i) => timeline.state(i + 1)?.order.includes(node));
  return at < 0 ? timeline.steps.length : at + 1;
}

/** @type {(app: App, name: string, doc: string, place: Place) => HTMLElement} */
const makerLink = (app, name, doc, place) =>
  h(
    "button",
    {
      class: "wb-button",
      type: "button",
      "data-key": `made-by-${name}`,
      title: doc,
      onclick: () => app.select({ ...place, ...app.arrangements.toSee("rewrite", "rewrites") }),
    },
    recordText(name, "", 40),
    " ›",
  );
