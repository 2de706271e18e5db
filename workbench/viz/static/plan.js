// Plan: the tensor graph with kernels as coloured regions and bytes on the lines that are cut, and
// beside it, in words, why it is cut there (planwhy.js); every decision can be tried the other way.

function mode_plan(app) {
  const detail = h("div", { class: "wb-pane wb-plan-detail" });
  const side = h("div", { class: "wb-pane wb-plan-side" });
  const [failed, before] = [h("div", {}), h("div", { class: "wb-plan-was" })];
  const state = { stored_only: true, drawn: null, kernel: null, is_open: false }; // kernel: whose reasons are told
  const graph = graph_view("plan", {
    node: (node) => app.select({ node: node.n }),
    edge: (edge) => app.select({ node: app.record.plan.nodes[edge.a].n }),
    region: ({ kernel }) => tell_of(kernel),
    hover: (node) => app.light(node && { by: "node", axes: [], nodes: [node.n], lines: [] }),
    open: (node) => node.kernel !== null && app.select({ kernel: node.kernel, mode: "tune" }),
  });
  graph.el.classList.add("wb-g-tall");
  const el = h("div", { class: "wb-plan" }, h("div", { class: "wb-plan-main" }, graph.el), h("div", { class: "wb-plan-aside" }, failed, before, detail, side));

  /** Say why a kernel begins and ends where it does; null: why there are so many. */
  const tell_of = (kernel) => {
    state.kernel = kernel;
    app.select({ ...NOTHING, ...(kernel === null ? {} : { kernel }) });
    app.changed("told");
  };

  const update = (changes) => {
    const { plan } = app.record;
    if (changes.has("kernel") && state.is_open) state.kernel = app.view.kernel;
    state.is_open = true;
    const is_drawn_anew = state.drawn !== plan.nodes;
    if (changes.has("theme")) graph.repaint();
    if (is_drawn_anew) {
      state.drawn = plan.nodes;
      graph.el.hidden = !plan.nodes.length;
      if (plan.nodes.length) graph.show(plan_drawing(app.record), plan_first(plan));
    }
    if (has_any(changes, "record", "failure")) refill(failed, failure(app, "plan"));
    if (has_any(changes, "record", "live", "pending")) refill(before, plan_before(app));
    if (has_any(changes, "record", "node", "kernel", "live", "pending", "told")) refill(detail, ...plan_detail(app, state.kernel, tell_of));
    if (has_any(changes, "node", "kernel", "told")) detail.scrollTop = 0;
    if (has_any(changes, "record", "node", "kernel", "stored")) refill(side, ...plan_list(app, state, () => update(new Set(["stored"]))));
    if (is_drawn_anew || has_any(changes, "node")) {
      const place = plan.nodes.findIndex((node) => node.n === app.view.node);
      if (place < 0) graph.pick(null);
      else graph.look_at(place);
    }
    if (changes.has("hover")) graph.light(plan_lit(app));
  };
  const focus = () => {
    const item = el.querySelector('.wb-plan-aside [aria-selected="true"]') || el.querySelector(".wb-plan-aside [data-item]");
    if (item) focus_item(item.closest("[data-walk]"), item);
  };
  return { el, update, focus, keys: { f: () => graph.fit(), "/": () => graph.field.focus(), y: () => copy_plan(app) } };
}

/** Return the plan as a drawing; the number of a kernel stands where it stores a value. */
function plan_drawing(record) {
  const { plan } = record;
  const drawn = plan.nodes.map((node, i) => plan_node(record, node, i));
  const edges = plan.edges.map((edge) => ({
    a: edge.a, b: edge.b, slot: 0, slots: 1, points: edge.route, state: edge.cut ? "cut" : "kept", hint: edge.cut ? cut_hint(record, edge) : "",
  }));
  const bytes = edges.map((edge, i) => [edge, plan.edges[i]]).filter(([{ state }]) => state === "cut")
    .map(([edge, cut]) => ({ kind: "bytes", text: bytes_text(cut.bytes), spots: line_spots(edge.points), edge }));
  const regions = plan.regions.map((region) => ({ ...region, hint: `kernel ${region.kernel + 1}: ${region.title}\nclick: why it begins and ends where it does` }));
  const titles = drawn.filter((node) => node.stored && regions[node.kernel]).map((node) => plan_title(node, regions[node.kernel]));
  return { nodes: drawn, edges, regions, words: placed_words(drawn, [...bytes, ...titles]) };
}

