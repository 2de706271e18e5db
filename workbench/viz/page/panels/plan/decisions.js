// All decisions as a list, for readers who do not see the picture, and their Python. Equal
// decisions are one row, which a click unfolds; the film steps through each.

import { copy } from "../../app/actions.js";
import { valueDifference } from "../../app/beside.js";
import { linked } from "../../app/links.js";
import { button, heading, kernelNumber } from "../../app/pieces.js";
import { nodeLink } from "../../app/store.js";
import { elementsOf, focusedAround, h, recordText, refill } from "../../base/elements.js";
import { longList, rove, rowWith, showRow } from "../../base/lists.js";
import { plural } from "../../base/text.js";
import { decisionOf } from "../../record/rule_uses.js";

/** @import { App } from "../../app/store.js" */
/** @import { DecisionRow } from "../../record.d.ts" */
/** @import { PlanState } from "./panel.js" */

/** A row of the list: a decision, or several equal ones, which a click unfolds.
 * @typedef {{decision: DecisionRow, alike: number, isOpen: boolean, isInside: boolean}} Row */

/** All decisions as a list: the contents of the picture, for readers who do not see it. In the film
 * it has a row for each step. While its rows stay the same, only the mark moves.
 * @param {App} app
 * @param {HTMLElement} side
 * @param {PlanState} state
 * @param {DecisionRow[] | null} film the steps, while one is shown
 * @param {() => void} changed */
export function fillDecisions(app, side, state, film, changed) {
  const { decisions } = app.record.plan;
  const shown = film ?? wantedDecisions(app, state);
  const rows = film ? film.map(alone) : rowsOf(app, shown, state.unfolded);
  const of = JSON.stringify([
    Boolean(film),
    ...rows.map(({ decision, alike, isOpen }) => [
      decision.node,
      alike,
      isOpen,
      valueDifference(app, decision.node),
    ]),
  ]);
  const selected = rows.findIndex((row) => has(app, row, shown));
  const list = elementsOf(side, "[data-walk]")[0];
  if (list && state.listed === decisions && state.listedAs === of) {
    return markRow(list, rows[selected] ? rowKey(rows[selected]) : "");
  }
  Object.assign(state, { listed: decisions, listedAs: of });
  const top = list?.scrollTop ?? 0;
  refill(
    side,
    listHeading(app, state, shown.length, !film, changed),
    longList("listbox", "decisions", { class: "wb-plan-list" }, {
      count: rows.length,
      row: (place) => listItem(app, state, rows[place], has(app, rows[place], shown), changed),
      least: selected,
      grown: () => app.changed("rows"),
    }),
  );
  if (top) elementsOf(side, "[data-walk]")[0].scrollTop = top;
}

/** Bring the row of the picked value into sight, within its list; it gets the focus if the list has
 * it.
 * @param {HTMLElement} side */
export function showPicked(side) {
  const list = elementsOf(side, "[data-walk]")[0];
  const row = list && elementsOf(list, '[aria-selected="true"]')[0];
  if (!row) return;
  if (list.contains(focusedAround(list))) rove(list, row), row.focus({ preventScroll: true });
  showRow(list, row);
}

/** The decisions that match the reader's filters; in any case that of the selected value, and those
 * that differ in the plan beside this one.
 * @param {App} app
 * @param {PlanState} state */
const wantedDecisions = (app, { copies, storedOnly }) =>
  app.record.plan.decisions.filter((d) =>
    d.node === app.view.node || valueDifference(app, d.node) ||
    (d.is_copy ? copies : !storedOnly || d.stored || d.forced)
  );

const LEAST_ALIKE = 3; // fewer stand one by one

/** The key that equal decisions share.
 * @param {App} app
 * @param {DecisionRow} decision */
const likeness = (app, { node, name, stored, forced, reason }) =>
  JSON.stringify([name, stored, forced, reason, valueDifference(app, node)]);

/** @type {(decision: DecisionRow) => Row} */
const alone = (decision) => ({ decision, alike: 1, isOpen: false, isInside: false });

/** The rows of decisions: equal ones are one row, in the place of the first of them.
 * @param {App} app
 * @param {DecisionRow[]} decisions
 * @param {ReadonlySet<string>} unfolded
 * @returns {Row[]} */
function rowsOf(app, decisions, unfolded) {
  /** @type {Map<string, DecisionRow[]>} */
  const groups = new Map();
  for (const decision of decisions) {
    const key = likeness(app, decision);
    groups.get(key)?.push(decision) ?? groups.set(key, [decision]);
  }
  return decisions.flatMap((decision) => {
    const key = likeness(app, decision);
    const group = groups.get(key) ?? [];
    if (group.length < LEAST_ALIKE) return [alone(decision)];
    if (decision !== group[0]) return [];
    const isOpen = unfolded.has(key);
    const inside = isOpen ? group.map((d) => ({ ...alone(d), isInside: true })) : [];
    return [{ decision, alike: group.length, isOpen, isInside: false }, ...inside];
  });
}

