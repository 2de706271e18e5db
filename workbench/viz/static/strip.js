// HOW IT GOT HERE: a block per pass on the way to what is shown, as high as it did rewrites. A
// block leads to the pass in Rewrites.

function strip(app) {
  const el = h("footer", { class: "wb-strip", "aria-label": "how it got here" });
  const update = (changes) => {
    if (!has_any(changes, "record", "kernel", "variant", "pass")) return;
    const passes = passes_of(app);
    const blocks = passes.map((place) => pass_block(app, place));
    refill(
      el,
      heading("HOW IT GOT HERE"),
      walkable(
        "listbox",
        "passes",
        { class: "wb-blocks", "aria-orientation": "horizontal", "data-key": "blocks" },
        ...blocks,
      ),
    );
    show_chosen(el.querySelector(".wb-blocks"));
  };
  return { el, update };
}

/** Scroll the blocks, and nothing around them, so that the chosen one can be seen. */
function show_chosen(blocks) {
  const chosen = blocks.querySelector('[aria-selected="true"]');
  if (!chosen) return;
  const [outer, inner] = [blocks, chosen].map((e) => e.getBoundingClientRect());
  blocks.scrollLeft += Math.min(0, inner.left - outer.left) + Math.max(0, inner.right - outer.right);
}

/** The passes of scheduling that concern the kernel, then those of the variant that is shown. */
function passes_of(app) {
  const { passes } = app.record;
  const is_shown = ({ variant, kernel }) =>
    variant === null && (kernel === null || kernel === app.view.kernel);
  const shared = passes.map((p, i) => i).filter((i) => is_shown(passes[i]));
  return [...shared, ...(app.variant()?.passes || [])];
}

function pass_block(app, place) {
  const pass = app.record.passes[place];
  const n = pass.rewrites.length + pass.dropped;
  const did = pass.error
    ? "failed"
    : pass.changed
      ? n
        ? plural(n, pass.unit)
        : "changed"
      : "changed nothing";
  const height = pass.changed ? Math.min(26, 5 + 4 * Math.log2(1 + n)) : 2;
  return h(
    "div",
    {
      class: `wb-block wb-unit-${pass.unit} ${pass.changed ? "" : "wb-idle"} ${pass.error ? "wb-failed" : ""}`,
      role: "option",
      "data-item": "",
      "data-key": `pass-${place}`,
      "aria-selected": String(app.view.pass === place),
      "aria-label": `${pass.name}, ${did}`,
      title: `${pass.name}: ${did}\n${pass.doc}`.slice(0, 600),
      onclick: () => app.select({ pass: place, step: 0, mode: "rewrites", pane: "mode" }),
    },
    h("i", { style: `height:${height}px` }),
    h("span", {}, pass.name),
  );
}

/** Go to the next or previous pass that changed something. */
function step_pass(app, step, from = app.view.pass) {
  const passes = passes_of(app).filter((place) => app.record.passes[place].changed);
  const here = passes.indexOf(from);
  const place =
    passes[
      here < 0
        ? step > 0
          ? 0
          : passes.length - 1
        : Math.max(0, Math.min(passes.length - 1, here + step))
    ];
  if (place !== undefined) app.select({ pass: place, step: 0, mode: "rewrites", pane: "mode" });
}
