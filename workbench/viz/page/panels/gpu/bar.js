// The bar over the steps of a work-group: its player, and the choice of the group.

import { canAsk, goTo } from "../../app/actions.js";
import { button } from "../../app/pieces.js";
import { h, refill } from "../../base/elements.js";
import { Player } from "../../base/player.js";

/** @import { GpuTrace } from "../../record.d.ts" */
/** @import { Gpu } from "./panel.js" */
/** @import { GroupSteps } from "./steps.js" */

const AXES = ["x", "y", "z"];
const DEFAULT_OPTS = "auto"; // the variant that has them

export class StepBar {
  /** @param {Gpu} gpu */
  constructor(gpu) {
    this.gpu = gpu;
    this.player = new Player(gpu.played, {
      name: "gpu",
      label: "a work-group, step by step",
      step: "step",
      slider: "the steps of the work-group: drag to one",
      play: "play: one step after the other",
      term: "step",
      stepMs: 50,
      list: ".wb-gpu-lines",
    });
    this.group = h("span", { class: "wb-gpu-group" });
    this.barrier = h("span", { class: "wb-gpu-group" });
    this.el = this.player.el;
    this.el.classList.add("wb-gpu-bar");
    this.el.append(this.barrier, this.group);
  }

  /** Show the possible requests. */
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
    const again = button(
      app,
      row.without === null ? "run again" : "put the barrier back",
      () => this.gpu.run(null),
      {
        python: true,
        name: "emulate",
        title:
          "run all of the program, and step the group of the first finding, else the first one",
      },
    );
    const pending = app.pending("emulate") && h("span", { class: "wb-quiet" }, "Running…");
    refill(
      this.group,
      this.#withOpts(row),
      h("span", { "data-term": "work-group" }, "group"),
      ...fields,
      again,
      pending,
    );
  }

  /** For a group of a single work-item: the way to the variant that has the default opts.
   * @param {GpuTrace} row */
  #withOpts({ items }) {
    const { app } = this.gpu;
    if (items.some((size) => size > 1)) return null;
    const { device, variants } = app.record;
    const places = app.variantsOf(app.view.kernel);
    const [auto] = [`${DEFAULT_OPTS} on ${device}`, DEFAULT_OPTS].flatMap((name) =>
      places.filter((place) => variants[place].name === name)
    );
    if (auto === undefined || auto === app.view.variant) return null;
    return button(app, `go to ${DEFAULT_OPTS}`, () => goTo(app, auto), {
      title: "a group of this variant is one work-item; the variant with the default opts has more",
      name: "gpu-default-opts",
    });
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
    const rounds = steps.rounds(at).map(([name, round]) => `${name} = ${round}`);
    const where = `step ${at} of ${steps.count}${steps.row.cut ? " (cut)" : ""}`;
    this.player.show([where, ...rounds].join(", "), steps.row.lines[steps.row.line[at]].text);
    this.player.words.title = steps.row.cut;
    refill(this.barrier, this.#barrier(steps));
  }

  /** At a barrier: the effect of removing it.
   * @param {GroupSteps} steps */
  #barrier({ row }) {
    const { gpu } = this;
    if (row.without !== null) {
      return h("span", { class: "wb-bad" }, `without barrier ${row.without + 1}`);
    }
    const number = row.lines[row.line[gpu.at]].barrier;
    if (number === null) return null;
    return button(gpu.app, "without this barrier", () => gpu.run(null, number), {
      python: true,
      title: "run again as if the program did not have it",
      name: "gpu-without",
    });
  }
}
