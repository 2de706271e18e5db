// Rules: every rule of the package and of cells and every step of a pass, searchable, with its text,
// its passes, and its matches in this exploration. The reader can step to its uses, and switch it
// off.

import { act } from "../../app/actions.js";
import { button, failure, hasAny, heading, headingOf } from "../../app/pieces.js";
import { goToUse, isRuleOff, ruleCode, ruleHead, rulesOffBanner, stepUse } from "../../app/rule.js";
import { rowAt } from "../../app/store.js";
import { h, recordText, refill } from "../../base/elements.js";
import { focusItem, rove, walkable } from "../../base/lists.js";
import { hasWords, plural } from "../../base/text.js";
import { passesOf } from "../../record/passes.js";
import { countUses, usesByRule } from "../../record/rule_uses.js";

/** @import { App } from "../../app/store.js" */
/** @import { Child } from "../../base/elements.d.ts" */
/** @import { PageRecord } from "../../record.d.ts" */
/** @import { Use } from "../../record/rule_uses.js" */
/** @import { Changes, PanelRow } from "../../types.d.ts" */
/** @import { ListedRule } from "./section.d.ts" */

/** @typedef {ListedRule & {is_fixed?: boolean}} OwnRule */

/** @satisfies {PanelRow} */
export const panel = {
  place: "pane",
  order: 9,
  title: "Rules",
  make: (/** @type {App} */ app, /** @type {() => ListedRule[]} */ rows) => new Rules(app, rows),
};

class Rules {
  query = "";
  firedOnly = false;
  isByUse = false;
  /** The listed rules, and their uses.
   * @type {unknown[]} */
  #filledWith = [];
  head = h("div", {});
  list = h("div", { class: "wb-rules-list" });
  card = h("div", { class: "wb-rules-card" });
  typed = h("input", {
    type: "text",
    class: "wb-input",
    placeholder: "x * 2 -> x + x",
    spellcheck: "false",
    "aria-label": "a rule of your own",
    "data-key": "typed-rule",
    "data-term": "typed rule",
    onkeydown: ({ key }) => key === "Enter" && this.#try(),
  });
  go = h("span", {});
  line = h("div", { class: "wb-filter" }, this.typed, this.go); // the focus stays in the field
  outcome = h("div", {
    class: "wb-rules-outcome",
    role: "status",
    title: "what came of the rule that was tried",
  });
  trial = h("div", { class: "wb-rules-trial" });
  /** What the form was filled with.
   * @type {unknown[]} */
  #shownTrial = [];

  /**
   * @param {App} app
   * @param {() => ListedRule[]} rows */
  constructor(app, rows) {
    this.app = app;
    this.rows = rows;
    this.field = h("input", {
      type: "search",
      class: "wb-input",
      placeholder: "/ name, sentence, pass, file",
      "aria-label": "find a rule",
      oninput: ({ target }) => ((this.query = target.value), this.#fill()),
      onkeydown: ({ key }) => key === "Enter" && this.#goToFirst(),
    });
    const fired = h("input", {
      type: "checkbox",
      onchange: ({ target }) => ((this.firedOnly = target.checked), this.#fill()),
    });
    const filter = h(
      "div",
      { class: "wb-filter" },
      this.field,
      h(
        "label",
        { title: "only rules that fired in scheduling, or for the variant shown" },
        fired,
        "fired",
      ),
    );
    const side = h("div", { class: "wb-rules-side" }, this.head, filter, this.list, this.trial);
    this.el = h("div", { class: "wb-rules" }, side, this.card);
    this.keys = {
      "/": () => this.field.focus(),
      n: () => stepUse(app, app.view.rule, 1),
      N: () => stepUse(app, app.view.rule, -1),
    };
  }

  /** @param {Changes} changes */
  update(changes) {
    const { app } = this;
    const [rows, uses, own] = this.#filledWith;
    const isOther = rows !== this.rows() || uses !== usesByRule(app.record) ||
      own !== ownRules(app.record, this.rows()).join("\n");
    const isNews = hasAny(changes, "record", "variant", "kernel", "live", "pending", "failure");
    if (isOther || changes.has("variant")) this.#fill();
    if (changes.has("rule")) this.#mark();
    if (isNews) this.#fillTrial();
    if (isNews || changes.has("rule")) refill(this.card, ...ruleCard(app, this.#chosen()));
  }

  #fillTrial() {
    const { app } = this;
    const pending = Boolean(app.pending("try_rule"));
    const failed = failure(app, "typed rule");
    const shown = [pending, app.live, failed && app.failures["typed rule"]];
    // a button that a click is on must not be replaced
    if (shown.every((part, i) => part === this.#shownTrial[i])) return;
    this.#shownTrial = shown;
    const tryIt = button(app, pending ? "Trying…" : "try", () => this.#try(), {
      python: true,
      name: "try-rule",
      title: "tested on values of every dtype first; then a variant of this kernel has the rule",
    });
    refill(this.go, tryIt);
    refill(this.trial, headingOf("typed rule", "YOUR RULE"), this.line, failed, this.outcome);
  }

  /** Try the typed rule on this variant. */
  async #try() {
    const { app } = this;
    const { variant } = app.view;
    const text = this.typed.value.trim();
    if (variant === null || !text || app.pending("try_rule")) return;
    refill(this.outcome);
    const reply = await act(app, "typed rule", {
      do: "try_rule",
      variant,
      text,
      language: app.view.language,
    });
    const { words = [], is_wrong: isWrong = false, variant: child = null } = reply?.result ?? {};
    const lines = words.map((line, at) =>
      h("div", { class: isWrong && !at ? "wb-bad" : null }, h("code", {}, line))
    );
    const row = child === null ? null : rowAt(app.record.variants, child);
    const verdict = row?.check;
    refill(
      this.outcome,
      verdict && h("p", { class: verdict.ok ? "wb-good" : "wb-bad" }, h("b", {}, verdict.text)),
      ...lines,
    );
    const rule = row?.rules_off.at(-1);
    if (rule) app.select({ rule }); // its card has the places where it fired
  }

  /** The reader's own rules, then those of the package. */
  #listed() {
    const { record } = this.app;
    const uses = usesByRule(record);
    return [
      ...ownRules(record, this.rows()).map((name) => ownRow(record, name, uses.get(name) ?? [])),
      ...this.rows(),
    ];
  }

  focus() {
    const item = this.#item();
    focusItem(this.list.querySelector("[data-walk]"), item);
  }

  #chosen() {
    return this.#listed().find(({ name }) => name === this.app.view.rule) ?? null;
  }

  /** @returns {HTMLElement | null} */
  #item() {
    return this.list.querySelector('[aria-selected="true"]') ??
      this.list.querySelector("[data-item]");
  }

