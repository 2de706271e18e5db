// CODE, on the right: the program of the variant, in the languages of the record. A line links to
// its loop, its nodes and its notebook line, and they link back. The program can be edited: the
// result is checked and timed like any variant.

import { copy, reference, toggleDiff } from "../../app/actions.js";
import { linked } from "../../app/links.js";
import { button, errorBox, failure, hasAny, headingOf, stageNote, tab } from "../../app/pieces.js";
import { h, recordText, refill, scrollBack } from "../../base/elements.js";
import { BESIDE } from "../../board/tree.js";
import { walkable } from "../../base/lists.js";
import { beginEdit, draftHere, draftOf } from "../../listing/drafts.js";
import { editorIn } from "../../listing/editor.js";
import { askForCosts, lineCosts } from "../../listing/line_costs.js";
import {
  codeView,
  diffSigns,
  diffView,
  keepPinnedInSight,
  markLine,
  showFirstLit,
} from "../../listing/lines.js";
import { originLinks } from "../../listing/origin.js";
import {
  askForCode,
  codeOf,
  isEmulated,
  isOnlyCompiled,
  languageOf,
  mayCome,
  missing,
  otherLanguages,
  ownLanguages,
  runsInPage,
  shownCode,
} from "../../listing/programs.js";

import { stageLines, stageOf } from "../../record/stage.js";

/** @import { App } from "../../app/store.js" */
/** @import { StageLine } from "../../record/stage.js" */
/** @import { CodeRow, LanguageRow, VariantRow } from "../../record.d.ts" */
/** @import { Changes, PanelRow } from "../../types.d.ts" */

/** The state of the panel: whether helpers are unfolded, the contents of the body, and the last
 * requests of code and costs.
 * @typedef {{
 *   helpers: boolean, shown: unknown[] | null, asked: unknown[] | null, priced: unknown,
 *   isFinished: boolean, stage: StageLine[] | null
 * }} CodeState */

/** @satisfies {PanelRow} */
export const panel = { place: "pane", order: 5, title: "Source", make: codePane };

/** @returns {CodeState} */
const newState = () => ({
  helpers: false,
  shown: null,
  asked: null,
  priced: null,
  isFinished: false,
  stage: null,
});

/** @param {App} app */
function codePane(app) {
  const el = h("section", { class: "wb-code-pane", "aria-label": "code" });
  const bar = h("div", { class: "wb-code-bar" });
  const trouble = h("div", { class: "wb-trouble" });
  const body = h("div", { class: "wb-code-body" });
  const origin = h("div", { class: "wb-code-origin", "aria-live": "polite" });
  const stage = h("div", { class: "wb-code-stage" });
  el.append(bar, trouble, stage, body, origin);
  const state = newState();
  const editor = editorIn(app);

  const update = (/** @type {Changes} */ changes) => {
    const variant = app.variant();
    const { variant: place, language } = app.view;
    const code = draftOf(app, place, language) ?? shownCode(app, variant);
    // where the pane is out of sight, the editor stands elsewhere
    const draft = app.arrangements.shows("code") ? draftHere(app, place, code?.language) : null;
    if (hasAny(changes, ...BAR_CHANGES)) {
      const edit = place !== null && code && !draft ? () => beginEdit(app, place, code) : null;
      refill(bar, ...codeBar(app, variant, code, edit));
    }
    if (hasAny(changes, "failure", "variant", "record")) {
      const error = variant?.edited && errorBox(variant.error);
      refill(trouble, failure(app, "code"), error, emulatedNote(app, variant));
    }
    if (hasAny(changes, ...STAGE_CHANGES)) {
      state.isFinished ||= changes.has("language") && state.stage !== null; // it was chosen
      refill(stage, sourceNote(app, state));
    }
    const shown = [state.stage, draft, ...shownParts(app, variant, code, state)];
    if (shown.some((part, i) => part !== state.shown?.[i])) {
      state.shown = shown;
      if (draft) editor.show(body, draft);
      else if (state.stage) refill(body, stageText(state.stage));
      else fillBody(app, body, variant, code, state, () => app.changed("editing"));
    }
    if (changes.has("draft")) editor.update();
    if (changes.has("code")) markLine(app, body, code);
    if (hasAny(changes, "code", "record", "variant", "picked")) {
      refill(origin, originLinks(app));
      keepPinnedInSight(body); // which has less height now
    }
    if (hasAny(changes, "picked", "code") && app.view.picked?.by !== "code") {
      showFirstLit(app, body);
    }
    askForCosts(app, place, code, state);
    askForProgram(app, state, changes);
  };
  return { el, update };
}

