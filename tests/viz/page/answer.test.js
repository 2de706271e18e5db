import assert from "node:assert/strict";
import { compared } from "../../../workbench/viz/page/browser/run.js";

const bytes = (array) => new Uint8Array(array.buffer);

function held(dtype, right, actual, tolerance) {
  const data = btoa(String.fromCharCode(...bytes(right)));
  const buffer = { dtype, written: true, size: right.length, data, tolerance };
  return compared([buffer], [bytes(actual)]);
}

Deno.test("errors are shares of the greatest value", () => {
  const [right, actual] = [Float32Array.of(8, -16), Float32Array.of(8, -18)];
  const { ok, wrong, worst, tolerance } = held("float32", right, actual, 1);
  assert.deepEqual([ok, wrong, worst, tolerance], [false, 1, 1 / 8, 1 / 16]);
});

Deno.test("beside zeros they are the errors themselves", () => {
  const zeros = Float32Array.of(0, 0);
  const { ok, worst, tolerance } = held("float32", zeros, zeros, 0.5);
  assert.deepEqual([ok, worst, tolerance], [true, 0, 0.5]);
  assert.equal(held("float32", zeros, Float32Array.of(0, 0.25), 0.5).worst, 0.25);
});

Deno.test("whole numbers have no tolerance", () => {
  const { wrong, tolerance } = held("int32", Int32Array.of(4, 7), Int32Array.of(5, 7), 0);
  assert.deepEqual([wrong, tolerance], [1, 0]);
});
