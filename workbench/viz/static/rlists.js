// The lists beside a rewrite: the passes as a tree, and the rewrites of the pass that is shown.

/** The passes on the way to the variant that is shown; those that changed nothing on demand. */
function pass_tree(app, state, current) {
  const wanted = state.filter;
  const rows = passes_of(app).filter((place) => {
    const pass = app.record.passes[place];
    const fits = has_words(`${pass.name} ${pass.doc}`, wanted);
    return fits && (state.idle || pass.changed || pass.error || place === current);
  });
  const items = rows.map((place) => pass_item(app, place, place === current));
  if (!items.length) return h("p", { class: "wb-quiet", role: "status" }, "nothing found");
  return walkable("tree", "passes", { class: "wb-rw-passes" }, ...items);
}

function pass_item(app, place, is_current) {
  const pass = app.record.passes[place];
  const count = pass.rewrites.length + pass.dropped;
  const did = pass.error ? "failed" : count ? `${count.toLocaleString("en")}` : pass.changed ? "·" : "\u2013";
  return h("div", {
    role: "treeitem", "aria-level": pass.depth + 1, "aria-selected": String(is_current), "data-item": "",
    "data-key": `rw-pass-${place}`, class: `wb-rw-pass${pass.changed ? "" : " wb-idle"}${pass.error ? " wb-failed" : ""}`,
    style: `padding-left:${6 + 14 * pass.depth}px`, title: `${pass.changed ? "" : "changed nothing\n"}${pass.doc}`,
    "aria-label": `${pass.name}, ${count ? plural(count, pass.unit) : pass.changed || pass.error ? did : "changed nothing"}, ${seconds_text(pass.seconds)}`,
    onclick: () => app.select({ pass: place, step: 0 }),
  }, h("span", {}, pass.name), h("span", { class: "wb-rw-n" }, did), h("span", { class: "wb-quiet wb-rw-t" }, seconds_text(pass.seconds)));
}

/** The rewrites of a pass, with a choice of rule. */
function rewrite_list(app, state, place) {
  const pass = app.record.passes[place];
  const counts = rule_counts(pass);
  const shown = pass.rewrites.map((_, i) => i).filter((i) => state.rule === null || pass.rewrites[i][0] === state.rule);
  const items = shown.map((i) => rewrite_item(app, pass, place, i));
  const choice = counts.length > 1 && chooser("rule", [[-2, `all ${counts.length} rules`], ...counts.map(([rule, n]) => [rule, `${rule_name(app, rule)} (${n})`])],
    state.rule ?? -2, (rule) => state.choose_rule(rule === -2 ? null : rule));
  return [
    heading(`${pass.unit === "step" ? "STEP" : `${pass.unit}S`.toUpperCase()}`, h("span", { class: "wb-quiet" }, String(shown.length || "")),
      button(app, "copy", () => copy_step(app, place, app.view.pass === place ? app.view.step : 0), { key: "y", name: "copy-step", title: "as Python: the code that gets at what is shown" })),
    choice,
    items.length ? walkable("listbox", `${pass.unit}s of ${pass.name}`, { class: "wb-rw-list" }, ...items)
      : h("p", { class: "wb-quiet" }, pass.changed ? "one function, in one step" : "nothing to do"),
    pass.dropped > 0 && h("p", { class: "wb-quiet" }, `and ${plural(pass.dropped, "rewrite")} more that the record does not hold`),
  ];
}

function rewrite_item(app, pass, place, i) {
  const [rule, before] = pass.rewrites[i];
  const what = pass.unit === "decision" ? decision_of(app, before)?.name ?? app.record.nodes.label[before] : rule_name(app, rule);
  return linked(h("div", {
    role: "option", "data-item": "", "data-key": `rw-${i + 1}`, "aria-selected": String(app.view.step === i + 1),
    onclick: () => app.select({ pass: place, step: i + 1 }),
  }, h("span", { class: "wb-rw-i" }, String(i + 1)), words(what, "", 60)), { by: "node", axes: [], nodes: [before], lines: [] });
}

/** Mark the rewrite that is shown, without making the list anew. */
function mark_step(container, step) {
  const list = container.querySelector(".wb-rw-list");
  if (!list) return;
  const old = list.querySelector('[aria-selected="true"]');
  const now = list.querySelector(`[data-key="rw-${step}"]`);
  if (old === now) return;
  old?.setAttribute("aria-selected", "false");
  if (!now) return;
  now.setAttribute("aria-selected", "true");
  const had_focus = list.contains(document.activeElement);
  if (old) old.tabIndex = -1;
  now.tabIndex = 0;
  if (had_focus) now.focus({ preventScroll: true });
  requestAnimationFrame(() => scroll_within(list, now));
}

/** Scroll a list, and nothing around it, so that an item can be seen. */
function scroll_within(list, item) {
  const top = item.offsetTop - list.offsetTop;
  if (top < list.scrollTop) list.scrollTop = top;
  else if (top + item.offsetHeight > list.scrollTop + list.clientHeight) list.scrollTop = top + item.offsetHeight - list.clientHeight;
}

/** Return [rule, how often] of a pass, the most frequent first. */
function rule_counts(pass) {
  const counts = new Map();
  for (const [rule] of pass.rewrites) counts.set(rule, (counts.get(rule) || 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]);
}

const rule_name = (app, rule) => app.record.rules[rule]?.name ?? "decision";
const decision_of = (app, node) => app.record.plan.decisions.find((decision) => decision.node === node);
