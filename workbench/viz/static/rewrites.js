// Rewrites: the passes, their rewrites, and for each what it made of what: the rule, the text
// before and after, and the graph around the change with a ghost of what was before.

function mode_rewrites(app) {
  const side = { passes: h("div", { class: "wb-pane wb-rw-tree" }), list: h("div", { class: "wb-pane wb-rw-steps" }) };
  const head = h("div", { class: "wb-rw-head" });
  const said = h("div", { class: "wb-rw-said" });
  const panel = h("div", { class: "wb-rw-panel" });
  const ask_room = h("div", { class: "wb-rw-failed-ask" });
  const found = h("div", { class: "wb-rw-found" });
  const state = {
    filter: "", idle: false, rule: null, whole: false, fold: true, closed: new Set(), texts: false, at: {}, asked: null,
    place: null, seen: null, drawn: { timeline: null, positions: new Map() },
  };
  const graph = graph_view("graph of the rewrite", {
    node: (node) => app.select({ node: node.n }),
    hover: (node) => app.light(node && { by: "node", axes: [], nodes: [node.n], lines: [] }),
    open: (node) => toggle_closed(node),
  });
  const filter = rewrites_filter(state, () => update(new Set(["filter"])));
  side.filter = filter.querySelector("input");
  const main = h("div", { class: "wb-rw-main" }, head, ask_room, found, said, h("div", { class: "wb-rw-picture" }, graph.el, panel));
  const el = h("div", { class: "wb-rw" },
    h("div", { class: "wb-rw-side" }, h("div", { class: "wb-pane wb-rw-search" }, heading("PASSES"), filter), side.passes, side.list),
    main);

  const current = () => {
    const places = passes_of(app);
    if (places.includes(app.view.pass)) return app.view.pass;
    const most = (place) => app.record.passes[place].rewrites.length * (app.record.passes[place].unit === "rewrite" ? 1 : 0.01);
    return places.reduce((best, place) => (most(place) > most(best) ? place : best), places[0] ?? null);
  };
  const count = (place) => (place === null ? 0 : timeline_of(app.record, app.record.passes[place]).steps.length);
  const shown_step = (place) => Math.min(app.view.pass === place ? app.view.step : 0, count(place));

  state.choose_rule = (rule) => {
    state.rule = rule;
    update(new Set(["filter"]));
  };
  const go = (step) => {
    const place = current();
    app.select({ pass: place, step: Math.max(0, Math.min(count(place), step)) });
  };
  /** Go on by `by` steps, over those of other rules if one is chosen. */
  const step_by = (by) => {
    const place = current();
    if (place === null) return;
    let step = shown_step(place) + by;
    const { rewrites } = app.record.passes[place];
    while (state.rule !== null && step > 0 && step <= rewrites.length && rewrites[step - 1][0] !== state.rule) step += by;
    if (step >= 0 && step <= count(place)) go(step);
  };
  function toggle_closed(node) {
    if (!state.whole) return;
    if (!state.closed.delete(node.key)) state.closed.add(node.key);
    draw(current(), true);
  }
  function close_loops() {
    const place = current();
    const timeline = timeline_of(app.record, app.record.passes[place]);
    const loops = (timeline.state(shown_step(place))?.order || []).filter((n) => ["LOOP", "REDUCE", "STAGE", "ACCUMULATE"].includes(timeline.nodes.op[n]));
    state.closed = new Set(state.closed.size ? [] : loops.map(timeline.key_of));
    draw(place, true);
  }
  const set = (values) => () => {
    Object.assign(state, values(state));
    app.changed("drawn");
  };
  /** Whether the record has more passes or nodes, or is another one; figures that arrive change
   * nothing of what is listed, drawn or answered here. */
  const has_grown = () => {
    const { nodes, passes } = app.record;
    const [seen, now] = [state.seen, [nodes, nodes.op.length, passes.length]];
    state.seen = now;
    return now.some((part, i) => part !== seen?.[i]);
  };

  function update(changes) {
    const place = current();
    if (place !== state.place) Object.assign(state, { place, rule: null });
    const is_other = has_grown() || has_any(changes, "kernel", "variant", "pass");
    const is_other_step = is_other || has_any(changes, "step");
    if (changes.has("theme")) graph.repaint();
    if (is_other || has_any(changes, "filter")) {
      refill(side.passes, pass_tree(app, state, place));
      refill(side.list, ...(place === null ? [] : rewrite_list(app, state, place)));
    }
    if (has_any(changes, "failure")) refill(ask_room, failure(app, "rewrites"));
    if (has_any(changes, "found", "variant", "pending")) refill(found, bisect_answer(app));
    if (place === null) return refill(said, h("p", { class: "wb-quiet" }, "No pass is recorded."));
    const step = shown_step(place);
    if (is_other_step || has_any(changes, "record", "live", "drawn")) {
      mark_step(side.list, step);
      refill(head, ...step_bar(app, state, place, step, { go, step_by, set, count: count(place), close_loops }));
      refill(said, ...said_of(app, state, place, step, go));
    }
    // the button that tries a decision the other way says when that is under way
    if (changes.has("pending") && app.record.passes[place].unit === "decision") refill(said, ...said_of(app, state, place, step, go));
    const is_picked = app.view.node !== null;
    if ((is_other_step || has_any(changes, "node", "live")) && (is_picked || panel.firstChild)) refill(panel, node_panel(app, place, step, state));
    if (is_other_step || has_any(changes, "drawn")) draw(place, changes.has("drawn"));
    if (is_other_step || has_any(changes, "node", "drawn")) pick_node();
    if (changes.has("hover")) graph.light(new Set(graph.drawing().nodes.filter((node) => app.hover?.nodes.includes(node.n)).map((node) => node.key)));
  }

  /** Draw the step: around its change, or the whole state. */
  function draw(place, is_other_view = false) {
    const step = shown_step(place);
    const scene = rewrites_scene(app, state, place, step);
    graph.el.hidden = !scene;
    main.classList.toggle("wb-rw-words", !scene);
    if (!scene) return;
    const timeline = timeline_of(app.record, app.record.passes[place]);
    const anew = is_other_view || state.drawn.timeline !== timeline || state.drawn.whole !== state.whole;
    const drawing = placed_drawing(scene, anew ? new Map() : state.drawn.positions);
    state.drawn = { timeline, whole: state.whole, positions: new Map(drawing.nodes.map((node) => [node.key, node])) };
    const keys = scene.focus.length ? scene.focus : drawing.nodes.slice(0, 1).map((node) => node.key);
    graph.el.classList.toggle("wb-g-tall", state.whole);
    graph.show(drawing, { keys, first: scene.first }, scene.left ? `${plural(scene.left, "node")} more that near` : "");
  }

  function pick_node() {
    const drawn = new Map(graph.drawing().nodes.map((node) => [node.n, node.key]));
    const before = app.view.node === null ? [] : [...ancestors(app.record, passes_of(app), [app.view.node])];
    graph.pick(drawn.get(before.find((n) => drawn.has(n))) ?? null);
  }

  const keys = rewrites_keys({ el: () => el, side, step_by, go, graph, count: () => count(current()), set, pass: (by) => step_pass(app, by, current()), copied: () => copy_step(app, current(), shown_step(current())) });
  const focus = () => {
    const item = side.list.querySelector('[aria-selected="true"]') || side.passes.querySelector('[aria-selected="true"]');
    if (item) focus_item(item.closest("[data-walk]"), item);
  };
  return { el, update, focus, keys };
}