/** Request the program that is looked at, where the record lacks it.
 * @param {App} app
 * @param {CodeState} state
 * @param {Changes} changes */
function askForProgram(app, state, changes) {
  const { variant, language } = app.view;
  const isLookedAt = hasAny(changes, "variant", "language", "live");
  if (isLookedAt || changes.has("record")) {
    askForCode(app, "code", variant, language, state, isLookedAt);
  }
}

/** The inputs of the body; it is refilled only if one of them changes.
 * @param {App} app
 * @param {VariantRow | null} variant
 * @param {CodeRow | null} code
 * @param {CodeState} state */
function shownParts(app, variant, code, state) {
  return [
    code,
    state.helpers,
    app.view.diff,
    codeOf(reference(app), code?.language),
    codeBeside(app, code),
    variant?.error,
    variant?.gpu,
    app.pending("code"),
  ];
}

/** What the emulator found in edited code, and the way to its steps; null for other code.
 * @param {App} app
 * @param {VariantRow | null} variant */
function emulatedNote(app, variant) {
  if (!variant?.edited || !variant.gpu) return null;
  const { check, gpu } = variant;
  const defects = gpu.findings.filter((finding) => finding.is_defect);
  const rows = defects.slice(0, MOST_DEFECTS).map((finding) => {
    const lines = [...new Set(finding.lines.map((line) => gpu.lines[line].number))].filter(Boolean);
    const where = lines.length > 0 &&
      `${lines.length > 1 ? "lines" : "line"} ${lines.join(" and ")}: `;
    return h(
      "p",
      {},
      h("b", { class: "wb-bad", "data-term": finding.kind }, finding.kind),
      " ",
      where,
      recordText(finding.words, "", 300),
    );
  });
  const more = defects.length - rows.length;
  const verdict = !defects.length && check && h("p", { class: "wb-good" }, check.text);
  const steps = button(app, "step through it", () => app.select({ mode: "gpu" }), {
    name: "step-edited",
    title: "the run in GPU, step by step, from the first defect",
  });
  const left = more > 0 && h("p", { class: "wb-quiet" }, `and ${more} more`);
  return h("div", { class: "wb-code-emulated", role: "status" }, ...rows, left, verdict, steps);
}

const MOST_DEFECTS = 3;
const STAGE_CHANGES = [
  "pass",
  "step",
  "board",
  "record",
  "kernel",
  "variant",
  "language",
  "editing",
  "finished",
];

/** The note on a step that has no source yet: the pane shows the state of the step instead, or the
 * program that becomes of it, as the reader chooses.
 * @param {App} app
 * @param {CodeState} state */
function sourceNote(app, state) {
  const stage = stageOf(app);
  state.stage = null;
  if (!stage || stage.hasSource) return null;
  const lines = app.editing ? null : stageLines(app);
  if (lines && !state.isFinished) state.stage = lines;
  const is = state.stage ? "this is its IR" : "this is what it becomes";
  const note = stageNote(app, `${stage.where} there is no source yet: ${is}.`);
  const choose = () => {
    state.isFinished = state.stage !== null;
    app.changed("finished");
  };
  const other = state.stage ? "what it becomes" : "its IR";
  if (lines) {
    note.append(button(app, other, choose, {
      name: "finished",
      title: "the state of this step, or the program that is made of it in the end",
    }));
  }
  return note;
}

/** The state of a step as text.
 * @param {StageLine[]} lines */
const stageText = (lines) =>
  h(
    "div",
    { class: "wb-lines wb-stage-lines" },
    ...lines.map(({ text, nodes }) => {
      const el = h("div", { class: "wb-line" }, h("code", {}, text));
      return nodes.length ? linked(el, { by: "node", axes: [], nodes, lines: [] }) : el;
    }),
  );

const BAR_CHANGES = [
  "record",
  "kernel",
  "variant",
  "language",
  "diff",
  "live",
  "pending",
  "editing",
  "draft",
  "board",
  "mode",
];

/**
 * @param {App} app
 * @param {VariantRow | null} variant */
function nothingToShow(app, variant) {
  if (variant && app.pending("code")) return "Compiling…";
  return variant?.edited && variant.error ? "There is no program." : missing(app, variant);
}

/** The program in the same language that stands beside this one, while both sides are in sight.
 * @param {App} app
 * @param {CodeRow | null} code */
