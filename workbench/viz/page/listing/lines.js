// Lines of code: numbered, linked, coloured by their tokens, comments set back; and the lines of a
// diff.

import { belongs, linked, LINKS, reach } from "../app/links.js";
import { withNames } from "../app/pieces.js";
import { NO_SELECTION, rowAt } from "../app/store.js";
import { diffLines } from "../base/diff.js";
import { elementsOf, h, noteScroll, OPENED } from "../base/elements.js";
import { walkable } from "../base/lists.js";
import { plural } from "../base/text.js";
import { aboutLine, costCell, partsOf, shareText } from "./line_costs.js";
import { hasNoLine, NO_LINE } from "./origin.js";
import { languageOf } from "./programs.js";

/** @import { App } from "../app/store.js" */
/** @import { DiffRow } from "../base/diff.js" */
/** @import { Child } from "../base/elements.d.ts" */
/** @import { AccessCosts, CodeLink, CodeRow, LanguageRow } from "../record.d.ts" */
/** @import { Link } from "../types.d.ts" */
/** @import { Heat } from "./line_costs.js" */

const LEAST_HELPERS = 6; // lines that are worth a fold
const HELPERS = "helpers"; // among the folds that are open

/** The program of a variant, by its index; `beside` is the one that stands beside it, `signs` marks
 * added and removed lines, `heat` has the share of each line in a run, `costs` those of its accesses.
 * @typedef {{
 *   code: CodeRow, variant: number | null, beside?: CodeRow | null, signs?: string[],
 *   heat?: Heat | null, costs?: AccessCosts[][] | null
 * }} Listing */

/** Whether the lines before a kernel (types, helpers) are shown. */
export const showsHelpers = () => OPENED.has(HELPERS);

/** The lines; those before the kernel (types, helpers) are folded at first.
 * @param {App} app
 * @param {Listing} listing */
export function codeView(app, listing) {
  const { code, beside, signs } = listing;
  const first = foldedLines(app, code, beside);
  const signOf = (/** @type {number} */ i) => signs && (signs[i] || " "); // one indentation
  const rows = code.lines.slice(first)
    .map((text, i) => codeLine(app, listing, first + i, text, signOf(first + i)));
  const unfold = first > 0 &&
    h(
      "button",
      {
        class: "wb-unfold",
        type: "button",
        "data-key": "helpers",
        onclick: () => {
          OPENED.add(HELPERS);
          for (const side of [app, app.partner]) side?.changed("helpers");
        },
      },
      `show ${plural(first, "line")} of types and helpers`,
    );
  const widths = rows.map((row) => row.querySelector(".wb-line-cost")?.textContent.length ?? 0);
  return h(
    "div",
    { class: "wb-lines", style: `--cost: ${Math.max(0, ...widths)}` },
    unfold,
    walkable("listbox", "lines", { class: "wb-lines-list" }, ...rows),
  );
}

/** The number of lines before the kernel that are folded: of two programs, of both or of none.
 * @param {App} app
 * @param {CodeRow} code
 * @param {CodeRow | null} [other] */
function foldedLines(app, code, other = null) {
  const isWorthIt = helperLines(app, code) || other && helperLines(app, other);
  return isWorthIt && !showsHelpers() ? helperLines(app, code, 0) : 0;
}

/** The first line that concerns the reader of a program, from 0: the pinned one, the one that was
 * `seen`, or the kernel's.
 * @param {App} app
 * @param {CodeRow} code
 * @param {number | null} seen */
export function lineOfInterest(app, code, seen) {
  const i = app.view.code?.line ?? -1;
  return isPinned(app, code, i) ? i : seen ?? helperLines(app, code, 0);
}

/** The number of lines before the kernel and its comment; 0 if they are too few to fold.
 * @param {App} app
 * @param {CodeRow} code
 * @param {number} [least] */
function helperLines(app, { language, lines }, least = LEAST_HELPERS) {
  const { head = "", comment = "" } = languageOf(app, language) ?? {};
  if (!head) return 0;
  const [starts, isComment] = [new RegExp(head), new RegExp(`^(?:${comment})`)];
  let first = lines.findIndex((line) => starts.test(line));
  while (first > 0 && isComment.test(lines[first - 1])) first--;
  return first > least ? first : 0;
}

/** The classes of a line, by its sign.
 * @type {Record<string, string>} */
const CLASS_OF = { "+": "wb-added", "−": "wb-removed" };
/** @type {Record<string, string>} */
const WORD_OF = { "+": "new", "−": "gone" };

/**
 * @param {App} app
 * @param {Listing} listing
 * @param {number} i
 * @param {string} text
 * @param {string} [sign] */
