// The right: the program of the variant, in the languages of the record. A line
// leads to its loop, its nodes and its notebook line, and they lead back. It can be edited: what
// comes back is checked and timed like any variant.

function code_pane(app) {
  const el = h("section", { class: "wb-code-pane", "aria-label": "code" });
  const bar = h("div", { class: "wb-code-bar" });
  const trouble = h("div", { class: "wb-trouble" });
  const body = h("div", { class: "wb-code-body" });
  const origin = h("div", { class: "wb-code-origin", "aria-live": "polite" });
  el.append(bar, trouble, body, origin);
  const state = { editing: null, helpers: false, shown: null, asked: null };
  const redo_body = () => app.changed("editing");

  const update = (changes) => {
    const variant = app.variant();
    if (changes.has("variant")) state.editing = null;
    const code = shown_code(app, variant);
    if (
      has_any(
        changes,
        "record",
        "kernel",
        "variant",
        "language",
        "diff",
        "live",
        "pending",
        "editing",
      )
    )
      refill(bar, ...code_bar(app, variant, code, state, redo_body));
    if (has_any(changes, "failure", "variant", "record"))
      refill(trouble, failure(app, "code"), variant?.edited && error_box(variant.error));
    const shown = [
      code,
      state.editing,
      state.helpers,
      app.view.diff,
      code_of(app.record.variants[pinned(app)], code?.language),
      variant?.error,
      app.pending("code"),
    ];
    if (shown.some((part, i) => part !== state.shown?.[i])) {
      state.shown = shown;
      fill_body(app, body, variant, code, state, redo_body);
    }
    if (changes.has("code")) mark_line(app, body, code);
    if (has_any(changes, "code", "record", "variant", "picked")) refill(origin, made_by(app));
    if (has_any(changes, "picked", "code") && app.view.picked?.by !== "code")
      show_first_lit(app, body);
    const is_looked_at = has_any(changes, "variant", "language", "live");
    if (is_looked_at || changes.has("record")) ask_for_code(app, variant, state, is_looked_at);
  };
  return { el, update };
}

const MOST_MAKERS = 3; // rules that a line names

const code_of = (variant, language) =>
  variant?.code.find((code) => code.language === language) || null;

/** The program in the language that is looked at; another one where this cannot be made. */
function shown_code(app, variant) {
  const code = code_of(variant, app.view.language);
  const may_come = can_ask(app) && !variant?.edited;
  return code || (may_come ? null : variant?.code[0] || null);
}

const language_of = (app, name) => app.record.languages.find((row) => row.name === name);

function code_bar(app, variant, code, state, again) {
  const reference = app.record.variants[pinned(app)];
  const tabs = app.record.languages
    .filter(({ name }) => code_of(variant, name) || (can_ask(app) && !variant?.edited))
    .map(({ name, title }) =>
      tab(
        name,
        (code?.language || app.view.language) === name,
        () => app.select({ language: name }),
        `code-${name}`,
        title,
      ),
    );
  const can_diff = reference && reference !== variant;
  return [
    heading("CODE"),
    walkable(
      "tablist",
      "language",
      { class: "wb-tabs", "aria-orientation": "horizontal" },
      ...tabs,
    ),
    h("span", { class: "wb-gap" }),
    button(
      app,
      "diff",
      () => toggle_diff(app),
      {
        pressed: Boolean(app.view.diff),
        key: "d",
        name: "diff",
        title: can_diff
          ? `against ${reference.name.slice(0, 40)}, the pinned variant`
          : "this is the pinned variant",
      },
    ),
    button(app, "copy", () => code && copy(app, code.lines.join("\n"), code.language), {
      name: "copy-code",
    }),
    code &&
      !state.editing &&
      language_of(app, code.language)?.device && // something runs what is edited
      button(
        app,
        "edit",
        () => ((state.editing = { language: code.language, text: code.lines.join("\n") }), again()),
        { python: true, title: "what you write becomes a variant, checked and timed" },
      ),
  ];
}

function nothing_to_show(app, variant) {
  if (app.pending("code")) return "Compiling…";
  if (!variant) return "There is no kernel, so there is no program.";
  if (variant?.edited && variant.error) return "There is no program.";
  return variant?.error ? "There is no program: see the error with the loops." : "No program yet.";
}

