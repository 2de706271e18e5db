// The logarithmic scales of a roofline.

/** Its size without the legend: no pane is narrower, so that letters are nowhere smaller. */
export const ROOF = { width: 212, height: 164, left: 27, right: 6, top: 16, bottom: 30 };

/** @typedef {ReturnType<typeof roofAxes>} Axes */

/** Scales that hold the dots and the places where slopes meet the ceiling.
 * @param {[string, number][]} bandwidth
 * @param {number} peak
 * @param {{x: number, y: number}[]} dots */
export function roofAxes(bandwidth, peak, dots) {
  const ridges = bandwidth.map(([, rate]) => peak / rate);
  const [xs, ys] = [dots.map(({ x }) => x), dots.map(({ y }) => y)];
  const x0 = Math.min(...xs, ...ridges) / 3;
  const x1 = Math.max(...xs, ...ridges) * 3;
  const y0 = Math.min(...ys, bandwidth[bandwidth.length - 1][1] * x0 * 4) / 2;
  const y1 = Math.max(...ys, peak) * 2;
  const { width, height, left, right, top, bottom } = ROOF;
  const across = (/** @type {number} */ x) =>
    left + ((width - left - right) * Math.log(x / x0)) / Math.log(x1 / x0);
  const up = (/** @type {number} */ y) =>
    height - bottom - ((height - top - bottom) * Math.log(y / y0)) / Math.log(y1 / y0);
  return { x0, x1, y0, y1, across, up, bandwidth };
}
