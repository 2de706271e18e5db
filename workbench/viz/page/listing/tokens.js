// Tokens of a line of code: comments, keywords and numbers, by the record's patterns of the
// language.

import { h } from "../base/elements.js";

/** @import { LanguageRow } from "../record.d.ts" */
/** @import { Child } from "../base/elements.d.ts" */

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

/** A line with its tokens in colours; `plain` shows what lies between them.
 * @param {LanguageRow | undefined} language
 * @param {string} line
 * @param {(text: string) => Child[]} [plain]
 * @returns {Child[]} */
export const coloured = (language, line, plain = (text) => [text]) =>
  tokensOf(language, line).flatMap(([kind, text]) =>
    kind ? [h("span", { class: `wb-${kind}` }, text)] : plain(text)
  );
