// A kernel run in the browser on its own buffers, through WebGPU or WebAssembly: its answer
// compared with Python's, and its time. A result is stored under its program: a row of code, or a
// draft. Whatever a program does costs that program: an edited program must end before it runs as
// it is, and a GPU that is lost is opened anew.

import { canAsk, NEEDS_PYTHON } from "../app/actions.js";
import { countText } from "../base/text.js";
import { bounded, closeGpu, compiled, mostSteps, openGpu, runOnce, timings } from "./webgpu.js";

/** @import { App } from "../app/store.js" */
/** @import { CodeRow, ErrorWords, PageBuffer, PageLaunch } from "../record.d.ts" */
/** @import { Gpu, Run, Runnable, ProgramError } from "./browser.d.ts" */

const NOT_EXPORTED = {
  what: "this file has no buffers of the kernel",
  because: "they were not in the record when it was exported",
  try: "run it in a live page, and export that",
};

const LIMIT_MS = 30_000;
const TIMED_OUT = {
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

/** The outcome of the last run of a program; undefined before its first run.
 * @param {object} key */
export const runOf = (key) => runs.get(key);

/** Run a program of a kernel, unless it is running; an error is an outcome, too.
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

/** The message of the browser's compiler about a text; null if it accepts it.
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

/** Return a result that comes in time; else fail, and give the GPU back: the caller must learn of
 * it, and the next program must not wait for this one.
 * @template T
 * @param {Promise<T>} work
 * @returns {Promise<T>} */
async function inTime(work) {
  let clock = 0;
  const late = new Promise((_, refuse) => {
    clock = setTimeout(() => refuse(TIMED_OUT), LIMIT_MS);
  });
  try {
    return await /** @type {Promise<T>} */ (Promise.race([work, late]));
  } catch (error) {
    if (error === TIMED_OUT) closeGpu();
    throw error;
  } finally {
    clearTimeout(clock);
  }
}

/** Return the buffers of a kernel: those that the record lacks are requested from Python.
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

/** The buffers of a program, with their contents before it runs.
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

/** Fails if a loop of an edited text runs so often that the text is not run without limits.
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
 * @returns {ProgramError} */
function errorWords(error) {
  if (error instanceof Error) return { what: "it failed", because: error.message, try: "" };
  if (typeof error === "string") return { what: NEEDS_PYTHON, because: error, try: "" };
  return /** @type {ProgramError} */ (error);
}

// The output of a kernel, compared with the right answer.

/** @type {Record<string, (bytes: Uint8Array) => ArrayLike<number | bigint>>} */
const VIEWS = {
  float64: ({ buffer }) => new Float64Array(buffer),
  float32: ({ buffer }) => new Float32Array(buffer),
  int64: ({ buffer }) => new BigInt64Array(buffer),
  uint64: ({ buffer }) => new BigUint64Array(buffer),
  int32: ({ buffer }) => new Int32Array(buffer),
  uint32: ({ buffer }) => new Uint32Array(buffer),
  bool: (bytes) => bytes,
  uint8: (bytes) => bytes,
  int8: ({ buffer }) => new Int8Array(buffer),
  uint16: ({ buffer }) => new Uint16Array(buffer),
  int16: ({ buffer }) => new Int16Array(buffer),
  float16: ({ buffer }) => Array.from(new Uint16Array(buffer), numberOfHalf),
  bfloat16: ({ buffer }) =>
    new Float32Array(Uint32Array.from(new Uint16Array(buffer), (bits) => bits << 16).buffer),
  fp8e5m2: (bytes) => Array.from(bytes, (bits) => numberOfHalf(bits << 8)),
  fp8e4m3: (bytes) => Array.from(bytes, numberOfE4m3),
};

/** Return the number that the bits of a float16 represent.
 * @param {number} bits */
function numberOfHalf(bits) {
  const [sign, exponent, fraction] = [bits >> 15 ? -1 : 1, (bits >> 10) & 31, (bits & 1023) / 1024];
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction) : 2 ** -14 * fraction);
}

/** Return the number that the bits of an fp8e4m3 represent: it has no infinities.
 * @param {number} bits */
