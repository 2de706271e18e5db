// Plan: the tensor graph with kernels as coloured regions and bytes on the lines that are cut, and
// beside it every decision with its reason, to be tried the other way round.

function mode_plan(app) {
  const detail = h("div", { class: "wb-pane wb-plan-detail" });
  const side = h("div", { class: "wb-pane wb-plan-side" });
  const failed = h("div", {});
  const state = { stored_only: true, drawn: null };
  const graph = graph_view("plan", {
    node: (node) => app.select({ node: node.n }),
    edge: (edge) => app.select({ node: app.record.plan.nodes[edge.a].n }),
    hover: (node) => app.light(node && { by: "node", axes: [], nodes: [node.n], lines: [] }),
    open: (node) => node.kernel !== null && app.select({ kernel: node.kernel, mode: "tune" }),
  });
  graph.el.classList.add("wb-g-tall");
  const el = h("div", { class: "wb-plan" }, h("div", { class: "wb-plan-main" }, graph.el), h("div", { class: "wb-plan-aside" }, failed, detail, side));

  const update = (changes) => {
    const { plan } = app.record;
    if (has_any(changes, "record") && state.drawn !== plan.nodes) {
      state.drawn = plan.nodes;
      graph.el.hidden = !plan.nodes.length;
      if (plan.nodes.length) graph.show(plan_drawing(app.record), { keys: plan_first(plan) });
    }
    if (has_any(changes, "record", "failure")) refill(failed, failure(app, "plan"));
    if (has_any(changes, "record", "node", "kernel", "live", "pending")) refill(detail, ...plan_detail(app));
    if (has_any(changes, "record", "node", "kernel", "stored")) refill(side, ...plan_list(app, state, () => update(new Set(["stored"]))));
    if (has_any(changes, "record", "node")) {
      const place = plan.nodes.findIndex((node) => node.n === app.view.node);
      if (place < 0) graph.pick(null);
      else graph.look_at(place);
    }
    if (changes.has("hover")) graph.light(plan_lit(app));
  };
  const focus = () => {
    const item = side.querySelector('[aria-selected="true"]') || side.querySelector("[data-item]");
    if (item) focus_item(item.closest("[data-walk]"), item);
  };
  return { el, update, focus, keys: { f: () => graph.fit(), "/": () => graph.field.focus() } };
}

/** Return the plan as a drawing; the number of a kernel stands where it stores a value. */
function plan_drawing(record) {
  const { plan, nodes } = record;
  const families = { input: "M", constant: "C", movement: "V" };
  const drawn = plan.nodes.map((node, i) => {
    const family = families[node.role] || family_of(nodes.op[node.n]);
    const small = node.role === "movement";
    return {
      key: i, n: node.n, label: node.label, sub: small ? "" : nodes.shape[node.n] || "scalar", family, state: "kept", op: nodes.op[node.n],
      shape: FAMILIES[family].shape, x: node.x + node.w / 2, y: node.y + node.h / 2, w: node.w, h: node.h,
      kernel: node.stored_by ?? node.kernels[0] ?? null, badge: node.stored_by === null ? "" : String(node.stored_by + 1),
      stored: node.stored_by !== null, hint: plan_hint(record, node),
    };
  });
  const edges = plan.edges.map((edge) => ({
    a: edge.a, b: edge.b, slot: 0, slots: 1, points: edge.route, state: edge.cut ? "cut" : "kept", words: edge.cut ? bytes_text(edge.bytes) : "",
  }));
  return { nodes: drawn, edges, regions: plan.regions };
}

function plan_hint(record, node) {
  const kernels = node.kernels.map((k) => `${k + 1} ${record.kernels[k]?.title ?? ""}`).join(", ");
  return node.role === "input" ? `${bytes_text(node.bytes)} of input` : `${kernels ? `in kernel ${kernels}` : "in no kernel"}${node.stored_by === null ? "" : `, stored: ${bytes_text(node.bytes)}`}`;
}

/** What is looked at first: the results. */
function plan_first(plan) {
  const places = plan.nodes.map((_, i) => i);
  const results = places.filter((i) => plan.nodes[i].output);
  return results.length ? results.slice(0, 1) : places.slice(-1);
}

/** The drawn nodes that belong to what the pointer is on: themselves, or all of a kernel. */
function plan_lit(app) {
  const reached = reach(app.record, app.hover);
  const { nodes } = app.record.plan;
  return new Set(nodes.map((_, i) => i).filter((i) => reached?.nodes.has(nodes[i].n)));
}

