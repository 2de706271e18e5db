// A code editor: a text area with invisible letters over lines with numbers and colours. Both are
// as long as the text, so that the element around them scrolls.

import { linked } from "../app/links.js";
import { button } from "../app/pieces.js";
import { elementsOf, h, refill } from "../base/elements.js";
import {
  changedLines,
  faultOf,
  isChanged,
  leaveEdit,
  run,
  runInPython,
  undoEdit,
  write,
} from "./drafts.js";
import { codeLink, coloured } from "./lines.js";
import { canAsk } from "../app/actions.js";
import { isEmulated, isOnlyCompiled, languageOf } from "./programs.js";

/** @import { App } from "../app/store.js" */
/** @import { CodeRow } from "../record.d.ts" */
/** @import { CodeDraft } from "./drafts.js" */

const RUN = "Run the edited code";
const COMPILE = "Compile it as a variant";
const EMULATE = "Run it on the emulator";
const RUNS_EMULATED =
  "all work-items, on this machine: races, wrong values and accesses outside of memory are named; it takes no times";
const RUNS_IN_PAGE = "on the GPU of this browser; the answer is compared with the kernel's";
const COMPILES_ONLY = "for another machine: it does not run";
const RUNS_IN_PROCESS = "in a process of its own: a crash does not end the notebook";

/** The editor of a pane: `show` moves that of a draft into an element, and the caret into it for a
 * new draft; `update` shows its changes.
 * @param {App} app */
export function editorIn(app) {
  /** @type {{draft: CodeDraft, pane: ReturnType<typeof editorPane>} | null} */
  let shown = null;
  return {
    /** @type {(body: HTMLElement, draft: CodeDraft, isTinted?: boolean) => void} */
    show(body, draft, isTinted = false) {
      const isNew = shown?.draft !== draft;
      if (shown?.draft !== draft) shown = { draft, pane: editorPane(app, draft, isTinted) };
      const { pane } = shown;
      pane.update();
      refill(body, pane.el);
      if (isNew) requestAnimationFrame(pane.focus);
    },
    update: () => shown?.pane.update(),
  };
}

/**
 * @param {App} app
 * @param {CodeDraft} draft
 * @param {boolean} isTinted */
function editorPane(app, draft, isTinted) {
  const area = areaOf(app, draft);
  const lines = h("div", {
    class: `wb-editor-lines ${isTinted ? "wb-tinted" : ""}`,
    "aria-hidden": "true",
  });
  const page = h("div", { class: "wb-editor-page" }, lines, area);
  const status = h("div", { class: "wb-editor-status", role: "status" });
  const { mayEmulate, isCompiled, label, about } = wayOf(app, draft);
  const runButton = runButtonOf(app, draft, label, about);
  const undoButton = undoButtonOf(app, draft);
  const buttons = h(
    "div",
    { class: "wb-buttons" },
    runButton,
    draft.launch && mayEmulate && button(app, EMULATE, () => runInPython(app, draft), {
      python: true,
      name: "emulate-edit",
      title: RUNS_EMULATED,
    }),
    button(app, "Cancel", () => leaveEdit(app), {
      title: "close the editor; the draft is kept for the next edit of this program",
    }),
    undoButton,
  );
  const box = h("div", { class: "wb-editor-box" }, page);
  const el = h("div", { class: "wb-edit" }, box, status, buttons);
  /** @type {string[]} */
  let shown = [];
  /** @type {CodeRow | undefined} */
  let source;
  const update = () => {
    if (area.value !== draft.text) area.value = draft.text;
    shown = showLines(app, draft, lines, shown);
    page.style.setProperty("--digits", String(String(shown.length).length));
    const now = draft.code.find(({ language }) => language === draft.language);
    if (isTinted && now !== source) linkLines(draft, lines, source = now);
    markError(draft, lines);
    status.replaceChildren(...statusOf(draft, area, mayEmulate && !draft.launch));
    const running = isCompiled && !mayEmulate ? "Compiling…" : "Running…";
    undoButton.hidden = !isChanged(draft);
    runButton.textContent = draft.isRunning ? running : label;
  };
  update();
  const focus = () => area.focus({ preventScroll: true });
  return { el, update, focus };
}

/** How edited text runs: on the emulator, only through a compiler, or on its device; what its button
 * is called, and does.
 * @param {App} app
 * @param {CodeDraft} draft */
