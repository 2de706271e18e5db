// Shared memory as cells, in the colours of their writers; the selected cell lists its reads and
// writes.

import { headingOf } from "../../app/pieces.js";
import { h, noteScroll, refill } from "../../base/elements.js";
import { rove, walkable } from "../../base/lists.js";
import { NO_WRITER, valueText } from "./steps.js";

/** @import { GpuMemory } from "../../record.d.ts" */
/** @import { Gpu } from "./panel.js" */
/** @import { CellUse, GroupSteps } from "./steps.js" */

const MOST_CELLS = 4096; // of one memory that are drawn
const MOST_COLUMNS = 64; // that stand side by side
const MOST_USES = 60; // of a cell that are listed

export class CellsPane {
  /** The cells of each memory that is drawn, by its place.
   * @type {Map<number, HTMLElement[]>} */
  #cells = new Map();
  /** @type {Map<number, HTMLElement>} */
  #lists = new Map();
  history = h("div", { class: "wb-gpu-history" });

  /** @param {Gpu} gpu */
  constructor(gpu) {
    this.gpu = gpu;
    this.el = h("section", { class: "wb-gpu-memories", "aria-label": "shared memory" });
  }

  /** @param {GroupSteps} steps */
  fill(steps) {
    this.#cells.clear();
    this.#lists.clear();
    const { memories } = steps.row;
    const drawn = memories.flatMap((memory, place) =>
      memory.space === "global" ? [] : [this.#memory(memory, place)]
    );
    const none = h("p", { class: "wb-quiet" }, "this program uses no shared memory");
    const heading = headingOf("shared memory", headingText(memories), legend(drawn.length > 0));
    refill(this.el, heading, ...(drawn.length ? drawn : [none]), this.history);
  }

  /**
   * @param {GpuMemory} memory
   * @param {number} place */
  #memory(memory, place) {
    const size = memory.shape.reduce((product, extent) => product * extent, 1);
    const columns = memory.shape.at(-1) ?? 1;
    const apart = columns <= MOST_COLUMNS ? columns * (memory.shape.at(-2) ?? 1) : size;
    const cells = Array.from({ length: Math.min(size, MOST_CELLS) }, (_, element) =>
      h("div", {
        class: element % apart < columns && element >= apart
          ? "wb-gpu-cell wb-gpu-next-tile"
          : "wb-gpu-cell",
        role: "option",
        "data-item": "",
        "data-key": `gpu-cell-${place}-${element}`,
        onclick: () => this.gpu.select({ cell: { memory: place, element } }),
      }));
    this.#cells.set(place, cells);
    const list = walkable(
      "listbox",
      `cells of ${memory.name}`,
      {
        class: "wb-gpu-cell-grid",
        "aria-orientation": "horizontal",
        style: `--columns: ${Math.min(columns, MOST_COLUMNS)}`,
      },
      ...cells,
    );
    this.#lists.set(place, list);
    const of = memory.space === "private" ? ", private: those of the chosen work-item" : "";
    const more = size > MOST_CELLS ? `; the first ${MOST_CELLS} are drawn` : "";
    const words = `${memory.dtype}, ${memory.shape.join(" × ")} elements${of}${more}`;
    const title = h(
      "p",
      { title: `${memory.name}: ${words}` },
      h("code", {}, memory.name),
      " ",
      h("span", { class: "wb-quiet" }, words),
    );
    return h("div", { class: "wb-gpu-memory" }, title, list);
  }

  /** @param {GroupSteps} steps */
  show(steps) {
    const { at, item, cell } = this.gpu;
    const access = steps.access(at);
    /** @type {HTMLElement[]} */
    const appeared = [];
    for (const [place, elements] of this.#cells) {
      const { name } = steps.row.memories[place];
      const { values, writers, steps: written } = steps.cells(place, at, item);
      const touched = new Set(access?.memory === place ? access.elements : []);
      elements.forEach((el, element) => {
        const who = writers[element];
        const isChosen = cell?.memory === place && cell.element === element;
        const words = who === NO_WRITER
          ? `${name}[${element}]: unwritten`
          : `${name}[${element}] = ${valueText(values[element])}: work-item ${
            steps.itemText(who)
          }, step ${written[element]}`;
        el.style.cssText = who === NO_WRITER ? "" : `--writer: ${hue(who, steps.items)}`;
        el.classList.toggle("wb-gpu-unwritten", who === NO_WRITER);
        el.classList.toggle("wb-gpu-touched", touched.has(element));
        if (isChosen && el.getAttribute("aria-selected") !== "true") appeared.push(el);
        el.setAttribute("aria-selected", String(isChosen));
        el.setAttribute("aria-label", words);
        el.title = words;
      });
      const list = this.#lists.get(place);
      if (list && !list.contains(document.activeElement)) rove(list);
    }
    refill(this.history, ...this.#history(steps));
    for (const chosen of appeared) { // a finding may lead to a cell that is out of sight
      chosen.scrollIntoView({ block: "nearest" });
      noteScroll(chosen);
    }
  }

  /** @param {GroupSteps} steps */
  #history(steps) {
    const { at, item, cell } = this.gpu;
    if (!cell) return [];
    const { name } = steps.row.memories[cell.memory];
    const uses = steps.uses(cell.memory, cell.element, at, item);
    const rows = uses.slice(-MOST_USES).reverse().map((use, i) => this.#use(steps, use, i));
    const of = `${name}[${cell.element}]`;
    const title = h("p", { title: `accesses of ${of}` }, h("code", {}, of), ", last first");
    if (!rows.length) return [title, h("p", { class: "wb-quiet" }, "no access yet")];
    return [title, walkable("listbox", `uses of ${name}[${cell.element}]`, {}, ...rows)];
  }

  /**
   * @param {GroupSteps} steps
   * @param {CellUse} use
   * @param {number} place */
  #use(steps, { step, item, isStore, value }, place) {
    const verb = isStore ? "writes" : "reads";
    return h(
      "div",
      {
        class: "wb-row",
        role: "option",
        "data-item": "",
        "data-key": `gpu-use-${place}`,
        "aria-selected": String(step === this.gpu.at),
        title: "go to this step",
        onclick: () => (this.gpu.select({ item }), this.gpu.go(step)),
      },
      h("span", { class: "wb-quiet" }, `step ${step}: `),
      `work-item ${steps.itemText(item)} ${verb} ${valueText(value)}`,
    );
  }
}

/** The caption of a memory: arrays of the group, or of each work-item.
 * @param {GpuMemory[]} memories */
function headingText(memories) {
  const has = (/** @type {GpuMemory["space"]} */ space) =>
    memories.some((memory) => memory.space === space);
  if (!has("private")) return "SHARED MEMORY";
  return has("shared") ? "SHARED AND PRIVATE MEMORY" : "PRIVATE MEMORY";
}

/** The colour of a work-item, in degrees of a circle of colours.
 * @type {(item: number, items: number) => number} */
const hue = (item, items) => Math.round((300 * item) / items);

/** @param {boolean} hasCells */
const legend = (hasCells) =>
  hasCells &&
  h(
    "span",
    { class: "wb-quiet" },
    "colour: the work-item that wrote it; framed: accessed in this step; hatched: unwritten",
  );
