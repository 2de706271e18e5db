// The card of a rule: its text, its source line, examples, its uses.

import { failure } from "../../app/pieces.js";
import { rulesOffBanner } from "../../app/rules/banner.js";
import { ruleHead } from "../../app/rules/head.js";
import { goToUse } from "../../app/rules/uses.js";
import { rowAt } from "../../app/store.js";
import { h, words } from "../../base/elements.js";
import { plural } from "../../base/text.js";
import { passesOf } from "../../record/passes.js";
import { usesByRule } from "../../record/uses.js";

/** @import { Child } from "../../base/elements.d.ts" */
/** @import { Use } from "../../record/uses.js" */
/** @import { App } from "../../app/store.js" */
/** @import { ListedRule } from "./section.d.ts" */

const MOST_PASSES = 40;

/** All that is known of a rule.
 * @param {App} app
 * @param {ListedRule | null} row
 * @returns {Child[]} */
export function ruleCard(app, row) {
  const failed = failure(app, "rewrites");
  if (!row) {
    return [failed, h("p", { class: "wb-quiet" }, "Select a rule: click, or j k and Enter.")];
  }
  return [
    rulesOffBanner(app),
    failed,
    ruleHead(app, row),
    row.doc && h("p", { class: "wb-rules-doc" }, words(row.doc, "", 1500)),
    h("pre", { "data-term": "rule" }, words(row.text, "", 1000)),
    h("p", { class: "wb-quiet", "data-term": "passes of a rule" }, `in ${row.passes.join(", ")}`),
    ...usesTable(app, row.name),
    ...exampleRows(row),
  ];
}

/** What the rule does to graphs that its tests check.
 * @param {ListedRule} row
 * @returns {Child[]} */
function exampleRows({ examples }) {
  if (!examples.length) return [];
  const rows = examples.map(({ before, after }) =>
    h(
      "pre",
      { "data-term": "examples" },
      words(before, "wb-rules-before", 500),
      words(after, "wb-rules-after", 500),
    )
  );
  return [h("h4", { "data-term": "examples" }, "EXAMPLES"), ...rows];
}

/** Where a rule fired, what leads to what is shown first; pressing a row shows the first use there.
 * @param {App} app
 * @param {string} name
 * @returns {Child[]} */
function usesTable(app, name) {
  const here = new Set(passesOf(app));
  const uses = usesByRule(app.record).get(name) ?? [];
  const none = app.record.passes.length
    ? "It fired nowhere in this exploration."
    : app.record.nothing;
  if (!uses.length) return [h("p", { class: "wb-quiet" }, none)];
  const isHere = (/** @type {Use} */ { pass }) => here.has(pass);
  const sorted = [...uses.filter(isHere), ...uses.filter((use) => !isHere(use))];
  const more = sorted.length - MOST_PASSES;
  return [
    h("h4", { "data-term": "fired" }, "FIRED"),
    h(
      "div",
      { class: "wb-rules-uses" },
      ...sorted.slice(0, MOST_PASSES).map((use) => useRow(app, use, isHere(use))),
    ),
    more > 0 && h("p", { class: "wb-quiet" }, `and in ${plural(more, "pass")} more`),
  ];
}

/**
 * @param {App} app
 * @param {Use} use
 * @param {boolean} isHere */
function useRow(app, use, isHere) {
  const { record } = app;
  const pass = record.passes[use.pass];
  const variant = rowAt(record.variants, use.variant);
  const kernel = variant?.kernel ?? pass.kernel;
  const whose = [
    kernel !== null && record.kernels.length > 1 && `kernel ${kernel + 1}`,
    variant?.name ?? "scheduling",
  ].filter(Boolean);
  return h(
    "button",
    {
      class: `wb-button${isHere ? "" : " wb-idle"}`,
      type: "button",
      "data-key": `use-${use.pass}-${use.variant}`,
      title: `the first of them in Rewrites${isHere ? "" : "; it shows that kernel or variant"}`,
      onclick: () => goToUse(app, use),
    },
    `${pass.name} × ${use.steps.length.toLocaleString("en")}`,
    h("span", { class: "wb-quiet" }, ` ${whose.join(", ")}`),
  );
}
