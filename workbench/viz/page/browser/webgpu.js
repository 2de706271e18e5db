// A program on the browser's own GPU, through WebGPU: compiled, run with a limit in its loops,
// timed.

/** @import { PageLaunch } from "../record.d.ts" */
/** @import { Gpu, ProgramError } from "./browser.d.ts" */

const LIMITS = [
  "maxStorageBuffersPerShaderStage",
  "maxStorageBufferBindingSize",
  "maxBufferSize",
  "maxComputeWorkgroupStorageSize",
  "maxComputeInvocationsPerWorkgroup",
  "maxComputeWorkgroupSizeX",
  "maxComputeWorkgroupSizeY",
  "maxComputeWorkgroupSizeZ",
];
const CLOCK = "timestamp-query";
const UNREADABLE = /\0|[\ud800-\udfff]/u; // a NUL, and half of a pair

const STORAGE = /((?:@\s*\w+\s*\([^()]*\)\s*)+)var\s*<\s*storage\s*(?:,\s*(\w+)\s*)?,?\s*>/g;
const ATTRIBUTE = /@\s*(group|binding)\s*\(\s*(\d+)[iu]?\s*,?\s*\)/g;

/** @type {Promise<Gpu> | null} */
let opened = null;

/** Return the error of a message, to be thrown.
 * @param {string} what
 * @param {string} because
 * @param {string} hint
 * @param {number | null} [line]
 * @returns {ProgramError} */
const gpuError = (what, because, hint, line = null) => ({ what, because, try: hint, line });

const NO_GPU = "this browser runs no kernel";

/** The GPU, opened once, and again after it was lost.
 * @returns {Promise<Gpu>} */
export function openGpu() {
  opened ??= open().catch((error) => {
    opened = null;
    throw error;
  });
  return opened;
}

/** Give the GPU back, with all its running programs; the next program opens it anew. */
export function closeGpu() {
  opened?.then(({ device }) => device.destroy()).catch(() => {});
  opened = null;
}

/** @returns {Promise<Gpu>} */
async function open() {
  if (!globalThis.isSecureContext) {
    const because = `a browser has WebGPU only where an address is safe: ${location.origin} is not`;
    throw gpuError(NO_GPU, because, "https, localhost, or the exported file");
  }
  const { gpu } = navigator;
  if (!gpu) {
    throw gpuError(NO_GPU, "it has no WebGPU", "Chrome, Edge, Safari 26, Firefox 141, or later");
  }
  const adapter = await gpu.requestAdapter({ powerPreference: "high-performance" });
  if (!adapter) {
    const because = "it has WebGPU, but no GPU that pages may use";
    throw gpuError(NO_GPU, because, "chrome://gpu, which says why");
  }
  const hasClock = adapter.features.has(CLOCK);
  const device = await adapter.requestDevice({
    requiredFeatures: hasClock ? [CLOCK] : [],
    requiredLimits: Object.fromEntries(
      LIMITS.map((name) => [name, /** @type {any} */ (adapter.limits)[name]]),
    ),
  });
  const lost = device.lost.then(({ message }) => {
    opened = null;
    throw gpuError(
      "the GPU was lost",
      message || "the browser gave no reason",
      "again: it is opened anew",
    );
  });
  lost.catch(() => {}); // each run waits for it, too
  const { vendor, architecture, description } = adapter.info;
  const name = description || [vendor, architecture].filter(Boolean).join(" ");
  return { device, name: name || "a GPU without a name", hasClock, lost };
}

/** Run a program once on groups of buffers, of which the first is in the order of the launch's
 * slots; return the contents of all afterwards, and a function that runs it again.
 * @param {Gpu} gpu
 * @param {string} text
 * @param {PageLaunch} launch
 * @param {Uint8Array[][]} groups */
