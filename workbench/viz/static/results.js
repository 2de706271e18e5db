// The left: kernels, the variants of the one that is shown with their times, and the user's lines.
// Variants are a tree: each came from another by an opt, an edit or a search.

function kernels_pane(app) {
  const el = h("section", { class: "wb-kernels", "aria-label": "kernels" });
  const update = (changes) => {
    if (!has_any(changes, "record", "kernel", "line")) return;
    const rows = app.record.kernels.map((kernel, i) => kernel_row(app, kernel, i));
    refill(
      el,
      heading("KERNELS", h("span", { class: "wb-quiet" }, `${rows.length}`)),
      walkable("listbox", "kernels", { class: "wb-list", "data-key": "kernels" }, ...rows),
      !rows.length &&
        h(
          "p",
          { class: "wb-quiet", style: "white-space:pre-wrap" },
          app.record.nothing,
        ),
    );
  };
  return { el, update };
}

function kernel_row(app, kernel, i) {
  const chosen = i === app.view.kernel;
  const lines = kernel.line === null ? [] : [kernel.line, ...kernel.inner];
  const line = app.record.lines[kernel.line];
  const said = lines.map((at) => `${app.record.lines[at].where}: ${app.record.lines[at].text}`);
  const work = `${kernel.name}: ${count_text(kernel.flops)} operations, ${bytes_text(kernel.bytes)}`;
  const about = kernel.decoded ? `${work}\n${kernel.decoded}` : work;
  return linked(
    h(
      "div",
      {
        class: "wb-row wb-kernel",
        role: "option",
        "aria-selected": String(chosen),
        "data-item": "",
        "data-key": `kernel-${i}`,
        title: [about, ...said].join("\n").slice(0, 1000),
        onclick: () => app.select({ kernel: i }),
      },
      kernel_number(app, i),
      words(kernel.title, "wb-clip"),
      line && words(line.where, "wb-quiet wb-clip"),
    ),
    { by: "line", axes: [], nodes: [], lines },
  );
}

/** The user's lines: where everything comes from. */
function lines_pane(app) {
  const el = h("section", { class: "wb-sources", "aria-label": "notebook lines" });
  const update = (changes) => {
    if (!has_any(changes, "record", "line")) return;
    const rows = in_order(app.record.lines).map((i) => source_row(app, app.record.lines[i], i));
    el.hidden = !rows.length;
    refill(
      el,
      heading("LINES"),
      walkable("listbox", "lines of the notebook", { class: "wb-list" }, ...rows),
    );
  };
  return { el, update };
}

/** Cells and lines in the order in which the user wrote them. */
function in_order(lines) {
  const compare_where = (a, b) =>
    lines[a].where.localeCompare(lines[b].where, "en", { numeric: true });
  return lines.map((_, i) => i).sort(compare_where);
}

function source_row(app, { where, text }, i) {
  const chosen = app.view.line === i;
  const row = h(
    "div",
    {
      class: "wb-row wb-source",
      role: "option",
      "aria-selected": String(chosen),
      "data-item": "",
      "data-key": `source-${i}`,
      title: text.slice(0, 1000),
      onclick: () => app.select({ line: chosen ? null : i }),
    },
    words(where, "wb-quiet wb-clip"),
    words(text.trim(), "wb-code wb-clip"),
  );
  return linked(row, { by: "line", axes: [], nodes: [], lines: [i] });
}

function results_pane(app) {
  const el = h("section", { class: "wb-results", "aria-label": "results" });
  const update = (changes) => {
    if (!has_any(changes, "record", "kernel", "variant", "cold", "live", "pending", "failure"))
      return;
    refill(
      el,
      heading("RESULTS", warmth(app)),
      variant_tree(app),
      baseline_rows(app),
      emulated(app),
      result_buttons(app),
      failure(app, "results"),
      about_variant(app),
    );
  };
  return { el, update };
}

/** Warm: caches hold what the run before left. Cold: they were flushed. */
function warmth(app) {
  const choice = (cold, text, title) =>
    button(app, text, () => app.select({ cold }), { pressed: app.view.cold === cold, title });
  return h(
    "span",
    { class: "wb-switch", role: "group", "aria-label": "caches" },
    choice(false, "warm", "caches hold what the run before left"),
    choice(true, "cold", "caches are flushed before each run"),
  );
}

function variant_tree(app) {
  const here = app.variants_of(app.view.kernel);
  const rows = in_tree_order(app, here).map(([i, level]) => variant_row(app, i, level));
  return walkable("tree", "variants", { class: "wb-list" }, ...rows);
}

/** Return [variant, level] with children under their parents. */
function in_tree_order(app, here) {
  const children = new Map(here.map((i) => [i, []]));
  const tops = here.filter((i) => !children.get(app.record.variants[i].parent)?.push(i));
  const rows = [];
  const todo = tops.reverse().map((i) => [i, 1]);
  while (todo.length) {
    const [i, level] = todo.pop();
    rows.push([i, level]);
    children
      .get(i)
      .reverse()
      .forEach((child) => todo.push([child, level + 1]));
  }
  return rows;
}