/** Whether a row contains the selected value: a folded one contains those of all its decisions.
 * @param {App} app
 * @param {Row} row
 * @param {DecisionRow[]} shown */
function has(app, { decision, alike, isOpen }, shown) {
  const { node } = app.view;
  if (node === null || isOpen) return false;
  if (alike === 1) return decision.node === node;
  const picked = shown.find((d) => d.node === node);
  return picked !== undefined && likeness(app, picked) === likeness(app, decision);
}

/** @param {Row} row */
const rowKey = ({ decision, alike }) => `${alike > 1 ? "alike" : "decision"}-${decision.node}`;

/** Mark the row with a key.
 * @param {HTMLElement} list
 * @param {string} key */
function markRow(list, key) {
  const row = key ? rowWith(list, key) : undefined;
  for (const item of elementsOf(list, '[aria-selected="true"]')) item.ariaSelected = "false";
  if (row) row.ariaSelected = "true";
  if (!list.contains(focusedAround(list))) rove(list);
}

/**
 * @param {App} app
 * @param {PlanState} state
 * @param {number} shown how many decisions are
 * @param {boolean} isChosen whether the reader chooses which
 * @param {() => void} changed */
function listHeading(app, state, shown, isChosen, changed) {
  const { decisions } = app.record.plan;
  const copies = decisions.filter((d) => d.is_copy).length;
  const hidden = isChosen && !state.copies ? copies : 0;
  return heading(
    "DECISIONS",
    h(
      "span",
      { class: "wb-quiet", title: "listed, of all decisions" },
      `${shown} of ${Math.max(shown, decisions.length - hidden)}`,
    ),
    isChosen && listSwitch("stored-only", "stored only", "hide the values that are fused", {
      checked: state.storedOnly,
      set: (checked) => ((state.storedOnly = checked), changed()),
    }),
    isChosen && copies > 0 &&
      listSwitch(
        "copies",
        plural(copies, "copy"),
        "show values that are only copied to the device",
        {
          checked: state.copies,
          set: (checked) => ((state.copies = checked), changed()),
        },
      ),
    button(app, "copy", () => copyPlan(app), {
      key: "y",
      name: "copy-plan",
      title: "as Python: code that selects this plan",
    }),
  );
}

/** A checkbox.
 * @param {string} key
 * @param {string} text
 * @param {string} title
 * @param {{checked: boolean, set(checked: boolean): void}} state */
const listSwitch = (key, text, title, { checked, set }) =>
  h(
    "label",
    { class: "wb-filter", title },
    h("input", {
      type: "checkbox",
      "data-key": key,
      checked,
      onchange: ({ target }) => set(target.checked),
    }),
    text,
  );

/**
 * @param {App} app
 * @param {PlanState} state
 * @param {Row} row
 * @param {boolean} isSelected
 * @param {() => void} changed */
function listItem(app, state, row, isSelected, changed) {
  const { decision, alike, isOpen, isInside } = row;
  const { node, name, stored, forced, reason, kernel } = decision;
  const unfold = () => {
    const key = likeness(app, decision);
    isOpen ? state.unfolded.delete(key) : state.unfolded.add(key);
    changed();
  };
  const isGroup = alike > 1;
  const differs = valueDifference(app, node);
  const item = h(
    "div",
    {
      role: "option",
      class: `${isInside ? "wb-plan-inside" : ""}${differs ? " wb-differs" : ""}`,
      "data-item": "",
      "data-key": rowKey(row),
      "aria-selected": String(isSelected),
      title: `${name}: ${reason}${differs && `\n${differs}`}${
        isGroup ? `\n${alike} alike: click to ${isOpen ? "fold" : "unfold"}` : ""
      }`,
      onclick: isGroup ? unfold : () => app.select({ node }),
    },
    isGroup
      ? h("b", { class: "wb-figure" }, `${isOpen ? "▾" : "▸"} ${alike} ×`)
      : kernelNumber(app, kernel),
    h("b", { "data-term": stored ? "stored" : "fused" }, stored ? "stored" : "fused"),
    recordText(name, "", 40),
    forced && h("b", { "data-term": "forced" }, "forced"),
    h("span", { class: "wb-quiet wb-plan-why" }, reason),
  );
  return isGroup ? item : linked(item, nodeLink(node));
}

// Copy as Python, in Plan: the code for the plan. The code comes from the record; it begins with
// the lines that bind the exploration.

/** Copy the plan, or the picked decision.
 * @param {App} app */
export function copyPlan(app) {
  const { expr, recipes } = app.record;
  const code = decisionOf(app, app.view.node)?.python ?? recipes.plan;
  copy(app, expr.python + code, "the plan as Python");
}
