// The right: the program of the variant, in the languages of the record. A line
// leads to its loop, its nodes and its notebook line, and they lead back. It can be edited: what
// comes back is checked and timed like any variant.

import { act, canAsk, copy, pinned, toggleDiff } from "../app/actions.js";
import { button, errorBox, failure, hasAny, heading, tab } from "../app/pieces.js";
import { h, refill, words } from "../base/elements.js";
import { walkable } from "../base/lists.js";
import { nodeHistory } from "../record/history.js";
import { passesOf } from "../record/passes.js";
import { timelineOf } from "../record/states.js";
import { languageOf } from "./languages.js";
import { codeView, diffView, markLine, showFirstLit } from "./lines.js";

export const panel = { place: "right", order: 1, make: codePane };

function codePane(app) {
  const el = h("section", { class: "wb-code-pane", "aria-label": "code" });
  const bar = h("div", { class: "wb-code-bar" });
  const trouble = h("div", { class: "wb-trouble" });
  const body = h("div", { class: "wb-code-body" });
  const origin = h("div", { class: "wb-code-origin", "aria-live": "polite" });
  el.append(bar, trouble, body, origin);
  const state = { editing: null, helpers: false, shown: null, asked: null };
  const redoBody = () => app.changed("editing");

  const update = (changes) => {
    const variant = app.variant();
    if (changes.has("variant")) state.editing = null;
    const code = shownCode(app, variant);
    if (hasAny(changes, ...BAR_CHANGES)) {
      refill(bar, ...codeBar(app, variant, code, state, redoBody));
    }
    if (hasAny(changes, "failure", "variant", "record")) {
      refill(trouble, failure(app, "code"), variant?.edited && errorBox(variant.error));
    }
    const shown = shownParts(app, variant, code, state);
    if (shown.some((part, i) => part !== state.shown?.[i])) {
      state.shown = shown;
      fillBody(app, body, variant, code, state, redoBody);
    }
    if (changes.has("code")) markLine(app, body, code);
    if (hasAny(changes, "code", "record", "variant", "picked")) refill(origin, madeBy(app));
    if (hasAny(changes, "picked", "code") && app.view.picked?.by !== "code") {
      showFirstLit(app, body);
    }
    const isLookedAt = hasAny(changes, "variant", "language", "live");
    if (isLookedAt || changes.has("record")) askForCode(app, variant, state, isLookedAt);
  };
  return { el, update };
}

/** What the body shows depends on; it is filled anew only where one of them is another. */
function shownParts(app, variant, code, state) {
  return [
    code,
    state.editing,
    state.helpers,
    app.view.diff,
    codeOf(app.record.variants[pinned(app)], code?.language),
    variant?.error,
    app.pending("code"),
  ];
}

const BAR_CHANGES = [
  "record",
  "kernel",
  "variant",
  "language",
  "diff",
  "live",
  "pending",
  "editing",
];
const MOST_MAKERS = 3; // rules that a line names

const codeOf = (variant, language) =>
  variant?.code.find((code) => code.language === language) || null;

/** The program in the language that is looked at; another one where this cannot be made. */
function shownCode(app, variant) {
  const code = codeOf(variant, app.view.language);
  const mayCome = canAsk(app) && !variant?.edited;
  return code || (mayCome ? null : variant?.code[0] || null);
}

function codeBar(app, variant, code, state, again) {
  const reference = app.record.variants[pinned(app)];
  const tabs = app.record.languages
    .filter(({ name }) => codeOf(variant, name) || (canAsk(app) && !variant?.edited))
    .map(({ name, title }) =>
      tab(
        name,
        (code?.language || app.view.language) === name,
        () => app.select({ language: name }),
        `code-${name}`,
        title,
      )
    );
  const canDiff = reference && reference !== variant;
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
      () => toggleDiff(app),
      {
        pressed: Boolean(app.view.diff),
        key: "d",
        name: "diff",
        title: canDiff
          ? `against ${reference.name.slice(0, 40)}, the pinned variant`
          : "this is the pinned variant",
      },
    ),
    button(app, "copy", () => code && copy(app, code.lines.join("\n"), code.language), {
      name: "copy-code",
    }),
    code &&
    !state.editing &&
    languageOf(app, code.language)?.device && // something runs what is edited
    button(
      app,
      "edit",
      () => ((state.editing = { language: code.language, text: code.lines.join("\n") }), again()),
      { python: true, title: "what you write becomes a variant, checked and timed" },
    ),
  ];
}

function nothingToShow(app, variant) {
  if (app.pending("code")) return "Compiling…";
  if (!variant) return "There is no kernel, so there is no program.";
  if (variant?.edited && variant.error) return "There is no program.";
  return variant?.error ? "There is no program: see the error with the loops." : "No program yet.";
}

function fillBody(app, body, variant, code, state, again) {
  if (state.editing) return refill(body, editor(app, state, again));
  if (!code) {
    return refill(body, h("p", { class: "wb-quiet wb-pad" }, nothingToShow(app, variant)));
  }
  const reference = app.record.variants[pinned(app)];
  const other = app.view.diff && reference !== variant ? codeOf(reference, code.language) : null;
  const lines = other
    ? diffView(app, code, other, state.helpers)
    : codeView(app, code, state, again);
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
function askForCode(app, variant, state, isLookedAt) {
  const { variant: place, language } = app.view;
  const wanted = [variant, app.record.device, language];
  if (
    !variant ||
    variant.edited ||
    app.live !== "live" ||
    codeOf(variant, language) ||
    variant.error ||
    app.pending("code", { variant: place, language }) ||
    (!isLookedAt && wanted.every((part, i) => part === state.asked?.[i]))
  ) {
    return;
  }
  state.asked = wanted;
  act(app, "code", { do: "code", variant: place, language });
}

/** The rules that made what the pinned line computes, the latest first, else the pass that did: each
 * leads to its rewrite. */
function madeBy(app) {
  const { code, picked } = app.view;
  if (!code || picked?.by !== "code") return null;
  const { passes, rules } = app.record;
  const history = nodeHistory(app.record, passesOf(app), picked.nodes).filter((row) => !row.origin);
  const named = new Map(); // by name, so that each is there once
  for (const { pass, step, node } of history) {
    const rule = step ? passes[pass].rewrites[step - 1][0] : -1;
    if (rule >= 0 && !named.has(rules[rule].name)) {
      named.set(rules[rule].name, { doc: rules[rule].doc, place: { pass, step, node } });
    }
  }
  const isRule = named.size > 0;
  if (!isRule && history.length) {
    const [{ pass, node }] = history;
    const step = timelineOf(app.record, passes[pass]).steps.length;
    named.set(passes[pass].name, { doc: passes[pass].doc, place: { pass, step, node } });
  }
  const links = [...named].slice(0, MOST_MAKERS).map(([name, { doc, place }]) =>
    makerLink(app, name, doc, place)
  );
  return links.length
    ? [h("span", { class: "wb-quiet" }, isRule ? "made by rule" : "made by pass"), ...links]
    : null;
}

const makerLink = (app, name, doc, place) =>
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
