// Two programs side by side: any two languages of a variant, or two variants. What one statement
// became has its colour on both sides, and lights up on both.

import { listedVariants } from "../../app/actions.js";
import { button, chooser, errorBox, failure, hasAny, tab } from "../../app/pieces.js";
import { rowAt } from "../../app/store.js";
import { elementsOf, h, refill } from "../../base/elements.js";
import { focusItem, walkable } from "../../base/lists.js";
import { askForPasses, passesView } from "../../listing/compiler.js";
import { beginEdit, draftHere, draftOf } from "../../listing/drafts.js";
import { editorIn } from "../../listing/editor.js";
import { askForCosts, heatOf } from "../../listing/line_costs.js";
import {
  codeView,
  diffSigns,
  keepPinnedInSight,
  markLine,
  showFirstLit,
  showsHelpers,
} from "../../listing/lines.js";
import { originLinks } from "../../listing/origin.js";
import {
  askForCode,
  codeFor,
  codeOf,
  furtherLanguages,
  languageOf,
  machineCode,
  mayCome,
  mayEdit,
  missing,
  otherLanguages,
  ownLanguages,
  runsInPage,
} from "../../listing/programs.js";

/** @import { App } from "../../app/store.js" */
/** @import { CodeRow, LanguageRow, VariantRow } from "../../record.d.ts" */
/** @import { Changes, Column, PanelRow } from "../../types.d.ts" */

/** @satisfies {PanelRow} */
export const panel = {
  place: "pane",
  order: 11,
  title: "Two programs",
  make: modeSideBySide,
};

/** @param {App} app */
function modeSideBySide(app) {
  const failed = h("div", {});
  const columns = app.view.columns.map((_, place) => columnPane(app, place));
  const both = h("div", { class: "wb-side-columns" }, ...columns.map(({ el }) => el));
  const origin = h("div", { class: "wb-code-origin", "aria-live": "polite" });
  const el = h("div", { class: "wb-side" }, failed, both, origin);
  const update = (/** @type {Changes} */ changes) => {
    if (hasAny(changes, "record", "failure")) refill(failed, failure(app, "side_by_side"));
    columns.forEach((column) => column.update(changes));
    if (hasAny(changes, "code", "record", "variant", "picked")) {
      refill(origin, originLinks(app));
      keepPinnedInSight(both);
    }
  };
  const focus = () => {
    const item = elementsOf(both, ".wb-lines [data-item]")[0];
    focusItem(item?.closest("[data-walk]"), item);
  };
  return { el, update, focus, keys: {} };
}

// One of two programs side by side: its variant, its language, its device.

const SIDES = ["left", "right"];
const PASSES = "passes"; // in the selector of languages: the passes of the compiler
const SHOWN = -1; // in the selector of variants: the selected one

const BAR_CHANGES = [
  "record",
  "variant",
  "kernel",
  "columns",
  "live",
  "editing",
  "draft",
  "heat",
];

/** The contents of a column: a program of a variant, with its index.
 * @typedef {{place: number | null, variant: VariantRow | null, code: CodeRow | null}} Shown */

/** The state of a column: the contents of the body, the last requests, and the chosen pass of the
 * compiler.
 * @typedef {{
 *   shown: unknown[] | null, asked: unknown[] | null, priced: unknown, made: unknown, pass: number
 * }} ColumnState */

/** A column, with its selectors over its lines.
 * @param {App} app
 * @param {number} at */
