// A kernel run in the browser on its own buffers: its answer compared with Python's, and its time.
// A result is stored under its program: a row of code, or a draft. Whatever a program does costs
// that program: an edited program must end before it runs as it is, and a GPU that is lost is
// opened anew.

import { canAsk, NEEDS_PYTHON } from "../app/actions.js";
import { countText } from "../base/text.js";
import { bytesOf, compared } from "./answer.js";
import { closeGpu, compiled, openGpu, runOnce } from "./gpu.js";
import { bounded, mostSteps } from "./loops.js";
import { runModule } from "./wasm.js";

/** @import { CodeRow, ErrorWords, PageBuffer, PageLaunch } from "../record.d.ts" */
/** @import { App } from "../app/store.js" */
/** @import { Gpu, Run, Runnable, Trouble } from "./browser.d.ts" */

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

/** @param {number} most */
const endless = (most) => ({
  what: "the edited text is not run",
  because: `a loop of it goes around more than ${countText(most)} times, if it ends at all`,
  try: "a condition that ends it",
});

/** @type {WeakMap<object, Run>} */
const runs = new WeakMap();

/** What came of the last run of a program; nothing where it has not run.
 * @param {object} key */
export const runOf = (key) => runs.get(key);

/** Run a program of a kernel, unless it runs; an error is an outcome, too.
 * @param {App} app
 * @param {object} key
 * @param {number} kernel
 * @param {Runnable} program */
export async function runHere(app, key, kernel, program) {
  if (runs.get(key)?.isBusy) return;
  const keep = (/** @type {Run} */ now) => {
    runs.set(key, now);
    app.changed("browser");
  };
  keep({ isBusy: true, text: program.text });
  keep({ ...await outcomeOf(app, kernel, program), text: program.text });
}

/** Run the program of a row.
 * @param {App} app
 * @param {number} kernel
 * @param {CodeRow} code */
export async function runCode(app, kernel, code) {
  const { launch, lines } = code;
  if (launch) await runHere(app, code, kernel, { text: lines.join("\n"), launch });
}

/** What the browser's compiler says against a text; null where it takes it.
 * @param {string} text
 * @param {PageLaunch} launch
 * @returns {Promise<ErrorWords | null>} */
export async function refusalOf(text, { entry }) {
  try {
    const { device, lost } = await openGpu();
    await inTime(Promise.race([lost, compiled(device, text, entry)]));
    return null;
  } catch (error) {
    return errorWords(error);
  }
}

/**
 * @param {App} app
 * @param {number} kernel
 * @param {Runnable} program
 * @returns {Promise<Run>} */
async function outcomeOf(app, kernel, program) {
  try {
    const buffers = await buffersOf(app, kernel);
    if (program.launch.module) return await ranModule(program.launch, buffers);
    const gpu = await openGpu();
    return await inTime(Promise.race([gpu.lost, ran(gpu, program, buffers)]));
  } catch (error) {
    return { isBusy: false, error: errorWords(error) };
  }
}

/** Return what comes in time; else fail, and give the GPU back: who waits must hear of it, and the
 * next program must not wait for this one.
 * @template T
 * @param {Promise<T>} work
 * @returns {Promise<T>} */
async function inTime(work) {
  let clock = 0;
  const late = new Promise((_, refuse) => {
    clock = setTimeout(() => refuse(TOO_LATE), PATIENCE_MS);
  });
  try {
    return await /** @type {Promise<T>} */ (Promise.race([work, late]));
  } catch (error) {
    if (error === TOO_LATE) closeGpu();
    throw error;
  } finally {
    clearTimeout(clock);
  }
}

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
 * @param {Runnable} program
 * @param {PageBuffer[]} buffers
 * @returns {Promise<Run>} */
async function ran(gpu, { text, launch, isEdited }, buffers) {
  const { bound, contents } = bindings(launch, buffers);
  if (isEdited) await requireEnd(gpu, { text, launch }, contents);
  const { answers, time, free } = await runOnce(gpu, text, launch, [contents]);
  try {
    const check = compared(bound, answers);
    return { isBusy: false, gpu: gpu.name, check, timing: check.ok ? await time() : null };
  } finally {
    free();
  }
}

/**
 * @param {PageLaunch} launch
 * @param {PageBuffer[]} buffers
 * @returns {Promise<Run>} */
async function ranModule(launch, buffers) {
  const { bound, contents } = bindings(launch, buffers);
  const { answers, time } = await runModule(launch, contents);
  const check = compared(bound, answers);
  return { isBusy: false, gpu: "WebAssembly", check, timing: check.ok ? await time() : null };
}

/** The buffers that a program gets, and what is in them before it runs.
 * @param {PageLaunch} launch
 * @param {PageBuffer[]} buffers */
function bindings({ slots }, buffers) {
  const bound = slots.map((slot) => buffers[slot]);
  const contents = bound.map(({ written, data, size }) => {
    const bytes = bytesOf(data);
    return written ? new Uint8Array(Math.max(4 * size, bytes.length)) : bytes;
  });
  return { bound, contents };
}

/** Fails where a loop of a text goes around so often that the text is not run as it is.
 * @param {Gpu} gpu
 * @param {Runnable} program
 * @param {Uint8Array[]} contents */
async function requireEnd(gpu, { text, launch }, contents) {
  const groups = [contents, [new Uint8Array(4)]];
  const most = mostSteps(text, launch.grid);
  const { answers, free } = await runOnce(gpu, bounded(text, most), launch, groups);
  free();
  if (answers[answers.length - 1][0]) throw endless(most);
}

/** @param {unknown} error
 * @returns {Trouble} */
function errorWords(error) {
  if (error instanceof Error) return { what: "it failed", because: error.message, try: "" };
  if (typeof error === "string") return { what: NEEDS_PYTHON, because: error, try: "" };
  return /** @type {Trouble} */ (error);
}
