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
    roofline(app),
    variant.opts.length > 0 &&
      fold("opts", `opts ${variant.opts.length}`, () =>
        h(
          "ol",
          { class: "wb-opts" },
          ...variant.opts.map((opt) => h("li", {}, words(opt, "wb-code", 120))),
        ),
      ),
    variant.counts && fold("counts", "counts of one run", () => counts_table(variant.counts)),
    note_field(app, variant),
  );
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

function note_field(app, variant) {
  const off = !can_ask(app);
  if (off) return variant.note ? h("p", { class: "wb-note" }, words(variant.note, "", 2000)) : null;
  const input = h("input", {
    class: "wb-input",
    type: "text",
    placeholder: "note",
    "aria-label": "note",
    "data-key": "note",
    maxlength: 2000,
    onchange: (event) =>
      act(app, "results", { do: "note", variant: app.view.variant, text: event.target.value }),
  });
  input.value = variant.note;
  return input;
}
