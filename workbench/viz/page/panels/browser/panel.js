// IN THIS BROWSER, below the code: the kernel runs on the reader's own GPU, its answer compared
// with the expression, and its time. The run needs no Python, unless the record lacks the buffers.

import { button, errorBox, hasAny, headingOf } from "../../app/pieces.js";
import { ONE_RUN, withinText } from "../../app/timing.js";
import { h, recordText, refill } from "../../base/elements.js";
import { countText, plural, secondsText } from "../../base/text.js";
import { runCode, runOf } from "../../browser/run.js";
import { draftHere, runDraft } from "../../listing/drafts.js";

/** @import { App } from "../../app/store.js" */
/** @import { Run, ProgramError } from "../../browser/browser.d.ts" */
/** @import { VariantRow } from "../../record.d.ts" */
/** @import { Changes, PanelRow } from "../../types.d.ts" */

/** @satisfies {PanelRow} */
export const panel = { place: "pane", order: 23, title: "In this browser", make: browserPane };

/** @param {App} app */
function browserPane(app) {
  const el = h("section", { class: "wb-browser", "aria-label": "in this browser" });
  const update = (/** @type {Changes} */ changes) => {
    if (!hasAny(changes, ...CHANGES)) return;
    const variant = app.variant();
    const code = programOf(variant);
    el.hidden = !code && app.view.only !== "browser";
    if (el.hidden) return;
    if (!variant || !code) return refill(el, head(), h("p", { class: "wb-quiet" }, NO_PROGRAM));
    const draft = draftHere(app, app.view.variant, code.language);
    const edited = draft?.launch ? draft : null;
    const run = runOf(edited ?? code);
    const start = () => edited ? runDraft(app, edited) : runCode(app, variant.kernel, code);
    const label = run?.isBusy ? "Running…" : edited ? "Run the edited code" : "Run";
    const where = code.launch?.module ? "as WebAssembly" : "on the GPU of this browser";
    const title = `${where}; the answer is compared`;
    refill(
      el,
      head(button(app, label, start, { name: "run-here", title })),
      ...outcome(run, app.record.kernels[variant.kernel].data?.against),
      edited && run && !run.isBusy && besideKernel(run, edited.text, runOf(code)),
    );
  };
  return { el, update };
}

const CHANGES = ["record", "variant", "kernel", "live", "browser", "editing", "draft"];
const NO_PROGRAM = "This program is in no language that a browser runs.";

/** @param {HTMLElement} [more] */
const head = (more) =>
  headingOf("in this browser", "IN THIS BROWSER", h("span", { class: "wb-gap" }), more ?? null);

/** The program of a variant that a page can run.
 * @param {VariantRow | null} variant */
const programOf = (variant) => variant?.code.find(({ launch }) => launch) ?? null;

/** The relation of an edited text to the kernel from which it was edited.
 * @param {Run} run
 * @param {string} text
 * @param {Run | undefined} kernel */
function besideKernel(run, text, kernel) {
  const beside = kernel?.timing ? `; the kernel itself takes ${timeText(kernel.timing)}` : "";
  const words = run.text === text ? "the edited text" : "the text before it was changed last";
  return h("p", { class: "wb-quiet" }, `of ${words}${beside}`);
}

/** The outcome of a run, with the values that its answer was compared with.
 * @param {Run | undefined} run
 * @param {string | undefined} against */
function outcome(run, against = "") {
  if (!run || run.isBusy) return [];
  if (run.error) return [errorBox(run.error), lineWords(run.error)];
  const { check, timing, gpu } = run;
  return [
    check && h("p", { class: check.ok ? "wb-good" : "wb-bad" }, checkText(check, against)),
    timing && h("p", {}, h("b", { class: "wb-figure" }, timeText(timing)), ` ${clockText(timing)}`),
    gpu && h("p", { class: "wb-quiet" }, "on ", recordText(gpu, "", 80)),
  ];
}

/** @param {Partial<ProgramError>} error */
const lineWords = ({ line }) => line ? h("p", { class: "wb-quiet" }, `at line ${line}`) : null;

/**
 * @param {NonNullable<Run["check"]>} check
 * @param {string} against */
function checkText({ ok, wrong, total, worst, tolerance }, against) {
  const verdict = ok ? "✓ right" : `✗ WRONG in ${plural(wrong, "element")}`;
  const elements = `${verdict}: ${countText(total)} elements compared with ${against}`;
  if (!tolerance) return elements; // each whole number is right or wrong
  const [error, most] = [worst, tolerance].map((share) => share.toPrecision(2));
  const greatest = worst
    ? `greatest error ${error} of the greatest value (tolerance ${most} of it)`
    : `greatest error 0 (tolerance ${most} of the greatest value)`;
  return `${elements}, ${greatest}`;
}

/** @param {NonNullable<Run["timing"]>} timing */
function timeText({ samples }) {
  const sorted = [...samples].sort((a, b) => a - b);
  const median = sorted[sorted.length >> 1];
  const spread = (sorted[sorted.length - 1] - sorted[0]) / 2 / median;
  return `${secondsText(median)} ${samples.length < 2 ? ONE_RUN : withinText(spread)}`;
}

/** @param {NonNullable<Run["timing"]>} timing */
const clockText = ({ samples, runs, isGpuClock }) =>
  `${samples.length} x ${plural(runs, "run")}, by the clock of the ${isGpuClock ? "GPU" : "page"}`;
