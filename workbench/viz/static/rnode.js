// A node that was picked: what it is, what led to it, its values at a place, and why a rule did
// not fire on it.

function node_panel(app, place, step, state) {
  const n = app.view.node;
  if (n === null) return null;
  const timeline = timeline_of(app.record, app.record.passes[place]);
  const { nodes } = timeline;
  const state_now = timeline.state(step);
  const here = state_now?.order.find((m) => timeline.real(m) === n) ?? n; // as it is in this state
  const users = state_now?.users.get(here);
  const line = nodes.line[n];
  return h("section", { class: "wb-rw-node", "aria-label": "the picked node" },
    heading(`${nodes.op[n]} #${n}`, h("span", { class: "wb-quiet" }, [nodes.shape[n], nodes.dtype[n]].filter(Boolean).join(" ")),
      line >= 0 && line_button(app, line), h("button", { class: "wb-button", type: "button", "aria-label": "close", title: "Esc", onclick: () => app.select({ node: null }) }, "×")),
    h("pre", {}, expr_inline(nodes, here, 160, 4)),
    node_links(app, timeline, "from", nodes.src[here]), users && node_links(app, timeline, "read by", [...new Set(users)]),
    history_box(app, n, place), values_box(app, n, place, step, state), why_not_box(app, n, place, step, state));
}

function node_links(app, timeline, title, listed) {
  if (!listed.length) return null;
  const shown = listed.slice(0, 12).map((n) => h("button", {
    class: "wb-button", type: "button", title: expr_inline(timeline.nodes, n), onclick: () => app.select({ node: timeline.real(n) }),
  }, timeline.nodes.label[n]));
  return h("div", { class: "wb-rw-links" }, h("span", { class: "wb-quiet" }, title), ...shown, listed.length > 12 && `and ${listed.length - 12} more`);
}

// why it is here

/** Return what led to `node`, the latest first: [{pass, step, rule, node, from}]. A step of -1
 * is a level above: the nodes that it stands for there. */
function node_history(record, passes, node, from) {
  const found = [];
  const seen = new Set();
  let at = passes.indexOf(from);
  let n = node;
  while (n !== null && !seen.has(n) && found.length < 40) {
    seen.add(n);
    const made = maker_of(record, passes, n, at);
    if (!made) break;
    at = made.at;
    if (made.rule !== null) found.push(made);
    n = made.from;
  }
  const origin = n === null ? [] : record.nodes.origin[n];
  if (origin.length) found.push({ pass: null, step: -1, rule: null, node: n, origin });
  return found;
}

/** Return the step that put `n` there, going back from pass number `at`: {pass, step, rule, node,
 * from, at}; rule null where it was only made anew because something below it changed. */
function maker_of(record, passes, n, at) {
  for (; at >= 0; at--) {
    const timeline = timeline_of(record, record.passes[passes[at]]);
    const step = timeline.first_with(n);
    if (!step) continue; // it was there before, or is no part of this pass
    timeline.pair_up_to(step);
    const { rule, before, after } = timeline.steps[step - 1];
    const key = timeline.key_of(n);
    const was = key === n ? undefined : timeline.state(step - 1)?.order.find((m) => timeline.key_of(m) === key);
    const rebuilt = was !== undefined && n !== after;
    const origin = record.nodes.origin[n]?.[0] ?? null; // a pass that is one function says no more
    const from = rebuilt ? timeline.real(was) : rule < 0 ? origin : before === n ? null : before;
    return { pass: passes[at], step, rule: rebuilt ? null : rule, node: n, from, at };
  }
  return null;
}

function history_box(app, n, place) {
  const rows = node_history(app.record, passes_of(app), n, place);
  const box = h("details", { class: "wb-rw-history", open: true }, h("summary", {}, "why is this node here?"));
  if (!rows.length) box.append(h("p", { class: "wb-quiet" }, "It was there before the first pass that is recorded."));
  else box.append(walkable("listbox", "what led to this node", {}, ...rows.map((row, i) => history_item(app, row, i))));
  return box;
}

function history_item(app, row, i) {
  const { nodes, passes } = app.record;
  if (row.step < 0) {
    const names = row.origin.slice(0, 4).map((n) => nodes.label[n]).join(", ");
    return h("div", { role: "option", "data-item": "", "data-key": `why-${i}`, onclick: () => app.select({ node: row.origin[0], mode: "plan" }) }, `it stands for ${names} of the tensor graph`);
  }
  const by = row.rule >= 0 ? rule_name(app, row.rule) : passes[row.pass].name;
  const of = row.from === null ? ` ${passes[row.pass].doc}` : ` ← ${expr_inline(nodes, row.from, 60, 4)}`;
  return h("div", {
    role: "option", "data-item": "", "data-key": `why-${i}`, title: passes[row.pass].doc,
    onclick: () => app.select({ pass: row.pass, step: row.step, node: row.node }),
  }, h("b", {}, by), h("span", { class: "wb-quiet" }, row.rule >= 0 ? ` ${passes[row.pass].name} ${row.step}` : ""), words(of, "", 80));
}

// values

/** Sliders for the axes that a node depends on; its value there, from Python. */
function values_box(app, n, place, step, state) {
  const axes = axes_below(app.record.nodes, n);
  const out = h("output", { class: "wb-rw-values" });
  const at = Object.fromEntries(axes.map(([name]) => [name, state.at[name] ?? 0]));
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
  const answer = h("div", { class: "wb-rw-answer", role: "status" });
  state.asked = rules.some(([i]) => i === state.asked) ? state.asked : rules[0][0];
  const choice = chooser("rule that did not fire", rules.map(([i, rule]) => [i, rule.name]), state.asked, (rule) => (state.asked = rule));
  const ask = async () => {
    const reply = await act(app, "rewrites", { do: "why_not", pass: place, step, node: n, rule: state.asked });
    if (reply?.result) answer.replaceChildren(...why_not_lines(reply.result));
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
