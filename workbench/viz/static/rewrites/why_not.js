// Why a rule did not fire at a node.

import { act, canAsk, NEEDS_PYTHON } from "../app/actions.js";
import { button, chooser } from "../app/pieces.js";
import { h, words } from "../base/elements.js";
import { answersAbout } from "./answers.js";

/** Ask why a rule of this pass did not fire on a node. */
export function whyNotBox(app, n, place, step, state) {
  const pass = app.record.passes[place];
  const fired = new Set(pass.rewrites.map(([rule]) => app.record.rules[rule]?.set));
  const rules = app.record.rules.map((rule, i) => [i, rule]).filter(([, rule]) =>
    rule.file && (!fired.size || fired.has(rule.set))
  );
  if (!rules.length) return null;
  const answer = answersAbout(app, state, n, place, step).why_not;
  state.asked = rules.some(([i]) => i === state.asked) ? state.asked : rules[0][0];
  const choice = chooser(
    "rule that did not fire",
    rules.map(([i, rule]) => [i, rule.name]),
    state.asked,
    (rule) => ((state.asked = rule), answer.replaceChildren()),
  );
  const ask = async () => {
    const rule = state.asked;
    const reply = await act(app, "rewrites", { do: "why_not", pass: place, step, node: n, rule });
    if (reply?.result && rule === state.asked) answer.replaceChildren(...whyNotLines(reply.result));
  };
  return h(
    "div",
    { class: "wb-rw-whynot" },
    h("span", {}, "why did"),
    choice,
    h("span", {}, "not fire here?"),
    button(app, "ask", ask, { python: true, name: "why-not" }),
    !canAsk(app) && h("span", { class: "wb-quiet" }, NEEDS_PYTHON),
    answer,
  );
}

/** The text of the rule with a caret line under the first part that failed. */
function whyNotLines({ text, caret_start, caret_end, because }) {
  const lines = text.slice(0, caret_start).split("\n");
  const before = lines.at(-1).length;
  const lineEnd = text.indexOf("\n", caret_start);
  const shown = lineEnd < 0 ? text : text.slice(0, lineEnd);
  const carets = " ".repeat(before) +
    "^".repeat(Math.max(1, Math.min(caret_end, shown.length) - caret_start));
  const rest = lineEnd < 0 ? "" : text.slice(lineEnd);
  return [
    h("pre", {}, `${shown}\n`, h("b", {}, carets), rest),
    h("p", {}, words(because, "", 1000)),
  ];
}