  #fill() {
    const { app, query, firedOnly } = this;
    const rows = this.#listed();
    const uses = usesByRule(app.record);
    const own = ownRules(app.record, this.rows());
    this.#filledWith = [this.rows(), uses, own.join("\n")];
    // of one variant: with those of every variant that was opened, counts would say what was clicked
    const isShown = (/** @type {Use} */ { variant }) =>
      variant === null || variant === app.view.variant;
    const usesOf = (/** @type {ListedRule} */ { name }) =>
      countUses((uses.get(name) ?? []).filter(isShown));
    const isUsed = (/** @type {ListedRule} */ row) => usesOf(row) > 0;
    const rank = (/** @type {ListedRule} */ row) =>
      this.isByUse ? usesOf(row) : own.includes(row.name) ? 2 : Number(isUsed(row));
    const shown = rows.filter((row) =>
      hasWords(`${row.name} ${row.doc} ${row.passes.join(" ")} ${row.file} ${row.set}`, query) &&
      (!firedOnly || isUsed(row))
    ).sort((a, b) => rank(b) - rank(a)); // else the reader's, then those that fired, in their order
    const isRecorded = app.record.passes.length > 0;
    const fired = rows.filter(isUsed).length;
    const byUse = button(app, "by use", () => {
      this.isByUse = !this.isByUse;
      this.#fill();
    }, { pressed: this.isByUse, name: "rules-by-use", title: "the rule that fired most first" });
    refill(
      this.head,
      heading(
        "RULES",
        isRecorded && byUse,
        h("span", {
          class: "wb-quiet",
          title: "listed; and how many of them fired in scheduling, or for the variant shown",
        }, isRecorded ? `${rows.length}, of which ${fired} fired` : String(rows.length)),
      ),
    );
    const items = shown.map((row) => ruleItem(app, row, usesOf(row), own.includes(row.name)));
    const none = h("p", { class: "wb-quiet", role: "status" }, "nothing found");
    refill(this.list, items.length ? walkable("listbox", "rules", {}, ...items) : none);
  }

  #mark() {
    const { rule } = this.app.view;
    for (const item of this.list.querySelectorAll("[data-item]")) {
      item.setAttribute("aria-selected", String(item.getAttribute("data-key") === `rule-${rule}`));
    }
    /** @type {HTMLElement | null} */
    const list = this.list.querySelector("[data-walk]");
    if (list) rove(list);
    this.list.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
  }

  #goToFirst() {
    const first = this.list.querySelector("[data-item]");
    if (!(first instanceof HTMLElement)) return;
    first.click();
    focusItem(first.closest("[data-walk]"), first);
  }
}

/** The rules that the reader typed: variants have them, and the list of the package lacks them.
 * @param {PageRecord} record
 * @param {ListedRule[]} rows
 * @returns {string[]} */
function ownRules({ variants }, rows) {
  const known = new Set(rows.map(({ name }) => name));
  const names = variants.flatMap(({ deleted, rules_off: names }) => deleted ? [] : names);
  return [...new Set(names)].filter((name) => known.size && !known.has(name));
}