export async function runOnce(gpu, text, launch, groups) {
  const { device } = gpu;
  const most = device.limits.maxStorageBuffersPerShaderStage;
  const count = groups.flat().length;
  if (count > most) {
    const because = `it has ${count} buffers, and this GPU gives a kernel ${most}`;
    throw gpuError("this browser cannot run the kernel", because, "a kernel with fewer inputs");
  }
  const pipeline = await compiled(device, text, launch.entry);
  /** @type {GPUBuffer[]} */
  const buffers = [];
  const free = () => buffers.forEach((buffer) => buffer.destroy());
  device.pushErrorScope("out-of-memory");
  device.pushErrorScope("validation");
  const bindGroup = (/** @type {Uint8Array[]} */ contents, /** @type {number} */ place) => {
    const group = contents.map((bytes) => filled(device, bytes));
    buffers.push(...group);
    return device.createBindGroup({
      layout: pipeline.getBindGroupLayout(place),
      entries: group.map((buffer, binding) => ({ binding, resource: { buffer } })),
    });
  };
  const dispatch = (/** @type {GPUComputePassEncoder} */ pass) => {
    const [x, y, z] = launch.grid;
    pass.dispatchWorkgroups(x, y, z);
  };
  try {
    const timer = { device, pipeline, bindGroups: groups.map(bindGroup), dispatch };
    const answers = await read(timer, buffers);
    const error = (await device.popErrorScope()) ?? (await device.popErrorScope());
    if (error) throw gpuError("this browser cannot run the kernel", error.message, "");
    return { answers, time: () => timed(gpu, timer), free };
  } catch (error) {
    free();
    throw error;
  }
}

/** @typedef {{
 *   device: GPUDevice, pipeline: GPUComputePipeline, bindGroups: GPUBindGroup[],
 *   dispatch: (pass: GPUComputePassEncoder) => void
 * }} Bound */

/** Compile a program. The error of the compiler has its line.
 * @param {GPUDevice} device
 * @param {string} text
 * @param {string} entry */
export async function compiled(device, text, entry) {
  const what = "the browser's compiler refuses the program";
  const odd = UNREADABLE.exec(text);
  if (odd) {
    const line = text.slice(0, odd.index).split("\n").length;
    const name = odd[0] === "\0" ? "a NUL" : "half a character";
    const because = `line ${line} has ${name}: the compiler reads another text than the one shown`;
    throw gpuError(what, because, `line ${line} without it`, line);
  }
  device.pushErrorScope("validation");
  const module = device.createShaderModule({ code: text });
  const { messages } = await module.getCompilationInfo();
  const refusal = await device.popErrorScope();
  const first = messages.find(({ type }) => type === "error");
  if (first) throw gpuError(what, first.message, "", first.lineNum || null);
  if (refusal) throw gpuError(what, refusal.message, "");
  try {
    return await device.createComputePipelineAsync({
      layout: layoutOf(device, text),
      compute: { module, entryPoint: entry },
    });
  } catch (error) {
    throw gpuError(what, error instanceof Error ? error.message : String(error), "");
  }
}

/** The buffers that a text declares: attributes stand in any order, with spaces and comments
 * between them.
 * @param {string} text */
export function buffersIn(text) {
  return [...withoutComments(text).matchAll(STORAGE)].map(([, attributes, access]) => {
    const pairs = [...attributes.matchAll(ATTRIBUTE)];
    const numbers = Object.fromEntries(pairs.map(([, name, digits]) => [name, Number(digits)]));
    return { group: numbers.group, binding: numbers.binding, isWritten: access === "read_write" };
  });
}

/** The buffers of a program, as its text declares them: unused ones are bound all the same.
 * @param {GPUDevice} device
 * @param {string} text */
function layoutOf(device, text) {
  /** @type {GPUBindGroupLayoutEntry[][]} */
  const groups = [[], []];
  for (const { group, binding, isWritten } of buffersIn(text)) {
    groups[group]?.push({
      binding,
      visibility: GPUShaderStage.COMPUTE,
      buffer: { type: isWritten ? "storage" : "read-only-storage" },
    });
  }
  const bindGroupLayouts = groups.map((entries) => device.createBindGroupLayout({ entries }));
  return device.createPipelineLayout({ bindGroupLayouts });
}

/**
 * @param {GPUDevice} device
 * @param {Uint8Array} bytes */
