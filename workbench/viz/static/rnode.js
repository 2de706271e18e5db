// A node that was picked: what it is, what led to it, its values at a place, and why a rule did
// not fire on it.

function node_panel(app, place, step, state) {
  const n = app.view.node;
  if (n === null) return null;
  const timeline = timeline_of(app.record, app.record.passes[place]);
  const { nodes } = timeline;
  const state_now = timeline.state(step);
  const here = node_in_state(app, timeline, state_now, n);
  const users = state_now?.users.get(here);
  return h("section", { class: "wb-rw-node", "aria-label": "the picked node" },
    heading(`${nodes.op[n]} #${n}`, h("span", { class: "wb-quiet" }, [nodes.shape[n], nodes.dtype[n]].filter(Boolean).join(" ")),
      ...node_lines(app, n), h("button", { class: "wb-button", type: "button", "aria-label": "close", title: "Esc", onclick: () => app.select({ node: null }) }, "×")),
    h("pre", {}, expr_inline(nodes, here, 160, 4)),
    node_links(app, timeline, "from", nodes.src[here]), users && node_links(app, timeline, "read by", [...new Set(users)]),
    history_box(app, n), values_box(app, n, place, step, state), why_not_box(app, n, place, step, state));
}

function node_links(app, timeline, title, listed) {
  if (!listed.length) return null;
  const shown = listed.slice(0, 12).map((n) => h("button", {
    class: "wb-button", type: "button", title: expr_inline(timeline.nodes, n), onclick: () => app.select({ node: timeline.real(n) }),
  }, timeline.nodes.label[n]));
  return h("div", { class: "wb-rw-links" }, h("span", { class: "wb-quiet" }, title), ...shown, listed.length > 12 && `and ${listed.length - 12} more`);
}

// why it is here

/** Return what led to some nodes, and to the indexes they read or write at, the latest first:
 * [{pass, step, node, from}], each rewrite once; step 0 is a pass that is one function. The last
 * may be {origin}: the nodes of the tensor graph that they stand for. */
function node_history(record, passes, start) {
  const rank = new Map(passes.map((place, i) => [place, i]));
  const found = new Map(); // pass and step -> row
  const before = ancestors(record, passes, start.flatMap((n) => with_index(record.nodes, n)), (pass, step, n, from) => {
    const key = `${pass} ${step}`;
    const known = found.get(key);
    if (step >= 0 && !known) found.set(key, { pass, step, node: n, from });
    else if (known?.from === n) known.from = from; // the same pass went on from there
  });
  const rows = [...found.values()].sort((a, b) => rank.get(b.pass) - rank.get(a.pass) || b.step - a.step);
  const drawn = new Map(record.plan.nodes.map(({ n, role }) => [n, role]));
  const decided = new Set(record.plan.decisions.map((decision) => decision.node));
  const tensors = [...before].filter((n) => drawn.has(n) || decided.has(n));
  const values = tensors.filter((n) => drawn.get(n) === "value"); // and no memory, nor what moves it
  const origin = values.length ? values : tensors;
  return [...rows.slice(0, 40), ...(origin.length ? [{ origin }] : [])];
}

/** Return nodes and all that they came from in some passes, the nearest first, as a Set. What an
 * index is made of is part of it: a sum that lowering sorts anew. */
function ancestors({ nodes }, passes, start, visit = () => {}) {
  const shown = new Set(passes);
  const seen = new Set(start);
  for (const n of seen) { // a Set goes on to what is added while it is walked
    for (const [pass, step, from] of nodes.made[n] || [])
      if (shown.has(pass)) {
        visit(pass, step, n, from);
        seen.add(from);
      }
    if (nodes.dtype[n] === "index") for (const s of nodes.src[n]) if (nodes.dtype[s] === "index") seen.add(s);
  }
  return seen;
}

/** A node, and the indexes at which it reads or writes memory. */
function with_index(nodes, n) {
  const place = ["LOAD", "STORE"].includes(nodes.op[n]) ? nodes.src[n][0] : n;
  return nodes.op[place] === "INDEX" ? [n, ...nodes.src[place].slice(1)] : [n];
}

/** Return the node of a state that `n` is, or comes from. */
function node_in_state(app, timeline, state, n) {
  if (!state) return n;
  const by_real = new Map(state.order.map((m) => [timeline.real(m), m]));
  for (const was of ancestors(app.record, passes_of(app), [n])) if (by_real.has(was)) return by_real.get(was);
  return n;
}

function history_box(app, n) {
  const { picked } = app.view;
  const of_line = picked?.by === "code" && picked.nodes[0] === n ? picked.nodes : [n]; // all that it computes
  const rows = node_history(app.record, passes_of(app), of_line);
  const box = h("details", { class: "wb-rw-history", open: true }, h("summary", {}, `why is this ${of_line.length > 1 ? "line" : "node"} here?`));
  if (!rows.length) box.append(h("p", { class: "wb-quiet" }, "It was there before the first pass that is recorded."));
  else box.append(walkable("listbox", "what led to this node", {}, ...rows.map((row, i) => history_item(app, row, i))));
  return box;
}