function codeLine(app, { code, variant, heat, costs }, i, text, sign = "") {
  const link = code.links[i];
  const statement = link?.statement ?? null;
  const el = h(
    "div",
    {
      class: `wb-line ${CLASS_OF[sign] ?? ""} ${statement === null ? "" : "wb-statement"}`,
      style: statement === null ? null : `--statement: ${statement}`,
      role: "option",
      "data-item": "",
      "data-key": `line-${i}`,
      "data-line": i + 1,
      "aria-selected": String(isPinned(app, code, i)),
      title: hasNoLine(app, code, i) ? NO_LINE : null,
      onclick: () => pickLine(app, code, variant, i),
    },
    h("span", { class: "wb-gutter" }, `${i + 1}`),
    code.language !== app.record.languages[0].name && statementNumber(app, statement),
    sign && h("span", { class: "wb-sign", "aria-label": WORD_OF[sign] }, sign),
    costs && costCell(rowAt(app.record.variants, variant), costs[i]),
    heat && heatBar(heat.shares[i], heat.by),
    heat?.port &&
      heatBar(
        heat.port.shares[i],
        `of the work of ${heat.port.name}, the port of ` +
          "the core that a run occupies longest",
      ),
    h("code", {}, ...wordsOf(app, code, variant, i, text)),
  );
  return link ? linked(el, codeLink(link, variant)) : el;
}

/** The share of a line in a run, as a bar and as a number.
 * @param {number | null} share
 * @param {string} by */
function heatBar(share, by) {
  const text = shareText(share);
  return h("span", {
    class: "wb-heat",
    style: `--heat: ${share ?? 0}`,
    title: text && `${text} ${by}`,
  }, text);
}

/** The text of a line: its mnemonic shows its meaning on hover.
 * @param {App} app
 * @param {CodeRow} code
 * @param {number | null} variant
 * @param {number} i
 * @param {string} text */
function wordsOf(app, code, variant, i, text) {
  const of = rowAt(app.record.variants, variant);
  const about = (code.help || code.live) && aboutLine(code, i);
  const [before, mnemonic, rest] = (about && partsOf(text)) || ["", "", text];
  const named = (/** @type {string} */ part) => withNames(of, part);
  return [
    before,
    mnemonic && h("span", { class: "wb-mnemonic", title: about || null }, mnemonic),
    ...coloured(languageOf(app, code.language), rest, named),
  ];
}

/** The statement of a line, for programs side by side.
 * @param {App} app
 * @param {number | null} statement */
const statementNumber = (app, statement) =>
  h(
    "span",
    {
      class: "wb-of",
      title: statement && `for line ${statement} of the ${app.record.languages[0].name}`,
    },
    statement ? String(statement) : "",
  );

/** The link of a line of code.
 * @param {CodeLink} link
 * @param {number | null} variant
 * @returns {Link} */
export const codeLink = ({ axes, nodes, lines, statement }, variant) => ({
  by: "code",
  axes,
  nodes,
  lines,
  statement: statement === null ? null : `${variant} ${statement}`,
});

/** Whether a line is the pinned one.
 * @param {App} app
 * @param {CodeRow} code
 * @param {number} i */
function isPinned(app, { language, device }, i) {
  const at = app.view.code;
  return at?.line === i && at.language === language && at.device === device;
}

/** Pin a line of the program of a variant, and all that belongs to it; a pinned one is unpinned.
 * @param {App} app
 * @param {CodeRow} code
 * @param {number | null} variant
 * @param {number} i */
export function pickLine(app, code, variant, i) {
  const link = code.links[i];
  const picked = link && codeLink(link, variant);
  // a line of another variant is not part of the view, which is of the selected one
  if (variant !== app.view.variant) return app.select({ ...NO_SELECTION, picked });
  if (isPinned(app, code, i)) return app.select({ ...NO_SELECTION });
  app.select({
    picked,
    code: { language: code.language, device: code.device, line: i },
    axis: null,
    node: picked?.nodes[0] ?? null, // Rewrites says why it has none
    line: null,
  });
}

/** Show the pinned line as the selected one.
 * @param {App} app
 * @param {HTMLElement} body
 * @param {CodeRow | null} code */
export function markLine(app, body, code) {
  for (const row of elementsOf(body, "[data-line]")) {
    const isOne = code !== null && isPinned(app, code, Number(row.dataset.line) - 1);
    row.setAttribute("aria-selected", String(isOne));
  }
}

/** After the pane has shrunk: bring the pinned lines below an element into sight.
 * @param {HTMLElement} parent */
export function keepPinnedInSight(parent) {
  for (const row of elementsOf(parent, '.wb-line[aria-selected="true"]')) {
    const body = row.closest(".wb-code-body");
    const below = body && row.getBoundingClientRect().bottom - body.getBoundingClientRect().bottom;
    if (body && below && below > 0) body.scrollTop += below;
    noteScroll(body);
  }
}

