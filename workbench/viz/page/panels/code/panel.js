// CODE, on the right: the program of the variant, in the languages of the record. A line links to
// its loop, its nodes and its notebook line, and they link back. The program can be edited: the
// result is checked and timed like any variant.

import { checkClass, copy, reference, toggleDiff } from "../../app/actions.js";
import { linked } from "../../app/links.js";
import { button, errorBox, failure, hasAny, headingOf, stageNote, tab } from "../../app/pieces.js";
import { h, recordText, refill, scrollBack } from "../../base/elements.js";
import { BESIDE } from "../../board/tree.js";
import { walkable } from "../../base/lists.js";
import { cut } from "../../base/text.js";
import { draftHere, draftOf, editCode } from "../../listing/drafts.js";
import { editorIn } from "../../listing/editor.js";
import { askForCosts, lineCosts } from "../../listing/line_costs.js";
import {
  codeView,
  diffSigns,
  diffView,
  keepPinnedInSight,
  lineInSight,
  markLine,
  showFirstLit,
  showsHelpers,
} from "../../listing/lines.js";
import { originLinks } from "../../listing/origin.js";
import {
  askForCode,
  codeOf,
  furtherLanguages,
  isEmulated,
  isOnlyCompiled,
  mayCome,
  mayEdit,
  missing,
  otherLanguages,
  ownLanguages,
  runsInPage,
  shownCode,
} from "../../listing/programs.js";

import { stageLines, stageOf } from "../../record/stage.js";

/** @import { App } from "../../app/store.js" */
/** @import { Listing } from "../../listing/lines.js" */
/** @import { StageLine } from "../../record/stage.js" */
/** @import {
 *   CodeRow, ErrorWords, LanguageRow, LoweredReply, PlanPicture, VariantRow
 * } from "../../record.d.ts" */
/** @import { Changes, PanelRow } from "../../types.d.ts" */

/** The state of the panel: the contents of the body, and the last requests of code and costs; while
 * a step is shown what the reader chose to see of it, its state as text, and the program that is
 * made of that state.
 * @typedef {{
 *   shown: unknown[] | null, asked: unknown[] | null, priced: unknown,
 *   chosen: "state" | "end" | "onward", stage: StageLine[] | null, onward: LoweredReply | null
 * }} CodeState */

const SIDES = ["code", `code${BESIDE}`];

/** @satisfies {PanelRow} */
export const panel = { place: "pane", order: 5, title: "Source", make: codePane };

