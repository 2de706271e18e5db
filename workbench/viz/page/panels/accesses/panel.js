// Accesses: the elements of each buffer that the steps of a loop, work-item or lane touch, in order, or
// the lanes of a warp in each of its instructions. They are played step by step, with their cache
// lines, and coloured by how often they were touched before. Two variants are stepped together.

import { act, canAsk, listedVariants } from "../../app/actions.js";
import { button, chooser, failure, hasAny, heading } from "../../app/pieces.js";
import { rowAt } from "../../app/store.js";
import { h, refill } from "../../base/elements.js";
import { Player } from "../../base/player.js";
import { plural } from "../../base/text.js";
import { drawn, legend, title, touchAt } from "./buffers.js";

/** @import { App } from "../../app/store.js" */
/** @import { AccessesReply, AxisRow } from "../../record.d.ts" */
/** @import { Changes, PanelRow } from "../../types.d.ts" */
/** @import { Drawn } from "./buffers.js" */

const STEPS = 64; // asked for at a time
const OF_WARP = -1; // the choice of a warp, among axes
const NO_PYTHON = "Accesses are listed by Python: run the cell again.";

/** @satisfies {PanelRow} */
export const panel = {
  place: "pane",
  order: 24,
  title: "Accesses",
  make: (/** @type {App} */ app) => new Accesses(app),
};

/** What is asked for: an axis ("": the innermost loop) from step `first` on, or a warp (null:
 * none), with other axes at positions.
 * @typedef {{axis: string, first: number, at: Record<string, number>, warp: number | null}} Choice */

const FIRST = { axis: "", first: 0, at: {}, warp: null };

class Accesses {
  #step = 0;
  /** The variant beside the selected one; null: none.
   * @type {number | null} */
  #other = null;

  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.player = new Player(
      {
        first: 0,
        last: () => this.#count - 1,
        at: () => (this.#shown.length ? Math.min(this.#step, this.#count - 1) : null),
        isShown: () => app.arrangements.shows("accesses"),
        go: (step) => this.#go(step),
        changed: () => app.changed("accesses"),
      },
      {
        name: "accesses",
        label: "steps of the loop",
        step: "step",
        slider: "the step of the loop",
        play: "play the steps",
        term: "step of a loop",
        stepMs: 250,
        list: ".wb-accesses",
      },
    );
    const renewed = () => {
      this.#step = 0;
      app.changed("accesses");
    };
    this.sides = [0, 1].map((number) =>
      new Side(app, number, renewed, (choice) => this.sides[1 - number].follow(choice))
    );
    this.errors = h("div", {});
    this.beside = h("div", {
      class: "wb-accesses-bar",
      title: "a variant whose accesses stand beside these",
    });
    this.el = h(
      "section",
      { class: "wb-accesses", "aria-label": "accesses" },
      heading("Accesses"),
      this.beside,
      this.player.el,
      this.errors,
      h("div", { class: "wb-accesses-sides" }, ...this.sides.map(({ el }) => el)),
      legend(),
    );
  }

  get keys() {
    return this.player.keys;
  }

  focus() {
    this.player.slider.focus();
  }

  /** The sides that have accesses. */
  get #shown() {
    return this.sides.filter(({ reply }) => reply);
  }

  get #count() {
    return Math.max(0, ...this.#shown.map(({ reply }) => reply?.count ?? 0));
  }

  /** @param {number} step */
  #go(step) {
    this.#step = step;
    this.app.changed("accesses");
  }

  /** @param {Changes} changes */
  update(changes) {
    const { app } = this;
    if (changes.has("kernel")) this.#other = null;
    if (
      hasAny(changes, "record", "board", "mode", "kernel", "variant", "live", "failure", "beside")
    ) {
      this.sides[0].show(app.view.variant);
      this.sides[1].show(this.#other === app.view.variant ? null : this.#other);
      refill(this.beside, ...this.#choices());
      refill(
        this.errors,
        failure(app, "accesses"),
        !this.#shown.length && !canAsk(app) && h("p", { class: "wb-quiet" }, NO_PYTHON),
      );
    }
    if (changes.has("theme")) this.sides.forEach((side) => side.repaint());
    if (changes.has("node")) this.sides.forEach((side) => side.chooseNode());
    if (changes.has("accesses")) this.#show();
  }

  /** The choice of a variant beside the selected one: at first the one before its last opt. */
  #choices() {
    const { app } = this;
    const { variants } = app.record;
    const own = listedVariants(app).filter((place) => place !== app.view.variant);
    const parent = rowAt(variants, app.view.variant)?.parent ?? null;
    if (!own.length) return [];
    /** @type {[number, string][]} */
    const rows = [
      [-1, "no other"],
      ...own.map((place) => /** @type {[number, string]} */ ([place, variants[place].name])),
    ];
    const choose = (/** @type {number} */ place) => {
      this.#other = place < 0 ? null : place;
      app.changed("beside");
    };
    return [
      h("span", {}, "beside "),
      chooser("the variant beside it", rows, this.#other ?? -1, choose),
      parent !== null && this.#other !== parent && own.includes(parent) &&
      button(app, "before the last opt", () => choose(parent), { name: "accesses-before" }),
    ].filter(Boolean);
  }

  /** Show the current step in each side. */
  #show() {
    const words = this.#shown.map((side) => side.step(this.#step));
    if (words.length) this.player.show(words[0], words.join("; "));
  }
}

