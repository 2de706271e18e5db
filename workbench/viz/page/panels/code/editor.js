// The program as text to edit: what comes back is a variant, checked and timed.

import { act } from "../../app/actions.js";
import { button } from "../../app/pieces.js";
import { h } from "../../base/elements.js";

/** @import { App } from "../../app/store.js" */

/** What is being written.
 * @typedef {{language: string, text: string, isBegun?: boolean}} Draft */

const RUN = "Run the edited code";

/** The field and its buttons; `leave()` hears that it is done.
 * @param {App} app
 * @param {Draft} draft
 * @param {() => void} leave */
export function editor(app, draft, leave) {
  const area = h("textarea", {
    class: "wb-editor",
    spellcheck: "false",
    "aria-label": "edit the code",
    "data-key": "editor",
  });
  area.value = draft.text;
  if (!draft.isBegun) requestAnimationFrame(() => area.focus({ preventScroll: true }));
  draft.isBegun = true;
  area.addEventListener("input", () => (draft.text = area.value));
  const send = async () => {
    const { language, text } = draft;
    const { variant } = app.view;
    if (variant === null) return;
    run.textContent = "Running…";
    if (await act(app, "code", { do: "edit", variant, language, text })) leave();
    run.textContent = RUN;
  };
  const run = button(app, RUN, send, {
    python: true,
    name: "run-edit",
    title: "in a process of its own: a crash does not end the notebook",
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
