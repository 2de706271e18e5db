// The bar over the steps of a work-group: play, back, a slider, next; the group that is stepped.

import { button } from "../../app/pieces.js";
import { canAsk } from "../../app/actions.js";
import { h, refill } from "../../base/elements.js";

/** @import { Keys } from "../../types.d.ts" */
/** @import { Gpu } from "./panel.js" */
/** @import { GroupSteps } from "./steps.js" */

const STEP_MS = 500; // how long a step is shown while the steps play
const WHOLE_MS = 60_000; // at most, of all steps together
const AXES = ["x", "y", "z"];

export class StepBar {
  /** @type {number} */
  #timer = 0;

  /** @param {Gpu} gpu */
  constructor(gpu) {
    this.gpu = gpu;
    this.play = tool("", "", () => this.playOrPause(), "gpu-play");
    this.slider = h("input", {
      type: "range",
      class: "wb-film-steps",
      "aria-label": "step",
      "data-key": "gpu-steps",
      title: "the steps of the work-group: drag to one",
      min: 0,
      oninput: ({ target }) => this.#byHand(Number(target.value)),
    });
    this.words = h("span", { class: "wb-film-words", role: "status", "data-term": "step" });
    this.back = tool("‹", "back (k)", () => this.#byHand(gpu.at - 1), "gpu-back");
    this.next = tool("›", "next step (j)", () => this.#byHand(gpu.at + 1), "gpu-next");
    this.group = h("span", { class: "wb-gpu-group" });
    this.barrier = h("span", { class: "wb-gpu-group" });
    this.el = h(
      "div",
      { class: "wb-film wb-gpu-bar", role: "group", "aria-label": "a work-group, step by step" },
      ...[this.play, this.back, this.slider, this.next, this.words, this.barrier, this.group],
    );
  }

  /** Say what can be asked for. */
  renew() {
    const { app, row } = this.gpu;
    this.el.hidden = row === null;
    if (!row) return;
    const off = !canAsk(app) || app.pending("emulate");
    const fields = row.grid.map((size, axis) =>
      h("label", {
        title: `of the work-group that is stepped, along ${AXES[axis]}: 0 to ${size - 1}`,
      }, [
        AXES[axis],
        h("input", {
          type: "number",
          class: "wb-input",
          min: 0,
          max: size - 1,
          value: row.group[axis],
          disabled: off,
          "aria-label": `group along ${AXES[axis]}`,
          "data-key": `gpu-group-${axis}`,
          onchange: () => this.#changeGroup(),
        }),
      ])
    );
    const again = button(app, "run again", () => this.gpu.run(null), {
      python: true,
      name: "emulate",
      title: "all of the program, with the group of the first finding, else the first one",
    });
    const pending = app.pending("emulate") && h("span", { class: "wb-quiet" }, "Running…");
    refill(
      this.group,
      h("span", { "data-term": "work-group" }, "group"),
      ...fields,
      again,
      pending,
    );
  }

  #changeGroup() {
    const { row } = this.gpu;
    const fields = [...this.group.querySelectorAll("input")];
    const numbers = fields.map(({ value, max }) =>
      Math.max(0, Math.min(Number(max), Math.floor(Number(value) || 0)))
    );
    if (row && String(numbers) !== String(row.group)) this.gpu.run(numbers, row.without);
  }

  /** @param {GroupSteps} steps */
  show(steps) {
    const { at } = this.gpu;
    const isPlaying = this.#timer > 0;
    this.play.textContent = isPlaying ? "❚❚" : "▶";
    const title = isPlaying ? "pause" : "play: one step after the other";
    for (const name of ["title", "aria-label"]) this.play.setAttribute(name, `${title} (space)`);
    this.slider.max = String(steps.count - 1);
    this.slider.value = String(at);
    this.back.disabled = at === 0;
    this.next.disabled = at === steps.count - 1;
    const rounds = steps.rounds(at).map(([name, round]) => `${name} = ${round}`);
    const where = `step ${at} of ${steps.count}${steps.row.cut ? " (cut)" : ""}`;
    this.words.textContent = [where, ...rounds].join(", ");
    this.words.title = steps.row.cut;
    this.slider.setAttribute("aria-valuetext", steps.row.lines[steps.row.line[at]].text);
    refill(this.barrier, this.#barrier(steps));
  }

  /** At a barrier: what happens without it.
   * @param {GroupSteps} steps */
  #barrier({ row }) {
    const { gpu } = this;
    if (row.without !== null) {
      return h("span", { class: "wb-bad" }, `barrier ${row.without} is taken away`);
    }
    const number = row.lines[row.line[gpu.at]].barrier;
    if (number === null) return null;
    return button(gpu.app, "without this barrier", () => gpu.run(null, number), {
      python: true,
      title: "run again as if the program did not have it",
      name: "gpu-without",
    });
  }

  playOrPause() {
    const { gpu } = this;
    if (this.#timer) return this.pause();
    const count = gpu.steps?.count ?? 0;
    if (gpu.at === count - 1) gpu.go(0);
    this.#timer = setInterval(() => this.#tick(), Math.min(STEP_MS, WHOLE_MS / count));
    gpu.app.changed("gpu");
  }

  pause() {
    if (!this.#timer) return;
    clearInterval(this.#timer);
    this.#timer = 0;
    this.gpu.app.changed("gpu");
  }

  #tick() {
    const { gpu } = this;
    const count = gpu.steps?.count ?? 0;
    const isOver = gpu.at >= count - 1 || gpu.app.view.mode !== "gpu" || !this.el.isConnected;
    if (isOver) this.pause();
    else gpu.go(gpu.at + 1);
  }

  /** Go to a step that the reader asked for: what plays stops.
   * @param {number} at */
  #byHand(at) {
    this.pause();
    this.gpu.go(at);
  }

  /** Keys of the steps; in lists they walk the list.
   * @returns {Keys} */
  get keys() {
    const { gpu } = this;
    /** @type {(act: () => void) => Keys[string]} */
    const unlessInList = (act) => ({ target }) => gpu.steps && !isInList(target) ? act() : false;
    const next = unlessInList(() => this.#byHand(gpu.at + 1));
    const back = unlessInList(() => this.#byHand(gpu.at - 1));
    return {
      " ": ({ target }) => !gpu.steps || isControl(target) ? false : this.playOrPause(),
      j: next,
      ArrowRight: next,
      ArrowDown: next,
      k: back,
      ArrowLeft: back,
      ArrowUp: back,
      Home: unlessInList(() => this.#byHand(0)),
      End: unlessInList(() => this.#byHand(Infinity)),
    };
  }
}

/** @param {EventTarget | null} target */
const isInList = (target) =>
  target instanceof Element && target.closest("[data-walk]:not(.wb-gpu-lines)") !== null;

/** @param {EventTarget | null} target */
const isControl = (target) =>
  target instanceof Element && target.closest("button, summary, [data-item]") !== null;

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