/** What is drawn of a step; null where nothing is, or not before it is asked for. */
function rewrites_scene(app, state, place, step) {
  const pass = app.record.passes[place];
  const timeline = timeline_of(app.record, pass);
  if (pass.unit === "decision") return null;
  if (state.whole && timeline.roots(step)?.length) {
    const scene = (fold) => whole_scene(timeline, step, fold, state.closed);
    const folded = scene(state.fold);
    return state.fold && folded?.nodes.length === 1 ? scene(false) : folded; // all is index arithmetic
  }
  return step ? change_scene(timeline, step, state.fold) : null;
}

/** Give a scene its places; what has one in `before` stays there. */
function placed_drawing(scene, before) {
  const { places, routes } = layout_graph(scene, before);
  return {
    nodes: scene.nodes.map((node, i) => ({ ...node, ...places[i], shape: FAMILIES[node.family].shape })),
    edges: scene.edges.map((edge, i) => ({ ...edge, points: routes[i] })),
  };
}

function rewrites_filter(state, changed) {
  return h("div", { class: "wb-rw-filter" },
    h("input", { type: "search", class: "wb-input", placeholder: "filter passes", "aria-label": "filter passes", oninput: (event) => ((state.filter = event.target.value), changed()) }),
    h("label", {}, h("input", { type: "checkbox", onchange: (event) => ((state.idle = event.target.checked), changed()) }), "no-ops"));
}

