// The lists beside a rewrite: the passes as a tree, and the rewrites of the selected pass; and the
// current view as Python.

import { copy } from "../../app/actions.js";
import { passDifference } from "../../app/beside.js";
import { linked } from "../../app/links.js";
import { button, chooser, headingOf } from "../../app/pieces.js";
import { nodeLink, rowAt } from "../../app/store.js";
import { focusedAround, h, recordText } from "../../base/elements.js";
import { longList, rowWith, showRow, walkable } from "../../base/lists.js";
import { hasWords, plural, secondsText } from "../../base/text.js";
import { inline } from "../../record/node_text.js";
import { passesOf } from "../../record/passes.js";
import { decisionOf, ruleCounts, ruleName } from "../../record/rule_uses.js";

/** @import { PassDifference } from "../../app/beside.js" */
/** @import { App } from "../../app/store.js" */
/** @import { PageRecord, RecordedPass } from "../../record.d.ts" */
/** @import { RewritesState } from "./position.js" */

const MOST_SIDE = 48; // characters of the rewritten text, and of the new one
const DEPTH = 4; // nodes further below are an ellipsis

/** The passes on the way to the selected variant; those without changes on demand.
 * @param {App} app
 * @param {RewritesState} state
 * @param {number | null} current */
export function passTree(app, state, current) {
  const wanted = state.filter;
  const rows = passesOf(app).filter((place) => {
    const pass = app.record.passes[place];
    const fits = hasWords(`${pass.name} ${pass.doc}`, wanted);
    return fits && (state.showsIdle || pass.changed || pass.error || place === current);
  });
  const items = rows.map((place) => passItem(app, place, place === current));
  if (!app.record.passes.length) return null; // the text gives the reason
  if (!items.length) return h("p", { class: "wb-quiet", role: "status" }, "nothing found");
  return walkable("tree", "passes", { class: "wb-rw-passes" }, ...items);
}

/**
 * @param {App} app
 * @param {number} place
 * @param {boolean} isCurrent */
function passItem(app, place, isCurrent) {
  const pass = app.record.passes[place];
  const count = pass.matches;
  const differs = differenceText(passDifference(app, pass.name));
  const result = pass.error
    ? "failed"
    : count
    ? `${count.toLocaleString("en")}`
    : pass.changed
    ? "·"
    : "\u2013";
  return h(
    "div",
    {
      role: "treeitem",
      "aria-level": pass.depth + 1,
      "aria-selected": String(isCurrent),
      "data-item": "",
      "data-key": `rw-pass-${place}`,
      class: `wb-rw-pass${pass.changed ? "" : " wb-idle"}${pass.error ? " wb-failed" : ""}`,
      style: `padding-left:${6 + 14 * pass.depth}px`,
      title: [differs, pass.changed ? "" : "changed nothing", pass.doc].filter(Boolean).join("\n"),
      "aria-label": `${pass.name}, ${
        count ? plural(count, pass.unit) : pass.changed || pass.error ? result : "changed nothing"
      }, ${[secondsText(pass.seconds), differs].filter(Boolean).join(", ")}`,
      onclick: () => app.select({ pass: place, step: 0 }),
    },
    h("span", {}, pass.name, differs && h("b", { class: "wb-differs" }, " ≠")),
    h("span", { class: "wb-rw-n" }, result),
    h("span", { class: "wb-quiet wb-rw-t" }, secondsText(pass.seconds)),
  );
}

/** In words, what a pass did here and not on the other side.
 * @param {PassDifference | null} difference */
function differenceText(difference) {
  if (!difference) return "";
  const { here, there, counts } = difference;
  return [
    here.length && `only here: ${here.join(", ")}`,
    there.length && `only on the other side: ${there.join(", ")}`,
    counts.length && `not as often: ${counts.join(", ")}`,
  ].filter(Boolean).join("; ");
}

/** The glossary term of the matches of a pass, if their word has another meaning too.
 * @type {Record<string, string>} */
const HEADINGS = { step: "steps of a pass", opt: "opts of a pass" };

/** The rewrites of a pass, with a choice of rule.
 * @param {App} app
 * @param {RewritesState} state
 * @param {number} place */
