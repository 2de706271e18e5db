// Kinds of axes, and the axis bar: every axis of the plain kernel is one bar, and its splits are
// cells of it.

const KINDS = {
  GLOBAL: "G",
  LOOP: "O",
  LOCAL: "L",
  THREAD: "T",
  GROUP: "GR",
  REDUCE: "R",
  UPCAST: "U",
  UNROLL: "N",
  WARP: "W",
  FILL: "F",
};

/** The letter of a kind on its colour and pattern (theme.css). */
function chip(kind, more = "") {
  const title = [kind.toLowerCase(), more].filter(Boolean).join(", ");
  return h("span", { class: `wb-chip wb-k wb-k-${kind}`, title }, KINDS[kind] || "?");
}

/** A link from an axis to all that belongs to it. */
function axis_link(app, axis) {
  return of_axis(app, axis).picked;
}

function axis_bars(app, variant) {
  const el = h("div", { class: "wb-axes" });
  for (const cells of bars_of(app, variant)) {
    const bar = h("div", { class: "wb-bar" }, ...cells.map((axis) => axis_cell(app, axis)));
    bar.style.flexGrow = cells.length; // room for each cell
    el.append(bar);
  }
  return el;
}

function axis_cell(app, { name, kind, size }) {
  return linked(
    h(
      "span",
      {
        class: `wb-cell wb-k-${kind}`,
        title: `${name}: ${plural(size, "step")}, ${kind.toLowerCase()}`,
        onclick: () => pick_axis(app, name),
      },
      chip(kind),
      words(name, "wb-code"),
      h("span", { class: "wb-figure" }, `${size}`),
    ),
    axis_link(app, name),
  );
}

const pick_axis = (app, axis) => app.select({ axis: app.view.axis === axis ? null : axis });

const SPLITS = {
  SPLIT: null,
  UPCAST: "u",
  UNROLL: "n",
  LOCAL: "l",
  GROUP: "x",
  GROUPTOP: "x",
  THREAD: "t",
};

/** Return the axes grouped by the axis of the plain kernel they were split from. The names of
 * inner parts follow from the opts; where they do not fit what is there, an axis stands alone. */
function bars_of(app, variant) {
  const root = app.record.variants[app.record.kernels[variant.kernel]?.root] || variant;
  const groups = new Map(root.axes.map(({ name }) => [name, [name]]));
  const taken = new Set(groups.keys());
  for (const opt of variant.opts) {
    const [, op, axis] = /^(\w+)\("(\w+)"/.exec(opt) || [];
    if (!(op in SPLITS)) continue;
    const group = [...groups.values()].find((names) => names.includes(axis));
    if (!group) continue;
    const letter = SPLITS[op] ?? axis.replace(/\d+$/, "");
    let number = 0;
    while (taken.has(letter + number)) number++;
    taken.add(letter + number);
    group.splice(group.indexOf(axis) + 1, 0, letter + number);
  }
  const by_name = new Map(variant.axes.map((axis) => [axis.name, axis]));
  const bars = [...groups.values()].map((names) =>
    names.map((n) => by_name.get(n)).filter(Boolean),
  );
  const placed = new Set(bars.flat());
  return [
    ...bars.filter((bar) => bar.length),
    ...variant.axes.filter((axis) => !placed.has(axis)).map((axis) => [axis]),
  ];
}
