// A player of steps: play, back, a slider, next, and the current step; by pointer, keys or timer.

import { h } from "./elements.js";

/** @import { Keys } from "../types.d.ts" */

/** The played thing. Steps are numbers from `first` to `last()` (below `first`: there are none);
 * `at()` is the current one (null: none), `go` shows another. `isShown()`: it is in sight.
 * `changed` redraws the bar.
 * @typedef {{
 *   first: number, last: () => number, at: () => number | null, isShown: () => boolean,
 *   go: (step: number) => void, changed: () => void,
 * }} Steps */

/** The texts of a player: its keys (data-key), the bar, one step, the slider's and the play
 * button's titles; the time of a step; the list of the page that shows the steps, as a selector: in
 * other lists, keys walk the list.
 * @typedef {{
 *   name: string, label: string, step: string, slider: string, play: string, term: string,
 *   stepMs: number, list: string
 * }} PlayerWords */

const WHOLE_MS = 60_000; // at most, of all steps together

export class Player {
  /** The timer while it plays; 0: it is paused.
   * @type {number} */
  #timer = 0;

  /**
   * @param {Steps} steps
   * @param {PlayerWords} of */
  constructor(steps, of) {
    this.steps = steps;
    this.of = of;
    const { name } = of;
    this.play = tool("", "", () => this.playOrPause(), `${name}-play`);
    this.slider = h("input", {
      type: "range",
      class: "wb-player-steps",
      "aria-label": of.step,
      "data-key": `${name}-steps`,
      title: of.slider,
      oninput: ({ target }) => this.goTo(Number(target.value)),
    });
    this.words = h("span", { class: "wb-player-words", role: "status", "data-term": of.term });
    this.back = tool("‹", "back (k)", () => this.stepBy(-1), `${name}-back`);
    this.next = tool("›", `next ${of.step} (j)`, () => this.stepBy(1), `${name}-next`);
    this.el = h(
      "div",
      { class: "wb-player", role: "group", "aria-label": of.label },
      ...[this.play, this.back, this.slider, this.next, this.words],
    );
  }

  #now() {
    const { first, last, at } = this.steps;
    return { first, last: last(), at: at() };
  }

  /** Show the current step.
   * @param {string} words
   * @param {string} step the name of the step, for screen readers */
  show(words, step) {
    const { first, last, at } = this.#now();
    const isPlaying = this.#timer > 0;
    this.play.textContent = isPlaying ? "❚❚" : "▶";
    const title = isPlaying ? "pause" : this.of.play;
    for (const name of ["title", "aria-label"]) this.play.setAttribute(name, `${title} (space)`);
    this.slider.min = String(first);
    this.slider.max = String(last);
    this.slider.value = String(at ?? last);
    this.slider.setAttribute("aria-valuetext", step);
    this.back.disabled = at === first;
    this.next.disabled = at === last;
    this.words.textContent = words;
  }

  playOrPause() {
    const { first, last, at } = this.#now();
    if (this.#timer) return this.pause();
    if (at === null || at === last) this.steps.go(first);
    const count = last - first + 1;
    this.#timer = setInterval(() => this.#tick(), Math.min(this.of.stepMs, WHOLE_MS / count));
    this.steps.changed();
  }

  pause() {
    if (!this.#timer) return;
    clearInterval(this.#timer);
    this.#timer = 0;
    this.steps.changed();
  }

  #tick() {
    const { at, last } = this.#now();
    const isOver = at === null || at >= last || !this.steps.isShown() || !this.el.isConnected;
    if (isOver) this.pause();
    else this.steps.go(at + 1);
  }

  /** Show a step that the reader chose, and pause.
   * @param {number} step */
  goTo(step) {
    this.pause();
    this.steps.go(step);
  }

  /** Move by `by` steps; without a current step, to the first or the last.
   * @param {number} by */
  stepBy(by) {
    const { first, last, at } = this.#now();
    const end = by > 0 ? first : last;
    this.goTo(at === null ? end : Math.max(first, Math.min(last, at + by)));
  }

  /** Keys of the steps; in lists they walk the list.
   * @returns {Keys} */
  get keys() {
    const { steps, of } = this;
    /** @type {(act: () => void) => Keys[string]} */
    const inSteps = (act) => ({ target }) =>
      steps.at() !== null && !isInList(target, of.list) ? act() : false;
    const [next, back] = [inSteps(() => this.stepBy(1)), inSteps(() => this.stepBy(-1))];
    return {
      " ": ({ target }) =>
        steps.last() < steps.first || isControl(target) ? false : this.playOrPause(),
      j: next,
      ArrowRight: next,
      ArrowDown: next,
      k: back,
      ArrowLeft: back,
      ArrowUp: back,
      Home: inSteps(() => this.goTo(steps.first)),
      End: inSteps(() => this.goTo(steps.last())),
    };
  }
}

/** Whether keys walk a list other than that of the steps.
 * @param {EventTarget | null} target
 * @param {string} list */
const isInList = (target, list) =>
  target instanceof Element && target.closest(`[data-walk]:not(${list})`) !== null;

/** @param {EventTarget | null} target */
const isControl = (target) =>
  target instanceof Element && target.closest("button, summary, [data-item]") !== null;

/** @type {(text: string, title: string, actOn: () => void, key: string) => HTMLButtonElement} */
export const tool = (text, title, actOn, key) =>
  h("button", {
    class: "wb-button",
    type: "button",
    title,
    "aria-label": title,
    "data-key": key,
    onclick: actOn,
  }, text);
