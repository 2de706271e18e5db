// Texts before and after, side by side, with the differences emphasised; in one column where the
// pane is narrow.

import { markedWords, pairLines } from "../../base/diff.js";
import { h } from "../../base/elements.js";
import { plural } from "../../base/text.js";
import { changeTexts } from "../../record/node_text.js";

/** @import { PairRow } from "../../base/diff.js" */
/** @import { NodeColumns } from "../../record.d.ts" */
/** @import { Step } from "../../record/states.js" */

const MOST_LINES = 60; // lines of a change; the whole texts have all
const FEW_ROWS = 12; // rows; shorter texts are never taken for two languages

/** Before and after as text, with emphasised differences, and the meaning of the names.
 * @param {NodeColumns} nodes
 * @param {Step} step */
export function changeText(nodes, step) {
  const { before, after, where } = changeTexts(nodes, step.before, step.after);
  return h(
    "div",
    {
      class: "wb-rw-change",
      role: "group",
      "aria-label": "before and after",
      "data-term": "differences",
    },
    textPair(before, after, 2, MOST_LINES),
    where.length > 0 &&
      h(
        "pre",
        { class: "wb-quiet" },
        `where ${where.slice(0, 6).join("\n      ")}${where.length > 6 ? "\n      …" : ""}`,
      ),
  );
}

/** In place of omitted rows.
 * @type {PairRow} */
const GAP = { left: null, right: null, kind: "same" };

/** Two texts side by side: the differences, with `around` lines of context.
 * @param {string[]} before
 * @param {string[]} after
 * @param {number} around
 * @param {number} [most] */
export function textPair(before, after, around, most = Infinity) {
  if (before.join("\n") === after.join("\n")) return h("pre", {}, before.join("\n"));
  const rows = inOneLanguage(pairLines(before, after), before, after);
  const near = nearChanges(rows, around);
  const shown = rows.flatMap((row, i) => {
    if (near.has(i)) return [row];
    return near.has(i - 1) || i === 0 ? [GAP] : [];
  });
  const left = shown.length - most;
  return h(
    "div",
    { class: "wb-pair" },
    h(
      "div",
      { class: "wb-pair-lines" },
      h("span", { class: "wb-quiet wb-pair-head" }, "before"),
      h("span", { class: "wb-quiet wb-pair-head" }, "after"),
      ...inParts(shown.slice(0, most)).flatMap((part) => partCells(part, before, after)),
      left > 0 && h("span", { class: "wb-quiet wb-pair-gap" }, `${plural(left, "line")} more`),
    ),
  );
}

/** The texts of two states, made when the fold is opened; `make()` returns [before, after] as
 * lines.
 * @param {string} title
 * @param {boolean} isOpen
 * @param {() => string[][]} make
 * @param {(isOpen: boolean) => void} onToggle */
export function textDifference(title, isOpen, make, onToggle) {
  const body = h("div", { class: "wb-rw-whole" });
  const box = h(
    "details",
    { class: "wb-rw-texts", "data-term": "differences" },
    h("summary", {}, title),
    body,
  );
  const fill = () => {
    const [before, after] = make();
    body.replaceChildren(textPair(before, after, 4));
  };
  box.addEventListener(
    "toggle",
    () => (onToggle(box.open), box.open && !body.firstChild && fill()),
  );
  if (isOpen) (box.open = true), fill();
  return box;
}

/** The rows of two texts. If hardly a line has a partner, the texts are in two languages: each is
 * read by itself, and nothing in it is marked.
 * @param {PairRow[]} rows
 * @param {string[]} before
 * @param {string[]} after
 * @returns {PairRow[]} */
function inOneLanguage(rows, before, after) {
  const pairs = rows.filter(({ kind }) => kind !== "other").length;
  if (rows.length < FEW_ROWS || pairs >= Math.min(before.length, after.length) / 4) return rows;
  const place = (/** @type {string[]} */ lines, /** @type {number} */ i) =>
    i < lines.length ? i : null;
  return Array.from({ length: Math.max(before.length, after.length) }, (_, i) => ({
    left: place(before, i),
    right: place(after, i),
    kind: "apart",
  }));
}

/** The indexes of rows that differ, and of `around` rows before and after each.
 * @param {PairRow[]} rows
 * @param {number} around */
function nearChanges(rows, around) {
  const near = new Set();
  rows.forEach(({ kind }, i) => {
    if (kind === "same") return;
    for (let k = Math.max(0, i - around); k <= Math.min(rows.length - 1, i + around); k++) {
      near.add(k);
    }
  });
  return near;
}

/** Rows, in parts: neighbours that only share a row are one part.
 * @param {PairRow[]} rows */
function inParts(rows) {
  /** @type {PairRow[][]} */
  const parts = [];
  for (const row of rows) {
    const last = parts.at(-1);
    const isOneOf = row.kind === "other" || row.kind === "apart";
    if (isOneOf && last?.[0].kind === row.kind) last.push(row);
    else parts.push([row]);
  }
  return parts;
}

/** The two cells of a part; words that the other line lacks are emphasised.
 * @param {PairRow[]} part
 * @param {string[]} before
 * @param {string[]} after */
function partCells(part, before, after) {
  const [{ left, right, kind }] = part;
  if (part[0] === GAP) return [h("span", { class: "wb-quiet wb-pair-gap" }, "⋯")];
  /** @type {(sign: string, name: string, lines: string[]) => HTMLElement} */
  const cell = (sign, name, lines) =>
    h(
      "span",
      { class: lines.length ? `wb-rw-${name}` : "wb-pair-none" },
      ...lines.map((line) => h("span", {}, `${sign} ${line}`)),
    );
  if (kind === "other" || kind === "apart") {
    const gone = part.flatMap((row) => row.left === null ? [] : [before[row.left]]);
    const fresh = part.flatMap((row) => row.right === null ? [] : [after[row.right]]);
    return kind === "other"
      ? [cell("−", "minus", gone), cell("+", "plus", fresh)]
      : [cell(" ", "same", gone), cell(" ", "same", fresh)];
  }
  const [a, b] = [before[left ?? 0], after[right ?? 0]];
  if (kind === "same") return [cell(" ", "same", [a]), cell(" ", "same wb-pair-again", [b])];
  return [changedCell("−", "minus", a, b), changedCell("+", "plus", b, a)];
}

/** @type {(sign: string, name: string, line: string, other: string) => HTMLElement} */
const changedCell = (sign, name, line, other) =>
  h(
    "span",
    { class: `wb-rw-${name}` },
    h(
      "span",
      {},
      `${sign} `,
      ...markedWords(line, other).map(([word, isCommon]) =>
        isCommon || !word.trim() ? word : h("em", {}, word)
      ),
    ),
  );