/** The line with which one steps: first, back, where, on, last; and what the graph shows. */
function step_bar(app, state, place, step, { go, step_by, set, count, close_loops }) {
  const pass = app.record.passes[place];
  const tool = (text, title, act_on, key, off) =>
    h("button", { class: "wb-button", type: "button", title: `${title} (${key})`, "aria-label": title, "data-key": `step-${title}`, disabled: off, onclick: act_on }, text);
  return [
    h("b", {}, words(pass.name)),
    count > 0 && h("span", { class: "wb-rw-stepper" },
      tool("«", "first", () => go(0), "Home", step === 0), tool("‹", "back", () => step_by(-1), "k", step === 0),
      h("span", { class: "wb-rw-at", role: "status" }, step === 0 ? `before, of ${count}` : `${step} of ${count}`),
      tool("›", "next", () => step_by(1), "j", step >= count), tool("»", "last", () => go(count), "End", step >= count)),
    pass.unit !== "decision" && h("span", { class: "wb-rw-stepper" },
      button(app, "whole graph", set(({ whole }) => ({ whole: !whole })), { pressed: state.whole, key: "g", name: "whole" }),
      button(app, "fold", set(({ fold }) => ({ fold: !fold })), { pressed: state.fold, title: "constants always, index arithmetic if pressed, stand in the words of what uses them", name: "fold" }),
      state.whole && button(app, "close loops", close_loops, { title: "a double click on a node closes or opens what only it needs", name: "close" })),
    app.view.variant !== null && button(app, "bisect", () => bisect_rewrites(app), { python: true, title: "find the first rewrite that changes the answer of this variant", name: "bisect" }),
  ];
}

async function bisect_rewrites(app) {
  const { variant } = app.view;
  const reply = await act(app, "rewrites", { do: "bisect", variant });
  const found = reply?.result;
  if (!found) return;
  app.found = { variant, text: found.text, of: app.record };
  app.changed("found");
  if (Number.isInteger(found.pass) && app.view.variant === variant) app.select({ pass: found.pass, step: found.step });
}

/** What bisecting found, until something else is asked, or another variant or plan is shown. */
function bisect_answer(app) {
  if (app.pending("bisect")) return h("div", { class: "wb-rw-banner", role: "status" }, "bisect: computing states …");
  const { variant, text, of } = app.found || {};
  if (of !== app.record || variant !== app.view.variant || !text) return null;
  const name = words(app.record.variants[variant].name, "", 40);
  const forget = () => ((app.found = null), app.changed("found"));
  return h("div", { class: "wb-rw-banner", role: "status" }, h("b", {}, "bisect of ", name), words(text, "", 1000), button(app, "dismiss", forget, { name: "bisect-done" }));
}

/** The words of a step: its rule, its change, the whole text; of a pass: what it did in all. */
function said_of(app, state, place, step, go) {
  const pass = app.record.passes[place];
  const timeline = timeline_of(app.record, pass);
  const remember = (is_open) => (state.texts = is_open);
  const texts = (k) => app.record.texts[k]?.split("\n");
  if (step === 0) {
    const [before, after] = [texts(pass.text_before), texts(pass.text_after)];
    const differs = before && after && pass.text_before !== pass.text_after;
    return [rules_off_banner(app), ...pass_overview(app, place, go),
      (before || after) && text_difference(differs ? "what the whole pass changed" : "the text", true, () => [before || after, after || before], () => {})];
  }
  if (pass.unit === "decision") return decision_words(app, pass.rewrites[step - 1][1]);
  const change = timeline.steps[step - 1];
  const { nodes } = timeline;
  const both = [timeline.roots(step - 1), timeline.roots(step)];
  return [
    rules_off_banner(app), rule_card(app, change.rule), change_text(nodes, change),
    both.every((roots) => roots?.length === 1) &&
      text_difference("whole text, and what differs", state.texts, () => both.map(([root]) => expr_lines(nodes, root)), remember),
  ];
}

/** Why a value is stored or not; more of it is in Plan. */
function decision_words(app, node) {
  const decision = decision_of(app, node);
  if (!decision) return [h("p", { class: "wb-quiet" }, "The reason is not recorded.")];
  return [h("pre", {}, `${decision.name}: ${expr_inline(app.record.nodes, node, 120)}`), ...decision_parts(app, decision),
    h("button", { class: "wb-button", type: "button", onclick: () => app.select({ mode: "plan", node }) }, "see it in Plan")];
}

/** Keys of this mode. In lists other than that of the rewrites, arrows walk the list, and in those
 * of other panes j and k too. */
function rewrites_keys({ el, side, step_by, go, graph, count, set, pass, copied }) {
  const in_list_outside = ({ target }, here) => target.closest("[data-walk]") && !is_across(target) && !here().contains(target);
  const unless_outside = (here, act_on) => (event) => (in_list_outside(event, here) ? false : act_on());
  const letter = (by) => unless_outside(el, () => step_by(by));
  const arrow = (act_on) => unless_outside(() => side.list, act_on);
  const [next, back] = [arrow(() => step_by(1)), arrow(() => step_by(-1))];
  return {
    j: letter(1), k: letter(-1), ArrowDown: next, ArrowRight: next, ArrowUp: back, ArrowLeft: back,
    Home: arrow(() => go(0)), End: arrow(() => go(count())),
    h: () => pass(-1), l: () => pass(1), f: () => graph.fit(), g: () => set(({ whole }) => ({ whole: !whole }))(),
    "/": () => (graph.el.hidden ? side.filter : graph.field).focus(), y: copied,
  };
}
