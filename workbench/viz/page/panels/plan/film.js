// The bar below the plan with which one steps through the decisions of the scheduler: play, back, a
// slider, next, and the whole plan again.

import { NOTHING } from "../../app/store.js";
import { hasAny } from "../../app/pieces.js";
import { h } from "../../base/elements.js";
import { plural } from "../../base/text.js";
import { filmAt, filmOf } from "../../record/film.js";

/** @import { App } from "../../app/store.js" */
/** @import { Changes, Keys } from "../../types.d.ts" */

const STEP_MS = 1200; // how long a step is shown while the film plays
const WHOLE_MS = 60_000; // at most, of all its steps together

export class Film {
  /** The timer of a film that plays; 0: it stands.
   * @type {number} */
  #timer = 0;

  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.play = tool("", "", () => this.playOrPause(), "film-play");
    this.steps = h("input", {
      type: "range",
      class: "wb-film-steps",
      "aria-label": "decision",
      "data-key": "film-steps",
      title: "the scheduler's decisions, from the results to the inputs: drag to one",
      min: 1,
      oninput: ({ target }) => this.#byHand(Number(target.value)),
    });
    this.words = h("span", { class: "wb-film-words", role: "status", "data-term": "film" });
    this.tools = {
      back: tool("‹", "back (k)", () => this.stepBy(-1), "film-back"),
      next: tool("›", "next decision (j)", () => this.stepBy(1), "film-next"),
      whole: tool(
        "whole",
        "the whole plan: leave the film (s)",
        () => this.#byHand(0),
        "film-whole",
      ),
    };
    const { back, next, whole } = this.tools;
    this.el = h(
      "div",
      { class: "wb-film", role: "group", "aria-label": "scheduling, decision by decision" },
      ...[this.play, back, this.steps, next, this.words, whole],
    );
  }

  get film() {
    return filmOf(this.app.record);
  }

  /** The step that is shown; 0: the whole plan. */
  get at() {
    return filmAt(this.app, this.film);
  }

  /** Show a step; 0: the whole plan.
   * @param {number} at */
  go(at) {
    const { film } = this;
    const row = film[Math.min(at, film.length) - 1];
    const { decision, pass, step } = row ?? { decision: null, pass: null, step: 0 };
    this.app.select({ ...NOTHING, ...(decision ? { node: decision.node } : {}), pass, step });
  }

  /** Go on by `by` steps; from the whole plan to the first or the last.
   * @param {number} by */
  stepBy(by) {
    const { at, film } = this;
    this.#byHand(at ? Math.max(1, at + by) : by > 0 ? 1 : film.length);
  }

  /** In the film, a value that the reader picks is the step that decides it. */
  follow() {
    const { node } = this.app.view;
    const at = this.film.findIndex(({ decision }) => decision.node === node) + 1;
    if (this.at && at && at !== this.at) this.#byHand(at);
  }

  playOrPause() {
    if (this.#timer) return this.pause();
    const count = this.film.length;
    if (!this.at || this.at === count) this.go(1);
    this.#timer = setInterval(() => this.#tick(), Math.min(STEP_MS, WHOLE_MS / count));
    this.app.changed("film");
  }

  pause() {
    clearInterval(this.#timer);
    this.#timer = 0;
    this.app.changed("film");
  }

  #tick() {
    const { at, film, app } = this;
    const isOver = !at || at >= film.length || app.view.mode !== "plan" || !this.el.isConnected;
    if (isOver) this.pause();
    else this.go(at + 1);
  }

  /** Show a step that the reader asked for: what plays stops.
   * @param {number} at */
  #byHand(at) {
    if (this.#timer) this.pause();
    this.go(at);
  }

  /** @param {Changes} changes */
  update(changes) {
    if (changes.has("node")) this.follow();
    if (!hasAny(changes, "record", "pass", "step", "film")) return;
    const { at, film, tools } = this;
    const count = film.length;
    this.el.hidden = !count;
    const isPlaying = this.#timer > 0;
    this.play.textContent = isPlaying ? "❚❚" : "▶";
    const title = isPlaying ? "pause" : "play: scheduling, decision by decision";
    for (const name of ["title", "aria-label"]) this.play.setAttribute(name, `${title} (space)`);
    this.steps.max = String(count);
    this.steps.value = String(at || count);
    tools.back.disabled = at === 1;
    tools.next.disabled = at === count;
    tools.whole.hidden = !at;
    const copies = this.app.record.plan.decisions.filter((d) => d.is_copy).length; // the list has them
    const all = [plural(count, "decision"), copies && plural(copies, "copy")].filter(Boolean);
    this.words.textContent = at ? `${at} of ${count}` : all.join(", ");
    const { decision } = film[at - 1] ?? { decision: null };
    const outcome = decision && `${decision.stored ? "stored" : "fused"} ${decision.value}`;
    this.steps.setAttribute("aria-valuetext", outcome ?? "the whole plan");
  }

  /** Keys of the film; in lists they walk the list.
   * @type {Keys} */
  get keys() {
    /** @type {(act: () => void) => Keys[string]} */
    const inFilm = (act) => ({ target }) => this.at && !isInList(target) ? act() : false;
    const [next, back] = [inFilm(() => this.stepBy(1)), inFilm(() => this.stepBy(-1))];
    return {
      s: () => this.#byHand(this.at ? 0 : 1),
      " ": ({ target }) => isItem(target) || isButton(target) ? false : this.playOrPause(),
      j: next,
      ArrowRight: next,
      ArrowDown: next,
      k: back,
      ArrowLeft: back,
      ArrowUp: back,
      Home: inFilm(() => this.#byHand(1)),
      End: inFilm(() => this.#byHand(Infinity)),
    };
  }
}

/** Whether keys walk a list; that of the decisions goes with the film.
 * @param {EventTarget | null} target */
const isInList = (target) =>
  target instanceof Element && target.closest("[data-walk]:not(.wb-plan-list)") !== null;

/** @param {EventTarget | null} target */
const isItem = (target) => target instanceof Element && target.closest("[data-item]") !== null;

/** @param {EventTarget | null} target */
const isButton = (target) =>
  target instanceof Element && target.closest("button, summary") !== null;

/** @type {(text: string, title: string, actOn: () => void, key: string) => HTMLButtonElement} */
const tool = (text, title, actOn, key) =>
  h("button", {
    class: "wb-button",
    type: "button",
    title,
    "aria-label": title,
    "data-key": key,
    onclick: actOn,
  }, text);
