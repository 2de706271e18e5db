// The work-items of the group, a row for each warp: the active ones, and the values of the selected
// one.

import { heading } from "../../app/pieces.js";
import { elementsOf, h, refill } from "../../base/elements.js";
import { rove, walkable } from "../../base/lists.js";
import { plural } from "../../base/text.js";
import { valueText } from "./steps.js";

/** @import { Gpu } from "./panel.js" */
/** @import { GroupSteps } from "./steps.js" */

export class LanesPane {
  /** @type {HTMLElement[]} */
  #lanes = [];
  list = h("div", {});
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
    const width = steps.row.warp_lanes;
    const lane = (/** @type {number} */ item) =>
      h("div", {
        class: "wb-gpu-lane",
        role: "option",
        "data-item": "",
        "data-key": `gpu-lane-${item}`,
        onclick: () => gpu.select({ item }),
      });
    this.#lanes = Array.from({ length: steps.items }, (_, item) => lane(item));
    this.list = walkable(
      "listbox",
      "work-items",
      {
        class: "wb-gpu-lane-grid",
        "aria-orientation": "horizontal",
        style: `--lanes: ${Math.min(width, steps.items)}`,
      },
      ...this.#lanes,
    );
    const head = heading("WORK-ITEMS", this.total);
    refill(this.el, head, this.list, this.partner, this.registers);
  }

  /** @param {GroupSteps} steps */
  show(steps) {
    const { at, item } = this.gpu;
    const { distance } = steps.row.lines[steps.row.line[at]];
    const partner = distance ? item ^ distance : -1;
    let on = 0;
    this.#lanes.forEach((lane, place) => {
      const isOn = steps.isOn(at, place);
      on += Number(isOn);
      lane.classList.toggle("wb-gpu-on", isOn);
      lane.setAttribute("aria-selected", String(place === item));
      const isPartner = place === partner;
      lane.classList.toggle("wb-gpu-partner", isPartner);
      const more = isPartner ? `, whose value work-item ${steps.itemText(item)} takes` : "";
      const words = `work-item ${steps.itemText(place)}: ${isOn ? "on" : "off"}${more}`;
      lane.setAttribute("aria-label", words);
      lane.title = words;
    });
    if (!this.list.contains(document.activeElement)) rove(this.list, this.#lanes[item]);
    const { warp_lanes: width } = steps.row;
    const warps = Math.ceil(steps.items / width);
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
    const text = partner < 0 ? "" : `takes the value of work-item ${steps.itemText(partner)}`;
    refill(this.partner, text);
  }

  focus() {
    elementsOf(this.list, '[aria-selected="true"]')[0]?.focus();
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