function columnPane(app, at) {
  const bar = h("div", { class: "wb-code-bar" });
  const body = h("div", { class: "wb-code-body" });
  const el = h("section", { class: "wb-side-column", "aria-label": SIDES[at] }, bar, body);
  /** @type {ColumnState} */
  const state = { shown: null, asked: null, priced: null, made: null, pass: 0 };
  const editor = editorIn(app);
  const update = (/** @type {Changes} */ changes) => {
    const column = app.view.columns[at];
    const [shown, other] = [columnOf(app, column), columnOf(app, app.view.columns[1 - at])];
    const draft = draftHere(app, shown.place, column.language);
    if (hasAny(changes, ...BAR_CHANGES)) {
      refill(bar, ...columnBar(app, at, column, shown, Boolean(draft)));
    }
    const language = programOf(app, column);
    const isAsked = app.pending("code", { variant: shown.place, language });
    const { device } = column;
    const isMade = app.pending("compiler_passes", { variant: shown.place });
    const of = [column.language, device, draft, shown.code, shown.place, other.code, other.place];
    const parts = [...of, isAsked, isMade, state.pass, showsHelpers(), app.view.heat];
    if (parts.some((part, i) => part !== state.shown?.[i])) {
      state.shown = parts;
      if (draft) editor.show(body, draft, true);
      else if (isPasses(column)) refill(body, passesOrNot(app, shown, state, isAsked));
      else refill(body, linesOf(app, at, [shown, other], isAsked));
    }
    if (changes.has("draft")) editor.update();
    if (changes.has("code")) markLine(app, body, shown.code);
    if (hasAny(changes, "picked", "code", "columns")) showFirstLit(app, body);
    askForCosts(app, shown.place, shown.code, state);
    const isLookedAt = hasAny(changes, "variant", "columns", "answers");
    if (isLookedAt || changes.has("record")) {
      askForCode(app, "side_by_side", shown.place, language, state, isLookedAt, device);
    }
    if (isPasses(column)) askForPasses(app, "side_by_side", shown.place, shown.code, state);
  };
  return { el, update };
}

/** The contents of a column.
 * @param {App} app
 * @param {Column} column
 * @returns {Shown} */
function columnOf(app, column) {
  const place = column.variant ?? app.view.variant;
  const variant = rowAt(app.record.variants, place);
  const language = programOf(app, column);
  const { device } = column;
  const code = draftOf(app, place, language, device) ?? codeFor(app, variant, language, device);
  return { place, variant, code };
}

/** Change the contents of a column.
 * @param {App} app
 * @param {number} at
 * @param {Partial<Column>} change */
function setColumn(app, at, change) {
  app.select({
    columns: app.view.columns.map((column, i) => (i === at ? { ...column, ...change } : column)),
  });
}

/** The head of a column: its selectors, and the editor's button.
 * @param {App} app
 * @param {number} at
 * @param {Column} column
 * @param {Shown} shown
 * @param {boolean} isEdited */
function columnBar(app, at, column, shown, isEdited) {
  const { place, code } = shown;
  const other = code && code.device !== (column.device ?? app.record.device) &&
    !languageOf(app, code.language)?.device;
  const role = code && languageOf(app, code.language)?.role;
  const isText = code && role !== "statements" && mayEdit(app, code.language);
  const isForEdit = !isEdited && place !== null && isText;
  return [
    variantChoice(app, at, column),
    deviceChoice(app, at, column),
    ...languageTabs(app, at, column, shown),
    code?.help && !isPasses(column) &&
    button(app, "heat", () => app.select({ heat: !app.view.heat }), {
      pressed: app.view.heat,
      name: `${SIDES[at]}-heat`,
      title: "the share of each instruction in a run, and in the work of the core's busiest port " +
        "where llvm-mca is installed: estimates, not measurements",
    }),
    other && h("span", {
      class: "wb-quiet",
      title: `the device ${code.device} makes it of the edited code`,
    }, `by ${code.device}`),
    code && isStale(app, shown) &&
    h("span", { class: "wb-bad", title: "the draft does not compile" }, "as it was"),
    isForEdit && button(app, "edit", () => beginEdit(app, place, code), {
      python: !runsInPage(app, code),
      name: `${SIDES[at]}-edit`,
      title: "the machine code beside it follows your edits",
    }),
  ];
}

/** Whether a program is that of a text that was edited since.
 * @param {App} app
 * @param {Shown} shown */
const isStale = ({ editing }, { place, code }) =>
  Boolean(code && editing?.variant === place && editing.error && editing.code.includes(code));

/** The variant of a column: the selected one, or a fixed one.
 * @param {App} app
 * @param {number} at
 * @param {Column} column */
function variantChoice(app, at, column) {
  const name = app.variant()?.name ?? "none";
  const places = listedVariants(app);
  const chosen = column.variant;
  if (chosen !== null && !places.includes(chosen)) places.push(chosen); // of another kernel
  return chooser(
    `variant on the ${SIDES[at]}`,
    [
      [SHOWN, `selected: ${name}`],
      .../** @type {[number, string][]} */ (places.map((i) => [i, app.record.variants[i].name])),
    ],
    chosen ?? SHOWN,
    (variant) => setColumn(app, at, { variant: variant === SHOWN ? null : variant }),
  );
}

