// The work-items of the group, a row for each warp: the active ones, and the values of the selected
// one.

import { heading } from "../../app/pieces.js";
import { CellGrid } from "../../base/cell_grid.js";
import { h, refill } from "../../base/elements.js";
import { plural } from "../../base/text.js";
import { valueText } from "./steps.js";

/** @import { Gpu } from "./panel.js" */
/** @import { GroupSteps } from "./steps.js" */

export class LanesPane {
  /** @type {CellGrid | null} */
  #grid = null;
  /** The work-item whose value the selected one takes in this step; -1: none.
   * @type {number} */
  #partner = -1;
  total = h("span", { class: "wb-quiet", role: "status" });
  partner = h("div", { class: "wb-quiet", "data-term": "shuffle" });
  registers = h("div", {
    class: "wb-gpu-registers",
    tabindex: 0,
    role: "region",
    "aria-label": "values of the work-item",
  });

  /** @param {Gpu} gpu */
  constructor(gpu) {
    this.gpu = gpu;
    this.el = h("section", { class: "wb-gpu-lanes", "aria-label": "work-items" });
  }

  /** @param {GroupSteps} steps */
  fill(steps) {
    const { gpu } = this;
    const { items, row: { warp_lanes: width } } = steps;
    const isOn = (/** @type {number} */ item) => steps.isOn(gpu.at, item);
    this.#partner = -1;
    this.#grid = new CellGrid({
      name: "gpu-lane",
      label: "work-items",
      rows: { count: items, columns: Math.min(width, items), least: 5, most: 14, height: 11 },
      words: (item) => {
        const isPartner = item === this.#partner;
        const more = isPartner ? `, whose value work-item ${steps.itemText(gpu.item)} takes` : "";
        return `work-item ${steps.itemText(item)}: ${isOn(item) ? "on" : "off"}${more}`;
      },
      look: (item) => ({
        fill: isOn(item) ? "accent" : "hatched",
        edge: "edge",
        frame: item === gpu.item || item === this.#partner ? "fg" : "",
        isThick: true,
        isDashed: item === this.#partner,
      }),
      pick: (item) => gpu.select({ item }),
    });
    const head = heading("WORK-ITEMS", this.total);
    refill(this.el, head, this.#grid.el, this.partner, this.registers);
  }

  /** @param {GroupSteps} steps */
  show(steps) {
    const { at, item } = this.gpu;
    const { distance } = steps.row.lines[steps.row.line[at]];
    this.#partner = distance && (item ^ distance) < steps.items ? item ^ distance : -1;
    this.#grid?.show(item, [steps.row.mask[at], this.#partner]);
    const { warp_lanes: width } = steps.row;
    const warps = Math.ceil(steps.items / width);
    const on = steps.countOn(at);
    this.total.textContent = `${on} of ${steps.items} on, in ${plural(warps, "warp")} of ${width}`;
    this.total.title = "a row is a warp: its work-items take each step together";
    const rows = steps.registers(at, item).map(([name, values]) =>
      h(
        "tr",
        { title: lineOf(steps, name) },
        h("th", { scope: "row" }, name),
        h("td", values ? {} : { class: "wb-bad", "data-term": "unwritten" }, textOf(values)),
      )
    );
    const words = "the value of each name: a number, or one for each lane of a vector";
    const caption = h("caption", { title: words }, `work-item ${steps.itemText(item)} holds`);
    refill(this.registers, h("table", { class: "wb-figures" }, caption, ...rows));
    const text = this.#partner < 0
      ? ""
      : `takes the value of work-item ${steps.itemText(this.#partner)}`;
    refill(this.partner, text);
  }

  repaint() {
    this.#grid?.repaint();
  }
}

/** @param {number[] | null} values */
function textOf(values) {
  if (!values) return "unwritten";
  return values.length === 1 ? valueText(values[0]) : `(${values.map(valueText).join(", ")})`;
}

/** The line in which a name is set.
 * @param {GroupSteps} steps
 * @param {string} name */
function lineOf({ row }, name) {
  const starts = [`${name} `, `for ${name} `];
  const line = row.lines.find(({ text }) => starts.some((start) => text.startsWith(start)));
  return line?.text ?? "a tile of a tensor core, which has no line of its own";
}