function codeBeside({ partner, arrangements }, code) {
  const isSeen = code && arrangements.shows("code") && arrangements.shows(`code${BESIDE}`);
  const other = isSeen && partner ? codeOf(partner.variant(), code.language) : null;
  return other?.lines.length ? other : null;
}

/** The signs of the lines that the program beside this one lacks.
 * @param {App} app
 * @param {CodeRow} code */
function signsBeside(app, code) {
  const other = codeBeside(app, code);
  if (!other) return undefined;
  const column = app.comparison?.column ?? 0;
  const [before, now] = column ? [other, code] : [code, other];
  return diffSigns(before.lines, now.lines)[column];
}

/**
 * @param {App} app
 * @param {HTMLElement} body
 * @param {VariantRow | null} variant
 * @param {CodeRow | null} code
 * @param {CodeState} state
 * @param {() => void} again */
function fillBody(app, body, variant, code, state, again) {
  if (!code) {
    return refill(body, h("p", { class: "wb-quiet wb-pad" }, nothingToShow(app, variant)));
  }
  if (code.error) return refill(body, errorBox(code.error));
  const pinned = reference(app);
  const other = app.view.diff && pinned !== variant ? codeOf(pinned, code.language) : null;
  const [costs, signs] = [lineCosts(variant, code), signsBeside(app, code)];
  const listing = { code, variant: app.view.variant, costs, signs };
  const lines = other
    ? diffView(app, listing, other, state.helpers)
    : codeView(app, listing, state, again);
  lines.style.setProperty("--digits", String(String(code.lines.length).length));
  const place = `${app.view.variant} ${code.language} ${Boolean(other)}`;
  const note = code.note ? h("p", { class: "wb-quiet wb-pad" }, code.note) : null;
  refill(body, note, lines);
  if (body.dataset.place !== place) scrollBack(body);
  body.dataset.place = place;
}

// The bar over the code: languages and actions.

/** `edit()` opens the editor; null: it is open.
 * @param {App} app
 * @param {VariantRow | null} variant
 * @param {CodeRow | null} code
 * @param {(() => void) | null} edit */
function codeBar(app, variant, code, edit) {
  const own = ownLanguages(app.record);
  const isThere = (/** @type {LanguageRow} */ { name }) =>
    codeOf(variant, name) || mayCome(app, variant, name);
  const tabs = own
    .filter(isThere)
    .map(({ name, title }) =>
      tab(
        name,
        (code?.language || app.view.language) === name,
        () => app.select({ language: name }),
        `code-${name}`,
        title,
      )
    );
  return [
    headingOf("code", "SOURCE"),
    walkable(
      "tablist",
      "language",
      { class: "wb-tabs", "aria-orientation": "horizontal" },
      ...tabs,
    ),
    otherLanguages(
      app,
      app.record.languages.filter((row) => row.role === "program" && !own.includes(row)),
      isThere,
      app.view.language,
      "other languages",
      (language) => app.select({ language }),
    ),
    h("span", { class: "wb-gap" }),
    diffButton(app, variant),
    button(app, "copy", () => code && copy(app, code.lines.join("\n"), code.language), {
      name: "copy-code",
      title: "the program as text",
    }),
    code &&
    edit &&
    languageOf(app, code.language)?.device && // a device runs the edited text
    editButton(app, code, edit),
  ];
}

/**
 * @param {App} app
 * @param {VariantRow | null} variant */
function diffButton(app, variant) {
  const other = reference(app);
  return button(app, "diff", () => toggleDiff(app), {
    pressed: Boolean(app.view.diff) && other !== variant, // the variant itself is no reference
    key: "d",
    name: "diff",
    title: other && other !== variant
      ? `against ${other.name.slice(0, 40)}, the pinned variant`
      : "this is the pinned variant: choose another one to see what differs",
  });
}

/**
 * @param {App} app
 * @param {CodeRow} code
 * @param {() => void} edit */
function editButton(app, code, edit) {
  const isInPage = runsInPage(app, code);
  const title = isInPage
    ? "your edit runs in this browser, checked and timed"
    : isEmulated(app.record, code.language)
    ? "your edit becomes a variant, run and checked on the emulator"
    : isOnlyCompiled(app.record, code.language)
    ? "your edit becomes a variant, compiled for another machine"
    : "your edit becomes a variant, checked and timed";
  return button(app, "edit", edit, { python: !isInPage, title });
}