/** After another pin: bring the first line that belongs to it into sight.
 * @param {App} app
 * @param {HTMLElement} body */
export function showFirstLit(app, body) {
  const lit = litLines(app, body);
  if (!lit.length || inSight(lit, body).length) return; // without a layout of the page
  const seen = body.getBoundingClientRect();
  body.scrollTop += lit[0].getBoundingClientRect().top - seen.top - seen.height / 3;
  noteScroll(body);
}

/** The line that the reader of a listing sees, from 0: the first lit one, or the first where it is
 * scrolled; null at its start.
 * @param {App} app
 * @param {HTMLElement} body */
export function lineInSight(app, body) {
  const lines = body.scrollTop ? elementsOf(body, ".wb-line[data-line]") : [];
  const [line] = [litLines(app, body), lines].flatMap((rows) => inSight(rows, body));
  return line ? Number(line.dataset.line) - 1 : null;
}

/** @param {App} app
 * @param {HTMLElement} body */
function litLines(app, body) {
  const reached = reach(app.record, app.view.picked);
  const rows = reached ? elementsOf(body, ".wb-line.wb-link") : [];
  return rows.filter((row) => belongs(LINKS.get(row), reached) === "lit");
}

/** @param {HTMLElement[]} rows
 * @param {HTMLElement} body */
function inSight(rows, body) {
  const seen = body.getBoundingClientRect();
  return rows.filter((row) => {
    const box = row.getBoundingClientRect();
    return box.top >= seen.top && box.bottom <= seen.bottom;
  });
}

/**
 * @param {App} app
 * @param {Listing} listing
 * @param {CodeRow} other */
export function diffView(app, listing, other) {
  const { code } = listing;
  const [fromA, fromB] = [foldedLines(app, other, code), foldedLines(app, code, other)];
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
    return codeLine(app, listing, fromB + b, code.lines[fromB + b], row[0]);
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

/** Keep three lines around each change; null stands for omitted lines.
 * @param {DiffRow[]} rows
 * @param {number} [margin] */
export function aroundChanges(rows, margin = 3) {
  const near = rows.map(() => false);
  rows.forEach(
    ([sign], i) => sign !== " " && near.fill(true, Math.max(0, i - margin), i + margin + 1),
  );
  return rows.flatMap((row, i) => (near[i] ? [row] : i === 0 || near[i - 1] ? [null] : []));
}

/** Return the differences between two programs: the sign of each line of both.
 * @param {string[]} a
 * @param {string[]} b
 * @returns {[string[], string[]]} */
export function diffSigns(a, b) {
  const [gone, fresh] = [a, b].map((lines) => lines.map(() => ""));
  for (const [sign, i, j] of diffLines(a, b)) {
    if (sign === "-" && i !== null) gone[i] = "−";
    if (sign === "+" && j !== null) fresh[j] = "+";
  }
  return [gone, fresh];
}

// Tokens of a line of code: comments, keywords and numbers, by the record's patterns of the
// language.

/** @typedef {"" | "comment" | "word" | "number"} TokenKind */

const NUMBER = String.raw`(?<![\w.%$@])\d[\w.]*`;

/** The pattern of each language.
 * @type {WeakMap<LanguageRow, RegExp>} */
const PATTERNS = new WeakMap();

/** @param {LanguageRow} language */
function patternOf(language) {
  let pattern = PATTERNS.get(language);
  if (!pattern) {
    pattern = new RegExp(`(${language.comment})|(${language.word})|(${NUMBER})`, "g");
    PATTERNS.set(language, pattern);
  }
  return pattern;
}

/** Return the tokens of a line, which together are the line.
 * @param {LanguageRow | undefined} language
 * @param {string} line
 * @returns {[TokenKind, string][]} */
export function tokensOf(language, line) {
  if (!language) return [["", line]];
  /** @type {[TokenKind, string][]} */
  const tokens = [];
  let at = 0;
  for (const match of line.matchAll(patternOf(language))) {
    const [text, comment, word] = match;
    if (!text) continue;
    if (match.index > at) tokens.push(["", line.slice(at, match.index)]);
    tokens.push([comment ? "comment" : word ? "word" : "number", text]);
    at = match.index + text.length;
  }
  if (at < line.length) tokens.push(["", line.slice(at)]);
  return tokens;
}

/** A line with its tokens in colours; `plain` shows the text between them.
 * @param {LanguageRow | undefined} language
 * @param {string} line
 * @param {(text: string) => Child[]} [plain]
 * @returns {Child[]} */
export const coloured = (language, line, plain = (text) => [text]) =>
  tokensOf(language, line).flatMap(([kind, text]) =>
    kind ? [h("span", { class: `wb-${kind}` }, text)] : plain(text)
  );