function wayOf(app, draft) {
  const mayEmulate = isEmulated(app.record, draft.language) && canAsk(app);
  const isCompiled = !draft.launch && isOnlyCompiled(app.record, draft.language);
  const [label, about] = draft.launch
    ? [RUN, RUNS_IN_PAGE]
    : mayEmulate
    ? [EMULATE, RUNS_EMULATED]
    : isCompiled
    ? [COMPILE, COMPILES_ONLY]
    : [RUN, RUNS_IN_PROCESS];
  return { mayEmulate, isCompiled, label, about };
}

/** The button that runs a draft, or only compiles it.
 * @type {(app: App, draft: CodeDraft, label: string, about: string) => HTMLElement} */
const runButtonOf = (app, draft, label, about) =>
  button(app, label, () => run(app, draft), {
    python: !draft.launch,
    name: "run-edit",
    title: `${about} · key Ctrl+Enter`,
  });

/** The button that discards a draft.
 * @type {(app: App, draft: CodeDraft) => HTMLElement} */
const undoButtonOf = (app, draft) =>
  button(app, "As it was", () => undoEdit(app, draft), {
    name: "undo-edit",
    title: "discard the draft",
  });

/** The text area of a draft.
 * @param {App} app
 * @param {CodeDraft} draft */
function areaOf(app, draft) {
  const area = h("textarea", {
    class: "wb-editor",
    spellcheck: "false",
    autocapitalize: "off",
    wrap: "off",
    "aria-label": "edit the code",
    "data-key": "editor",
    oninput: ({ target }) => write(app, draft, target.value),
    onkeydown: (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run(app, draft);
    },
  });
  area.value = draft.text;
  return area;
}

/** Refill the changed lines; return the lines.
 * @param {App} app
 * @param {CodeDraft} draft
 * @param {HTMLElement} container
 * @param {string[]} before */
function showLines(app, { language, text }, container, before) {
  const lines = text.split("\n");
  const known = languageOf(app, language);
  const { start, end, added } = changedLines(before, lines);
  for (let i = start; i < end; i++) container.children[start].remove();
  const next = container.children[start] ?? null;
  const rows = lines.slice(start, start + added).map((line) =>
    h("div", { class: "wb-line" }, h("code", {}, ...coloured(known, line), "\n"))
  );
  rows.forEach((row) => container.insertBefore(row, next));
  return lines;
}

/** Give lines the colours of their statements, as of the last compilation.
 * @param {CodeDraft} draft
 * @param {HTMLElement} lines
 * @param {CodeRow | undefined} source */
function linkLines({ variant }, lines, source) {
  elementsOf(lines, ".wb-line").forEach((row, i) => {
    const link = source?.links[i];
    const statement = link?.statement ?? null;
    row.classList.toggle("wb-statement", statement !== null);
    row.style.setProperty("--statement", String(statement ?? 0));
    if (link) linked(row, codeLink(link, variant));
  });
}

/** Mark the line at which the compiler stopped.
 * @param {CodeDraft} draft
 * @param {HTMLElement} lines */
function markError({ error }, lines) {
  lines.querySelector(".wb-line-error")?.classList.remove("wb-line-error");
  if (error?.line) lines.children[error.line - 1]?.classList.add("wb-line-error");
}

/** The message of the compiler about the text, or of the emulator.
 * @param {CodeDraft} draft
 * @param {HTMLTextAreaElement} area
 * @param {boolean} isEmulated */
function statusOf(draft, area, isEmulated) {
  const { error, text, compiled, isCompiling } = draft;
  if (error) {
    const { line } = error;
    const place = line ? `line ${line}: ` : "";
    return [
      h(
        "button",
        {
          class: "wb-editor-fault",
          type: "button",
          "data-key": "fault",
          title: [error.because, error.try].filter(Boolean).join("\n").slice(0, 2000),
          onclick: () => line && goToLine(area, line),
        },
        `✗ ${place}${faultOf(error)}`,
      ),
    ];
  }
  const [busy, done] = isEmulated
    ? ["reading…", "✓ the emulator can run it"]
    : ["compiling…", "✓ compiles"];
  const state = isCompiling || compiled !== text ? busy : done;
  return [h("span", { class: "wb-quiet" }, state)];
}

/** Put the caret at the beginning of a line.
 * @param {HTMLTextAreaElement} area
 * @param {number} line */
function goToLine(area, line) {
  const at = area.value.split("\n").slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
  area.focus();
  area.setSelectionRange(at, at);
}
