// What is known of the variant that is shown: what bounds it, whether it is right, counts, a note.

/** What is known of the variant that is shown: difference, check, what bounds it, counts, a note. */
function about_variant(app) {
  const variant = app.variant();
  if (!variant) return null;
  const reference = app.record.variants[pinned(app)];
  const same =
    reference !== variant &&
    real(reference.timing) &&
    real(variant.timing) &&
    in_one_run(reference.timing, variant.timing) &&
    overlap(reference.timing, variant.timing);
  return h(
    "div",
    { class: "wb-about" },
    same && h("p", {}, "No measurable difference to ", words(reference.name), "."),
    variant.check &&
      h(
        "p",
        { class: variant.check.ok ? "wb-good" : "wb-bad" },
        variant.check.ok ? "✓ " : "✗ ",
        words(variant.check.text, "", 400),
      ),
    variant.bound && h("p", {}, h("b", {}, "BOUND "), words(variant.bound, "", 600)),
    ...estimate_parts(app, variant),
    roofline(app),
    opts_fold(variant),
    variant.counts && fold("counts", "counts of one run", () => counts_table(variant.counts)),
    note_field(app, variant),
  );
}

/** The opts of a variant; of the default ones with the steps that chose them, why, and by which
 * figures. */
function opts_fold({ opts, steps = [] }) {
  if (!opts.length) return null;
  const title = `opts ${opts.length}${steps.length ? ": why these" : ""}`;
  const items = () => (steps.length ? steps.map(step_parts) : opts.map((opt) => opt_words(opt)));
  return fold("opts", title, () =>
    h("ol", { class: "wb-opts" }, ...items().map((parts) => h("li", {}, parts))),
  );
}

const opt_words = (opt) => words(opt, "wb-code", 120);

function step_parts({ name, opts, why, figures }) {
  const told = figures.map(([figure, n]) =>
    figure.includes("bytes") ? `${figure.replace("bytes", "").trim()} ${bytes_text(n)}` : `${figure} ${plan_figure(n)}`,
  );
  return [
    h("b", {}, name),
    ": ",
    words(why, "", 400),
    h("div", {}, ...opts.flatMap((opt) => [opt_words(opt), " "])),
    h("div", { class: "wb-quiet" }, told.join(", ")),
  ];
}

function counts_table(counts) {
  return h(
    "dl",
    { class: "wb-counts" },
    ...Object.entries(counts).flatMap(([name, n]) => [
      h("dt", {}, name.replaceAll("_", " ")),
      h(
        "dd",
        { title: n.toLocaleString("en") },
        name.startsWith("bytes") ? bytes_text(n) : count_text(n),
      ),
    ]),
  );
}

const OPENED = new Set();

/** A fold that stays open when its pane is filled anew; its body is made when it is opened. */
function fold(key, title, body) {
  const el = h(
    "details",
    { class: "wb-fold", open: OPENED.has(key) },
    h("summary", { "data-key": `fold-${key}` }, title),
  );
  const fill = () => el.open && el.childElementCount === 1 && el.append(body());
  el.addEventListener("toggle", () => {
    el.open ? OPENED.add(key) : OPENED.delete(key);
    fill();
  });
  fill();
  return el;
}

/** Figures that arrive make the pane anew: what is being written outlives that, as a draft. */
function note_field(app, variant) {
  const off = !can_ask(app);
  if (off) return variant.note ? h("p", { class: "wb-note" }, words(variant.note, "", 2000)) : null;
  const { variant: of } = app.view;
  const draft = app.draft?.of === of ? app.draft : { of, text: variant.note, told: variant.note };
  const tell = async () => {
    if (draft.text === draft.told) return;
    draft.told = draft.text;
    const reply = await act(app, "results", { do: "note", variant: of, text: draft.text });
    if (reply && app.draft === draft && draft.text === draft.told) app.draft = null; // the record has it
  };
  const input = h("input", {
    class: "wb-input",
    type: "text",
    placeholder: "note",
    "aria-label": "note",
    "data-key": "note",
    maxlength: 2000,
    oninput: () => {
      draft.text = input.value;
      app.draft = draft;
    },
    onchange: tell,
    onblur: tell,
  });
  input.value = draft.text;
  return input;
}
