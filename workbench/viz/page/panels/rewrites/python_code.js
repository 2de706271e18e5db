// Copy as Python, in Rewrites: the code that gets at what is shown. It begins with the lines that
// bind `ex` (record.expr.python). What Tune copies is a kernel, which Python writes.

import { copy } from "../../app/actions.js";

/** @import { App } from "../../app/store.js" */

/** Copy a pass, or one of its steps.
 * @param {App} app
 * @param {number | null} place
 * @param {number} step */
export const copyStep = (app, place, step) =>
  place !== null &&
  copy(app, stepPython(app, place, step), step ? "this step as Python" : "this pass as Python");

/** Code that gets at a pass, or at one of its steps.
 * @param {App} app
 * @param {number} place
 * @param {number} step */
function stepPython(app, place, step) {
  const { expr, passes, rules } = app.record;
  const { unit, name, error, rewrites } = passes[place];
  const lines = [...passPython(app, place), `found = ${passNamed(app, place)}  # ${name}`];
  if (!step) {
    return [expr.python + lines.join("\n"), `print(found.${error ? "error" : "after"})`, ""].join(
      "\n",
    );
  }
  const match = step <= rewrites.length && unit !== "decision"
    ? 'print(match.rule, match.before, match.after, sep="\\n")'
    : "print(match.rule)";
  const isRule = unit === "rewrite" && rules[rewrites[step - 1]?.[0]]?.text;
  lines.push(`match = found.matches[${step - 1}]`, match);
  if (isRule) lines.push("print(ex.why_not(match.rule, match.before, found.name))");
  return `${expr.python}${lines.join("\n")}\n`;
}

/** The place of a pass in the variant that is shown, -1 for one of scheduling.
 * @param {App} app
 * @param {number} place */
const ownPlace = (app, place) => (app.variant()?.passes || []).indexOf(place);

/** The lines that bind `kernel`, where the pass is one of compiling it.
 * @param {App} app
 * @param {number} place */
function passPython(app, place) {
  const variant = app.variant();
  if (!variant || ownPlace(app, place) < 0) return [];
  const { kernel, apply, rules_off } = variant;
  const off = rules_off.length
    ? `.without(${rules_off.map((name) => JSON.stringify(name)).join(", ")})`
    : "";
  const applied = apply.length ? `.apply(\n${apply.map((opt) => `    ${opt},\n`).join("")})` : "";
  const imports = apply.length ? ["from workbench import Opt, OptOps", ""] : [];
  return [...imports, `kernel = ex.kernels[${kernel}]${off}${applied}`];
}

/**
 * @param {App} app
 * @param {number} place */
function passNamed(app, place) {
  const own = ownPlace(app, place);
  if (own < 0) return `ex.passes[${place}]`;
  const device = JSON.stringify(app.record.device);
  return `kernel.${
    app.variant()?.error ? `observed(${device})` : `compile(${device}).passes`
  }[${own}]`;
}