function fill_body(app, body, variant, code, state, again) {
  if (state.editing) return refill(body, editor(app, state, again));
  if (!code)
    return refill(body, h("p", { class: "wb-quiet wb-pad" }, nothing_to_show(app, variant)));
  const reference = app.record.variants[pinned(app)];
  const other = app.view.diff && reference !== variant ? code_of(reference, code.language) : null;
  const lines = other
    ? diff_view(app, code, other, state.helpers)
    : code_view(app, code, state, again);
  lines.style.setProperty("--digits", String(code.lines.length).length);
  const place = `${app.view.variant} ${code.language} ${Boolean(other)}`;
  refill(body, lines);
  if (body.dataset.place !== place) body.scrollTop = 0;
  body.dataset.place = place;
}

const RUN = "Run the edited code";

function editor(app, state, again) {
  const area = h("textarea", {
    class: "wb-editor",
    spellcheck: "false",
    "aria-label": "edit the code",
    "data-key": "editor",
  });
  area.value = state.editing.text;
  if (!state.editing.begun) requestAnimationFrame(() => area.focus({ preventScroll: true }));
  state.editing.begun = true;
  area.addEventListener("input", () => (state.editing.text = area.value));
  const leave = () => ((state.editing = null), again());
  const send = async () => {
    const { language, text } = state.editing;
    run.textContent = "Running…";
    if (await act(app, "code", { do: "edit", variant: app.view.variant, language, text })) leave();
    run.textContent = RUN;
  };
  const run = button(app, RUN, send, {
    python: true,
    name: "run-edit",
    title: "in a process of its own: it cannot take the notebook down",
  });
  return h(
    "div",
    { class: "wb-edit" },
    area,
    h(
      "div",
      { class: "wb-buttons" },
      run,
      button(app, "Cancel", leave),
    ),
  );
}

/** Code that is not there is asked for when its tab is looked at; and once where the record has it
 * no more, as on another device. */
function ask_for_code(app, variant, state, is_looked_at) {
  const { variant: place, language } = app.view;
  const wanted = [variant, app.record.device, language];
  if (
    !variant ||
    variant.edited ||
    app.live !== "live" ||
    code_of(variant, language) ||
    variant.error ||
    app.pending("code", { variant: place, language }) ||
    (!is_looked_at && wanted.every((part, i) => part === state.asked?.[i]))
  )
    return;
  state.asked = wanted;
  act(app, "code", { do: "code", variant: place, language });
}

/** The rules that made what the pinned line computes, the latest first, else the pass that did: each
 * leads to its rewrite. */
function made_by(app) {
  const { code, picked } = app.view;
  if (!code || picked?.by !== "code") return null;
  const { passes, rules } = app.record;
  const history = node_history(app.record, passes_of(app), picked.nodes).filter((row) => !row.origin);
  const named = new Map(); // by name, so that each is there once
  for (const { pass, step, node } of history) {
    const rule = step ? passes[pass].rewrites[step - 1][0] : -1;
    if (rule >= 0 && !named.has(rules[rule].name))
      named.set(rules[rule].name, { doc: rules[rule].doc, place: { pass, step, node } });
  }
  const is_rule = named.size > 0;
  if (!is_rule && history.length) {
    const [{ pass, node }] = history;
    const step = timeline_of(app.record, passes[pass]).steps.length;
    named.set(passes[pass].name, { doc: passes[pass].doc, place: { pass, step, node } });
  }
  const links = [...named].slice(0, MOST_MAKERS).map(([name, { doc, place }]) => maker_link(app, name, doc, place));
  return links.length ? [h("span", { class: "wb-quiet" }, is_rule ? "made by rule" : "made by pass"), ...links] : null;
}

const maker_link = (app, name, doc, place) =>
  h(
    "button",
    {
      class: "wb-button",
      type: "button",
      "data-key": `made-by-${name}`,
      title: doc,
      onclick: () => app.select({ ...place, mode: "rewrites", pane: "mode" }),
    },
    words(name, "", 40),
    " ›",
  );
