// A code editor: a text area with invisible letters over lines with numbers and colours. The area is
// as long as the text, so that the element around it scrolls; of a long text, only the lines in sight
// are elements.

import { linked } from "../app/links.js";
import { button } from "../app/pieces.js";
import { elementsOf, h, recordText, refill } from "../base/elements.js";
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
import { codeLink, coloured, lineOfInterest } from "./lines.js";
import { canAsk } from "../app/actions.js";
import { isEmulated, isOnlyCompiled, languageOf } from "./programs.js";

/** @import { App } from "../app/store.js" */
/** @import { CodeRow, ErrorWords, LanguageRow } from "../record.d.ts" */
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
 * new draft, at the line of interest; `update` shows its changes.
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

/** The editor of a draft: its text, what the compiler says of it, and its buttons.
 * @param {App} app
 * @param {CodeDraft} draft
 * @param {boolean} isTinted */
function editorPane(app, draft, isTinted) {
  const way = wayOf(app, draft);
  const area = areaOf(app, draft);
  const text = textBox(app, draft, area, isTinted);
  const status = h("div", { class: "wb-editor-status", role: "status" });
  const buttons = buttonsOf(app, draft, way);
  const el = h("div", { class: "wb-edit" }, text.el, status, buttons.el);
  const goTo = (/** @type {ErrorWords} */ error) => goToPlace(area, text.el, error);
  const update = () => {
    text.update();
    status.replaceChildren(...statusOf(draft, goTo, way.mayEmulate && !draft.launch));
    buttons.update();
  };
  return { el, update, focus: text.focus };
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

/** The buttons of an editor: run, close, discard.
 * @param {App} app
 * @param {CodeDraft} draft
 * @param {ReturnType<typeof wayOf>} way */
function buttonsOf(app, draft, { mayEmulate, isCompiled, label, about }) {
  const runButton = button(app, label, () => run(app, draft), {
    python: !draft.launch,
    name: "run-edit",
    title: `${about} · key Ctrl+Enter`,
  });
  const undoButton = button(app, "As it was", () => undoEdit(app, draft), {
    name: "undo-edit",
    title: "discard the draft",
  });
  const el = h(
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
  const running = isCompiled && !mayEmulate ? "Compiling…" : "Running…";
  const update = () => {
    undoButton.hidden = !isChanged(draft);
    runButton.textContent = draft.isRunning ? running : label;
  };
  return { el, update };
}

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

// The lines of a text. One of more than MOST_ROWS has elements only for those in sight: a key in a
// text of 10,000 lines would else have the browser lay out all of them.

const MOST_ROWS = 400;
const MARGIN_ROWS = 40;
const ROW_PX = 17; // as in listing.css

/** The lines of a text, and those that have elements, from `first` on.
 * @typedef {{text: string | null, all: string[], first: number, rows: string[]}} Shown */

/** The text area of a draft over its lines, in an element that scrolls both.
 * @param {App} app
 * @param {CodeDraft} draft
 * @param {HTMLTextAreaElement} area
 * @param {boolean} isTinted */
function textBox(app, draft, area, isTinted) {
  const lines = h("div", {
    class: `wb-editor-lines ${isTinted ? "wb-tinted" : ""}`,
    "aria-hidden": "true",
  });
  const page = h("div", { class: "wb-editor-page" }, lines, area);
  const el = h("div", { class: "wb-editor-box" }, page);
  const known = languageOf(app, draft.language);
  /** @type {Shown} */
  const shown = { text: null, all: [], first: 0, rows: [] };
  /** @type {CodeRow | undefined} */
  let source;
  const showLines = () => {
    showInSight(shown, known, el, lines);
    if (isTinted && source) linkLines(draft, lines, source, shown.first);
    markError(draft, lines, shown.first);
  };
  const update = () => {
    if (shown.text !== draft.text) {
      if (area.value !== draft.text) area.value = draft.text;
      shown.text = draft.text;
      shown.all = draft.text.split("\n");
      layOut(page, shown.all);
    }
    source = draft.code.find(({ language }) => language === draft.language);
    showLines();
  };
  const showMore = () => shown.all.length > MOST_ROWS && showLines();
  el.addEventListener("scroll", showMore);
  const focus = () => {
    area.focus({ preventScroll: true });
    const line = lineOfInterest(app, { ...draft.of, lines: shown.all }, draft.seen);
    if (line) goToPlace(area, el, { line: line + 1 });
    showMore(); // it has a size now
  };
  return { el, update, focus };
}

/** Give the page of an editor the size of its text.
 * @param {HTMLElement} page
 * @param {string[]} lines */
function layOut(page, lines) {
  const isLong = lines.length > MOST_ROWS;
  page.style.setProperty("--digits", String(String(lines.length).length));
  page.style.height = isLong ? `${lines.length * ROW_PX + 2 + ROW_PX}px` : "";
  const most = isLong ? lines.reduce((widest, line) => Math.max(widest, columnsOf(line)), 0) : 0;
  page.style.width = isLong ? `calc(${most + 2}ch + var(--digits) * 1ch + 18px)` : "";
}

/** The greatest number of columns that a line takes: letters of some scripts take two, tabs too.
 * @param {string} line */
const columnsOf = (line) => /^[ -~]*$/.test(line) ? line.length : 2 * line.length;

/** Show the lines in sight: refill those that changed.
 * @param {Shown} shown
 * @param {LanguageRow | undefined} known
 * @param {HTMLElement} box
 * @param {HTMLElement} container */
function showInSight(shown, known, box, container) {
  const { all } = shown;
  const isLong = all.length > MOST_ROWS;
  const top = Math.floor(box.scrollTop / ROW_PX);
  const count = Math.ceil(box.clientHeight / ROW_PX);
  const first = isLong ? Math.max(0, Math.min(top, all.length - 1) - MARGIN_ROWS) : 0;
  const rows = isLong ? all.slice(first, top + count + MARGIN_ROWS) : all;
  container.style.paddingTop = first ? `${first * ROW_PX + 2}px` : "";
  container.style.counterReset = `line ${first}`;
  const { start, end, added } = changedLines(shown.rows, rows);
  for (let i = start; i < end; i++) container.children[start].remove();
  const next = container.children[start] ?? null;
  const fresh = rows.slice(start, start + added).map((line) =>
    h("div", { class: "wb-line" }, h("code", {}, ...coloured(known, line), "\n"))
  );
  fresh.forEach((row) => container.insertBefore(row, next));
  Object.assign(shown, { first, rows });
}

/** Give lines the colours of their statements, as of the last compilation.
 * @param {CodeDraft} draft
 * @param {HTMLElement} lines
 * @param {CodeRow} source
 * @param {number} first */
function linkLines({ variant }, lines, source, first) {
  elementsOf(lines, ".wb-line").forEach((row, i) => {
    const link = source.links[first + i];
    const statement = link?.statement ?? null;
    row.classList.toggle("wb-statement", statement !== null);
    row.style.setProperty("--statement", String(statement ?? 0));
    if (link) linked(row, codeLink(link, variant));
  });
}

/** Mark the line at which the compiler stopped.
 * @param {CodeDraft} draft
 * @param {HTMLElement} lines
 * @param {number} first */
function markError({ error }, lines, first) {
  lines.querySelector(".wb-line-error")?.classList.remove("wb-line-error");
  if (error?.line) lines.children[error.line - 1 - first]?.classList.add("wb-line-error");
}

/** The message of the compiler about the text, or of the emulator.
 * @param {CodeDraft} draft
 * @param {(error: ErrorWords) => void} goTo
 * @param {boolean} isEmulated */
function statusOf(draft, goTo, isEmulated) {
  const { error, text, compiled, isCompiling } = draft;
  if (error) {
    const { line, column } = error;
    const place = line ? `line ${line}${column ? `, column ${column}` : ""}: ` : "";
    return [
      h(
        "button",
        {
          class: "wb-editor-fault",
          type: "button",
          "data-key": "fault",
          title: [error.because, error.try].filter(Boolean).join("\n").slice(0, 2000),
          onclick: () => goTo(error),
        },
        `✗ ${place}${faultOf(error)}`,
      ),
      error.try && h("div", { class: "wb-quiet" }, "try ", recordText(error.try, "", 300)),
    ].filter((part) => part !== "");
  }
  const [busy, done] = isEmulated
    ? ["reading…", "✓ the emulator can run it"]
    : ["compiling…", "✓ compiles"];
  const state = isCompiling || compiled !== text ? busy : done;
  return [h("span", { class: "wb-quiet" }, state)];
}

/** Put the caret at a place, such as that of an error, in sight.
 * @param {HTMLTextAreaElement} area
 * @param {HTMLElement} box
 * @param {Pick<ErrorWords, "line" | "column">} place */
function goToPlace(area, box, { line, column }) {
  if (!line) return;
  const before = area.value.split("\n").slice(0, line - 1);
  const at = before.reduce((sum, words) => sum + words.length + 1, 0) + (column ?? 1) - 1;
  area.focus({ preventScroll: true });
  area.setSelectionRange(at, at);
  const top = (line - 1) * ROW_PX;
  const isSeen = box.scrollTop <= top && top + 2 * ROW_PX <= box.scrollTop + box.clientHeight;
  if (!isSeen) box.scrollTop = Math.max(0, top - box.clientHeight / 3);
}