function history_item(app, row, i) {
  const { nodes, passes, lines } = app.record;
  const item = (select, ...inner) => h("div", { role: "option", "data-item": "", "data-key": `why-${i}`, onclick: () => app.select(select) }, ...inner);
  if (row.origin) {
    const names = row.origin.slice(0, 4).map((n) => nodes.label[n]).join(", ");
    const at = row.origin.map((n) => nodes.line[n]).find((line) => line >= 0);
    return item({ node: row.origin[0], mode: "plan" }, `it stands for ${names} of the tensor graph`, at !== undefined && h("span", { class: "wb-quiet" }, " ", words(lines[at].where, "", 60)));
  }
  const pass = passes[row.pass];
  const is_opt = pass.unit === "opt" && pass.rewrites.length;
  const [rule, before, after] = row.step ? pass.rewrites[row.step - 1] : [is_opt ? pass.rewrites[0][0] : -1, row.from, row.node];
  const step = row.step || timeline_of(app.record, pass).steps.length;
  const line = item({ pass: row.pass, step, node: row.step ? after : row.node },
    h("b", {}, rule >= 0 ? rule_name(app, rule) : pass.name), row.step > 0 && h("span", { class: "wb-quiet" }, ` ${pass.name} ${row.step}`),
    words(` ${expr_inline(nodes, after, 40, 3)} ← ${expr_inline(nodes, before, 60, 4)}`, "", 110));
  line.title = rule >= 0 ? app.record.rules[rule].doc || pass.doc : pass.doc;
  return line;
}

/** Where the answers about a node at a step stand: they outlive that the panel is made anew. */
function answers_about(app, state, n, place, step) {
  const about = `${n} ${place} ${step} ${app.view.variant}`;
  if (state.answers?.about !== about)
    state.answers = { about, values: h("output", { class: "wb-rw-values" }), why_not: h("div", { class: "wb-rw-answer", role: "status" }) };
  return state.answers;
}

// values

/** Sliders for the axes that a node depends on; its value there, from Python. */
function values_box(app, n, place, step, state) {
  const axes = axes_below(app.record.nodes, n);
  const out = answers_about(app, state, n, place, step).values;
  const at = Object.fromEntries(axes.map(([name, size]) => [name, Math.min(state.at[name] ?? 0, Math.max(0, size - 1))]));
  const ask = async () => {
    const variant = app.record.passes[place].kernel === null ? null : app.view.variant;
    const reply = await act(app, "rewrites", { do: "values", variant, pass: place, step, node: n, at });
    if (reply?.result) out.textContent = values_text(reply.result);
  };
  const ask_soon = debounced(ask, 120);
  const sliders = axes.map(([name, size]) => {
    const shown = h("span", {}, String(at[name]));
    const field = h("input", {
      type: "range", min: 0, max: Math.max(0, size - 1), value: at[name], "aria-label": `position on ${name}`, disabled: !can_ask(app),
      oninput: (event) => {
        at[name] = state.at[name] = Number(event.target.value);
        shown.textContent = String(at[name]);
        ask_soon();
      },
    });
    return h("label", {}, h("b", {}, name), field, shown);
  });
  return h("div", { class: "wb-rw-valuebox" }, button(app, "values here", ask, { python: true, name: "values" }), ...sliders, out,
    !can_ask(app) && h("span", { class: "wb-quiet" }, NEEDS_PYTHON));
}

function values_text({ value, min, max, nan, shape }) {
  const span = min === undefined || min === null ? "" : `  min ${min}  max ${max}${nan ? `  ${plural(nan, "NaN")}` : ""}`;
  return `${JSON.stringify(value)}${span}${shape?.length ? `  shape ${shape.join("x")}` : ""}`;
}

/** Return [name, size] of the axes below a node, in the order in which they are met. */
function axes_below(nodes, root) {
  const ranges = state_order(nodes, [root]).filter((n) => nodes.op[n] === "RANGE");
  const found = new Map(ranges.map((n) => [expr_own_name(nodes, n), Number(expr_extent(nodes, n))]));
  return [...found].filter(([, size]) => Number.isFinite(size)).slice(0, 8);
}

// why not

/** Ask why a rule of this pass did not fire on a node. */
function why_not_box(app, n, place, step, state) {
  const pass = app.record.passes[place];
  const fired = new Set(pass.rewrites.map(([rule]) => app.record.rules[rule]?.set));
  const rules = app.record.rules.map((rule, i) => [i, rule]).filter(([, rule]) => rule.file && (!fired.size || fired.has(rule.set)));
  if (!rules.length) return null;
  const answer = answers_about(app, state, n, place, step).why_not;
  state.asked = rules.some(([i]) => i === state.asked) ? state.asked : rules[0][0];
  const choice = chooser("rule that did not fire", rules.map(([i, rule]) => [i, rule.name]), state.asked, (rule) => ((state.asked = rule), answer.replaceChildren()));
  const ask = async () => {
    const rule = state.asked;
    const reply = await act(app, "rewrites", { do: "why_not", pass: place, step, node: n, rule });
    if (reply?.result && rule === state.asked) answer.replaceChildren(...why_not_lines(reply.result));
  };
  return h("div", { class: "wb-rw-whynot" }, h("span", {}, "why did"), choice, h("span", {}, "not fire here?"),
    button(app, "ask", ask, { python: true, name: "why-not" }), !can_ask(app) && h("span", { class: "wb-quiet" }, NEEDS_PYTHON), answer);
}

/** The text of the rule with a caret line under the first part that failed. */
function why_not_lines({ text, caret_start, caret_end, because }) {
  const lines = text.slice(0, caret_start).split("\n");
  const before = lines.at(-1).length;
  const line_end = text.indexOf("\n", caret_start);
  const shown = line_end < 0 ? text : text.slice(0, line_end);
  const carets = " ".repeat(before) + "^".repeat(Math.max(1, Math.min(caret_end, shown.length) - caret_start));
  const rest = line_end < 0 ? "" : text.slice(line_end);
  return [h("pre", {}, `${shown}\n`, h("b", {}, carets), rest), h("p", {}, words(because, "", 1000))];
}
