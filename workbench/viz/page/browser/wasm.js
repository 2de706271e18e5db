// A WebAssembly program: its module, its memory, its time.

import { bytesOf } from "./answer.js";
import { timings } from "./timing.js";

/** @import { PageLaunch } from "../record.d.ts" */

const PAGE_BYTES = 1 << 16; // the unit of its memory
const ALIGNMENT_BYTES = 64;

/** Run a module once on buffers, which are given by the slots of the launch; return what is in them
 * then, and what times it.
 * @param {PageLaunch} launch
 * @param {Uint8Array[]} contents */
export async function runModule({ module, stack_bytes: stack, scratch_bytes: scratch }, contents) {
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