export function rewriteList(app, state, place) {
  const pass = app.record.passes[place];
  const counts = ruleCounts(pass);
  const more = pass.matches - pass.rewrites.length;
  const shown = pass.rewrites.map((_, i) => i).filter((i) =>
    state.rule === null || pass.rewrites[i][0] === state.rule
  );
  /** @type {[number, string][]} */
  const choices = counts.map(([rule, n]) => [rule, `${ruleName(app, rule)} (${n})`]);
  const choice = counts.length > 1 &&
    chooser(
      "rule",
      [[-2, `all ${counts.length} rules`], ...choices],
      state.rule ?? -2,
      (rule) => state.chooseRule(rule === -2 ? null : rule),
    );
  return [
    headingOf(
      HEADINGS[pass.unit] ?? `${pass.unit}s`,
      `${pass.unit}S`.toUpperCase(),
      h("span", { class: "wb-quiet", title: "listed" }, String(shown.length || "")),
      button(app, "copy", () => copyStep(app, place, app.view.pass === place ? app.view.step : 0), {
        key: "y",
        name: "copy-step",
        title: "as Python: code that selects this step",
      }),
    ),
    choice,
    shown.length
      ? longList("listbox", `${pass.unit}s of ${pass.name}`, { class: "wb-rw-list" }, {
        count: shown.length,
        row: (at) => rewriteItem(app, pass, place, shown[at]),
        least: app.view.pass === place ? shown.indexOf(app.view.step - 1) : 0,
        grown: () => app.changed("rows"),
      })
      : h("p", { class: "wb-quiet" }, pass.changed ? "one function, in one step" : "nothing to do"),
    more > 0 &&
    h(
      "p",
      { class: "wb-quiet" },
      `and ${plural(more, "rewrite")} more that are not recorded`,
    ),
  ];
}

/** The target of a rewrite: the node before and after, each in a few words; of a decision the value
 * alone, of a step of a function its subject.
 * @param {App} app
 * @param {RecordedPass} pass
 * @param {number} i */
export function appliedTo({ record: { nodes } }, { rewrites }, i) {
  const [, before, after, , about] = rewrites[i];
  if (about) return [about];
  return [...new Set([before, after])].map((n) => inline(nodes, n, MOST_SIDE, DEPTH));
}

/** Both sides in a line: each is cut to its share of the width, so that both are seen.
 * @param {string[]} sides */
function appliedLine(sides) {
  const [before, after] = sides.map((side) => recordText(side));
  return h("span", { class: "wb-rw-to", title: sides.join(" → ") }, before, after && "→", after);
}

/**
 * @param {App} app
 * @param {RecordedPass} pass
 * @param {number} place
 * @param {number} i */
function rewriteItem(app, pass, place, i) {
  const [rule, before] = pass.rewrites[i];
  const isOnlyHere = passDifference(app, pass.name)?.here.includes(ruleName(app, rule));
  const what = pass.unit === "decision"
    ? decisionOf(app, before)?.name ?? app.record.nodes.label[before]
    : ruleName(app, rule);
  return linked(
    h(
      "div",
      {
        role: "option",
        "data-item": "",
        "data-key": `rw-${i + 1}`,
        "aria-selected": String(app.view.step === i + 1),
        class: isOnlyHere ? "wb-differs" : null,
        title: (isOnlyHere ? "only on this side\n" : "") +
          (app.record.rules[rule]?.doc || app.record.nodes.label[before]),
        onclick: () => app.select({ pass: place, step: i + 1 }),
      },
      h("span", { class: "wb-rw-i" }, String(i + 1)),
      recordText(what, "", 60),
      appliedLine(appliedTo(app, pass, i)),
    ),
    nodeLink(before),
  );
}

/** Mark the current rewrite, without making the list anew; bring it into sight, if it is another.
 * @param {HTMLElement} container
 * @param {number} step
 * @param {boolean} isOther */
export function markStep(container, step, isOther) {
  /** @type {HTMLElement | null} */
  const list = container.querySelector(".wb-rw-list");
  if (!list) return;
  /** @type {HTMLElement | null} */
  const old = list.querySelector('[aria-selected="true"]');
  const now = step ? rowWith(list, `rw-${step}`) ?? null : null;
  if (now && isOther) requestAnimationFrame(() => showRow(list, now));
  if (old === now) return;
  old?.setAttribute("aria-selected", "false");
  if (!now) return;
  now.setAttribute("aria-selected", "true");
  const hadFocus = list.contains(focusedAround(list));
  if (old) old.tabIndex = -1;
  now.tabIndex = 0;
  if (hadFocus) now.focus({ preventScroll: true });
}

// Copy as Python, in Rewrites: the code for the current view. The code comes from the record: the
// lines that bind the exploration, the variant, and the pass.

/** Copy a pass, or one of its steps.
 * @param {App} app
 * @param {number | null} place
 * @param {number} step */
export const copyStep = (app, place, step) =>
  place !== null &&
  copy(
    app,
    stepPython(app.record, place, step),
    step ? "this step as Python" : "this pass as Python",
  );

/** Code that returns a pass, or one of its steps; a pass that is one function has no matches.
 * @param {Pick<PageRecord, "expr" | "passes" | "variants">} record
 * @param {number} place
 * @param {number} step */
export function stepPython({ expr, passes, variants }, place, step) {
  const { python, rewrites, variant } = passes[place];
  const isMatch = step > 0 && step <= rewrites.length;
  const code = isMatch ? python.match.join(String(step - 1)) : python.outcome;
  return expr.python + (rowAt(variants, variant)?.recipe ?? "") + code;
}
