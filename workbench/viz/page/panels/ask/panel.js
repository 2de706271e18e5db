// Over all modes: a question; after the guess, the answer and the error of the guess.

import { meaningOf, optMeaning } from "../../app/glossary.js";
import { button, hasAny } from "../../app/pieces.js";
import { h, refill } from "../../base/elements.js";
import { answerOf, verdictOf } from "../../record/asking.js";

/** @import { App } from "../../app/store.js" */
/** @import { QuestionRow } from "../../record.d.ts" */
/** @import { Changes, PanelRow } from "../../types.d.ts" */

/** @satisfies {PanelRow} */
export const panel = { place: "top", order: 0, make: askPane };

/** @param {App} app */
function askPane(app) {
  const el = h("div", { class: "wb-ask", hidden: true });
  let isAsked = false;
  const update = (/** @type {Changes} */ changes) => {
    if (!hasAny(changes, "record", "guess")) return;
    const question = app.whole.ask;
    el.hidden = !question;
    if (!question) return;
    const waits = app.view.guess === null;
    if (waits && isAsked) return; // an unsent guess stays
    isAsked = waits;
    refill(el, ...(waits ? guessParts(app, question) : verdictParts(app, question)));
  };
  return { el, update };
}

/** The question, with a field or the choices, and the button that submits.
 * @param {App} app
 * @param {QuestionRow} question */
function guessParts(app, question) {
  const { text, choices, judgement, unit } = question;
  const guess = (/** @type {string} */ value) =>
    value.trim() && app.select({ guess: value.trim() });
  const ask = h("b", {}, text);
  if (judgement === "choice") {
    return [
      ask,
      ...choices.map((one) =>
        button(app, one, () => guess(one), { title: meaningOf(app.record, one) })
      ),
    ];
  }
  if (judgement === "set") return [ask, ...setFields(app, choices, guess)];
  const field = h("input", {
    type: "text",
    inputmode: "decimal",
    class: "wb-input",
    "aria-label": "your guess",
    "data-key": "guess",
    onkeydown: ({ key, target }) => key === "Enter" && submit(target.value),
  });
  const submit = (/** @type {string} */ value) => Number(value) > 0 && guess(value);
  return [
    ask,
    h("label", {}, field, unit && h("span", { "data-term": unit }, ` ${unit}`)),
    button(app, "guess", () => submit(field.value)),
  ];
}

/** A box for each of the choices, of which any number may be right.
 * @param {App} app
 * @param {string[]} choices
 * @param {(value: string) => unknown} guess */
function setFields(app, choices, guess) {
  const boxes = choices.map((one) => h("input", { type: "checkbox", value: one }));
  const labels = boxes.map((box) =>
    h("label", { title: optMeaning(app.record, box.value) }, box, box.value)
  );
  const choice = () => boxes.filter((box) => box.checked).map((box) => box.value).join(", ");
  return [...labels, button(app, "guess", () => guess(choice() || "none"))];
}

/** The guess beside the answer, or that the record has no answer.
 * @param {App} app
 * @param {QuestionRow} question */
function verdictParts(app, question) {
  const answer = answerOf(app.whole);
  const guess = app.view.guess ?? "";
  const again = button(app, "hide it again", () => app.select({ guess: null }), {
    name: "ask-again",
  });
  if (answer === null) {
    const text = `You said ${guess}; the answer is not known here yet.`;
    return [h("b", {}, question.text), h("span", { role: "status" }, text), again];
  }
  const { isRight, text } = verdictOf(question, guess, answer);
  return [
    h("b", {}, question.text),
    h(
      "span",
      { role: "status" },
      h(
        "b",
        { "data-term": "guess", class: isRight ? "wb-good" : "wb-bad" },
        isRight ? "✓ " : "✗ ",
      ),
      text,
    ),
    again,
  ];
}
