// IN THIS BROWSER: below the code, where a page can run it: the kernel runs on the reader's own GPU,
// its answer beside what Python says is right, and its time. It needs no Python, unless the record
// lacks the buffers.

import { canAsk, NEEDS_PYTHON } from "../../app/actions.js";
import { button, errorBox, hasAny, headingOf } from "../../app/pieces.js";
import { withinText } from "../../app/timing.js";
import { h, refill, words } from "../../base/elements.js";
import { countText, plural, secondsText } from "../../base/text.js";
import { bytesOf, compared } from "./answer.js";
import { openGpu, runOnce } from "./gpu.js";

/** @import { CodeRow, ErrorWords, PageBuffer, VariantRow } from "../../record.d.ts" */
/** @import { Changes, PanelRow } from "../../types.d.ts" */
/** @import { App } from "../../app/store.js" */
/** @import { Gpu, Run, Trouble } from "./browser.d.ts" */

/** @satisfies {PanelRow} */
export const panel = { place: "right", order: 2, make: browserPane };

const NOT_EXPORTED = {
  what: "this file has no buffers of the kernel",
  because: "they were not in the record when it was exported",
  try: "run it in a live page, and export that",
};

const PATIENCE_MS = 30_000;
const TOO_LATE = {
  what: "the browser has not run the kernel in 30 s",
  because: "its compiler, or the GPU, takes long",
  try: "again, in case it was the compiler; or a smaller kernel",
};

/** @param {App} app */
function browserPane(app) {
  const el = h("section", { class: "wb-browser", "aria-label": "in this browser" });
  /** What came of each program that ran, by its row: another program has another.
   * @type {WeakMap<CodeRow, Run>} */
  const runs = new WeakMap();
  const update = (/** @type {Changes} */ changes) => {
    if (!hasAny(changes, "record", "variant", "kernel", "live", "browser")) return;
    const variant = app.variant();
    const code = programOf(variant);
    el.hidden = !code && app.view.only !== "browser";
    if (el.hidden) return;
    if (!variant || !code) return refill(el, head(), h("p", { class: "wb-quiet" }, NOTHING));
    const run = runs.get(code);
    const start = async () => {
      if (run?.isBusy) return;
      const keep = (/** @type {Run} */ now) => {
        runs.set(code, now);
        app.changed("browser");
      };
      keep({ isBusy: true });
      keep(await outcomeOf(app, variant, code));
    };
    const label = run?.isBusy ? "Running…" : "Run";
    const title = "on the GPU of this browser; the answer is compared with Python's";
    refill(el, head(button(app, label, start, { name: "run-here", title })), ...outcome(run));
  };
  return { el, update };
}

const NOTHING = "This program is in no language that a browser runs.";

/** @param {HTMLElement} [more] */
const head = (more) =>
  headingOf("in this browser", "IN THIS BROWSER", h("span", { class: "wb-gap" }), more ?? null);

/** The program of a variant that a page can run.
 * @param {VariantRow | null} variant */
const programOf = (variant) => variant?.code.find(({ launch }) => launch) ?? null;

/** Run a program; an error is an outcome, too.
 * @param {App} app
 * @param {VariantRow} variant
 * @param {CodeRow} code
 * @returns {Promise<Run>} */
async function outcomeOf(app, variant, code) {
  try {
    const buffers = await buffersOf(app, variant.kernel);
    const gpu = await openGpu();
    return await Promise.race([gpu.lost, late(), ran(gpu, code, buffers)]);
  } catch (error) {
    return { isBusy: false, error: errorWords(error) };
  }
}

/** Fails where nothing comes for long: who waits must hear of it.
 * @returns {Promise<never>} */
const late = () =>
  new Promise((_, refuse) => {
    setTimeout(() => refuse(TOO_LATE), PATIENCE_MS);
  });

/** Return the buffers of a kernel: Python is asked for those that the record lacks.
 * @param {App} app
 * @param {number} kernel */
async function buffersOf(app, kernel) {
  if (!app.record.kernels[kernel].data) {
    if (!canAsk(app)) throw NOT_EXPORTED;
    await app.ask({ do: "data", kernel });
  }
  const { data } = app.record.kernels[kernel];
  if (!data || data.error) throw data?.error ?? NOT_EXPORTED;
  return data.buffers;
}

/**
 * @param {Gpu} gpu
 * @param {CodeRow} code
 * @param {PageBuffer[]} buffers
 * @returns {Promise<Run>} */
async function ran(gpu, code, buffers) {
  const { launch } = code;
  if (!launch) throw NOT_EXPORTED;
  const bound = launch.slots.map((slot) => buffers[slot]);
  const contents = bound.map(({ written, data, size }) =>
    written ? new Uint8Array(4 * size) : bytesOf(data)
  );
  const text = code.lines.join("\n");
  const { answers, time, free } = await runOnce(gpu, text, launch, contents);
  const check = compared(bound, answers);
  const timing = check.ok ? await time() : null;
  free();
  return { isBusy: false, gpu: gpu.name, check, timing };
}

/** What came of a run.
 * @param {Run | undefined} run */
function outcome(run) {
  if (!run || run.isBusy) return [];
  if (run.error) return [errorBox(run.error), lineWords(run.error)];
  const { check, timing, gpu } = run;
  return [
    check && h("p", { class: check.ok ? "wb-good" : "wb-bad" }, checkText(check)),
    timing && h("p", {}, h("b", { class: "wb-figure" }, timeText(timing)), ` ${clockText(timing)}`),
    gpu && h("p", { class: "wb-quiet" }, "on ", words(gpu, "", 80)),
  ];
}

/** @param {Partial<Trouble>} error */
const lineWords = ({ line }) => line ? h("p", { class: "wb-quiet" }, `at line ${line}`) : null;

/** @param {NonNullable<Run["check"]>} check */
function checkText({ ok, wrong, total, worst, tolerance }) {
  const verdict = ok ? "✓ right" : `✗ WRONG in ${plural(wrong, "element")}`;
  const greatest = `greatest error ${worst.toPrecision(2)} (tolerance ${tolerance.toPrecision(2)})`;
  return `${verdict}: ${countText(total)} elements compared, ${greatest}`;
}

/** @param {NonNullable<Run["timing"]>} timing */
function timeText({ samples }) {
  const sorted = [...samples].sort((a, b) => a - b);
  const median = sorted[sorted.length >> 1];
  const spread = (sorted[sorted.length - 1] - sorted[0]) / 2 / median;
  return `${secondsText(median)} ${samples.length < 2 ? "once" : withinText(spread)}`;
}

/** @param {NonNullable<Run["timing"]>} timing */
const clockText = ({ samples, runs, isGpuClock }) =>
  `${samples.length} x ${plural(runs, "run")}, by the clock of the ${isGpuClock ? "GPU" : "page"}`;

/** @param {unknown} error
 * @returns {Partial<ErrorWords>} */
function errorWords(error) {
  if (error instanceof Error) return { what: "it failed", because: error.message, try: "" };
  if (typeof error === "string") return { what: NEEDS_PYTHON, because: error, try: "" };
  return /** @type {Partial<ErrorWords>} */ (error);
}
