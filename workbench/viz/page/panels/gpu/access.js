// The accesses of a step, of one warp: the sectors of global memory at its addresses, or the banks
// of shared memory with the words of each.

import { heading } from "../../app/pieces.js";
import { h, refill } from "../../base/elements.js";
import { plural } from "../../base/text.js";
import { costText } from "../../listing/line_costs.js";

/** @import { GpuMemory } from "../../record.d.ts" */
/** @import { Gpu } from "./panel.js" */
/** @import { Access, GroupSteps } from "./steps.js" */

const MOST_SECTORS = 40; // that are drawn

export class AccessPane {
  /** @param {Gpu} gpu */
  constructor(gpu) {
    this.gpu = gpu;
    this.el = h("section", { class: "wb-gpu-access", "aria-label": "access" });
  }

  /** @param {GroupSteps} steps */
  show(steps) {
    const { at, item } = this.gpu;
    const access = steps.access(at);
    if (!access) {
      const quiet = h("p", { class: "wb-quiet" }, "this step reads and writes no memory");
      return refill(this.el, heading("ACCESS"), quiet);
    }
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
      ? sectors(steps, memory, lanesOf(access, first, end), warp)
      : memory.space === "shared"
      ? banks(steps, memory, access, first, end)
      : [];
    refill(this.el, heading("ACCESS", h("span", { class: "wb-quiet" }, words)), ...parts);
  }
}

/** The accessed elements, each with the first work-item that accesses it.
 * @param {Access} access
 * @param {number} first
 * @param {number} end
 * @returns {Map<number, number>} */
function lanesOf({ elements, lanes }, first, end) {
  /** @type {Map<number, number>} */
  const items = new Map();
  for (let place = first * lanes; place < end * lanes; place++) {
    const element = elements[place];
    if (element >= 0 && !items.has(element)) items.set(element, Math.floor(place / lanes));
  }
  return items;
}

/** The sectors that a warp touches, a row each, with the requested elements in it.
 * @param {GroupSteps} steps
 * @param {GpuMemory} memory
 * @param {Map<number, number>} items
 * @param {number} warp */
function sectors(steps, memory, items, warp) {
  const { sector_bytes: size } = steps.row;
  const { itemsize, name } = memory;
  const each = Math.max(1, size / itemsize);
  const numbers = [...new Set([...items.keys()].map((e) => Math.floor((e * itemsize) / size)))];
  numbers.sort((a, b) => a - b);
  const cell = (/** @type {number} */ element) => {
    const item = items.get(element);
    const who = item === undefined ? "moved, and not wanted" : `work-item ${steps.itemText(item)}`;
    return h("i", {
      class: item === undefined ? "wb-gpu-unwanted" : "wb-gpu-wanted",
      title: `${name}[${element}]: ${who}`,
    });
  };
  const rows = numbers.slice(0, MOST_SECTORS).map((number) => {
    const first = Math.floor((number * size) / itemsize);
    const cells = Array.from({ length: each }, (_, i) => cell(first + i));
    const title = `${size} bytes from ${name}[${first}] on`;
    return h(
      "div",
      { class: "wb-gpu-sector", title },
      h("code", {}, `${name}[${first}]`),
      ...cells,
    );
  });
  const used = [...items.keys()].length * itemsize;
  const of = `${used} of ${numbers.length * size} bytes`;
  const more = numbers.length - rows.length;
  return [
    h(
      "p",
      { class: "wb-quiet" },
      `warp ${warp}: ${plural(numbers.length, "sector")} of ${size} bytes; wanted: ${of}`,
    ),
    h("div", { class: "wb-gpu-sectors" }, ...rows),
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
function banks(steps, { itemsize, name }, access, first, end) {
  const { banks: count, bank_bytes: width, warp_lanes: lanes } = steps.row;
  const bytes = access.lanes * itemsize;
  const together = Math.max(1, Math.floor(Math.min(lanes, count) / Math.max(1, bytes / width)));
  const parts = Array.from({ length: Math.ceil((end - first) / together) }, (_, part) => {
    const from = first + part * together;
    return wordsOf(lanesOf(access, from, Math.min(end, from + together)), itemsize / width, count);
  });
  const most = parts.map((part) => Math.max(...part.map((words) => words.size)));
  const passes = most.reduce((sum, words) => sum + words, 0);
  const columns = Array.from({ length: count }, (_, bank) => {
    const words = new Map(parts.flatMap((part) => [...part[bank]]));
    const listed = [...words.values()].map((element) => `${name}[${element}]`).join(", ");
    const isSlow = parts.some((part) => part[bank].size > 1);
    const one = isSlow ? `${words.size} words, one after the other: ` : "";
    const title = `bank ${bank}: ${one}${listed || "nothing"}`;
    const boxes = [...words.keys()].map(() => h("i", {}));
    const kind = isSlow ? "wb-gpu-bank wb-gpu-conflict" : "wb-gpu-bank";
    return h("div", { class: kind, title, role: "img", "aria-label": title }, ...boxes);
  });
  const each = bytes > width ? `${bytes} bytes of each work-item, ` : "";
  const passesText = parts.length > 1
    ? `${each}${parts.length} parts of ${plural(together, "work-item")}: ${plural(passes, "pass")}`
    : `${plural(passes, "word")} of the busiest bank: ${plural(passes, "pass")}`;
  return [
    h("p", { class: "wb-quiet", "data-term": "bank" }, `warp ${first / lanes}: ${passesText}`),
    h("div", { class: "wb-gpu-banks" }, ...columns),
  ];
}

/** The requested words of each bank, each with an element in it.
 * @param {Map<number, number>} items
 * @param {number} share of a word that an element is
 * @param {number} count
 * @returns {Map<number, number>[]} */
function wordsOf(items, share, count) {
  /** @type {Map<number, number>[]} */
  const wanted = Array.from({ length: count }, () => new Map());
  for (const element of items.keys()) {
    const word = Math.floor(element * share);
    wanted[word % count].set(word, element);
  }
  return wanted;
}
