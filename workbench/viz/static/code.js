// The right: the program of the variant, in C, LLVM, machine code or as the statement tree. A line
// leads to its loop, its nodes and its notebook line, and they lead back. It can be edited: what
// comes back is checked and timed like any variant.

function code_pane(app) {
  const el = h("section", { class: "wb-code-pane", "aria-label": "code" });
  const bar = h("div", { class: "wb-code-bar" });
  const trouble = h("div", { class: "wb-trouble" });
  const body = h("div", { class: "wb-code-body" });
  el.append(bar, trouble, body);
  const state = { editing: null, helpers: false, shown: null, asked: new Set() };
  const redo_body = () => app.changed("editing");

  const update = (changes) => {
    const variant = app.variant();
    if (changes.has("variant")) state.editing = null;
    const code = code_of(variant, app.view.language) || variant?.code[0] || null;
    if (has_any(changes, "record", "kernel", "variant", "language", "diff", "live", "pending", "editing", "pinned"))
      refill(bar, ...code_bar(app, variant, code, state, redo_body));
    if (has_any(changes, "failure", "variant")) refill(trouble, failure(app, "code"));
    const shown = [code, state.editing, state.helpers, app.view.diff, code_of(app.record.variants[pinned(app)], code?.language), variant?.error];
    if (shown.some((part, i) => part !== state.shown?.[i])) {
      state.shown = shown;
      fill_body(app, body, variant, code, state, redo_body);
    }
    if (changes.has("code")) mark_line(app, body, code);
    if (has_any(changes, "picked", "code") && app.view.picked?.by !== "code") show_first_lit(app, body);
    if (has_any(changes, "variant", "language", "live")) ask_for_code(app, variant, state);
  };
  return { el, update };
}

const code_of = (variant, language) => variant?.code.find((code) => code.language === language) || null;

const LANGUAGES = { C: "C", LLVM: "LLVM IR", asm: "machine code", IR: "statement tree" };

function code_bar(app, variant, code, state, again) {
  const reference = app.record.variants[pinned(app)];
  const tabs = Object.keys(LANGUAGES).filter((name) => code_of(variant, name) || name === app.view.language).map((name) =>
    tab(name, (code?.language || app.view.language) === name, () => app.select({ language: name }), `code-${name}`, LANGUAGES[name]));
  const can_diff = reference && reference !== variant;
  return [
    heading("CODE"),
    walkable("tablist", "language", { class: "wb-tabs", "aria-orientation": "horizontal" }, ...tabs),
    h("span", { class: "wb-gap" }),
    button(app, can_diff ? `diff to ${reference.name.slice(0, 16)}` : "diff to pinned", () => toggle_diff(app),
      { pressed: Boolean(app.view.diff), key: "d", name: "diff", title: can_diff ? "against the pinned variant" : "this is the pinned variant" }),
    button(app, "copy", () => code && copy(app, code.lines.join("\n"), code.language), { name: "copy-code" }),
    code && !state.editing && button(app, "edit", () => ((state.editing = { language: code.language, text: code.lines.join("\n") }), again()),
      { python: true, title: "what you write becomes a variant, checked and timed" }),
  ];
}

function fill_body(app, body, variant, code, state, again) {
  if (state.editing) return refill(body, editor(app, state, again));
  if (!code) return refill(body, h("p", { class: "wb-quiet wb-pad" }, variant?.error ? "There is no program: see the error with the loops." : "No program yet."));
  const reference = app.record.variants[pinned(app)];
  const other = app.view.diff && reference !== variant ? code_of(reference, code.language) : null;
  const lines = other ? diff_view(app, code, other, state.helpers) : code_view(app, code, state, again);
  lines.style.setProperty("--digits", String(code.lines.length).length);
  const place = `${app.view.variant} ${code.language} ${Boolean(other)}`;
  refill(body, lines);
  if (body.dataset.place !== place) body.scrollTop = 0;
  body.dataset.place = place;
}

/** The lines; what stands before the kernel (types, helpers) is folded away at first. */
function code_view(app, code, state, again) {
  const first = state.helpers ? 0 : helper_lines(code);
  const rows = code.lines.slice(first).map((text, i) => code_line(app, code, first + i, text));
  const unfold = first > 0 && h("button", {
    class: "wb-unfold", type: "button", "data-key": "helpers", onclick: () => ((state.helpers = true), again()),
  }, `show ${plural(first, "line")} of types and helpers`);
  return h("div", { class: "wb-lines" }, unfold, walkable("listbox", "lines", { class: "wb-lines-list" }, ...rows));
}

/** How many lines stand before the kernel and the comment over it; few are not worth a fold. */
function helper_lines({ language, lines }) {
  const starts = { C: /^(__kernel |extern "C" )?void /, LLVM: /^define / }[language];
  let first = starts ? lines.findIndex((line) => starts.test(line)) : 0;
  while (first > 0 && /^(\/\/|;)/.test(lines[first - 1])) first--;
  return first > 6 ? first : 0;
}

function code_line(app, code, i, text, sign = "") {
  const link = code.links[i];
  const is_pinned = app.view.code?.line === i && app.view.code.language === code.language;
  const el = h("div", {
    class: `wb-line ${sign === "+" ? "wb-added" : ""}`, role: "option", "data-item": "", "data-key": `line-${i}`, "data-line": i + 1,
    "aria-selected": String(is_pinned), onclick: () => pick_line(app, code, i),
  }, h("span", { class: "wb-gutter" }, `${i + 1}`), sign && h("span", { class: "wb-sign", "aria-label": sign === "+" ? "new" : null }, sign), h("code", {}, ...coloured(code.language, text)));
  return link ? linked(el, { by: "code", axes: [], nodes: [], lines: [], ...link }) : el;
}

