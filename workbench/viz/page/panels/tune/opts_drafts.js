// Drafts of lists of opts, one for each variant. Python says of each opt whether it is legal after
// those before it; applying a list makes a variant.

import { canAsk, goTo, NEEDS_PYTHON, notify } from "../../app/actions.js";
import { OFFLINE } from "../../app/channel.js";
import { debounced } from "../../base/elements.js";

/** @import { App } from "../../app/store.js" */
/** @import { ErrorWords, OptVerdict, VariantRow } from "../../record.d.ts" */

const ASK_AFTER_MS = 250; // of typing

/** An edited list: its opts, its text, the open opt with its legal amounts, the number of requests,
 * and whether Python answered or failed.
 * @typedef {{
 *   opts: OptVerdict[], text: string, open: number | null, amounts: number[],
 *   asked: number, isAnswered: boolean, error: ErrorWords | null
 * }} Draft */

/** A request about a list: its opts as Python; the opt whose amounts are asked for, or that gets
 * another amount.
 * @typedef {{opts: string[], place?: number | null, amount?: number | null}} Question */

export class OptsDrafts {
  /** @type {WeakMap<VariantRow, Draft>} */
  #drafts = new WeakMap();

  /** The opt that is being dragged.
   * @type {{variant: VariantRow, place: number} | null} */
  dragged = null;

  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.askSoon = debounced(
      (/** @type {VariantRow} */ variant, /** @type {Question} */ question) =>
        this.ask(variant, question, true),
      ASK_AFTER_MS,
    );
  }

  /** The draft of a variant; its own list if that is not edited.
   * @param {VariantRow} variant
   * @returns {Draft} */
  of(variant) {
    return this.#drafts.get(variant) ?? newDraft(variant);
  }

  /** Whether a variant's list is edited.
   * @param {VariantRow} variant */
  has(variant) {
    return this.#drafts.has(variant);
  }

  /** Set some fields of a draft.
   * @param {VariantRow} variant
   * @param {Partial<Draft>} values */
  set(variant, values) {
    const draft = Object.assign(this.of(variant), values);
    this.#drafts.set(variant, draft);
    this.app.changed("optlist");
    return draft;
  }

  /** Discard a draft, and show the variant's own list.
   * @param {VariantRow} variant */
  reset(variant) {
    this.forget(variant);
    this.app.changed("optlist");
  }

  /** Discard a draft.
   * @param {VariantRow} variant */
  forget(variant) {
    this.#drafts.delete(variant);
  }

  /** Whether Python refused a list that was edited.
   * @param {VariantRow} variant */
  hasFailed(variant) {
    const { error, opts } = this.of(variant);
    return this.has(variant) && (error !== null || opts.some(({ because }) => because));
  }

  /** Ask Python about a list; only the last answer counts. Unsent text stays.
   * @param {VariantRow} variant
   * @param {Question} question
   * @param {boolean} [isWritten] */
  async ask(variant, { opts, place = null, amount = null }, isWritten = false) {
    const at = this.app.record.variants.indexOf(variant);
    if (at < 0 || !canAsk(this.app)) return;
    const number = this.of(variant).asked + 1;
    const draft = this.set(variant, { asked: number, isAnswered: false });
    try {
      const { result } = await this.app.ask({ do: "opts", variant: at, opts, place, amount });
      if (number !== draft.asked || !result) return;
      const text = isWritten ? draft.text : result.text;
      this.set(variant, { ...result, text, isAnswered: true, error: null });
    } catch (error) {
      if (number !== draft.asked) return;
      this.set(variant, { isAnswered: true, error: /** @type {ErrorWords} */ (error) });
    }
  }

  /** Make a variant of the list; an illegal list stays, with the reason.
   * @param {VariantRow} variant */
  async apply(variant) {
    const { text } = this.of(variant);
    const { app } = this;
    const at = app.record.variants.indexOf(variant);
    if (!text.trim()) return;
    try {
      const { result } = await app.ask({ do: "paste", variant: at, text });
      if (this.of(variant).text === text) this.reset(variant); // the text was changed meanwhile
      if (result && app.view.variant === at) goTo(app, result.variant);
    } catch (error) {
      if (error === OFFLINE) notify(app, NEEDS_PYTHON);
      else this.set(variant, { isAnswered: true, error: /** @type {ErrorWords} */ (error) });
    }
  }

  /** Show another list at once, and ask about it.
   * @param {VariantRow} variant
   * @param {OptVerdict[]} opts
   * @param {number | null} open */
  change(variant, opts, open) {
    this.set(variant, { opts, open, text: texts(opts).join(", ") });
    this.ask(variant, { opts: texts(opts), place: open });
  }

  /**
   * @param {VariantRow} variant
   * @param {number} place */
  remove(variant, place) {
    this.change(variant, this.of(variant).opts.filter((_, i) => i !== place), null);
  }

  /**
   * @param {VariantRow} variant
   * @param {number} place
   * @param {number} by */
  move(variant, place, by) {
    if (this.of(variant).opts[place + by]) this.moveTo(variant, place, place + by);
  }

  /** Move an opt to another place of the list.
   * @param {VariantRow} variant
   * @param {number} from
   * @param {number} to */
  moveTo(variant, from, to) {
    if (from === to) return;
    const opts = [...this.of(variant).opts];
    opts.splice(to, 0, ...opts.splice(from, 1));
    this.change(variant, opts, to);
  }

  /** Give an opt another amount.
   * @param {VariantRow} variant
   * @param {number} place
   * @param {number} amount */
  setAmount(variant, place, amount) {
    this.ask(variant, { opts: texts(this.of(variant).opts), place, amount });
  }

  /** Open an opt, or close it.
   * @param {VariantRow} variant
   * @param {number} place */
  toggle(variant, place) {
    const { open, opts } = this.of(variant);
    this.set(variant, { open: open === place ? null : place, amounts: [] });
    if (open !== place) this.ask(variant, { opts: texts(opts), place });
  }

  /** Whether a draft has another list than its variant, all of it legal.
   * @param {VariantRow} variant */
  canApply(variant) {
    const { isAnswered, error, opts } = this.of(variant);
    return this.isChanged(variant) && isAnswered && !error && !opts.some((opt) => opt.because);
  }

  /** Whether a draft has another list than its variant.
   * @param {VariantRow} variant */
  isChanged(variant) {
    return texts(this.of(variant).opts).join() !== variant.opts.join();
  }
}

/**
 * @param {VariantRow} variant
 * @returns {Draft} */
const newDraft = ({ opts, opt_rows: rows }) => ({
  opts: rows.map((row, i) => ({ text: opts[i], row, because: "", try: "" })),
  text: opts.join(", "),
  open: null,
  amounts: [],
  asked: 0,
  isAnswered: true,
  error: null,
});

/** @param {OptVerdict[]} opts */
const texts = (opts) => opts.map(({ text }) => text);
