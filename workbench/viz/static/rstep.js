// One rewrite in words: its rule, what it made of what, and the whole text with its difference.

/** The rule of a step: what it says, why, and where it stands. */
function rule_card(app, rule) {
  const row = app.record.rules[rule];
  if (!row) return null;
  return h("div", { class: "wb-rw-rule" },
    h("div", {}, h("b", {}, words(row.name)), row.set && h("span", { class: "wb-quiet" }, ` of ${row.set}`),
      row.file && h("span", { class: "wb-quiet wb-rw-place" }, `${row.file}:${row.line}`),
      row.file && rule_off_button(app, rule)),
    row.text && h("code", { class: "wb-rw-pattern" }, words(row.text, "", 1000)),
    row.doc && h("div", { class: "wb-rw-doc" }, words(row.doc, "", 1500)));
}

/** Before and after as text, what differs emphasised, and what the names stand for. */
function change_text(nodes, step) {
  const { before, after, where } = expr_change(nodes, step.before, step.after);
  const lines = before.length === 1 && after.length === 1 ? pair_of_lines(before[0], after[0]) : difference_lines(before, after, 2);
  const most = 60;
  return h("div", { class: "wb-rw-change", role: "group", "aria-label": "before and after" },
    h("pre", {}, ...lines.slice(0, most), lines.length > most && h("span", { class: "wb-quiet" }, `${plural(lines.length - most, "line")} more`)),
    where.length > 0 && h("pre", { class: "wb-quiet" }, `where ${where.slice(0, 6).join("\n      ")}${where.length > 6 ? "\n      …" : ""}`));
}

/** Two lines, with the words in which they differ emphasised. */
function pair_of_lines(before, after) {
  const [a, b] = [before, after].map((line) => line.match(/[\w.]+|\s+|./g) || []);
  const rows = diff_lines(a, b);
  const line = (sign, tokens, column, kind) => h("span", { class: `wb-rw-${kind}` }, `${sign === "-" ? "−" : sign} `,
    ...rows.filter(([mark]) => mark === " " || mark === sign).map((row) => (row[0] === sign ? h("em", {}, tokens[row[column]]) : tokens[row[column]])), "\n");
  return [line("-", a, 1, "minus"), line("+", b, 2, "plus")];
}

/** A unified difference with `around` lines of context. */
function difference_lines(before, after, around) {
  const rows = diff_lines(before, after);
  const near = new Set();
  rows.forEach(([sign], i) => {
    if (sign !== " ") for (let k = i - around; k <= i + around; k++) near.add(k);
  });
  const shown = [];
  rows.forEach(([sign, a, b], i) => {
    if (!near.has(i)) {
      if (near.has(i - 1) || i === 0) shown.push(h("span", { class: "wb-quiet" }, "  ⋯\n"));
      return;
    }
    const kind = { "-": "minus", "+": "plus", " ": "same" }[sign];
    shown.push(h("span", { class: `wb-rw-${kind}` }, `${sign === "-" ? "−" : sign} ${a === null ? after[b] : before[a]}\n`));
  });
  return shown;
}

/** The texts of two states, made when it is opened; `make()` returns [before, after] as lines. */
function text_difference(title, is_open, make, on_toggle) {
  const body = h("pre", { class: "wb-rw-whole" });
  const box = h("details", { class: "wb-rw-texts" }, h("summary", {}, title), body);
  const fill = () => {
    const [before, after] = make();
    const lines = difference_lines(before, after, 4);
    body.replaceChildren(...(lines.length && before.join() !== after.join() ? lines : [before.join("\n")]));
  };
  box.addEventListener("toggle", () => (on_toggle(box.open), box.open && !body.firstChild && fill()));
  if (is_open) (box.open = true), fill();
  return box;
}

/** A pass as a whole: what it is for, which rules did how much. */
function pass_overview(app, place, go) {
  const pass = app.record.passes[place];
  const counts = rule_counts(pass).filter(([rule]) => rule >= 0).slice(0, 12);
  return [
    h("p", { class: "wb-rw-doc" }, words(pass.doc, "", 1500)),
    error_box(pass.error && { what: pass.error }),
    counts.length > 0 && h("div", { class: "wb-rw-counts" }, ...counts.map(([rule, n]) =>
      h("button", { class: "wb-button", type: "button", title: app.record.rules[rule].doc, onclick: () => go(pass.rewrites.findIndex((r) => r[0] === rule) + 1) },
        `${rule_name(app, rule)} × ${n}`))),
  ];
}
