// A question of the record: the parts hidden until the reader guesses, its answer, and the error of
// a guess. All of it is data of the record (workbench/viz/exploration/questions.py has the table),
// and panels see a record without the hidden parts, so no panel knows about the question.

/** @import { HiddenPart, PageRecord, QuestionRow } from "../record.d.ts" */

/** A guess and an answer that differ by less are the same to a reader. */
const LEAST_RATIO = 1.1;

/** Whether a guess is right, and its error in words.
 * @typedef {{isRight: boolean, text: string}} Verdict */

/** The shown record: while a question waits for a guess, without the answer and its hints.
 * @param {PageRecord} record
 * @param {string | null} guess
 * @returns {PageRecord} */
export function shownRecord(record, guess) {
  if (!record.ask || guess !== null) return record;
  /** @type {(shown: PageRecord, part: HiddenPart) => PageRecord} */
  const hidden = (shown, { path, value, only }) =>
    replaced(shown, path, (old) => (only ? rowsWith(old, only) : value));
  return record.ask.hides.reduce(hidden, record);
}

/** A copy of the objects along a path, with another value at its end; the rest is shared.
 * @param {any} holder
 * @param {string[]} path
 * @param {(old: any) => unknown} change
 * @returns {any} */
function replaced(holder, path, change) {
  if (!path.length) return change(holder);
  const [step, ...rest] = path;
  if (step === "*") return holder.map((/** @type {any} */ row) => replaced(row, rest, change));
  return { ...holder, [step]: replaced(holder[step], rest, change) };
}

/** @type {(rows: any[], fields: Record<string, unknown>) => any[]} */
const rowsWith = (rows, fields) => rows.filter((row) => fits(row, fields));

/** @type {(row: any, fields: Record<string, unknown>) => boolean} */
const fits = (row, fields) => Object.entries(fields).every(([name, value]) => row[name] === value);

/** The answer that a record has; null if it has none yet.
 * @param {PageRecord} record
 * @returns {any} */
export function answerOf(record) {
  const values = record.ask?.answers.map((path) => valueAt(record, path)) ?? [];
  return values.find((value) => value !== null) ?? null;
}

/**
 * @param {any} value
 * @param {any[]} path
 * @returns {any} */
function valueAt(value, path) {
  for (const [place, step] of path.entries()) {
    if (value === null || value === undefined) return null;
    if (step === "*") {
      return value.map((/** @type {any} */ row) => valueAt(row, path.slice(place + 1)));
    }
    value = typeof step === "object"
      ? value.find((/** @type {any} */ row) => fits(row, step))
      : value[step];
  }
  return Array.isArray(value) ? value.length : value ?? null;
}

/** The comparison of a guess, as text, with the answer.
 * @param {QuestionRow} question
 * @param {string} guess
 * @param {any} answer
 * @returns {Verdict} */
export function verdictOf(question, guess, answer) {
  const { judgement, scale, unit, factor } = question;
  if (judgement === "choice") {
    return { isRight: guess === answer, text: `You said ${guess}: it is ${answer}.` };
  }
  if (judgement === "set") return setVerdict(partsOf(guess), [...new Set(answer)]);
  const [guessed, right] = [Number(guess), answer / scale];
  const both = `You said ${figure(guessed, unit)}: it is ${figure(right, unit)}`;
  if (judgement === "number") {
    const off = Math.abs(guessed - right);
    const by = off ? `, ${off.toLocaleString("en")} too ${guessed > right ? "many" : "few"}.` : ".";
    return { isRight: !off, text: both + by };
  }
  const ratio = Number(Math.max(guessed / right, right / guessed).toPrecision(2));
  const [more, less] = guessed > right
    ? ["Your guess", "the answer"]
    : ["The answer", "your guess"];
  const off = ratio < LEAST_RATIO ? "" : ` ${more} is ${ratio} times ${less}.`;
  return { isRight: ratio <= factor, text: `${both}.${off}` };
}

/** @param {string} guess */
const partsOf = (guess) => guess.split(/[\s,]+/).filter((part) => part && part !== "none");

/** @type {(value: number, unit: string) => string} */
const figure = (value, unit) =>
  `${Number(value.toPrecision(3)).toLocaleString("en")}${unit && ` ${unit}`}`;

/** The right, wrong and missing parts of a guess.
 * @param {string[]} guess
 * @param {string[]} answer
 * @returns {Verdict} */
function setVerdict(guess, answer) {
  const wrong = guess.filter((part) => !answer.includes(part));
  const missing = answer.filter((part) => !guess.includes(part));
  const named = (/** @type {string[]} */ parts) => parts.join(", ") || "none";
  const off = [
    wrong.length && `not ${named(wrong)}`,
    missing.length && `you left out ${named(missing)}`,
  ].filter(Boolean);
  const isRight = !off.length;
  const text = `You said ${named(guess)}: it is ${named(answer)}${
    isRight ? "" : `; ${off.join("; ")}`
  }.`;
  return { isRight, text };
}
