// Why the plan is cut where it is, in words: of the whole, of one kernel, of one value. The words
// and figures are those that the scheduler recorded; nothing is made up here.

const MOST_CUTS = 40; // that are told of; the list of decisions has all

/** What is told: of the picked value; else of a kernel; else why there are so many kernels. */
function plan_detail(app, kernel, tell_of) {
  const n = app.view.node;
  const decision = decision_of(app, n);
  const drawn = app.record.plan.nodes.find((node) => node.n === n);
  if (decision || drawn) return told_of_value(app, decision, drawn, tell_of);
  return kernel !== null && app.record.kernels[kernel] ? told_of_kernel(app, kernel, tell_of) : told_of_all(app, tell_of);
}

/** The values that go from one kernel to another through memory: {decision, bytes, readers}. */
function cuts_of(record) {
  const { nodes, edges, decisions } = record.plan;
  const readers = new Map(); // node -> {bytes, kernels that read it}
  for (const { a, b, cut, bytes } of edges) {
    if (!cut) continue;
    const { n } = nodes[a];
    if (!readers.has(n)) readers.set(n, { bytes, kernels: new Set() });
    nodes[b].kernels.filter((k) => k !== nodes[a].stored_by).forEach((k) => readers.get(n).kernels.add(k));
  }
  return decisions.filter((d) => d.stored && d.kernel !== null)
    .map((decision) => ({ decision, bytes: readers.get(decision.node)?.bytes, readers: [...(readers.get(decision.node)?.kernels || [])].sort((a, b) => a - b) }))
    .filter(({ readers: found, decision }) => found.length || (!nodes.length && decision.figures.length))
    .sort((a, b) => a.decision.kernel - b.decision.kernel);
}

const COUNTS = ["NO KERNEL", "ONE KERNEL", "TWO KERNELS", "THREE KERNELS", "FOUR KERNELS"];

function told_of_all(app, tell_of) {
  const cuts = cuts_of(app.record);
  const n = app.record.kernels.length;
  const intro = n === 0 ? "Nothing is to be computed."
    : cuts.length ? "A kernel ends where its value has to go through memory. Everything else is fused into what reads it."
    : n === 1 ? "Everything is fused: nothing but the result goes to memory."
    : "The kernels have nothing to give to each other: each computes a result of its own.";
  return [
    heading(`WHY ${COUNTS[n] || `${n} KERNELS`}?`),
    h("p", {}, intro),
    ...cut_list(app, cuts),
    n > 0 && h("p", { class: "wb-quiet" }, "Click a line that is cut, a value, or the ground of a kernel."),
  ];
}

function cut_list(app, cuts) {
  if (!cuts.length) return [];
  return [
    walkable("listbox", "why it is cut", { class: "wb-plan-cuts" }, ...cuts.slice(0, MOST_CUTS).map((cut) => cut_item(app, cut))),
    cuts.length > MOST_CUTS && h("p", { class: "wb-quiet" }, `and ${cuts.length - MOST_CUTS} more, below`),
  ];
}

/** 1 → 2  the value and its bytes; under it the recorded reason, and what the figures say. */
function cut_item(app, { decision, bytes, readers }) {
  const { node, name, kernel, reason } = decision;
  return linked(h("div", {
    role: "option", "data-item": "", "data-key": `cut-${node}`, "aria-selected": String(app.view.node === node), onclick: () => app.select({ node }),
  },
    h("div", { class: "wb-plan-way" }, kernel_number(app, kernel), h("span", { "aria-label": "to" }, "→"),
      ...(readers.length ? readers.slice(0, 4).map((k) => kernel_number(app, k)) : ["memory"]), words(name, "wb-clip", 40), bytes !== undefined && h("b", { class: "wb-figure" }, bytes_text(bytes))),
    h("div", { class: "wb-plan-reason" }, words(reason, "", 600)),
    h("div", { class: "wb-quiet" }, figures_said(decision))),
  { by: "node", axes: [], nodes: [node], lines: [] });
}

/** Why a kernel begins and ends where it does, and what it computes on the way. */
function told_of_kernel(app, kernel, tell_of) {
  const { title, name } = app.record.kernels[kernel];
  const cuts = cuts_of(app.record);
  const [before, after] = [cuts.filter(({ readers }) => readers.includes(kernel)), cuts.filter(({ decision }) => decision.kernel === kernel)];
  const own = app.record.plan.decisions.filter((d) => d.kernel === kernel);
  const result = own.find((d) => d.stored && !after.some(({ decision }) => decision === d));
  return [
    heading("KERNEL", kernel_number(app, kernel), h("b", { title: name }, words(title)), back_button(app, tell_of)),
    h("p", { class: "wb-quiet" }, before.length ? "It reads, through memory:" : "It reads inputs only."),
    ...cut_list(app, before),
    h("p", { class: "wb-quiet" }, after.length ? "It ends here:" : result ? `It ends with ${result.name}: ${result.reason}.` : ""),
    ...cut_list(app, after),
    ...fused_inside(own.filter((d) => !d.stored)),
    tune_button(app, kernel),
  ];
}