function variant_row(app, i, level) {
  const variant = app.record.variants[i];
  const is_pinned = i === pinned(app);
  const busy = app.pending("measure", { variants: i });
  return h(
    "div",
    {
      class: "wb-row wb-variant",
      role: "treeitem",
      "aria-level": level,
      "aria-selected": String(i === app.view.variant),
      "data-item": "",
      "data-key": `variant-${i}`,
      title: [variant.opts.join("\n") || "no opts", variant.note].filter(Boolean).join("\n\n"),
      onclick: () => go_to(app, i),
    },
    h(
      "span",
      { class: "wb-name", style: `padding-left:${Math.min(level - 1, 6) * 10}px` },
      h(
        "span",
        { class: "wb-pin", title: is_pinned ? "pinned: ratios refer to it" : null },
        is_pinned ? "◆" : "",
      ),
      words(variant.name, "wb-clip", 40),
      variant.edited && !variant.name.startsWith("edited") && h("i", { class: "wb-quiet wb-mark" }, "edited"),
      trouble_mark(variant),
    ),
    ...(busy
      ? [h("span", { class: "wb-quiet wb-span3" }, "timing…")]
      : time_cells(app, variant.timing, variant.timing?.emulator)),
  );
}

/** A wrong answer is as little to be overlooked as none: its time would be compared. */
function trouble_mark({ error, check }) {
  if (error) return h("b", { class: "wb-bad wb-mark", title: error.what }, "!");
  return check && !check.ok && h("b", { class: "wb-bad wb-mark", title: check.text }, "\u2717");
}

/** Time, spread and ratio to the pinned variant; nothing where an emulator ran. */
function time_cells(app, timing, hidden = false) {
  if (!timing || hidden)
    return [h("span", { class: "wb-quiet wb-span3" }, hidden ? "emulated" : "not timed")];
  const s = app.view.cold ? timing.cold_s : timing.median_s;
  if (s === null) return [h("span", { class: "wb-quiet wb-span3" }, "not timed cold")];
  const reference = app.record.variants[pinned(app)]?.timing;
  return [
    h("span", { class: "wb-figure", title: timing_text(app.record.machine, timing) }, seconds_text(s)),
    h(
      "span",
      { class: "wb-figure wb-quiet wb-spread" },
      app.view.cold ? "" : spread_text(timing),
    ),
    ratio_cell(app, timing, reference),
  ];
}

/** The ratio of the two times that are shown to each other; where they were not taken in turns, in
 * one run, marked ~. */
function ratio_cell(app, timing, reference) {
  if (!real(reference)) return h("span");
  const [a, b] = app.view.cold ? [reference.cold_s, timing.cold_s] : [reference.median_s, timing.median_s];
  if (a === null || b === null) return h("span");
  const apart = in_one_run(timing, reference) ? "" : "~";
  const same = reference !== timing && !apart && !app.view.cold && overlap(reference, timing);
  const meaning = same ? "no measurable difference" : "times as fast as the pinned variant";
  const title = apart ? `${meaning}; timed apart: the machine may have been slower or faster` : meaning;
  return h(
    "b",
    { class: "wb-figure", title },
    same ? "≈" : `${apart}${three(a / b).replace(/\.00$/, "")}x`,
  );
}

/** Times of the emulator stand apart: they say nothing about speed. */
function emulated(app) {
  const rows = app
    .variants_of(app.view.kernel)
    .map((i) => app.record.variants[i])
    .filter((v) => v.timing?.emulator);
  if (!rows.length) return null;
  return h(
    "div",
    { class: "wb-list" },
    h("div", { class: "wb-quiet wb-small" }, `EMULATOR (${rows[0].timing.device}): not the speed of the kernel`),
    ...rows.map((v) =>
      h(
        "div",
        { class: "wb-row wb-variant" },
        h("span", { class: "wb-name" }, h("span", { class: "wb-pin" }), words(v.name)),
        h("span", { class: "wb-figure wb-span3" }, seconds_text(v.timing.median_s)),
      ),
    ),
  );
}

function result_buttons(app) {
  if (!app.variant()) return null; // nothing to compute
  const python = true;
  return h(
    "div",
    { class: "wb-buttons" },
    button(app, app.pending("measure") ? "Timing…" : "Time", () => measure(app), {
      python,
      key: "t",
      name: "time",
      title: "this variant and the pinned one, in turns",
    }),
    button(app, app.pending("check") ? "Checking…" : "Check", () => check(app), {
      python,
      key: "c",
      name: "check",
      title: "against the reference interpreter",
    }),
    button(app, app.pending("search") ? "Searching…" : "Search", () => search(app), {
      python,
      name: "search",
      title: "for 10 s from here; it can be stopped",
    }),
    button(app, "Pin", () => pin(app), {
      key: "p",
      title: "ratios and diffs refer to this variant",
    }),
    ...baseline_button(app),
  );
}