function pick_line(app, code, i) {
  const there = app.view.code?.line === i && app.view.code.language === code.language;
  if (there) return app.select({ ...NOTHING });
  const link = code.links[i];
  const picked = link ? { by: "code", axes: link.axes || [], nodes: link.nodes || [], lines: link.lines || [] } : null;
  app.select({ picked, code: { language: code.language, line: i }, axis: null, node: null, line: null });
}

/** The pinned line is the selected one. */
function mark_line(app, body, code) {
  const at = app.view.code?.language === code?.language ? app.view.code?.line : undefined;
  for (const row of body.querySelectorAll("[data-line]"))
    row.setAttribute("aria-selected", String(Number(row.dataset.line) - 1 === at));
}

/** Where something else was pinned: bring the first line that belongs to it into sight. */
function show_first_lit(app, body) {
  const reached = reach(app.record, app.view.picked);
  const rows = [...body.querySelectorAll(".wb-line.wb-link")];
  const lit = rows.filter((row) => belongs(LINKS.get(row), reached));
  const seen = body.getBoundingClientRect();
  const visible = (row) => {
    const box = row.getBoundingClientRect();
    return box.top >= seen.top && box.bottom <= seen.bottom;
  };
  if (lit.length && !lit.some(visible)) body.scrollTop += lit[0].getBoundingClientRect().top - seen.top - seen.height / 3;
}

function diff_view(app, code, other, helpers) {
  const [from_a, from_b] = [other, code].map((side) => (helpers ? 0 : helper_lines(side)));
  const rows = diff_lines(other.lines.slice(from_a), code.lines.slice(from_b));
  const [gone, fresh] = ["-", "+"].map((sign) => rows.filter((row) => row[0] === sign).length);
  const shown = around_changes(rows).map((row) => {
    if (row === null) return h("div", { class: "wb-skip" }, "⋯");
    const [sign, a, b] = row;
    if (sign === "-") return h("div", { class: "wb-line wb-removed" }, h("span", { class: "wb-gutter" }), h("span", { class: "wb-sign" }, "−"), h("code", {}, other.lines[from_a + a]));
    return code_line(app, code, from_b + b, code.lines[from_b + b], sign);
  });
  const summary = gone || fresh ? `${plural(gone, "line")} gone, ${plural(fresh, "line")} new` : "the same code";
  return h("div", { class: "wb-lines" }, h("div", { class: "wb-quiet wb-pad" }, summary), walkable("listbox", "diff", { class: "wb-lines-list" }, ...shown));
}

/** Keep three lines around each change; null stands for what is left out. */
function around_changes(rows, margin = 3) {
  const near = rows.map(() => false);
  rows.forEach(([sign], i) => sign !== " " && near.fill(true, Math.max(0, i - margin), i + margin + 1));
  return rows.flatMap((row, i) => (near[i] ? [row] : i === 0 || near[i - 1] ? [null] : []));
}

const TOKENS = {
  C: /(\/\/.*$)|\b(for|if|else|return|const|void|float|double|long|int|static|inline|typedef|struct|union|__kernel|__local|__global)\b/g,
  LLVM: /(;.*$)|\b(define|br|label|load|store|fmul|fadd|phi|ret|icmp|getelementptr|call|declare|attributes|select)\b/g,
  asm: /([#;].*$)|^(\s*\.?[\w$.]+:)/g,
  IR: /(#.*$)|\b(FOR|STORE|LOAD|IF|for|store)\b/g,
};

/** Comments set back, words of the language bold: enough to find one's way. */
function coloured(language, text) {
  const parts = [];
  let at = 0;
  for (const found of text.matchAll(TOKENS[language] || /$^/g)) {
    parts.push(text.slice(at, found.index), h("span", { class: found[1] ? "wb-comment" : "wb-word" }, found[0]));
    at = found.index + found[0].length;
  }
  return [...parts, text.slice(at)];
}

function editor(app, state, again) {
  const area = h("textarea", { class: "wb-editor", spellcheck: "false", "aria-label": "edit the code", "data-key": "editor" });
  area.value = state.editing.text;
  area.addEventListener("input", () => (state.editing.text = area.value));
  const leave = () => ((state.editing = null), again());
  const send = async () => {
    const { language, text } = state.editing;
    if (await act(app, "code", { do: "edit", variant: app.view.variant, language, text })) leave();
  };
  return h("div", { class: "wb-edit" }, area, h("div", { class: "wb-buttons" },
    button(app, app.pending("edit") ? "Running…" : "Run the edited code", send, { python: true, name: "run-edit", title: "in a process of its own: it cannot take the notebook down" }),
    button(app, "Cancel", leave)));
}

/** Code that is not there is asked for once, when its tab is looked at. */
function ask_for_code(app, variant, state) {
  const { variant: place, language } = app.view;
  const key = `${place} ${language}`;
  if (!variant || app.live !== "live" || code_of(variant, language) || variant.error || state.asked.has(key)) return;
  state.asked.add(key);
  act(app, "code", { do: "code", variant: place, language }).then((reply) => reply || state.asked.delete(key));
}
