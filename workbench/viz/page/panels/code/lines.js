// Lines of code: numbered, linked, comments set back; and the lines that a diff shows.

import { belongs, linked, LINKS, reach } from "../../app/links.js";
import { NOTHING } from "../../app/store.js";
import { diffLines } from "../../base/diff.js";
import { elementsOf, h } from "../../base/elements.js";
import { walkable } from "../../base/lists.js";
import { plural } from "../../base/text.js";
import { languageOf } from "./programs.js";

/** @import { CodeLink, CodeRow } from "../../record.d.ts" */
/** @import { CodeState } from "./panel.js" */
/** @import { DiffRow } from "../../base/diff.js" */
/** @import { Child } from "../../base/elements.d.ts" */
/** @import { Link } from "../../types.d.ts" */
/** @import { App } from "../../app/store.js" */

/** The lines; what stands before the kernel (types, helpers) is folded away at first.
 * @param {App} app
 * @param {CodeRow} code
 * @param {CodeState} state
 * @param {() => void} again */
export function codeView(app, code, state, again) {
  const first = state.helpers ? 0 : helperLines(app, code);
  const rows = code.lines.slice(first).map((text, i) => codeLine(app, code, first + i, text));
  const unfold = first > 0 &&
    h(
      "button",
      {
        class: "wb-unfold",
        type: "button",
        "data-key": "helpers",
        onclick: () => ((state.helpers = true), again()),
      },
      `show ${plural(first, "line")} of types and helpers`,
    );
  return h(
    "div",
    { class: "wb-lines" },
    unfold,
    walkable("listbox", "lines", { class: "wb-lines-list" }, ...rows),
  );
}

/** How many lines stand before the kernel and the comment over it; few are not worth a fold.
 * @param {App} app
 * @param {CodeRow} code */
function helperLines(app, { language, lines }) {
  const { head = "", comment = "" } = languageOf(app, language) ?? {};
  if (!head) return 0;
  const [starts, isComment] = [new RegExp(head), new RegExp(`^(?:${comment})`)];
  let first = lines.findIndex((line) => starts.test(line));
  while (first > 0 && isComment.test(lines[first - 1])) first--;
  return first > 6 ? first : 0;
}

/**
 * @param {App} app
 * @param {CodeRow} code
 * @param {number} i
 * @param {string} text
 * @param {string} [sign] */
function codeLine(app, code, i, text, sign = "") {
  const link = code.links[i];
  const isPinned = app.view.code?.line === i && app.view.code.language === code.language;
  const el = h(
    "div",
    {
      class: `wb-line ${sign === "+" ? "wb-added" : ""}`,
      role: "option",
      "data-item": "",
      "data-key": `line-${i}`,
      "data-line": i + 1,
      "aria-selected": String(isPinned),
      onclick: () => pickLine(app, code, i),
    },
    h("span", { class: "wb-gutter" }, `${i + 1}`),
    sign && h("span", { class: "wb-sign", "aria-label": sign === "+" ? "new" : null }, sign),
    h("code", {}, ...coloured(app, code.language, text)),
  );
  return link ? linked(el, codeLink(link)) : el;
}

/** The link of a line of code.
 * @param {CodeLink} link
 * @returns {Link} */
const codeLink = ({ axes, nodes, lines }) => ({ by: "code", axes, nodes, lines });

/**
 * @param {App} app
 * @param {CodeRow} code
 * @param {number} i */
function pickLine(app, code, i) {
  const there = app.view.code?.line === i && app.view.code.language === code.language;
  if (there) return app.select({ ...NOTHING });
  const link = code.links[i];
  const picked = link && codeLink(link);
  app.select({
    picked,
    code: { language: code.language, line: i },
    axis: null,
    node: picked?.nodes[0] ?? null, // Rewrites says why it is there
    line: null,
  });
}

/** The pinned line is the selected one.
 * @param {App} app
 * @param {HTMLElement} body
 * @param {CodeRow | null} code */
export function markLine(app, body, code) {
  const at = app.view.code?.language === code?.language ? app.view.code?.line : undefined;
  for (const row of elementsOf(body, "[data-line]")) {
    row.setAttribute("aria-selected", String(Number(row.dataset.line) - 1 === at));
  }
}

/** Where something else was pinned: bring the first line that belongs to it into sight.
 * @param {App} app
 * @param {HTMLElement} body */
export function showFirstLit(app, body) {
  const reached = reach(app.record, app.view.picked);
  const rows = elementsOf(body, ".wb-line.wb-link");
  const lit = rows.filter((row) => belongs(LINKS.get(row), reached) === "lit");
  const seen = body.getBoundingClientRect();
  const isVisible = (/** @type {Element} */ row) => {
    const box = row.getBoundingClientRect();
    return box.top >= seen.top && box.bottom <= seen.bottom;
  };
  if (lit.length && !lit.some(isVisible)) {
    body.scrollTop += lit[0].getBoundingClientRect().top - seen.top - seen.height / 3;
  }
}

/**
 * @param {App} app
 * @param {CodeRow} code
 * @param {CodeRow} other
 * @param {boolean} helpers */
export function diffView(app, code, other, helpers) {
  const [fromA, fromB] = [other, code].map((side) => (helpers ? 0 : helperLines(app, side)));
  const rows = diffLines(other.lines.slice(fromA), code.lines.slice(fromB));
  const [gone, fresh] = ["-", "+"].map((sign) => rows.filter((row) => row[0] === sign).length);
  const shown = aroundChanges(rows).map((row) => {
    if (row === null) return h("div", { class: "wb-skip" }, "⋯");
    const [, a, b] = row;
    if (b === null) {
      return h(
        "div",
        { class: "wb-line wb-removed" },
        h("span", { class: "wb-gutter" }),
        h("span", { class: "wb-sign" }, "−"),
        h("code", {}, other.lines[fromA + a]),
      );
    }
    return codeLine(app, code, fromB + b, code.lines[fromB + b], row[0]);
  });
  const summary = gone || fresh
    ? `${plural(gone, "line")} removed, ${plural(fresh, "line")} added`
    : "the same code";
  return h(
    "div",
    { class: "wb-lines" },
    h("div", { class: "wb-quiet wb-pad" }, summary),
    walkable("listbox", "diff", { class: "wb-lines-list" }, ...shown),
  );
}

/** Keep three lines around each change; null stands for what is left out.
 * @param {DiffRow[]} rows
 * @param {number} [margin] */
function aroundChanges(rows, margin = 3) {
  const near = rows.map(() => false);
  rows.forEach(
    ([sign], i) => sign !== " " && near.fill(true, Math.max(0, i - margin), i + margin + 1),
  );
  return rows.flatMap((row, i) => (near[i] ? [row] : i === 0 || near[i - 1] ? [null] : []));
}

/** Comments set back, words of the language bold: enough to find one's way.
 * @param {App} app
 * @param {string} language
 * @param {string} text */
function coloured(app, language, text) {
  const known = languageOf(app, language);
  if (!known) return [text];
  const tokens = new RegExp(`(${known.comment})|(${known.word})`, "g");
  /** @type {Child[]} */
  const parts = [];
  let at = 0;
  for (const match of text.matchAll(tokens)) {
    const [token, comment] = match;
    parts.push(
      text.slice(at, match.index),
      h("span", { class: comment ? "wb-comment" : "wb-word" }, token),
    );
    at = match.index + token.length;
  }
  return [...parts, text.slice(at)];
}
