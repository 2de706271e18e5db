// Facts of the selected variant: its name and age, its bottleneck, its check, its counts, a note.

import {
  act,
  canAsk,
  checkClass,
  checkedText,
  deleteVariant,
  reference,
} from "../../app/actions.js";
import { meaningOf } from "../../app/glossary.js";
import { button } from "../../app/pieces.js";
import { inOneRun, overlap, real } from "../../app/timing.js";
import { fold, h, recordText } from "../../base/elements.js";
import { bytesText, countText, dateText } from "../../base/text.js";
import { estimateParts } from "./estimate.js";
import { roofline } from "./roofline.js";

/** @import { App } from "../../app/store.js" */
/** @import { CheckRow, StepRow, TimingRow, VariantRow } from "../../record.d.ts" */

/** The facts of the selected variant: difference, check, bottleneck, counts, a note.
 * @param {App} app */
export function aboutVariant(app) {
  const variant = app.variant();
  if (!variant) return null;
  const other = reference(app);
  const isOneCompiler = other?.timing?.device === variant.timing?.device;
  const same = other && other !== variant && isOneCompiler && isSame(other.timing, variant.timing);
  return h(
    "div",
    { class: "wb-about" },
    same && h("p", {}, "No measurable difference to ", recordText(other.name), "."),
    variant.check?.ok && checkLine(variant.check), // a wrong answer is shown beside the buttons
    variant.bound &&
      h(
        "p",
        {},
        h("b", { "data-term": "bottleneck" }, "BOTTLENECK "),
        recordText(variant.bound, "", 600),
      ),
    ...estimateParts(app, variant),
    roofline(app),
    optsFold(variant),
    countsFold(variant.counts),
    identityRow(app, variant), // the read bytes stand above the written ones
    noteField(app, variant),
  );
}

const MOST_WRONG = 60; // characters of a wrong answer that stand there unfolded

/** Whether the answer is right, and its error; a long one is whole once it is unfolded, since it
 * would push variants out of sight.
 * @param {CheckRow} check */
export function checkLine(check) {
  const { ok, text } = check;
  const kind = checkClass(check);
  const mark = checkedText({ ok, text: "" });
  if (ok || text.length <= MOST_WRONG) {
    return h("p", { class: kind, "data-term": "check" }, mark, recordText(text, "", 400));
  }
  const end = text.lastIndexOf(" ", MOST_WRONG);
  const at = end > 0 ? end : MOST_WRONG;
  const rest = () => h("p", {}, recordText(`…${text.slice(at)}`, "", 2000));
  return h("div", { class: kind }, fold("check", `${mark}${text.slice(0, at)} …`, rest));
}

/** Whether two timings were taken in one run, without a measurable difference.
 * @param {TimingRow | null} one
 * @param {TimingRow | null} other */
const isSame = (one, other) =>
  real(one) && real(other) && inOneRun(one, other) && overlap(one, other);

/** The opts of a variant; of the default ones with the steps that chose them, their reasons and
 * numbers.
 * @param {VariantRow} variant */
function optsFold({ opts, steps = [] }) {
  if (!opts.length) return null;
  const title = `opts ${opts.length}${steps.length ? ": why these" : ""}`;
  const items = () => (steps.length ? steps.map(stepParts) : opts.map((opt) => optWords(opt)));
  return fold(
    "opts",
    title,
    () => h("ol", { class: "wb-opts" }, ...items().map((parts) => h("li", {}, parts))),
  );
}

/** @param {string} opt */
const optWords = (opt) => recordText(opt, "wb-code", 120);

/** @param {StepRow} step */
function stepParts({ name, opts, why, counts }) {
  return [
    h("b", { "data-term": name }, name),
    ": ",
    recordText(why, "", 400),
    h("div", {}, ...opts.flatMap((opt) => [optWords(opt), " "])),
    h("div", { class: "wb-quiet" }, counts),
  ];
}

/** @param {Record<string, number> | null} counts */
function countsFold(counts) {
  return counts && fold("counts", "counts of one run", () => countsTable(counts));
}

/** @param {Record<string, number>} counts */
function countsTable(counts) {
  return h(
    "dl",
    { class: "wb-counts" },
    ...Object.entries(counts).flatMap(([name, n]) => [
      h("dt", { "data-term": name.replaceAll("_", " ") }, name.replaceAll("_", " ")),
      h(
        "dd",
        { title: n.toLocaleString("en") },
        name.startsWith("bytes") ? bytesText(n) : countText(n),
      ),
    ]),
  );
}

// The name and the age of the selected variant, which can be renamed and deleted.

/** The names of the first and the default variant have a meaning: they have no date either.
 * @param {App} app
 * @param {VariantRow} row */
function identityRow(app, row) {
  const { variant } = app.view;
  if (variant === null || !row.when) return null;
  const send = (/** @type {string} */ text) => act(app, "results", { do: "name", variant, text });
  const of = row.opts.join("\n") || "no opts";
  return h(
    "div",
    { class: "wb-identity" },
    canAsk(app) && draftField(app, "name", variant, row.name, send, {
      maxlength: 80,
      title: `the name of this variant; empty: by its opts · key F2\n\n${of}`,
    }),
    h(
      "span",
      { class: "wb-quiet", title: new Date(row.when * 1000).toString() },
      dateText(row.when),
    ),
    button(app, "Delete", () => deleteVariant(app, variant), {
      python: true,
      key: "Del",
      name: "delete",
      title: "this variant; its children stay, and it can be brought back",
    }),
  );
}

// The reader's note about a variant.

/**
 * @param {App} app
 * @param {VariantRow} row */
function noteField(app, row) {
  const { variant } = app.view;
  if (!canAsk(app)) {
    return row.note ? h("p", { class: "wb-note" }, recordText(row.note, "", 2000)) : null;
  }
  if (variant === null) return null;
  const send = (/** @type {string} */ text) => act(app, "results", { do: "note", variant, text });
  return draftField(app, "note", variant, row.note, send, {
    maxlength: 2000,
    title: meaningOf(app.record, "note"),
  });
}

// A text field whose content is sent to Python when the reader leaves it. New data rebuild its
// pane; unsent text survives that as a draft.

/** The text of a field, and the part of it that Python has.
 * @typedef {{of: number | null, text: string, recordText: string}} Draft */

/** A field named `name` about the thing `of`; `tell` sends its text to Python, and returns null if
 * that failed.
 * @param {App} app
 * @param {string} name
 * @param {number} of
 * @param {string} text
 * @param {(text: string) => Promise<unknown>} send
 * @param {Record<string, string | number>} [attributes] */
function draftField(app, name, of, text, send, attributes = {}) {
  const known = app.drafts.get(name);
  const draft = known?.of === of ? known : { of, text, recordText: text };
  const leave = async () => {
    if (draft.text === draft.recordText) return;
    const before = draft.recordText;
    draft.recordText = draft.text;
    const reply = await send(draft.text);
    if (reply === null) draft.recordText = before;
    const isSame = app.drafts.get(name) === draft && draft.text === draft.recordText;
    if (reply && isSame) app.drafts.delete(name); // the record has it
  };
  const input = h("input", {
    class: "wb-input",
    type: "text",
    placeholder: name,
    "aria-label": name,
    "data-key": name,
    ...attributes,
    oninput: ({ target }) => {
      draft.text = target.value;
      app.drafts.set(name, draft);
    },
    onchange: leave,
    onblur: leave,
  });
  input.value = draft.text;
  return input;
}
