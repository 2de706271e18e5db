// Texts before and after, with what differs emphasised.

import { diffLines } from "../../base/diff.js";
import { h } from "../../base/elements.js";
import { plural } from "../../base/text.js";
import { wordChange } from "../../record/words.js";

/** @import { NodeColumns } from "../../record.d.ts" */
/** @import { Step } from "../../record/states.js" */

/** Before and after as text, what differs emphasised, and what the names stand for.
 * @param {NodeColumns} nodes
 * @param {Step} step */
export function changeText(nodes, step) {
  const { before, after, where } = wordChange(nodes, step.before, step.after);
  const lines = before.length === 1 && after.length === 1
    ? pairOfLines(before[0], after[0])
    : differenceLines(before, after, 2);
  const most = 60;
  return h(
    "div",
    { class: "wb-rw-change", role: "group", "aria-label": "before and after" },
    h(
      "pre",
      {},
      ...lines.slice(0, most),
      lines.length > most &&
        h("span", { class: "wb-quiet" }, `${plural(lines.length - most, "line")} more`),
    ),
    where.length > 0 &&
      h(
        "pre",
        { class: "wb-quiet" },
        `where ${where.slice(0, 6).join("\n      ")}${where.length > 6 ? "\n      …" : ""}`,
      ),
  );
}

/** Two lines, with the words in which they differ emphasised.
 * @param {string} before
 * @param {string} after */
function pairOfLines(before, after) {
  const [a, b] = [before, after].map((line) => line.match(/[\w.]+|\s+|./g) || []);
  const rows = diffLines(a, b);
  /** @type {(sign: "-" | "+", tokens: string[], kind: string) => HTMLElement} */
  const line = (sign, tokens, kind) =>
    h(
      "span",
      { class: `wb-rw-${kind}` },
      `${sign === "-" ? "−" : sign} `,
      ...rows.filter(([mark]) => mark === " " || mark === sign).map(([mark, i, j]) => {
        const token = tokens[(sign === "-" ? i : j) ?? -1];
        return mark === sign ? h("em", {}, token) : token;
      }),
      "\n",
    );
  return [line("-", a, "minus"), line("+", b, "plus")];
}

/** A unified difference with `around` lines of context.
 * @param {string[]} before
 * @param {string[]} after
 * @param {number} around */
function differenceLines(before, after, around) {
  const rows = diffLines(before, after);
  const near = new Set();
  rows.forEach(([sign], i) => {
    if (sign !== " ") { for (let k = i - around; k <= i + around; k++) near.add(k); }
  });
  /** @type {HTMLElement[]} */
  const shown = [];
  rows.forEach(([sign, a, b], i) => {
    if (!near.has(i)) {
      if (near.has(i - 1) || i === 0) shown.push(h("span", { class: "wb-quiet" }, "  ⋯\n"));
      return;
    }
    const kind = { "-": "minus", "+": "plus", " ": "same" }[sign];
    shown.push(
      h(
        "span",
        { class: `wb-rw-${kind}` },
        `${sign === "-" ? "−" : sign} ${a === null ? after[b] : before[a]}\n`,
      ),
    );
  });
  return shown;
}

/** The texts of two states, made when it is opened; `make()` returns [before, after] as lines.
 * @param {string} title
 * @param {boolean} isOpen
 * @param {() => string[][]} make
 * @param {(isOpen: boolean) => void} onToggle */
export function textDifference(title, isOpen, make, onToggle) {
  const body = h("pre", { class: "wb-rw-whole" });
  const box = h("details", { class: "wb-rw-texts" }, h("summary", {}, title), body);
  const fill = () => {
    const [before, after] = make();
    const lines = differenceLines(before, after, 4);
    body.replaceChildren(
      ...(lines.length && before.join() !== after.join() ? lines : [before.join("\n")]),
    );
  };
  box.addEventListener(
    "toggle",
    () => (onToggle(box.open), box.open && !body.firstChild && fill()),
  );
  if (isOpen) (box.open = true), fill();
  return box;
}
