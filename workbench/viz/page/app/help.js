// Help: a sheet of the words, letters, signs and keys of the page. The words are in groups; kinds
// of axes, opts and passes have their texts in tables of their own.

import { elementsOf, focusedAround, h, refill } from "../base/elements.js";
import { hasWords } from "../base/text.js";
import { tabbed } from "./header.js";
import { KEYS } from "./keys.js";
import { button } from "./pieces.js";
import { goTour } from "./tour.js";

/** @import { Layout } from "../board/layouts.js" */
/** @import { Changes } from "../types.d.ts" */
/** @import { App } from "./store.js" */

/** A row of the sheet: a term, as text and as an element, and its meaning.
 * @typedef {{word: string, shown: Node | string, meaning: string}} Row
 * @typedef {{name: string, rows: Row[]}} Group */

const KEYS_GROUP = "keys";
const INTRO =
  "Keys act while the workbench has its ring; for JupyterLab's own keys (Ctrl+B, ..) leave it first: Esc or a click outside; Ctrl+S saves the notebook from here, too. Ctrl+wheel zooms a graph; a plain wheel scrolls the page. A click on the heading of a pane shows its words.";

/**
 * @param {App} app
 * @param {Layout[]} layouts */
export function helpPane(app, layouts) {
  const el = h("div", { class: "wb-help-place" });
  const update = (/** @type {Changes} */ changes) => {
    if (!changes.has("help")) return;
    const { help } = app.view;
    refill(el, help && helpSheet(app, layouts, help === true ? null : help));
    const hasFocus = app.root?.contains(focusedAround(app.root));
    if (help && hasFocus) elementsOf(el, "input")[0]?.focus({ preventScroll: true });
  };
  return { el, update };
}

/**
 * @param {App} app
 * @param {Layout[]} layouts
 * @param {string | null} first the group that is shown at first; null: all */
function helpSheet(app, layouts, first) {
  const groups = helpGroups(app, layouts);
  const state = { group: first, query: "" };
  const choice = h("span", { class: "wb-switch", role: "group", "aria-label": "groups of words" });
  const body = h("div", { class: "wb-help-body", tabindex: 0 });
  const field = h("input", {
    type: "search",
    class: "wb-input wb-find",
    placeholder: "find a word or a key",
    "aria-label": "find a word or a key",
    "data-key": "find-word",
    oninput: ({ target }) => (Object.assign(state, { query: target.value, group: null }), fill()),
  });
  const choose = (/** @type {string | null} */ group) => () => {
    Object.assign(state, { group, query: "" });
    field.value = "";
    fill();
  };
  const fill = () => {
    const names = [null, ...groups.map(({ name }) => name)];
    refill(choice, ...names.map((name) => groupButton(app, name, state.group, choose(name))));
    const searched = groups.filter(({ name }) => state.group === null || state.group === name);
    const found = (/** @type {(text: string) => string} */ as) =>
      searched.map((group) => helpGroup(group, state.query, as)).filter(Boolean);
    const shown = found(String);
    const rows = shown.length ? shown : found(numbered);
    const nothing = h("p", { class: "wb-quiet", role: "status" }, "nothing found");
    refill(body, ...rows.length ? rows : [nothing]);
    body.scrollTop = 0;
  };
  fill();
  return h(
    "div",
    { class: "wb-help wb-words-sheet", role: "dialog", "aria-label": "words and keys" },
    h(
      "div",
      { class: "wb-heading" },
      h("h3", {}, "WORDS AND KEYS"),
      field,
      !app.arrangements.isAlone && button(app, "tour", () => goTour(app, 0), {
        name: "tour",
        title: "what each pane is for, in six steps",
      }),
      button(app, "close", () => app.select({ help: false }), { key: "Esc" }),
    ),
    choice,
    body,
  );
}

/**
 * @param {App} app
 * @param {string | null} name null: all groups
 * @param {string | null} chosen
 * @param {() => void} choose */
const groupButton = (app, name, chosen, choose) =>
  button(app, name ?? "all", choose, {
    pressed: chosen === name,
    name: `help-${name ?? "all"}`,
    title: name ? `only the words of ${name}` : "all words and keys",
  });

/** A text in which all names have the same numbers: r_80_96 is a name like r_32_40_48, acc1 like acc0.
 * @param {string} text */
const numbered = (text) => text.replace(/\d+(_\d+)*/g, "0");

/** The rows of a group that contain all words of a query; null for a group without any.
 * @param {Group} group
 * @param {string} query
 * @param {(text: string) => string} as how both are compared */
function helpGroup({ name, rows }, query, as) {
  const named = query.replace(/(?<![\p{L}_])\d[\d.,]*/gu, " "); // "use 5 of 5", as it stands in the page
  const fitting = rows.filter(({ word, meaning }) =>
    hasWords(as(`${word} ${meaning} ${name}`), as(named.trim() ? named : query))
  );
  if (!fitting.length) return null;
  return h(
    "section",
    { "aria-label": name },
    h("h4", {}, name),
    name === KEYS_GROUP && h("p", { class: "wb-quiet" }, INTRO),
    h(
      "dl",
      {},
      ...fitting.flatMap(({ shown, meaning }) => [h("dt", {}, shown), h("dd", {}, meaning)]),
    ),
  );
}

/** All rows: keys, then the terms of the glossary, in each group with those of the record's tables.
 * @param {App} app
 * @param {Layout[]} layouts
 * @returns {Group[]} */
function helpGroups(app, layouts) {
  const { glossary } = app.record;
  const own = tables(app);
  return [
    { name: KEYS_GROUP, rows: keyRows(layouts) },
    ...glossary.map(({ name, terms }) => ({
      name,
      rows: [
        ...terms.map(([word, meaning]) => ({ word, shown: word, meaning })),
        ...own[name] ?? [],
      ],
    })),
  ];
}

/** The rows of the record's tables, by the group of the glossary in which they are listed.
 * @param {App} app
 * @returns {Record<string, Row[]>} */
function tables({ record }) {
  const { kinds, opt_kinds, families, passes } = record;
  const loops = Object.entries(kinds).map(([kind, { letter, name, caption }]) => ({
    word: `${letter} ${name}`,
    shown: h("span", { class: `wb-chip wb-k wb-k-${kind}` }, letter),
    meaning: `${name}: ${caption}`,
  }));
  const opts = Object.entries(opt_kinds).map(([word, { here, on_gpu }]) => ({
    word,
    shown: word,
    meaning: `on a processor: ${here}; on a GPU: ${on_gpu}`,
  }));
  const graphs = Object.entries(families).map(([word, { name }]) => ({
    word,
    shown: h("span", { class: "wb-family", style: `background: var(--wb-g-${word})` }, word),
    meaning: `${name}: the letter, shape and colour of a box`,
  }));
  const docs = new Map(passes.map(({ name, doc }) => [name, doc]));
  const passRows = [...docs].map(([word, meaning]) => ({ word, shown: word, meaning }));
  return { loops, opts, graphs, passes: passRows };
}

/** @param {Layout[]} layouts */
function keyRows(layouts) {
  const [first, second, ...rest] = KEYS;
  const tabs = tabbed(layouts);
  const numbers = tabs.map((_, i) => i).join(" ");
  const layoutsRow = [numbers, tabs.map(({ title }) => title).join(", ")];
  return [first, second, layoutsRow, ...rest].map(([key, does]) => ({
    word: String(key),
    shown: h("kbd", {}, key),
    meaning: String(does),
  }));
}
