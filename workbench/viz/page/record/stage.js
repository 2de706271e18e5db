// The state of the program at the step that is shown: which loops it has, and whether it has a
// source yet.

import { stateRows } from "./node_text.js";
import { passesOf } from "./passes.js";
import { timelineOf } from "./states.js";

/** @import { App } from "../app/store.js" */
/** @import { RecordedPass, VariantRow } from "../record.d.ts" */
/** @import { Link } from "../types.d.ts" */
/** @import { Timeline } from "./states.js" */

/** A stage. `loops`: the variant whose loops the state has; null: it has none yet. `where` names
 * the step; `words` say what its loops are, where they are not those of the selected variant.
 * @typedef {{where: string, loops: VariantRow | null, words: string, hasSource: boolean}} Stage */

/** The panes that show a step. */
const STEPPED = ["graph", "rewrite", "passes"];

/** The pass that is stepped through, by its index; null: no step is in sight.
 * @param {App} app */
function steppedPass(app) {
  const { arrangements, view: { pass } } = app;
  const isSeen = STEPPED.some((pane) => arrangements.shows(pane));
  return isSeen && pass !== null && passesOf(app).includes(pass) ? pass : null;
}

/** The stage of the selected variant at the step that is shown; null: no step is.
 * @param {App} app
 * @returns {Stage | null} */
export function stageOf(app) {
  const place = steppedPass(app);
  const variant = app.variant();
  if (place === null || !variant) return null;
  const { passes, variants } = app.record;
  const pass = passes[place];
  const where = stepName(pass, app.view.step);
  const hasSource = pass.variant !== null && !pass.after.length; // it has become a text
  if (pass.kernel === null) {
    const words = `${where} there are no loops yet: kernels come from this graph.`;
    return { where, loops: null, words, hasSource };
  }
  const applied = pass.variant === null ? 0 : appliedOpts(app, variant, place);
  const all = variant.opts.length;
  if (applied >= all) return { where, loops: variant, words: "", hasSource };
  const loops = applied
    ? variants.find((row) => row.kernel === variant.kernel && isPrefix(row, variant, applied))
    : variants[app.kernel()?.root ?? -1];
  const words = loops
    ? `${where} ${applied || "none"} of ${all} opts ${applied === 1 ? "is" : "are"} applied.`
    : `${where} ${applied} of ${all} opts are applied: no variant here has these loops.`;
  return { where, loops: loops ?? null, words, hasSource };
}

/** @param {RecordedPass} pass
 * @param {number} step */
const stepName = ({ name, rewrites }, step) =>
  !rewrites.length ? `At ${name}` : step ? `At ${name}, step ${step},` : `Before ${name}`;

/** The number of opts that are applied at a step of a variant's passes.
 * @param {App} app
 * @param {VariantRow} variant
 * @param {number} place */
function appliedOpts({ record: { passes }, view: { step } }, { passes: own }, place) {
  const isOpt = (/** @type {number} */ at) => passes[at].unit === "opt";
  const before = own.slice(0, own.indexOf(place)).filter(isOpt).length;
  return before + Number(isOpt(place) && step > 0);
}

/** Whether a variant has the first opts of another one, and no more.
 * @param {VariantRow} row
 * @param {VariantRow} variant
 * @param {number} count */
const isPrefix = (row, variant, count) =>
  !row.deleted && !row.edited && row.opts.length === count &&
  row.opts.every((opt, i) => opt === variant.opts[i]) && row.loops !== null;

const MOST_LINES = 400; // of a state that is shown as text

/** A line of a state, and the nodes of what it states.
 * @typedef {{text: string, nodes: number[]}} StageLine */

/** The program at the step that is shown, as text; null: no step is, or its state is not recorded.
 * @param {App} app
 * @returns {StageLine[] | null} */
export function stageLines(app) {
  const place = steppedPass(app);
  if (place === null) return null;
  const pass = app.record.passes[place];
  const timeline = timelineOf(app.record, pass);
  const isDecided = pass.unit === "decision"; // it changes no graph
  const step = isDecided ? 0 : Math.min(app.view.step, timeline.steps.length);
  const known = LAST_LINES.get(timeline);
  if (known?.step === step) return known.lines;
  const lines = linesOf(timeline, step);
  LAST_LINES.set(timeline, { step, lines });
  return lines;
}

/** The last lines of each timeline: they stay the same while times arrive.
 * @type {WeakMap<Timeline, {step: number, lines: StageLine[] | null}>} */
const LAST_LINES = new WeakMap();

/**
 * @param {Timeline} timeline
 * @param {number} step
 * @returns {StageLine[] | null} */
function linesOf(timeline, step) {
  const { nodes } = timeline;
  const roots = timeline.roots(step);
  const rows = roots?.flatMap((root) => stateRows(nodes, root));
  if (!rows?.length) return null;
  const lines = rows.slice(0, MOST_LINES).map(([text, of]) => ({ text, nodes: of }));
  const left = rows.length - lines.length;
  return left ? [...lines, { text: `${left} lines more`, nodes: [] }] : lines;
}

/** What belongs to the rewrite that is shown; null: no step is. It lights what became of its nodes.
 * @param {App} app
 * @returns {Link | null} */
export function stepLink(app) {
  const place = steppedPass(app);
  const rewrite = place === null ? null : app.record.passes[place].rewrites[app.view.step - 1];
  if (!rewrite) return null;
  const [, , after] = rewrite;
  return after < 0 ? null : { by: "node", axes: [], nodes: [after], lines: [] };
}