/** The selector of the device that compiles: another one makes other machine code of the same
 * statements.
 * @param {App} app
 * @param {number} at
 * @param {Column} column */
function deviceChoice(app, at, column) {
  const { device, devices } = app.record;
  const names = devices.filter(({ available }) => available).map(({ name }) => name);
  const chosen = column.device ?? device;
  if (!names.includes(chosen)) names.push(chosen);
  if (names.length < 2) return null;
  const choose = (/** @type {number} */ i) =>
    setColumn(app, at, { device: names[i] === device ? null : names[i] });
  const select = chooser(
    `device on the ${SIDES[at]}`,
    names.map((name, i) => [i, `by ${name}`]),
    names.indexOf(chosen),
    choose,
  );
  select.title = "the device that makes the machine code and the statement tree";
  return select;
}

/**
 * @param {App} app
 * @param {number} at
 * @param {Column} column
 * @param {Shown} shown */
function languageTabs(app, at, column, { variant }) {
  const { device } = column;
  const own = ownLanguages(app.record, device);
  const isThere = (/** @type {LanguageRow} */ { name }) =>
    codeFor(app, variant, name, device) || mayCome(app, variant, name, device);
  const tabs = own
    .filter(isThere)
    .map(({ name, title }) =>
      tab(
        name,
        column.language === name,
        () => setColumn(app, at, { language: name }),
        `${SIDES[at]}-${name}`,
        title,
      )
    );
  if ((!device || device === app.record.device) && codeOf(variant, machineCode(app.record))) {
    tabs.push(tab(
      "compiler's passes",
      isPasses(column),
      () => setColumn(app, at, { language: PASSES }),
      `${SIDES[at]}-passes`,
      "the passes of the compiler that made the machine code, with the changes of each",
    ));
  }
  return [
    walkable(
      "tablist",
      `language on the ${SIDES[at]}`,
      { class: "wb-tabs", "aria-orientation": "horizontal" },
      ...tabs,
    ),
    otherLanguages(
      app,
      furtherLanguages(app.record, own),
      isThere,
      column.language,
      `other languages on the ${SIDES[at]}`,
      (language) => setColumn(app, at, { language }),
    ),
  ];
}

/** The language of a column's program, or of the program whose passes it shows.
 * @param {App} app
 * @param {Column} column */
const programOf = (app, column) => isPasses(column) ? machineCode(app.record) : column.language;

/** @param {Column} column */
const isPasses = ({ language }) => language === PASSES;

/** The passes of the compiler that made the machine code.
 * @param {App} app
 * @param {Shown} shown
 * @param {ColumnState} state
 * @param {boolean} isAsked */
function passesOrNot(app, { place, variant, code }, state, isAsked) {
  if (code?.made_by) {
    const choose = (/** @type {number} */ pass) => {
      state.pass = pass;
      app.changed("columns");
    };
    return passesView(code.made_by, Math.min(state.pass, code.made_by.passes.length - 1), choose);
  }
  const isOnItsWay = isAsked || app.pending("compiler_passes", { variant: place });
  const none = code ? "The passes of the compiler are not known." : missing(app, variant);
  return h("p", { class: "wb-quiet wb-pad" }, isOnItsWay ? "Asking the compiler…" : none);
}

/** The lines of a column. Two variants in one language show their differences, others their
 * statements.
 * @param {App} app
 * @param {number} at
 * @param {Shown[]} sides
 * @param {boolean} isAsked */
function linesOf(app, at, [{ place, variant, code }, other], isAsked) {
  if (!code) {
    return h("p", { class: "wb-quiet wb-pad" }, isAsked ? "Compiling…" : missing(app, variant));
  }
  if (code.error) return errorBox(code.error);
  const isDiff = other.code?.language === code.language && other.place !== place;
  /** @type {[CodeRow, CodeRow] | null} */
  const pair = isDiff && other.code ? at ? [other.code, code] : [code, other.code] : null;
  const signs = pair && diffSigns(pair[0].lines, pair[1].lines)[at];
  const heat = app.view.heat && code.help ? heatOf(variant, code) : null;
  const beside = isDiff ? other.code : null;
  const lines = codeView(
    app,
    { code, variant: place, beside, signs: signs ?? undefined, heat },
  );
  lines.classList.toggle("wb-tinted", other.place === place && code !== other.code);
  lines.style.setProperty("--digits", String(String(code.lines.length).length));
  return lines;
}
