// One rewrite in words: its rule, what it made of what, and the whole text with its difference.

import { errorBox } from "../app/pieces.js";
import { h, words } from "../base/elements.js";
import { ruleCounts, ruleName } from "../record/rules.js";
import { ruleOffButton } from "../without/switch.js";

/** The rule of a step: what it says, why, and where it stands. */
export function ruleCard(app, rule) {
  const row = app.record.rules[rule];
  if (!row) return null;
  return h(
    "div",
    { class: "wb-rw-rule" },
    h(
      "div",
      {},
      h("b", {}, words(row.name)),
      row.set && h("span", { class: "wb-quiet" }, ` of ${row.set}`),
      row.file && h("span", { class: "wb-quiet wb-rw-place" }, `${row.file}:${row.line}`),
      row.file && ruleOffButton(app, rule),
    ),
    row.text && h("code", { class: "wb-rw-pattern" }, words(row.text, "", 1000)),
    row.doc && h("div", { class: "wb-rw-doc" }, words(row.doc, "", 1500)),
  );
}

/** A pass as a whole: what it is for, which rules did how much. */
export function passOverview(app, place, go) {
  const pass = app.record.passes[place];
  const counts = ruleCounts(pass).filter(([rule]) => rule >= 0).slice(0, 12);
  return [
    h("p", { class: "wb-rw-doc" }, words(pass.doc, "", 1500)),
    errorBox(pass.error && { what: pass.error }),
    counts.length > 0 &&
    h(
      "div",
      { class: "wb-rw-counts" },
      ...counts.map(([rule, n]) =>
        h("button", {
          class: "wb-button",
          type: "button",
          title: app.record.rules[rule].doc,
          onclick: () => go(pass.rewrites.findIndex((r) => r[0] === rule) + 1),
        }, `${ruleName(app, rule)} × ${n}`)
      ),
    ),
  ];
}