/** The accesses of one variant. */
class Side {
  /** @type {AccessesReply | null} */
  reply = null;
  /** @type {Drawn[]} */
  #drawn = [];
  /** The variant of the reply, or of the pending request; null: none is shown.
   * @type {number | null} */
  #of = null;
  #device = "";
  /** @type {object | null} */
  #plan = null;
  /** @type {Choice} */
  #choice = FIRST;
  /** The statement whose accesses alone are shown; -1: all are.
   * @type {number} */
  #statement = -1;

  /**
   * @param {App} app
   * @param {number} number 0 of the selected variant, 1 of the one beside it
   * @param {() => void} renewed
   * @param {(choice: Choice) => void} chosen called with another loop or warp */
  constructor(app, number, renewed, chosen) {
    this.app = app;
    this.number = number;
    this.renewed = renewed;
    this.chosen = chosen;
    this.name = h("b", { title: "the variant whose accesses are shown" });
    this.choices = h("div", {
      class: "wb-accesses-bar",
      title: "the loop whose steps are shown, and the positions of the others",
    });
    this.words = h("p", { class: "wb-quiet wb-accesses-step" });
    this.statements = h("div", { class: "wb-accesses-bar" });
    this.buffers = h("div", { class: "wb-accesses-buffers" });
    this.el = h(
      "div",
      { class: "wb-accesses-side" },
      this.name,
      this.choices,
      this.statements,
      this.words,
      this.buffers,
    );
  }

  repaint() {
    this.#drawn.forEach(({ grid }) => grid.repaint());
  }

  /** Show a variant, or none.
   * @param {number | null} variant */
  show(variant) {
    const { app } = this;
    const { device, plan, variants } = app.record;
    this.el.hidden = variant === null;
    this.name.textContent = rowAt(variants, variant)?.name ?? "";
    const isNone = variant === null && this.#of === null;
    const isSame = variant === this.#of && device === this.#device && plan === this.#plan;
    if (isNone || isSame) return;
    Object.assign(this, { reply: null });
    this.#of = null;
    this.#drawn = [];
    this.#choice = { ...FIRST, axis: this.#choice.axis, warp: this.#choice.warp };
    this.#statement = -1;
    refill(this.buffers);
    if (variant === null) app.changed("accesses");
    else this.#ask(variant);
  }

  /** @param {number} variant */
  async #ask(variant) {
    const { app } = this;
    if (!canAsk(app) || !app.arrangements.shows("accesses")) return;
    this.#of = variant;
    this.#device = app.record.device;
    this.#plan = app.record.plan;
    const choice = this.#choice;
    const reply = await act(app, "accesses", {
      do: "accesses",
      variant,
      ...choice,
      first: choice.warp === null ? choice.first : 0,
      steps: STEPS,
    });
    if (this.#of !== variant || this.#choice !== choice) return;
    if (!reply?.result && choice.axis) {
      this.#choice = FIRST; // another variant may lack it
      await this.#ask(variant);
      return;
    }
    this.reply = reply?.result ?? null;
    this.#renew();
  }

