// What a kernel wrote, beside the right answer.

/** @import { PageBuffer } from "../../record.d.ts" */

/** @type {Record<string, (bytes: Uint8Array) => ArrayLike<number>>} */
const VIEWS = {
  float32: ({ buffer }) => new Float32Array(buffer),
  int32: ({ buffer }) => new Int32Array(buffer),
  uint32: ({ buffer }) => new Uint32Array(buffer),
};

/** Return the bytes that a text in base64 has.
 * @param {string} text */
export const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

/** Hold what a kernel wrote to buffers against what is right.
 * @param {PageBuffer[]} buffers
 * @param {Uint8Array[]} answers */
export function compared(buffers, answers) {
  let [wrong, total, worst, tolerance] = [0, 0, 0, 0];
  buffers.forEach((buffer, place) => {
    if (!buffer.written) return;
    const view = VIEWS[buffer.dtype];
    const [actual, right] = [view(answers[place]), view(bytesOf(buffer.data))];
    for (let i = 0; i < buffer.size; i++) {
      const error = errorOf(actual[i], right[i]);
      if (error > buffer.tolerance) wrong += 1;
      worst = Math.max(worst, error);
    }
    total += buffer.size;
    tolerance = Math.max(tolerance, buffer.tolerance);
  });
  return { ok: wrong === 0, wrong, total, worst, tolerance };
}

/** Infinity where one of the two alone is infinite, or no number.
 * @param {number} actual
 * @param {number} right */
function errorOf(actual, right) {
  if (Object.is(actual, right) || actual === right) return 0;
  const error = Math.abs(actual - right);
  return Number.isFinite(error) ? error : Infinity;
}