function plan_node(record, node, i) {
  const families = { input: "M", constant: "C", movement: "V" };
  const { op, shape } = record.nodes;
  const family = families[node.role] || family_of(op[node.n]);
  const small = node.role === "movement";
  return {
    key: i, n: node.n, label: node.label, sub: small ? "" : shape[node.n] || "scalar", family, state: "kept", op: op[node.n], small,
    shape: FAMILIES[family].shape, x: node.x + node.w / 2, y: node.y + node.h / 2, w: node.w, h: node.h,
    kernel: node.stored_by ?? node.kernels[0] ?? null, badge: node.stored_by === null ? "" : String(node.stored_by + 1),
    badge_tint: record.plan.regions[node.stored_by]?.colour || "#fff", stored: node.stored_by !== null, hint: plan_hint(record, node),
  };
}

/** The title of a kernel, beside the value that it stores. */
function plan_title(node, region) {
  const text = region.title.length > 26 ? `${region.title.slice(0, 25)}…` : region.title;
  const away = node.w / 2 + 24 + 0.7 * text_width(text, 11, "bold"); // it grows as the picture shrinks
  return { kind: "title", text, region, spots: [[node.x + away, node.y], [node.x - away, node.y]] };
}

function plan_hint(record, node) {
  const kernels = node.kernels.map((k) => `${k + 1} ${record.kernels[k]?.title ?? ""}`).join(", ");
  return node.role === "input" ? `${bytes_text(node.bytes)} of input` : `${kernels ? `in kernel ${kernels}` : "in no kernel"}${node.stored_by === null ? "" : `, stored: ${bytes_text(node.bytes)}`}`;
}

function cut_hint(record, { a, b, bytes }) {
  const [from, to] = [a, b].map((i) => record.plan.nodes[i]);
  const readers = to.kernels.map((k) => k + 1).join(", ");
  return `${bytes_text(bytes)} go through memory: kernel ${from.stored_by + 1} stores, ${readers ? `kernel ${readers} reads` : "the result is read"}\nclick: why`;
}

/** What is looked at first: everything; of a plan too large for that, where it is cut first. */
function plan_first({ nodes, edges }) {
  const cut = edges.filter((edge) => edge.cut).flatMap(({ a, b }) => [a, b]);
  const results = nodes.map((_, i) => i).filter((i) => nodes[i].output);
  return { keys: nodes.map((_, i) => i), first: [...cut.slice(0, 2), ...results, nodes.length - 1].slice(0, cut.length ? 2 : 1), whole: true };
}

/** The drawn nodes that belong to what the pointer is on. */
function plan_lit(app) {
  const reached = reach(app.record, app.hover);
  const { nodes } = app.record.plan;
  return new Set(nodes.map((_, i) => i).filter((i) => reached?.nodes.has(nodes[i].n)));
}

/** All decisions as a list: the same as the picture, for those who do not see it. */
function plan_list(app, state, changed) {
  const { decisions } = app.record.plan;
  const most = 400;
  const shown = decisions.filter((d) => !state.stored_only || d.stored || d.forced || d.node === app.view.node);
  const items = shown.slice(0, most).map((decision) => decision_item(app, decision));
  return [
    heading("DECISIONS", h("span", { class: "wb-quiet" }, `${shown.length} of ${decisions.length}`),
      h("label", { class: "wb-rw-filter" }, h("input", { type: "checkbox", "data-key": "stored-only", checked: state.stored_only, onchange: (event) => ((state.stored_only = event.target.checked), changed()) }), "stored only"),
      button(app, "copy", () => copy_plan(app), { key: "y", name: "copy-plan", title: "as Python: the code that gets at this plan" })),
    walkable("listbox", "decisions", { class: "wb-plan-list" }, ...items),
    shown.length > most && h("p", { class: "wb-quiet" }, `and ${shown.length - most} more: search finds them in the picture`),
  ];
}

function decision_item(app, decision) {
  const { node, name, stored, forced, reason, kernel } = decision;
  return linked(h("div", {
    role: "option", "data-item": "", "data-key": `decision-${node}`, "aria-selected": String(app.view.node === node), title: reason,
    onclick: () => app.select({ node }),
  }, kernel_number(app, kernel), h("b", {}, stored ? "stored" : "fused"), words(name, "", 40), forced && h("b", {}, "forced"),
  h("span", { class: "wb-quiet wb-plan-why" }, reason)),
  { by: "node", axes: [], nodes: [node], lines: [] });
}

/** The number of a kernel on its colour. */
function kernel_number(app, kernel) {
  const tint = app.record.plan.regions[kernel]?.colour;
  return h("i", { class: "wb-plan-no", style: tint ? `background:${tint}` : null }, kernel === null ? "·" : String(kernel + 1));
}
