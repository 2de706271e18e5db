// Why not: the reason for which a rule did not fire at a node.

import { act, canAsk, NEEDS_PYTHON } from "../../../app/actions.js";
import { button, chooser } from "../../../app/pieces.js";
import { h, words } from "../../../base/elements.js";

/** @import { WhyNotReply } from "../../../record.d.ts" */
/** @import { App } from "../../../app/store.js" */
/** @import { RewritesState } from "../state.js" */

/** Ask why a rule of this pass did not fire on a node.
 * @param {App} app
 * @param {number} n
 * @param {number} place
 * @param {number} step
 * @param {RewritesState} state */
export function whyNotBox(app, n, place, step, state) {
  const pass = app.record.passes[place];
  const fired = new Set(pass.rewrites.map(([rule]) => app.record.rules[rule]?.set));
  /** @type {[number, string][]} */
  const rules = app.record.rules.flatMap(({ file, set, name }, i) =>
    file && (!fired.size || fired.has(set)) ? [[i, name]] : []
  );
  if (!rules.length) return null;
  const answer = state.answersAbout(n, place, step).whyNot;
  let current = rules.find(([i]) => i === state.asked)?.[0] ?? rules[0][0];
  const choice = chooser(
    "rule that did not fire",
    rules,
    current,
    (rule) => ((state.asked = current = rule), answer.replaceChildren()),
  );
  const ask = async () => {
    const rule = current;
    const reply = await act(app, "rewrites", { do: "why_not", pass: place, step, node: n, rule });
    if (reply?.result && rule === current) answer.replaceChildren(...whyNotLines(reply.result));
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

/** The text of the rule with a caret line under the first part that failed.
 * @param {WhyNotReply} answer */
function whyNotLines({ text, caret_start, caret_end, because }) {
  const lines = text.slice(0, caret_start).split("\n");
  const before = lines[lines.length - 1].length;
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
