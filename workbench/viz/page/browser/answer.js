// The output of a kernel, compared with the right answer.

/** @import { PageBuffer } from "../record.d.ts" */

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

/** Return the number that a float16 is, from its bits.
 * @param {number} bits */
function numberOfHalf(bits) {
  const [sign, exponent, fraction] = [bits >> 15 ? -1 : 1, (bits >> 10) & 31, (bits & 1023) / 1024];
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction) : 2 ** -14 * fraction);
}

/** Return the number that an fp8e4m3 is, from its bits: it has no infinities.
 * @param {number} bits */
function numberOfE4m3(bits) {
  const [sign, exponent, fraction] = [bits >> 7 ? -1 : 1, (bits >> 3) & 15, (bits & 7) / 8];
  if ((bits & 127) === 127) return NaN;
  return sign * (exponent ? 2 ** (exponent - 7) * (1 + fraction) : 2 ** -6 * fraction);
}

/** Return the bytes that a text in base64 has.
 * @param {string} text */
export const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

/** Hold what a kernel wrote to buffers against what is right. Errors are beside the greatest value of
 * their buffer: the greatest error, and the tolerance where it is.
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
      const here = errorOf(actual[i], right[i]);
      if (here > buffer.tolerance) wrong += 1;
      error = Math.max(error, here);
      const size = Math.abs(Number(right[i]));
      if (Number.isFinite(size)) greatest = Math.max(greatest, size);
    }
    total += buffer.size;
    const scale = greatest || 1; // nothing is a share of zeros
    worst = Math.max(worst, error / scale);
    tolerance = Math.max(tolerance, buffer.tolerance / scale);
  });
  return { ok: wrong === 0, wrong, total, worst, tolerance };
}

/** Infinity where one of the two alone is infinite, or no number. Integers of 64 bits, which a
 * number may not hold, differ by a number.
 * @param {number | bigint} actual
 * @param {number | bigint} right */
function errorOf(actual, right) {
  if (Object.is(actual, right) || actual === right) return 0;
  const isWide = typeof actual === "bigint" && typeof right === "bigint";
  const error = Math.abs(isWide ? Number(actual - right) : Number(actual) - Number(right));
  return Number.isFinite(error) ? error : Infinity;
}
