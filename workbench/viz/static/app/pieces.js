// Parts that several panes use: buttons, errors, headings, tabs, choices, a notebook line.

import { h, words } from "../base/elements.js";
import { canAsk, failAt, NEEDS_PYTHON, say } from "./actions.js";
import { linked } from "./links.js";

/** A button; one that needs Python is disabled, and says so, where there is none. */
export function button(
  app,
  text,
  actOn,
  { python = false, key = "", pressed = null, title = "", name = "" } = {},
) {
  const off = python && !canAsk(app);
  const hint = [off ? NEEDS_PYTHON : title, key && !off ? `key ${key}` : ""]
    .filter(Boolean)
    .join(" · ");
  const pressedAs = pressed === null ? null : String(pressed);
  return h(
    "button",
    {
      class: "wb-button",
      type: "button",
      "aria-disabled": off ? "true" : null,
      title: hint,
      "aria-pressed": pressedAs,
      "data-key": name || text,
      onclick: () => (off ? say(app, NEEDS_PYTHON) : actOn()),
    },
    text,
  );
}

/** An error as what / because / try. */
export function errorBox(error, close = null) {
  if (!error) return null;
  return h(
    "div",
    { class: "wb-error", role: "alert" },
    h("b", {}, words(error.what || "it failed", "", 1000)),
    error.because &&
      h(
        "div",
        {},
        h("i", {}, "because "),
        words(error.because, isAsTold(error.because) ? "wb-as-told" : "", 3000),
      ),
    error.try && h("div", {}, h("i", {}, "try "), words(error.try, "", 1000)),
    close &&
      h(
        "button",
        { class: "wb-button", type: "button", "data-key": "close-error", onclick: close },
        "dismiss",
      ),
  );
}

export const failure = (app, where) =>
  errorBox(app.failures?.[where], () => failAt(app, where, null));

/** A compiler points with a caret at a column of the line above: every letter as wide as another. */
const isAsTold = (text) => /\n\s*[~^]+\s*$/m.test(text);

/** A heading of a pane, with what belongs to its right. */
export const heading = (text, ...more) =>
  h("div", { class: "wb-heading" }, h("h3", {}, text), ...more);

export const hasAny = (changes, ...names) => names.some((name) => changes.has(name));

/** Buttons of the user's line that made a node, and of the lines in functions that it called. */
export function nodeLines(app, n) {
  const { line, inner } = app.record.nodes;
  const called = inner[n].flatMap((
    at,
  ) => [h("span", { class: "wb-quiet" }, "›"), lineButton(app, at)]);
  return line[n] < 0 ? [] : [lineButton(app, line[n]), ...called];
}

/** A notebook line: where it is; pressing it pins all that comes from it. */
export function lineButton(app, line) {
  const { where, text } = app.record.lines[line];
  const link = { by: "line", axes: [], nodes: [], lines: [line] };
  const pinnedNow = app.view.line === line;
  return linked(
    h(
      "button",
      {
        class: "wb-where",
        type: "button",
        title: text.slice(0, 1000),
        "data-key": `line-${line}`,
        "aria-pressed": String(pinnedNow),
        onclick: () => app.select({ line: app.view.line === line ? null : line }),
      },
      words(where),
    ),
    link,
  );
}

export function tab(title, selected, actOn, key, hint = "") {
  return h(
    "button",
    {
      class: "wb-tab",
      type: "button",
      role: "tab",
      "aria-selected": String(selected),
      "data-item": "",
      "data-key": key,
      title: hint,
      onclick: actOn,
    },
    title,
  );
}

export function chooser(label, rows, chosen, actOn) {
  return h(
    "select",
    { "aria-label": label, "data-key": label, onchange: (e) => actOn(Number(e.target.value)) },
    ...rows.map(([value, text]) =>
      h("option", { value, selected: value === chosen }, text.slice(0, 80))
    ),
  );
}

/** The number of a kernel on its colour. */
export function kernelNumber(app, kernel) {
  const tint = app.record.plan.regions[kernel]?.colour;
  return h(
    "i",
    { class: "wb-plan-no", style: tint ? `background:${tint}` : null },
    kernel === null ? "·" : String(kernel + 1),
  );
}
