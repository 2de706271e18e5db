// Elements that several panes share: buttons, errors, headings, tabs, choices, a notebook line, an
// argument of a kernel.

import { h, recordText } from "../base/elements.js";
import { phaseLetters } from "../record/kernels.js";
import { canAsk, failAt, measure, NEEDS_PYTHON, notify } from "./actions.js";
import { linked } from "./links.js";
import { lineLink, rowAt } from "./store.js";

/** @import { Child } from "../base/elements.d.ts" */
/** @import { ErrorWords, PhaseRow, VariantRow } from "../record.d.ts" */
/** @import { Changes } from "../types.d.ts" */
/** @import { App } from "./store.js" */

/** A button; one that needs Python is disabled, with the reason, in a page without it.
 * @param {App} app
 * @param {string} text
 * @param {() => unknown} actOn
 * @param {{
 *   python?: boolean, key?: string, pressed?: boolean | null, title?: string, name?: string
 * }} [options] */
export function button(
  app,
  text,
  actOn,
  { python = false, key = "", pressed = null, title = "", name = "" } = {},
) {
  const off = python && !canAsk(app);
  const hint = [off ? NEEDS_PYTHON : title, key && !off ? `key ${key}` : ""]
    .filter(Boolean)
    .join(" · ");
  const pressedAs = pressed === null ? null : String(pressed);
  return h(
    "button",
    {
      class: "wb-button",
      type: "button",
      "aria-disabled": off ? "true" : null,
      title: hint,
      "aria-pressed": pressedAs,
      "data-key": name || text,
      onclick: () => (off ? notify(app, NEEDS_PYTHON) : actOn()),
    },
    text,
  );
}

/** The button that times the selected variant.
 * @param {App} app */
export const timeButton = (app) =>
  button(app, app.pending("measure") ? "Timing…" : "Time", () => measure(app), {
    python: true,
    key: "t",
    name: "time",
    title: "this variant and the pinned one, in turns",
  });

/** An error as what / because / try.
 * @param {Partial<ErrorWords> | null | undefined} error
 * @param {(() => void) | null} [close] */
export function errorBox(error, close = null) {
  if (!error) return null;
  return h(
    "div",
    { class: "wb-error", role: "alert", "data-term": "error" },
    h("b", {}, recordText(error.what || "it failed", "", 1000)),
    error.because &&
      h(
        "div",
        {},
        h("i", {}, "because "),
        recordText(error.because, hasCarets(error.because) ? "wb-as-told" : "", 3000),
      ),
    error.try && h("div", {}, h("i", {}, "try "), recordText(error.try, "", 1000)),
    close &&
      h(
        "button",
        { class: "wb-button", type: "button", "data-key": "close-error", onclick: close },
        "dismiss",
      ),
  );
}

/** The error of a pane.
 * @param {App} app
 * @param {string} where */
export const failure = (app, where) =>
  errorBox(app.failures[where], () => failAt(app, where, null));

/** A compiler points with a caret at a column of the line above: all letters have the same width.
 * @param {string} text */
const hasCarets = (text) => /\n\s*[~^]+\s*$/m.test(text);

/** A heading of a pane, which is a glossary term, with elements at its right.
 * @param {string} text
 * @param {...Child} more */
export const heading = (text, ...more) => headingOf(text.toLowerCase(), text, ...more);

/** A heading with its glossary term.
 * @param {string} term
 * @param {string} text
 * @param {...Child} more */
export const headingOf = (term, text, ...more) =>
  h("div", { class: "wb-heading" }, h("h3", { "data-term": term }, text), ...more);

/** Whether any of some names changed.
 * @param {Changes} changes
 * @param {...string} names */
export const hasAny = (changes, ...names) => names.some((name) => changes.has(name));

/** The unfolded parts of lines of nodes, by the text of their button.
 * @type {WeakMap<App, Set<string>>} */
const UNFOLDED = new WeakMap();

/** Buttons of all the user's lines that made a node, the caller's first. Behind each a button
 * unfolds the lines in functions that it called.
 * @param {App} app
 * @param {number} n */
export const nodeLines = (app, n) =>
  app.record.nodes.lines[n].flatMap(([line, ...inner]) =>
    inner.length ? [lineButton(app, line), calledLines(app, line, inner)] : [lineButton(app, line)]
  );

/**
 * @param {App} app
 * @param {number} line
 * @param {number[]} inner */