function filled(device, bytes) {
  const { STORAGE, COPY_SRC } = GPUBufferUsage;
  const size = Math.max(4, Math.ceil(bytes.length / 4) * 4);
  const buffer = device.createBuffer({ size, usage: STORAGE | COPY_SRC, mappedAtCreation: true });
  new Uint8Array(buffer.getMappedRange()).set(bytes);
  buffer.unmap();
  return buffer;
}

/** Run once, and return the contents of each buffer afterwards.
 * @param {Bound} bound
 * @param {GPUBuffer[]} buffers */
async function read(bound, buffers) {
  const { COPY_DST, MAP_READ } = GPUBufferUsage;
  const encoder = bound.device.createCommandEncoder();
  encode(encoder, bound, 1);
  const copies = buffers.map((buffer) => {
    const copy = bound.device.createBuffer({ size: buffer.size, usage: COPY_DST | MAP_READ });
    encoder.copyBufferToBuffer(buffer, 0, copy, 0, buffer.size);
    return copy;
  });
  bound.device.queue.submit([encoder.finish()]);
  return await Promise.all(copies.map(bytesOf));
}

/** Return the bytes of a buffer that can be mapped, and destroy it.
 * @param {GPUBuffer} buffer */
async function bytesOf(buffer) {
  await buffer.mapAsync(GPUMapMode.READ);
  const bytes = new Uint8Array(buffer.getMappedRange()).slice();
  buffer.destroy();
  return bytes;
}

/**
 * @param {GPUCommandEncoder} encoder
 * @param {Bound} bound
 * @param {number} runs
 * @param {GPUComputePassTimestampWrites} [timestampWrites] */
function encode(encoder, { pipeline, bindGroups, dispatch }, runs, timestampWrites) {
  const pass = encoder.beginComputePass(timestampWrites ? { timestampWrites } : {});
  pass.setPipeline(pipeline);
  bindGroups.forEach((group, place) => pass.setBindGroup(place, group));
  for (let i = 0; i < runs; i++) dispatch(pass);
  pass.end();
}

/** Time a program: the seconds of a run, of each timing; by the GPU's clock if it is fine enough,
 * else by the page's.
 * @param {Gpu} gpu
 * @param {Bound} bound */
async function timed(gpu, bound) {
  const clock = gpu.hasClock && (await byGpu(bound, 1)) > 0 ? byGpu : byPage;
  return { ...await timings((runs) => clock(bound, runs)), isGpuClock: clock === byGpu };
}

/** The seconds of some runs by the page's clock, including the request.
 * @param {Bound} bound
 * @param {number} runs */
async function byPage(bound, runs) {
  const encoder = bound.device.createCommandEncoder();
  encode(encoder, bound, runs);
  const commands = encoder.finish();
  const begin = performance.now();
  bound.device.queue.submit([commands]);
  await bound.device.queue.onSubmittedWorkDone();
  return (performance.now() - begin) / 1e3;
}

/** The seconds of some runs by the GPU's clock.
 * @param {Bound} bound
 * @param {number} runs */
async function byGpu(bound, runs) {
  const { device } = bound;
  const { QUERY_RESOLVE, COPY_SRC, COPY_DST, MAP_READ } = GPUBufferUsage;
  const querySet = device.createQuerySet({ type: "timestamp", count: 2 });
  const stamps = device.createBuffer({ size: 16, usage: QUERY_RESOLVE | COPY_SRC });
  const copy = device.createBuffer({ size: 16, usage: COPY_DST | MAP_READ });
  const encoder = device.createCommandEncoder();
  encode(encoder, bound, runs, {
    querySet,
    beginningOfPassWriteIndex: 0,
    endOfPassWriteIndex: 1,
  });
  encoder.resolveQuerySet(querySet, 0, 2, stamps, 0);
  encoder.copyBufferToBuffer(stamps, 0, copy, 0, 16);
  device.queue.submit([encoder.finish()]);
  const [begin, end] = new BigUint64Array((await bytesOf(copy)).buffer);
  stamps.destroy();
  querySet.destroy();
  return Number(end - begin) / 1e9;
}

