// Copy as Python, in Rewrites and Plan: the code that gets at what is shown. It begins with the
// lines that bind `ex` (record.expr.python). What Tune copies is a kernel, which Python writes.

const copy_step = (app, place, step) =>
  place !== null && copy(app, step_python(app, place, step), step ? "this step as Python" : "this pass as Python");

const copy_plan = (app) => copy(app, plan_python(app), "the plan as Python");

/** Code that gets at a pass, or at one of its steps. */
function step_python(app, place, step) {
  const { expr, passes, rules } = app.record;
  const { unit, name, error, rewrites } = passes[place];
  const lines = [...pass_python(app, place), `found = ${pass_named(app, place)}  # ${name}`];
  if (!step) return [expr.python + lines.join("\n"), `print(found.${error ? "error" : "after"})`, ""].join("\n");
  const match = step <= rewrites.length && unit !== "decision" ? "print(match.rule, match.before, match.after, sep=\"\\n\")" : "print(match.rule)";
  const is_rule = unit === "rewrite" && rules[rewrites[step - 1]?.[0]]?.text;
  lines.push(`match = found.matches[${step - 1}]`, match);
  if (is_rule) lines.push("print(ex.why_not(match.rule, match.before, found.name))");
  return `${expr.python}${lines.join("\n")}\n`;
}

/** The place of a pass in the variant that is shown, -1 for one of scheduling. */
const own_place = (app, place) => (app.variant()?.passes || []).indexOf(place);

/** The lines that bind `kernel`, where the pass is one of compiling it. */
function pass_python(app, place) {
  if (own_place(app, place) < 0) return [];
  const { kernel, apply, rules_off } = app.variant();
  const off = rules_off.length ? `.without(${rules_off.map((name) => JSON.stringify(name)).join(", ")})` : "";
  const applied = apply.length ? `.apply(\n${apply.map((opt) => `    ${opt},\n`).join("")})` : "";
  const imports = apply.length ? ["from workbench import Opt, OptOps", ""] : [];
  return [...imports, `kernel = ex.kernels[${kernel}]${off}${applied}`];
}

function pass_named(app, place) {
  const own = own_place(app, place);
  if (own < 0) return `ex.passes[${place}]`;
  const device = JSON.stringify(app.record.device);
  return `kernel.${app.variant().error ? `observed(${device})` : `compile(${device}).passes`}[${own}]`;
}

/** Code that gets at the plan, or at the decision that is picked. */
function plan_python(app) {
  const { expr, plan } = app.record;
  const place = plan.decisions.findIndex(({ node }) => node === app.view.node);
  if (place < 0) return `${expr.python}print(ex.plan)\n`;
  const { stored, asked, forced } = plan.decisions[place];
  const other = forced ? "None" : stored ? "False" : "True";
  const lines = [`decision = ex.decisions[${place}]`, "print(decision)"];
  if (!asked) lines.push(`# the other way: ex = ex.replan({decision.node: ${other}})`);
  return `${expr.python}${lines.join("\n")}\n`;
}
