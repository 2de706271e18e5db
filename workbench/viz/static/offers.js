// NEXT: the opts that are possible, best first; why the others are not; opts pasted as text.

const SHOWN_AT_FIRST = 24;

function offers_table(app, variant, state) {
  const offers = best_first(variant.offers);
  const ops = [...new Set(variant.offers.map((offer) => offer.op))];
  if (state.op && !ops.includes(state.op)) state.op = null;
  const found = (row) => `${row.opt} ${row.why}`.toLowerCase().includes(state.find.toLowerCase());
  const fitting = (state.op ? offers.filter((offer) => offer.op === state.op) : offers).filter(
    found,
  );
  const shown = state.all || state.op || state.find ? fitting : varied(fitting, SHOWN_AT_FIRST);
  const asked = app.pending("offers", { variant: app.view.variant });
  const again = (change) => () => (Object.assign(state, change), app.changed("offers"));
  if (state.refused && variant.refused.length) return refused_list(variant.refused.filter(found));
  return h(
    "div",
    { class: "wb-offers" },
    h(
      "div",
      { class: "wb-filters", role: "group", "aria-label": "opts by name" },
      ops.length > 1 &&
        button(app, "all", again({ op: null }), { pressed: state.op === null, name: "op-all" }),
      ...(ops.length > 1 ? ops : []).map((op) =>
        button(app, op, again({ op }), { pressed: state.op === op, name: `op-${op}` }),
      ),
    ),
    failure(app, "offers"),
    offers.length
      ? offer_list(app, variant, shown)
      : h("p", { class: "wb-quiet" }, asked ? "Looking for opts…" : nothing_next(app, variant)),
    shown.length < fitting.length &&
      button(app, `${fitting.length - shown.length} more`, again({ all: true }), { name: "more" }),
  );
}

function nothing_next(app, variant) {
  if (variant.refused.length) return "Nothing more is possible here.";
  return can_ask(app)
    ? "No opts are known for this variant yet."
    : `No opts are known for this variant: that ${NEEDS_PYTHON}.`;
}

/** Measured ones first, fastest first; then predicted ones; then as the action table has them. */
function best_first(offers) {
  const key = (o) => [o.measured ?? Infinity, -(o.predicted ?? 0)];
  return offers
    .map((offer, i) => ({ offer, i, key: key(offer) }))
    .sort((a, b) => compare(a.key[0], b.key[0]) || compare(a.key[1], b.key[1]) || a.i - b.i)
    .map(({ offer }) => offer);
}

const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

/** The first `most`, taking turns among the ops where no figure says which is better. */
function varied(offers, most) {
  const known = offers.filter((o) => o.measured !== null || o.predicted !== null);
  const queues = new Map();
  for (const offer of offers) {
    if (known.includes(offer)) continue;
    const key = offer.opt.replace(/,? ?\d+\)$/, ""); // op and axis
    queues.has(key) ? queues.get(key).push(offer) : queues.set(key, [offer]);
  }
  const taken = known.slice(0, most);
  for (const queue of queues.values())
    if (taken.length < most) taken.push(...queue.slice(0, Math.ceil(most / queues.size / 1.5)));
  return taken.slice(0, most);
}

function offer_list(app, variant, offers) {
  const best = Math.min(...offers.map((o) => o.measured ?? Infinity));
  return h(
    "div",
    {
      class: "wb-offer-list wb-list",
      role: "listbox",
      "aria-label": "possible opts",
      "data-walk": "",
    },
    h(
      "div",
      { class: "wb-offer wb-heads", role: "presentation" },
      h("span", {}, "opt"),
      h("span", {}, "why"),
      h("span", { class: "wb-figure" }, "predicted"),
      h("span", { class: "wb-figure" }, "measured"),
      h("span"),
    ),
    ...offers.map((offer) => offer_row(app, variant, offer, best)),
  );
}

function offer_row(app, variant, offer, best) {
  const chosen = app.view.opt === offer.opt;
  const axes = [...offer.opt.matchAll(/"(\w+)"/g)].map(([, name]) => name);
  const link = {
    by: "offer",
    axes,
    nodes: axes.flatMap((axis) => axis_link(app, axis).nodes),
    lines: [],
  };
  const busy = app.pending("apply", { variant: app.view.variant, opt: offer.opt });
  const row = h(
    "div",
    {
      class: "wb-offer wb-row",
      role: "option",
      "aria-selected": String(chosen),
      "data-item": "",
      "data-key": `offer-${offer.opt}`,
      onclick: () => app.select({ opt: chosen ? null : offer.opt, picked: chosen ? null : link }),
    },
    words(offer.opt, "wb-code wb-clip"),
    words(offer.why, "wb-quiet wb-clip", 400),
    h("span", { class: "wb-figure" }, offer.predicted === null ? "" : `x${three(offer.predicted)}`),
    h(
      "span",
      { class: `wb-figure ${offer.measured === best ? "wb-best" : ""}` },
      offer.measured === null ? "" : seconds_text(offer.measured),
    ),
    button(app, busy ? "…" : "apply", () => apply_opt(app, offer.opt), {
      python: true,
      key: "a",
      name: `apply-${offer.opt}`,
    }),
    chosen &&
      h(
        "div",
        { class: "wb-does" },
        h("div", {}, h("i", { class: "wb-quiet" }, "here "), words(offer.does, "", 600)),
        h("div", {}, h("i", { class: "wb-quiet" }, "on a GPU "), words(offer.on_gpu, "", 600)),
        offer.why !== offer.does &&
          h("div", {}, h("i", { class: "wb-quiet" }, "why "), words(offer.why, "", 600)),
      ),
  );
  row.querySelector("button").tabIndex = -1;
  return linked(row, link);
}

function refused_list(refused) {
  return h(
    "div",
    { class: "wb-refused" },
    ...refused.flatMap(({ opt, why }) => [words(opt, "wb-code"), words(why, "wb-quiet", 600)]),
  );
}

/** Opts as text, as `copy as Python` and a search print them. */
function paste_box(app) {
  const input = h("input", {
    class: "wb-input wb-code",
    type: "text",
    "aria-label": "paste opts",
    "data-key": "paste",
    disabled: !can_ask(app),
    placeholder: can_ask(app)
      ? 'paste opts: UPCAST("g1", 4), UNROLL("r0", 8)'
      : `paste opts: ${NEEDS_PYTHON}`,
    onkeydown: (event) => event.key === "Enter" && paste(app, event.target),
  });
  return h(
    "div",
    { class: "wb-paste" },
    input,
    button(app, "Apply these", () => paste(app, input), { python: true }),
    button(app, "Copy as Python", () => copy_python(app), { key: "y" }),
  );
}

async function paste(app, input) {
  const text = input.value.trim();
  if (text && (await act(app, "offers", { do: "paste", variant: app.view.variant, text })))
    input.value = "";
}
