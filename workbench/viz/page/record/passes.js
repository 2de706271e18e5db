// The passes of the selected variant.

/** @import { RecordedPass } from "../record.d.ts" */
/** @import { App } from "../app/store.js" */

/** The passes of scheduling that concern the kernel, then those of the variant that is shown.
 * @param {App} app */
export function passesOf(app) {
  const { passes } = app.record;
  const isShown = (/** @type {RecordedPass} */ { variant, kernel }) =>
    variant === null && (kernel === null || kernel === app.view.kernel);
  const shared = passes.map((_, i) => i).filter((i) => isShown(passes[i]));
  return [...shared, ...(app.variant()?.passes || [])];
}

/** The next or previous pass that changed something; null where there is none.
 * @param {App} app
 * @param {number} step
 * @param {number | null} from */
export function passBeside(app, step, from) {
  const passes = passesOf(app).filter((place) => app.record.passes[place].changed);
  const here = from === null ? -1 : passes.indexOf(from);
  const other = here < 0 ? (step > 0 ? 0 : passes.length - 1) : here + step;
  return passes[other] ?? null;
}

/** Go to the next or previous pass that changed something.
 * @param {App} app
 * @param {number} step
 * @param {number | null} [from] */
export function stepPass(app, step, from = app.view.pass) {
  const place = passBeside(app, step, from) ?? from;
  if (place !== null) app.select({ pass: place, step: 0, mode: "rewrites" });
}