function numberOfE4m3(bits) {
  const [sign, exponent, fraction] = [bits >> 7 ? -1 : 1, (bits >> 3) & 15, (bits & 7) / 8];
  if ((bits & 127) === 127) return NaN;
  return sign * (exponent ? 2 ** (exponent - 7) * (1 + fraction) : 2 ** -6 * fraction);
}

/** Return the bytes of a text in base64.
 * @param {string} text */
const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

/** Compare the buffers that a kernel wrote with the right answer. Errors are relative to the
 * greatest value of their buffer: the greatest error, and the tolerance at its place.
 * @param {PageBuffer[]} buffers
 * @param {Uint8Array[]} answers */
export function compared(buffers, answers) {
  let [wrong, total, worst, tolerance] = [0, 0, 0, 0];
  buffers.forEach((buffer, place) => {
    if (!buffer.written) return;
    const view = VIEWS[buffer.dtype];
    const [actual, right] = [view(answers[place]), view(bytesOf(buffer.data))];
    let [greatest, error] = [0, 0];
    for (let i = 0; i < buffer.size; i++) {
      const difference = errorOf(actual[i], right[i]);
      if (difference > buffer.tolerance) wrong += 1;
      error = Math.max(error, difference);
      const size = Math.abs(Number(right[i]));
      if (Number.isFinite(size)) greatest = Math.max(greatest, size);
    }
    total += buffer.size;
    const scale = greatest || 1; // no value is a share of zeros
    worst = Math.max(worst, error / scale);
    tolerance = Math.max(tolerance, buffer.tolerance / scale);
  });
  return { ok: wrong === 0, wrong, total, worst, tolerance };
}

/** Infinity if only one of the two is infinite, or no number. Integers of 64 bits, which a number
 * may not hold, differ by a number.
 * @param {number | bigint} actual
 * @param {number | bigint} right */
function errorOf(actual, right) {
  if (Object.is(actual, right) || actual === right) return 0;
  const isWide = typeof actual === "bigint" && typeof right === "bigint";
  const error = Math.abs(isWide ? Number(actual - right) : Number(actual) - Number(right));
  return Number.isFinite(error) ? error : Infinity;
}

// A WebAssembly program: its module, its memory, its time.

const PAGE_BYTES = 1 << 16; // the unit of its memory
const ALIGNMENT_BYTES = 64;

/** Run a module once on buffers, which stand in the order of the launch's slots; return their
 * contents afterwards, and a function that times it.
 * @param {PageLaunch} launch
 * @param {Uint8Array[]} contents */
async function runModule({ module, stack_bytes: stack, scratch_bytes: scratch }, contents) {
  let end = stack;
  const places = [...contents.map(({ length }) => length), scratch].map((size) => {
    const place = end;
    end += Math.ceil(Math.max(1, size) / ALIGNMENT_BYTES) * ALIGNMENT_BYTES;
    return place;
  });
  const memory = new WebAssembly.Memory({ initial: Math.ceil(end / PAGE_BYTES) });
  const top = new WebAssembly.Global({ value: "i32", mutable: true }, stack);
  const code = await WebAssembly.compile(bytesOf(module));
  const named = WebAssembly.Module.imports(code).map(({ name, kind }) => [
    name,
    kind === "memory" ? memory : top,
  ]);
  const { exports } = await WebAssembly.instantiate(code, { env: Object.fromEntries(named) });
  const [kernel] = /** @type {((...places: number[]) => void)[]} */ (Object.values(exports));
  const run = () => kernel(...(scratch ? places : places.slice(0, -1)));
  contents.forEach((bytes, i) => new Uint8Array(memory.buffer).set(bytes, places[i]));
  run();
  const answers = contents.map(({ length }, i) =>
    new Uint8Array(memory.buffer.slice(places[i], places[i] + length))
  );
  return { answers, time: () => timed(run) };
}

/** Time a kernel by the clock of the page.
 * @param {() => void} run */
async function timed(run) {
  const clock = (/** @type {number} */ runs) => {
    const begin = performance.now();
    for (let i = 0; i < runs; i++) run();
    return (performance.now() - begin) / 1e3;
  };
  return { ...await timings(clock), isGpuClock: false };
}
