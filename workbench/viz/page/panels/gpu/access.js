// The accesses of a step, of one warp: the sectors of global memory at its addresses, or the banks
// of shared memory with the words of each.

import { heading } from "../../app/pieces.js";
import { CellGrid } from "../../base/cell_grid.js";
import { h, refill } from "../../base/elements.js";
import { plural } from "../../base/text.js";
import { costText } from "../../listing/line_costs.js";
import { bankParts, lanesOf, servedTogether } from "./banks.js";

/** @import { Grid } from "../../base/cell_grid.js" */
/** @import { GpuMemory } from "../../record.d.ts" */
/** @import { Gpu } from "./panel.js" */
/** @import { Access, GroupSteps } from "./steps.js" */

const MOST_SECTORS = 40; // that are drawn
const SECTOR_WIDTH = 80; // pixels
const NAMES = 70; // pixels for the name of a sector's first element

export class AccessPane {
  /** @type {CellGrid | null} */
  #grid = null;
  quiet = h("p", { class: "wb-quiet" }, "this step reads and writes no memory");

  /** @param {Gpu} gpu */
  constructor(gpu) {
    this.gpu = gpu;
    this.el = h("section", { class: "wb-gpu-access", "aria-label": "access" });
  }

  /** @param {GroupSteps} steps */
  show(steps) {
    const { at, item } = this.gpu;
    const access = steps.access(at);
    if (!access) return refill(this.el, heading("ACCESS"), this.quiet);
    const memory = steps.row.memories[access.memory];
    const { isStore, wanted, moved, ...costs } = access;
    const words = costText(memory, {
      is_store: isStore,
      bytes_wanted: wanted,
      bytes_moved: moved,
      ...costs,
    });
    const width = steps.row.warp_lanes;
    const warp = Math.floor(item / width);
    const [first, end] = [warp * width, Math.min(steps.items, (warp + 1) * width)];
    const parts = memory.space === "global"
      ? this.#sectors(steps, memory, lanesOf(access, first, end), warp)
      : memory.space === "shared"
      ? this.#banks(steps, memory, access, first, end)
      : [];
    refill(this.el, heading("ACCESS", h("span", { class: "wb-quiet" }, words)), ...parts);
  }

  /** Show a grid in the place of the last one; return its element.
   * @param {Grid} grid */
  #show(grid) {
    if (this.#grid) this.#grid.change(grid);
    else this.#grid = new CellGrid(grid);
    return this.#grid.el;
  }

  repaint() {
    this.#grid?.repaint();
  }

  /** The sectors that a warp touches, a row each, with the requested elements in it.
   * @param {GroupSteps} steps
   * @param {GpuMemory} memory
   * @param {Map<number, number>} items
   * @param {number} warp */
  #sectors(steps, memory, items, warp) {
    const { sector_bytes: size } = steps.row;
    const { itemsize, name } = memory;
    const columns = Math.max(1, size / itemsize);
    const numbers = [...new Set([...items.keys()].map((e) => Math.floor((e * itemsize) / size)))];
    numbers.sort((a, b) => a - b);
    const drawn = numbers.slice(0, MOST_SECTORS);
    const firstOf = (/** @type {number} */ row) => Math.floor((drawn[row] * size) / itemsize);
    const elementOf = (/** @type {number} */ cell) =>
      firstOf(Math.floor(cell / columns)) + (cell % columns);
    const grid = this.#show({
      name: "gpu-sector",
      label: "sectors of the access",
      rows: { count: drawn.length * columns, columns, ...sectorRows(columns) },
      rowName: (row) => `${name}[${firstOf(row)}]`,
      words: (cell) => {
        const item = items.get(elementOf(cell));
        const who = item === undefined
          ? "moved, and not wanted"
          : `work-item ${steps.itemText(item)}`;
        return `${name}[${elementOf(cell)}]: ${who}`;
      },
      look: (cell) => ({
        fill: items.has(elementOf(cell)) ? "accent" : "hatched bad",
        edge: "edge",
      }),
      pick: (cell) => {
        const item = items.get(elementOf(cell));
        if (item !== undefined) this.gpu.select({ item });
      },
    });
    const of = `${items.size * itemsize} of ${numbers.length * size} bytes`;
    const more = numbers.length - drawn.length;
    return [
      h(
        "p",
        { class: "wb-quiet" },
        `warp ${warp}: ${plural(numbers.length, "sector")} of ${size} bytes; wanted: ${of}`,
      ),
      drawn.length > 0 && grid,
      more > 0 && h("p", { class: "wb-quiet" }, `and ${more} more`),
    ];
  }

  /** The banks of shared memory: for each, the words that a warp requests from it, stacked. A warp is
   * served in parts of as many work-items as there are banks: words of different parts do not
   * conflict.
   * @param {GroupSteps} steps
   * @param {GpuMemory} memory
   * @param {Access} access
   * @param {number} first work-item of the warp
   * @param {number} end */
  #banks(steps, memory, access, first, end) {
    const { banks: count, bank_bytes: width } = steps.row;
    const bytes = access.lanes * memory.itemsize;
    const together = servedTogether(steps.row, memory, access);
    const parts = bankParts(steps.row, memory, access, first, end);
    const most = parts.map((part) => Math.max(...part.map((words) => words.size)));
    const passes = most.reduce((sum, words) => sum + words, 0);
    const wordsIn = Array.from(
      { length: count },
      (_, bank) => new Map(parts.flatMap((part) => [...part[bank]])),
    );
    const isSlow = wordsIn.map((_, bank) => parts.some((part) => part[bank].size > 1));
    const height = Math.max(1, ...wordsIn.map((words) => words.size));
    const bankOf = (/** @type {number} */ cell) => cell % count;
    const isDrawn = (/** @type {number} */ cell) =>
      height - 1 - Math.floor(cell / count) < wordsIn[bankOf(cell)].size;
    const grid = this.#show({
      name: "gpu-bank",
      label: "banks of the access",
      rows: { count: count * height, columns: count, least: 6, most: 14, height: 9 },
      words: (cell) => {
        const words = wordsIn[bankOf(cell)];
        const listed = [...words.values()].map((element) => `${memory.name}[${element}]`);
        const one = isSlow[bankOf(cell)] ? `${words.size} words, one after the other: ` : "";
        return `bank ${bankOf(cell)}: ${one}${listed.join(", ") || "nothing"}`;
      },
      look: (cell) => {
        if (isDrawn(cell)) return { fill: isSlow[bankOf(cell)] ? "bad" : "accent" };
        const isLowest = cell >= count * (height - 1); // that all banks are seen
        return isLowest ? { fill: "bg", edge: "edge" } : null;
      },
    });
    const each = bytes > width ? `${bytes} bytes of each work-item, ` : "";
    const passesText = parts.length > 1
      ? `${each}${parts.length} parts of ${plural(together, "work-item")}: ${
        plural(passes, "pass")
      }`
      : `${plural(passes, "word")} of the busiest bank: ${plural(passes, "pass")}`;
    const slow = isSlow.filter(Boolean).length;
    const conflicts = slow ? `; conflicts in ${plural(slow, "bank")}` : "";
    return [
      h(
        "p",
        { class: "wb-quiet", "data-term": "passes over the banks" },
        `warp ${first / steps.row.warp_lanes}: ${passesText}${conflicts}`,
      ),
      grid,
    ];
  }
}

/** The size of the cells of a sector: sectors are equally wide, whatever the size of an element.
 * @param {number} columns */
function sectorRows(columns) {
  const width = Math.max(2, SECTOR_WIDTH / columns);
  return { least: width, most: width, height: 12, names: NAMES, across: true };
}