// Loop limits in edited programs, since an endless loop on the GPU can freeze the page. So a text
// first runs with a limit in each loop. A WGSL program cannot run for ever in another way: its
// functions cannot be recursive.

/** How often the loops of all work-items may run together: twice as often as those of the page's
 * own kernels do. */
const MOST_STEPS = 1 << 25;
const LEAST_STEPS = 1 << 12;
const SIZE = /@\s*workgroup_size\s*\(([^)]*)\)/;

const WORD = /\b(?:fn|for|while|loop)\b/g;

/** How often a loop may run in a work-item.
 * @param {string} text
 * @param {number[]} grid */
export function mostSteps(text, grid) {
  const sizes = SIZE.exec(withoutComments(text))?.[1].split(",").map(parseFloat) ?? [];
  const items = [...grid, ...sizes].reduce((product, size) => product * (size || 1), 1);
  return Math.max(LEAST_STEPS, Math.floor(MOST_STEPS / items));
}

/** Return a text of WGSL whose loops end: a loop that runs too often is left, and the buffer of the
 * second group is set. Lines stay in place.
 * @param {string} text
 * @param {number} most */
export function bounded(text, most) {
  const code = withoutComments(text);
  /** @type {{at: number, words: string}[]} */
  const insertions = [];
  let [body, count] = [0, 0];
  for (const { 0: word, index } of code.matchAll(WORD)) {
    const at = code.indexOf("{", index) + 1;
    if (!at) break;
    if (word === "fn") {
      body = at;
      continue;
    }
    const name = `steps_of_loop_${count++}`;
    const mark = `if (${name} == ${most + 1}u) { atomicStore(&is_endless, 1u); }`; // once
    insertions.push({ at: body, words: ` var ${name} = 0u;` });
    insertions.push({
      at,
      words: ` ${name} += 1u; if (${name} > ${most}u) { ${mark} break; }`,
    });
  }
  insertions.sort((a, b) => b.at - a.at);
  const all = insertions.reduce(
    (so, { at, words }) => so.slice(0, at) + words + so.slice(at),
    text,
  );
  return `${all}\n@group(1) @binding(0) var<storage, read_write> is_endless: atomic<u32>;\n`;
}

/** Return a text with spaces in place of comments, which may be nested.
 * @param {string} text */
function withoutComments(text) {
  let [out, depth] = ["", 0];
  for (let i = 0; i < text.length; i++) {
    const two = text.slice(i, i + 2);
    if (two === "/*" || (two === "*/" && depth)) {
      depth += two === "/*" ? 1 : -1;
      out += "  ";
      i++;
    } else if (two === "//" && !depth) {
      const end = text.indexOf("\n", i);
      const length = (end < 0 ? text.length : end) - i;
      out += " ".repeat(length);
      i += length - 1;
    } else {
      out += depth && text[i] !== "\n" ? " " : text[i];
    }
  }
  return out;
}

// Timing in a browser, whose clock may be coarse: many runs a timing.

const SAMPLES = 5; // timings, of which the median is shown
const SAMPLE_S = 0.02; // of a timing, at least, since the clock of a browser is that coarse
const MOST_S = 1.5; // of all timings together
const MOST_RUNS = 2000; // of one timing

/** Time a program: the seconds of a run, of each timing.
 * @param {(runs: number) => number | Promise<number>} clock returns the seconds of some runs */
export async function timings(clock) {
  let runs = 1;
  let s = await clock(runs);
  while (s < SAMPLE_S && runs < MOST_RUNS) {
    runs = Math.min(
      MOST_RUNS,
      Math.ceil(runs * Math.min(10, (1.2 * SAMPLE_S) / Math.max(s, 1e-6))),
    );
    s = await clock(runs);
  }
  const samples = [s / runs];
  for (let all = s; samples.length < SAMPLES && all < MOST_S; all += s) {
    s = await clock(runs);
    samples.push(s / runs);
  }
  return { samples, runs };
}