// the decisions

/** The decision about the picked node: reason, figures, and the other way to try. */
function plan_detail(app) {
  const n = app.view.node;
  const decision = decision_of(app, n);
  const drawn = app.record.plan.nodes.find((node) => node.n === n);
  if (!decision && !drawn) return [heading("PLAN"), h("p", { class: "wb-quiet" }, "Pick a value or a line that is cut: why is it stored, or not? A double click goes to the kernel.")];
  const kernel = decision?.kernel ?? drawn?.kernels[0] ?? null;
  const line = app.record.nodes.line[n];
  return [
    heading(decision?.stored ? "STORED" : drawn?.role === "input" ? "INPUT" : "FUSED",
      h("b", {}, words(drawn?.label ?? decision.name)),
      h("span", { class: "wb-quiet" }, `${app.record.nodes.shape[n]} ${app.record.nodes.dtype[n]}`), line >= 0 && line_button(app, line)),
    ...(decision ? decision_parts(app, decision) : [h("p", { class: "wb-quiet" }, "Nothing was to be decided here.")]),
    kernel !== null && h("div", {}, button(app, `kernel ${kernel + 1}: ${app.record.kernels[kernel]?.title ?? ""}`,
      () => app.select({ kernel, mode: "tune" }), { title: "open it in Tune", name: "plan-kernel" })),
  ];
}

/** A decision's reason and figures, with the button that tries the other way. */
function decision_parts(app, decision) {
  const figures = decision.figures.map(([name, value]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, plan_figure(value))));
  return [
    h("p", { class: "wb-plan-reason" }, words(decision.reason, "", 600), decision.forced && h("b", {}, " (forced by you)")),
    figures.length > 0 && h("table", { class: "wb-plan-figures" }, h("tbody", {}, ...figures)),
    h("div", { class: "wb-plan-try" }, ...plan_buttons(app, decision)),
  ];
}

function plan_buttons(app, decision) {
  const { node, stored, forced } = decision;
  const replan = (store) => () => act(app, "plan", { do: "replan", node, store });
  const waits = app.pending("replan");
  if (waits) return [h("span", { class: "wb-quiet", role: "status" }, "planning again …")];
  const title = "plan again with this decision turned round, and time it";
  return [
    forced ? button(app, "undo", replan(null), { python: true, title: "leave it to the scheduler again", name: "replan-undo" })
      : button(app, stored ? "fuse anyway" : "cut here", replan(!stored), { python: true, title, name: "replan" }),
    !can_ask(app) && h("span", { class: "wb-quiet" }, NEEDS_PYTHON),
  ];
}

const plan_figure = (value) => (Number.isInteger(value) ? value.toLocaleString("en") : three(value));

/** All decisions as a list: the same as the picture, for those who do not see it. */
function plan_list(app, state, changed) {
  const { decisions } = app.record.plan;
  const most = 400;
  const shown = decisions.filter((d) => !state.stored_only || d.stored || d.forced || d.node === app.view.node);
  const items = shown.slice(0, most).map((decision) => decision_item(app, decision));
  return [
    heading("DECISIONS", h("span", { class: "wb-quiet" }, `${shown.length} of ${decisions.length}`),
      h("label", { class: "wb-rw-filter" }, h("input", { type: "checkbox", "data-key": "stored-only", checked: state.stored_only, onchange: (event) => ((state.stored_only = event.target.checked), changed()) }), "stored")),
    walkable("listbox", "decisions", { class: "wb-plan-list" }, ...items),
    shown.length > most && h("p", { class: "wb-quiet" }, `and ${shown.length - most} more: search finds them in the picture`),
  ];
}

function decision_item(app, decision) {
  const { node, name, stored, forced, reason, kernel } = decision;
  const tint = app.record.plan.regions[kernel]?.colour;
  return linked(h("div", {
    role: "option", "data-item": "", "data-key": `decision-${node}`, "aria-selected": String(app.view.node === node), title: reason,
    onclick: () => app.select({ node }),
  }, h("i", { class: "wb-plan-no", style: tint ? `background:${tint}` : null }, kernel === null ? "·" : String(kernel + 1)),
    h("b", {}, stored ? "stored" : "fused"), words(name, "", 40), forced && h("b", {}, "forced"), h("span", { class: "wb-quiet wb-plan-why" }, reason)),
  { by: "node", axes: [], nodes: [node], lines: [] });
}