/** @returns {CodeState} */
const newState = () => ({
  shown: null,
  asked: null,
  priced: null,
  chosen: "state",
  stage: null,
  onward: null,
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
    const isInSight = SIDES.some((pane) => app.arrangements.shows(pane));
    const draft = isInSight ? draftHere(app, place, code?.language) : null;
    if (hasAny(changes, ...BAR_CHANGES)) {
      const mayOpen = place !== null && code && !draft;
      const edit = () => mayOpen && editCode(app, place, code, lineInSight(app, body));
      refill(bar, ...codeBar(app, variant, code, mayOpen ? edit : null));
    }
    if (hasAny(changes, "failure", "variant", "record")) {
      const error = variant?.edited && errorBox(variant.error);
      refill(trouble, failure(app, "code"), error, emulatedNote(app, variant));
    }
    if (hasAny(changes, ...STAGE_CHANGES)) refill(stage, sourceNote(app, state, changes));
    const shown = [state.stage, state.onward, draft, ...shownParts(app, variant, code)];
    if (shown.some((part, i) => part !== state.shown?.[i])) {
      state.shown = shown;
      if (draft) editor.show(body, draft);
      else if (state.onward) refill(body, onwardText(app, state.onward));
      else if (state.stage) refill(body, stageText(state.stage));
      else fillBody(app, body, variant, code);
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
  const isLookedAt = hasAny(changes, "variant", "language", "answers");
  if (isLookedAt || changes.has("record")) {
    askForCode(app, "code", variant, language, state, isLookedAt);
  }
}

/** The inputs of the body; it is refilled only if one of them changes.
 * @param {App} app
 * @param {VariantRow | null} variant
 * @param {CodeRow | null} code */
function shownParts(app, variant, code) {
  return [
    code,
    showsHelpers(),
    app.view.diff,
    codeOf(reference(app), code?.language),
    codeBeside(app, code),
    variant?.error,
    variant?.gpu,
    !code && app.pending("code"),
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
  const verdict = !defects.length && check && h("p", { class: checkClass(check) }, check.text);
  const steps = button(app, "step through it", () => app.select({ mode: "gpu" }), {
    name: "step-edited",
    title: "the run in GPU, step by step, from the first defect",
  });
  const left = more > 0 && h("p", { class: "wb-quiet" }, `and ${more} more`);
  return h("div", { class: "wb-code-emulated", role: "status" }, ...rows, left, verdict, steps);
}

const MOST_DEFECTS = 3;
const STAGE_CHANGES = [
  "mode",
  "pass",
  "step",
  "board",
  "record",
  "kernel",
  "variant",
  "language",
  "editing",
  "finished",
  "pending",
  "live",
];

/** The note on a step that has no source yet: the pane shows the state of the step instead, what
 * becomes of it in the end, or the program that the passes after it make of it, as the reader
 * chooses.
 * @param {App} app
 * @param {CodeState} state
 * @param {Changes} changes */
function sourceNote(app, state, changes) {
  if (changes.has("language") && state.stage) state.chosen = "end"; // the reader chose it
  const stage = stageOf(app);
  Object.assign(state, { stage: null, onward: null });
  if (!stage || stage.hasSource) return null;
  const lines = app.editing ? null : stageLines(app);
  const answer = ANSWERS.get(app.record.plan)?.get(onwardKey(app)) ?? null;
  if (lines && state.chosen === "onward") state.onward = answer?.reply ?? null;
  if (lines && !state.onward && state.chosen !== "end") state.stage = lines;
  const is = state.stage ? "this is its IR" : "this is what it becomes";
  const note = stageNote(
    app,
    state.onward ? state.onward.words : `${stage.where} there is no source yet: ${is}.`,
  );
  if (!lines) return note;
  const choose = (/** @type {CodeState["chosen"]} */ chosen) => () => {
    state.chosen = chosen;
    if (chosen === "onward") lowerOn(app);
    app.changed("finished");
  };
  const isPending = app.pending("lower_on");
  note.append(
    ...(state.stage ? [] : [button(app, "its IR", choose("state"), {
      name: "state",
      title: "the state of this step as text",
    })]),
    ...(state.stage || state.onward
      ? [button(app, "what it becomes", choose("end"), {
        name: "finished",
        title: "the program that is made of it in the end",
      })]
      : []),
    ...(state.onward || !canLowerOn(app)
      ? []
      : [button(app, isPending ? "lowering …" : "lowered on from here", choose("onward"), {
        python: true,
        name: "onward",
        title: "stop this pass here: the program that the passes after it make of this state",
      })]),
  );
  return h("div", {}, note, state.chosen === "onward" && errorBox(answer?.error));
}

/** What Python answered about states, by plan and by the state: a program, or why there is none.
 * @type {WeakMap<PlanPicture, Map<string, {reply: LoweredReply | null, error: ErrorWords | null}>>} */
const ANSWERS = new WeakMap();

/** @param {App} app */
const onwardKey = ({ view: { variant, pass, step, language } }) =>
  [variant, pass, step, language].join();

/** Whether the step that is shown is one of rules, which can stop there.
 * @param {App} app */
function canLowerOn({ record, view }) {
  const row = view.pass === null ? null : record.passes[view.pass];
  return row?.unit === "rewrite" && row.rewrites.length > 0 && view.variant !== null;
}

/** Ask for the program that the passes after the step that is shown make of its state, once.
 * @param {App} app */
async function lowerOn(app) {
  const { record: { plan }, view: { variant, pass, step, language } } = app;
  const answers = ANSWERS.get(plan) ?? new Map();
  ANSWERS.set(plan, answers);
  const key = onwardKey(app);
  if (variant === null || pass === null || answers.has(key)) return;
  try {
    const { result } = await app.ask({ do: "lower_on", variant, pass, step, language });
    answers.set(key, { reply: result, error: null });
  } catch (error) {
    answers.set(key, { reply: null, error: /** @type {ErrorWords} */ (error) });
  }
  app.changed("finished");
}

/** A program that was made of a state, with its differences from the finished one.
 * @param {App} app
 * @param {LoweredReply} onward */
function onwardText(app, { code }) {
  const finished = codeOf(app.variant(), code.language);
  const other = finished?.lines.length ? finished : null;
  return linesOf(app, { code, variant: app.view.variant }, other);
}

/** The state of a step as text.
 * @param {StageLine[]} lines */
const stageText = (lines) =>
  h(
    "div",
    { class: "wb-lines wb-stage-lines", tabindex: 0 }, // keys scroll it: no line takes the focus
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
  const isSeen = code && SIDES.every((pane) => arrangements.shows(pane));
  const other = isSeen && partner ? codeOf(partner.variant(), code.language) : null;
  return other?.lines.length ? other : null;
}

/** The signs of the lines that the program beside this one lacks.
 * @param {App} app
 * @param {CodeRow} code
 * @param {CodeRow | null} other */
function signsBeside(app, code, other) {
  if (!other) return undefined;
  const column = app.comparison?.column ?? 0;
  const [before, now] = column ? [other, code] : [code, other];
  return diffSigns(before.lines, now.lines)[column];
}

/**
 * @param {App} app
 * @param {HTMLElement} body
 * @param {VariantRow | null} variant
 * @param {CodeRow | null} code */
function fillBody(app, body, variant, code) {
  if (!code) {
    return refill(body, h("p", { class: "wb-quiet wb-pad" }, nothingToShow(app, variant)));
  }
  if (code.error) return refill(body, errorBox(code.error));
  const pinned = reference(app);
  const other = app.view.diff && pinned !== variant ? codeOf(pinned, code.language) : null;
  const beside = codeBeside(app, code);
  const [costs, signs] = [lineCosts(variant, code), signsBeside(app, code, beside)];
  const lines = linesOf(app, { code, variant: app.view.variant, beside, costs, signs }, other);
  const place = `${app.view.variant} ${code.language} ${Boolean(other)}`;
  const note = code.note ? h("p", { class: "wb-quiet wb-pad" }, code.note) : null;
  refill(body, note, lines);
  if (body.dataset.place !== place) scrollBack(body);
  body.dataset.place = place;
}

/** The lines of a program; with its differences from another one, if there is one.
 * @param {App} app
 * @param {Listing} listing
 * @param {CodeRow | null} other */
function linesOf(app, listing, other) {
  const lines = other ? diffView(app, listing, other) : codeView(app, listing);
  lines.style.setProperty("--digits", String(String(listing.code.lines.length).length));
  return lines;
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
      furtherLanguages(app.record, own),
      isThere,
      app.view.language,
      "other languages",
      (language) => app.select({ language }),
    ),
    h(
      "span",
      { class: "wb-code-tools" },
      diffButton(app, variant),
      button(app, "copy", () => code && copy(app, code.lines.join("\n"), code.language), {
        name: "copy-code",
        title: "the program as text",
      }),
      code && edit && mayEdit(app, code.language) && editButton(app, code, edit),
    ),
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
      ? `against ${cut(other.name, 40)}, the pinned variant`
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