/** A typed rule as the list has the others.
 * @param {PageRecord} record
 * @param {string} name
 * @param {Use[]} uses
 * @returns {OwnRule} */
const ownRow = ({ passes }, name, uses) => ({
  name,
  text: "a rule of your own",
  doc: "",
  set: "",
  file: "",
  line: 0,
  passes: [...new Set(uses.map(({ pass }) => passes[pass].name))],
  examples: [],
  is_fixed: true, // it is in its variant; another variant is without it
});

/** A rule in a line: how often it fired, its name, its text.
 * @param {App} app
 * @param {ListedRule} row
 * @param {number} count
 * @param {boolean} isOwn */
function ruleItem(app, { name, doc, text, passes }, count, isOwn) {
  const isOff = !isOwn && isRuleOff(app, name);
  return h(
    "div",
    {
      role: "option",
      "data-item": "",
      "data-key": `rule-${name}`,
      "aria-selected": String(app.view.rule === name),
      class: `wb-row wb-rules-row${count ? "" : " wb-idle"}`,
      title: `${doc || text}\nin ${passes.join(", ")}`,
      onclick: () => app.select({ rule: name }),
    },
    h("span", { class: "wb-figure" }, app.record.passes.length > 0 && count.toLocaleString("en")),
    h("b", {}, recordText(name), isOff && h("i", { class: "wb-bad" }, " off")),
    h("span", { class: "wb-quiet wb-clip" }, doc || text),
  );
}

// The card of a rule: its text, its source line, examples, its uses.

const MOST_PASSES = 40;

/** The card of a rule.
 * @param {App} app
 * @param {OwnRule | null} row
 * @returns {Child[]} */
function ruleCard(app, row) {
  const failed = failure(app, "rewrites");
  if (!row) {
    return [failed, h("p", { class: "wb-quiet" }, "Select a rule: click, or j k and Enter.")];
  }
  return [
    rulesOffBanner(app),
    failed,
    ruleHead(app, row),
    row.doc && h("p", { class: "wb-rules-doc" }, recordText(row.doc, "", 1500)),
    row.text && h("pre", { "data-term": "rule" }, recordText(row.text, "", 1000)),
    row.file && ruleCode(app, row),
    h(
      "p",
      { class: "wb-quiet", "data-term": "passes of a rule" },
      row.passes.length > 0 && `in ${row.passes.join(", ")}`,
    ),
    ...usesTable(app, row.name),
    ...exampleRows(row),
  ];
}

/** The examples of the rule, which its tests check.
 * @param {ListedRule} row
 * @returns {Child[]} */
function exampleRows({ examples }) {
  if (!examples.length) return [];
  const rows = examples.map(({ before, after }) =>
    h(
      "pre",
      { "data-term": "examples" },
      recordText(before, "wb-rules-before", 500),
      recordText(after, "wb-rules-after", 500),
    )
  );
  return [h("h4", { "data-term": "examples" }, "EXAMPLES"), ...rows];
}

/** The passes in which a rule fired, those of the selected variant first; pressing a row shows the
 * first use in it.
 * @param {App} app
 * @param {string} name
 * @returns {Child[]} */
function usesTable(app, name) {
  const current = new Set(passesOf(app));
  const uses = usesByRule(app.record).get(name) ?? [];
  const none = app.record.passes.length
    ? "It fired nowhere in this exploration."
    : app.record.nothing;
  if (!uses.length) return [h("p", { class: "wb-quiet" }, none)];
  const isCurrent = (/** @type {Use} */ { pass }) => current.has(pass);
  const sorted = [...uses.filter(isCurrent), ...uses.filter((use) => !isCurrent(use))];
  const more = sorted.length - MOST_PASSES;
  return [
    h("h4", { "data-term": "fired" }, "FIRED"),
    h(
      "div",
      { class: "wb-rules-uses" },
      ...sorted.slice(0, MOST_PASSES).map((use) => useRow(app, use, isCurrent(use))),
    ),
    more > 0 && h("p", { class: "wb-quiet" }, `and in ${plural(more, "pass")} more`),
  ];
}

/**
 * @param {App} app
 * @param {Use} use
 * @param {boolean} isCurrent */
function useRow(app, use, isCurrent) {
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
      class: `wb-button${isCurrent ? "" : " wb-idle"}`,
      type: "button",
      "data-key": `use-${use.pass}-${use.variant}`,
      title: `the first of them in Rewrites${isCurrent ? "" : "; it shows that kernel or variant"}`,
      onclick: () => goToUse(app, use),
    },
    `${pass.name} × ${use.steps.length.toLocaleString("en")}`,
    h(
      "span",
      { class: "wb-quiet", "data-term": variant ? null : "scheduling" },
      ` ${whose.join(", ")}`,
    ),
  );
}