  /** @param {Partial<Choice>} changes */
  #choose(changes) {
    this.#choice = { ...this.#choice, first: 0, ...changes };
    if (this.#of !== null) this.#ask(this.#of);
    if ("axis" in changes) this.chosen(this.#choice);
  }

  /** Show the loop or warp that was chosen in the other side, if this variant has it, too.
   * @param {Choice} choice */
  follow({ axis, warp }) {
    const has = warp !== null || this.reply?.axes.some(({ name }) => name === axis);
    if (this.#of === null || !has) return;
    this.#choice = { ...FIRST, axis, warp };
    this.#ask(this.#of);
  }

  #renew() {
    const { reply } = this;
    if (!reply) return refill(this.buffers);
    refill(this.choices, ...this.#axes(reply));
    this.chooseNode();
    this.#draw(reply);
    this.renewed();
  }

  /** Draw the buffers that the chosen statement accesses.
   * @param {AccessesReply} reply */
  #draw(reply) {
    refill(this.statements, ...this.#statements(reply));
    this.#drawn = reply.buffers
      .map((row, place) => drawn(row, `accesses-${this.number || ""}${place}`, this.#statement))
      .filter(({ touches, row }) => touches.length || (row.unknown && this.#statement < 0));
    refill(
      this.buffers,
      ...this.#drawn.map(({ row, grid, words }) =>
        h(
          "div",
          { class: "wb-accesses-buffer" },
          h("p", { title: "a buffer, and what this step touches of it" }, title(row), " ", words),
          grid.el,
        )
      ),
    );
  }

  /** The statements of the kernel: a click shows the accesses of one alone.
   * @param {AccessesReply} reply */
  #statements({ statements }) {
    if (statements.length < 2) return [];
    return statements.map(({ text, node }, place) =>
      h("button", {
        class: "wb-button wb-accesses-statement wb-code",
        type: "button",
        title: "the accesses of this statement alone",
        "aria-pressed": String(place === this.#statement),
        "data-key": `accesses-${this.number}-statement-${place}`,
        onclick: () => this.app.select({ node: place === this.#statement ? null : node }),
      }, text.slice(0, 120))
    );
  }

  /** The selected node may be a statement: then its accesses alone are shown. */
  chooseNode() {
    const { reply } = this;
    if (!reply) return;
    const { node } = this.app.view;
    const place = node === null
      ? -1
      : reply.statements.findIndex((statement) => statement.node === node);
    if (place === this.#statement) return;
    this.#statement = place;
    this.#draw(reply);
    this.app.changed("accesses");
  }

  /** The loop or warp, its first step, and the positions of the axes around it.
   * @param {AccessesReply} reply */
  #axes({ axes, axis, first, count, warps, around, at, names }) {
    const isWarp = axis === "";
    /** @type {[number, string][]} */
    const rows = axes.map(({ name, kind, size }, place) => [
      place,
      `steps of ${name} ${size} (${kind.toLowerCase()})`,
    ]);
    const own = axes.findIndex(({ name }) => name === axis);
    const extent = isWarp ? names.length : axes[own].size;
    const number = this.#number.bind(this);
    return [
      chooser(
        this.number ? "loop, lane or warp beside" : "loop, lane or warp",
        [...rows, [OF_WARP, "instructions of a warp"]],
        isWarp ? OF_WARP : own,
        (place) =>
          place === OF_WARP
            ? this.#choose({ axis: "", at: {}, warp: 0 })
            : this.#choose({ axis: axes[place].name, at: {}, warp: null }),
      ),
      isWarp && warps > 1 && number("warp", first, warps - 1, (warp) => this.#choose({ warp })),
      !isWarp && (first + count < extent || first > 0) &&
      number("from step", first, extent - 1, (value) => this.#choose({ first: value })),
      around.length > 0 && h("span", {}, " at "),
      ...around.map(({ name, size }) =>
        number(
          name,
          at[name] ?? 0,
          size - 1,
          (value) => this.#choose({ at: { ...at, [name]: value }, first: isWarp ? 0 : first }),
        )
      ),
    ].filter(Boolean);
  }

  /**
   * @param {string} label
   * @param {number} value
   * @param {number} most
   * @param {(value: number) => void} actOn */
  #number(label, value, most, actOn) {
    const input = h("input", {
      type: "number",
      min: 0,
      max: most,
      value,
      "aria-label": `position of ${label}`,
      "data-key": `accesses-at-${this.number ? "beside-" : ""}${label}`,
      onchange: ({ target }) =>
        actOn(Math.max(0, Math.min(most, Math.round(Number(target.value))))),
    });
    return h("label", {}, `${label} `, input);
  }

  /** Show a step, or the last one if there are fewer; return its name.
   * @param {number} number */
  step(number) {
    const { reply } = this;
    if (!reply) return "";
    const { axes, axis, first, count, names } = reply;
    const place = Math.min(number, count - 1);
    const step = axis === "" ? place : first + place;
    const size = axes.find(({ name }) => name === axis)?.size ?? 0;
    const words = axis === ""
      ? `${place + 1} of ${plural(count, "instruction")}`
      : `${axis} = ${step} of ${size}`;
    this.words.textContent = axis === "" ? `${words}: ${names[place] ?? ""}` : words;
    this.#drawn.forEach((one) => touchAt(one, step));
    return words;
  }
}