/** What is fused, by reason, the rarest first. */
function fused_inside(fused) {
  if (!fused.length) return [];
  const by_reason = new Map();
  for (const { reason } of fused) by_reason.set(reason, (by_reason.get(reason) || 0) + 1);
  const rows = [...by_reason].sort((a, b) => a[1] - b[1]);
  return [
    h("p", { class: "wb-quiet" }, `${plural(fused.length, "value")} fused inside:`),
    h("ul", { class: "wb-plan-fused" }, ...rows.map(([reason, n]) => h("li", {}, `${n} × `, words(reason, "", 300)))),
  ];
}

/** The decision about a value: reason, figures, and the other way to try. */
function told_of_value(app, decision, drawn, tell_of) {
  const n = app.view.node;
  const kernel = decision?.kernel ?? drawn?.kernels[0] ?? null;
  const cut = cuts_of(app.record).find(({ decision: other }) => other === decision);
  return [
    heading(decision?.stored ? "STORED" : drawn?.role === "input" ? "INPUT" : "FUSED",
      h("b", {}, words(drawn?.label ?? decision.name)),
      h("span", { class: "wb-quiet" }, `${app.record.nodes.shape[n]} ${app.record.nodes.dtype[n]}`), ...node_lines(app, n), back_button(app, tell_of)),
    cut && h("p", {}, way_said(app, cut)),
    ...(decision ? decision_parts(app, decision) : [h("p", { class: "wb-quiet" }, "Nothing was to be decided here.")]),
    kernel !== null && tune_button(app, kernel),
  ];
}

/** Kernel 1 stores these 256 KiB, kernel 2 reads them back. */
function way_said(app, { decision, bytes, readers }) {
  const named = (k) => `kernel ${k + 1} (${app.record.kernels[k]?.title ?? ""})`;
  const said = `${named(decision.kernel)} stores ${bytes === undefined ? "it" : bytes_text(bytes)}, ${readers.length ? `${readers.map(named).join(" and ")} ${readers.length > 1 ? "read" : "reads"} it back.` : "to be read back."}`;
  return said[0].toUpperCase() + said.slice(1);
}

const back_button = (app, tell_of) => button(app, "all cuts", () => tell_of(null), { title: "why there are so many kernels", name: "plan-all" });

const tune_button = (app, kernel) => h("div", {}, button(app, `kernel ${kernel + 1}: ${app.record.kernels[kernel]?.title ?? ""}`,
  () => app.select({ kernel, mode: "tune" }), { title: "open it in Tune", name: "plan-kernel" }));

/** A decision's reason and figures, with the button that tries the other way. */
function decision_parts(app, decision) {
  const figures = decision.figures.map(([name, value]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, plan_figure(value))));
  return [
    h("p", { class: "wb-plan-reason" }, words(decision.reason, "", 600), decision.forced && h("b", {}, " (forced by you)")),
    h("div", { class: "wb-plan-try" }, ...plan_buttons(app, decision)),
    h("p", {}, figures_said(decision)),
    figures.length > 0 && h("table", { class: "wb-plan-figures", title: "cost: in operations, roughly" }, h("tbody", {}, ...figures)),
  ];
}

/** What the figures of a decision say, as sentences. */
function figures_said({ stored, figures }) {
  const { evaluations, elements, "cost to recompute": again, "cost to store": storing, "cost to stage": staging } = Object.fromEntries(figures);
  if (evaluations === undefined || !elements) return "";
  const like = (cost) => `${count_text(Math.round(cost))} operations`;
  const times = evaluations / elements;
  const often = times <= 1 ? "computed once" : `computed ${three(times).replace(/\.0+$/, "")} times`;
  const more = again > 0 ? `: ${like(again)} more` : "";
  const each = elements === 1 ? "its one element" : `each of its ${elements.toLocaleString("en")} elements`;
  const by_cost = again < storing ? " By cost alone it would be fused." : "";
  if (stored) return `Fused, ${each} would be ${often}${more}. Storing it and reading it back is like ${like(storing)}.${by_cost}`;
  if (staging !== undefined) return `Without that row, ${each} would be ${often}${more}. Keeping the row is like ${like(staging)}, storing all of it like ${like(storing)}.`;
  return `Fused, ${each} is ${often}${more}. Storing it and reading it back would be like ${like(storing)}.`;
}

function plan_buttons(app, decision) {
  const { node, stored, forced } = decision;
  const turn = (to) => () => replan(app, node, to);
  const waits = app.pending("replan");
  if (decision.asked) return []; // it is stored whatever it costs
  if (waits) return [h("span", { class: "wb-quiet", role: "status" }, "planning again …")];
  const title = "plan again with this decision turned round, and time it";
  return [
    forced ? button(app, "undo", turn(null), { python: true, title: "leave it to the scheduler again", name: "replan-undo" })
      : button(app, stored ? "fuse anyway" : "cut here", turn(!stored), { python: true, title, name: "replan" }),
    !can_ask(app) && h("span", { class: "wb-quiet" }, NEEDS_PYTHON),
  ];
}

const plan_figure = (value) => (Number.isInteger(value) ? value.toLocaleString("en") : three(value));