function calledLines(app, line, inner) {
  const unfolded = UNFOLDED.get(app) ?? new Set();
  UNFOLDED.set(app, unfolded);
  const key = `called-${line}-${inner}`;
  const list = h("span", {}, ...inner.map((at) => lineButton(app, at)));
  const fold = h("button", {
    class: "wb-where",
    type: "button",
    "data-key": key,
    title: "lines in functions that this line called",
    onclick: () => {
      unfolded.has(key) ? unfolded.delete(key) : unfolded.add(key);
      show();
    },
  });
  const show = () => {
    list.hidden = !unfolded.has(key);
    fold.textContent = list.hidden ? `▸ ${inner.length}` : "▾";
    fold.setAttribute("aria-expanded", String(!list.hidden));
  };
  show();
  return h("span", {}, fold, list);
}

/** A notebook line as a button that pins all that comes from it.
 * @param {App} app
 * @param {number} line */
export function lineButton(app, line) {
  const { where, text } = app.record.lines[line];
  const pinnedNow = app.view.line === line;
  return linked(
    h(
      "button",
      {
        class: "wb-where",
        type: "button",
        title: text.slice(0, 1000),
        "data-key": `line-${line}`,
        "aria-pressed": String(pinnedNow),
        onclick: () => app.select({ line: app.view.line === line ? null : line }),
      },
      recordText(where),
    ),
    lineLink([line]),
  );
}

/** A tab of a tab list.
 * @param {string} title
 * @param {boolean} selected
 * @param {() => void} actOn
 * @param {string} key
 * @param {string} [hint] */
export function tab(title, selected, actOn, key, hint = "") {
  return h(
    "button",
    {
      class: "wb-tab",
      type: "button",
      role: "tab",
      "aria-selected": String(selected),
      "data-item": "",
      "data-key": key,
      title: hint,
      onclick: actOn,
    },
    title,
  );
}

/** A choice of one number.
 * @param {string} label
 * @param {[number, string][]} rows
 * @param {number | null} chosen
 * @param {(value: number) => void} actOn */
export function chooser(label, rows, chosen, actOn) {
  return h(
    "select",
    { "aria-label": label, "data-key": label, onchange: (e) => actOn(Number(e.target.value)) },
    ...rows.map(([value, text]) =>
      h("option", { value, selected: value === chosen }, text.slice(0, 80))
    ),
  );
}

/** What the state of a step lacks, or has otherwise, with the way out of the steps.
 * @param {App} app
 * @param {string} words */
export const stageNote = (app, words) =>
  h(
    "p",
    { class: "wb-stage", role: "note" },
    recordText(words, "", 300),
    button(app, "leave the step", () => app.select({ pass: null, step: 0 }), {
      name: "leave-step",
      title: "show the variant as it is after all passes",
    }),
  );

/** The number of a kernel on its colour.
 * @param {App} app
 * @param {number | null} kernel */
export function kernelNumber(app, kernel) {
  const tint = rowAt(app.record.plan.regions, kernel)?.colour;
  return h(
    "i",
    {
      class: "wb-kernel-no",
      "data-term": kernel === null ? "no kernel" : "number",
      style: tint ? `background:${tint}` : null,
    },
    kernel === null ? "·" : String(kernel + 1),
  );
}

/** The letters of the phases of a kernel, on its colour; null in a plan without training.
 * @param {PhaseRow[]} phases
 * @param {string | undefined} [colour] */
export const phaseMark = (phases, colour = phases.at(-1)?.colours[0]) =>
  phases.length
    ? h(
      "i",
      {
        class: "wb-phase",
        "data-term": phases[phases.length - 1].name,
        style: colour ? `background:${colour}` : null,
      },
      phaseLetters(phases),
    )
    : null;

// The user's names of a kernel's arguments: `p1` is the user's `a`. Code and statements keep the
// kernel's names, which opts and edits need; the user's names stand beside them.

/** Text with the user's name beside each argument that has one. The style sheet draws the name, so
 * that selected and copied text is the kernel's.
 * @param {VariantRow | null} variant
 * @param {string} text
 * @returns {Child[]} */
export function withNames(variant, text) {
  const named = new Map(
    variant?.loops?.buffers.flatMap(({ name, user }) => (user ? [[name, user]] : [])),
  );
  return text.split(/\b(p\d+)\b/).map((part) => {
    const user = named.get(part);
    return user === undefined
      ? part
      : h("span", { class: "wb-named", "data-user": user, title: `${part}: your ${user}` }, part);
  });
}
