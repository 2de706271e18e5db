// Shared memory as cells, in the colours of their writers: a row has a word of each bank, whatever
// the shape of the array, so that words that conflict stand one below the other. Arrays that each
// work-item has are drawn in their shape. The selected cell lists its reads and writes.

import { headingOf } from "../../app/pieces.js";
import { CellGrid } from "../../base/cell_grid.js";
import { h, refill } from "../../base/elements.js";
import { walkable } from "../../base/lists.js";
import { plural } from "../../base/text.js";
import { conflictingElements } from "./banks.js";
import { NO_WRITER, valueText } from "./steps.js";

/** @import { Look, Rows } from "../../base/cell_grid.js" */
/** @import { GpuMemory, GpuTrace } from "../../record.d.ts" */
/** @import { Gpu } from "./panel.js" */
/** @import { Cells, CellUse, GroupSteps } from "./steps.js" */

const MOST_COLUMNS = 64; // of private memory that stand side by side
const MOST_USES = 60; // of a cell that are listed

/** The state of a memory in the current step: its cells, and the accessed elements.
 * @typedef {{cells: Cells, touched: Set<number>, conflicting: Set<number>}} State */

export class CellsPane {
  /** The memories that are drawn, by their places.
   * @type {Map<number, {grid: CellGrid, summary: HTMLElement, drawn: State}>} */
  #drawn = new Map();
  history = h("div", { class: "wb-gpu-history" });

  /** @param {Gpu} gpu */
  constructor(gpu) {
    this.gpu = gpu;
    this.el = h("section", { class: "wb-gpu-memories", "aria-label": "shared memory" });
  }

  /** @param {GroupSteps} steps */
  fill(steps) {
    this.#drawn.clear();
    const { memories } = steps.row;
    const drawn = memories.flatMap((memory, place) =>
      memory.space === "global" ? [] : [this.#memory(steps, memory, place)]
    );
    const none = h("p", { class: "wb-quiet" }, "this program uses no shared memory");
    const heading = headingOf("shared memory", headingText(memories), legend(drawn.length > 0));
    refill(this.el, heading, ...(drawn.length ? drawn : [none]), this.history);
  }

  /**
   * @param {GroupSteps} steps
   * @param {GpuMemory} memory
   * @param {number} place */
  #memory(steps, memory, place) {
    const { name } = memory;
    /** @type {State} */
    const drawn = {
      cells: steps.cells(place, 0, 0),
      touched: new Set(),
      conflicting: new Set(),
    };
    const grid = new CellGrid({
      name: `gpu-cell-${place}`,
      label: `cells of ${name}`,
      rows: memory.space === "shared" ? banksOf(steps.row, memory) : shapeOf(memory),
      words: (element) => wordsOf(steps, memory, drawn, element),
      look: (element) => {
        const { cell } = this.gpu;
        const isChosen = cell?.memory === place && cell.element === element;
        return lookOf(steps, drawn, element, isChosen);
      },
      pick: (element) => this.gpu.select({ cell: { memory: place, element } }),
    });
    const summary = h("span", { class: "wb-quiet", role: "status" });
    this.#drawn.set(place, { grid, summary, drawn });
    const of = memory.space === "private"
      ? ", private: those of the chosen work-item"
      : `; a row: ${steps.row.banks} banks of ${steps.row.bank_bytes} bytes`;
    const words = `${memory.dtype}, ${memory.shape.join(" × ")} elements${of}`;
    const title = h(
      "p",
      { title: `${name}: ${words}` },
      h("code", {}, name),
      " ",
      h("span", { class: "wb-quiet" }, words),
      summary,
    );
    return h("div", { class: "wb-gpu-memory" }, title, grid.el);
  }

  /** @param {GroupSteps} steps */
  show(steps) {
    const { at, item, cell } = this.gpu;
    const access = steps.access(at);
    for (const [place, { grid, summary, drawn }] of this.#drawn) {
      const memory = steps.row.memories[place];
      const own = access?.memory === place ? access : null;
      drawn.cells = steps.cells(place, at, item);
      drawn.touched = new Set(own?.elements.filter((element) => element >= 0));
      drawn.conflicting = own && memory.space === "shared"
        ? conflictingElements(steps, memory, own)
        : new Set();
      summary.textContent = summaryOf(drawn);
      grid.show(cell?.memory === place ? cell.element : -1, [drawn.cells, own]);
    }
    refill(this.history, ...this.#history(steps));
  }

  /** Scroll to the selected cell: a finding may lead to one that is out of sight. */
  reveal() {
    const { cell } = this.gpu;
    if (cell) this.#drawn.get(cell.memory)?.grid.reveal(cell.element);
  }

  repaint() {
    this.#drawn.forEach(({ grid }) => grid.repaint());
  }

  /** @param {GroupSteps} steps */
  #history(steps) {
    const { at, item, cell } = this.gpu;
    if (!cell) return [];
    const { name } = steps.row.memories[cell.memory];
    const uses = steps.uses(cell.memory, cell.element, at, item);
    const rows = uses.slice(-MOST_USES).reverse().map((use, i) => this.#use(steps, use, i));
    const of = `${name}[${cell.element}]`;
    const title = h("p", {}, `accesses of ${of}, the last first`);
    if (!rows.length) return [title, h("p", { class: "wb-quiet" }, "no access yet")];
    return [title, walkable("listbox", `uses of ${of}`, {}, ...rows)];
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

/** The number of elements of a memory.
 * @param {GpuMemory} memory */
const sizeOf = ({ shape }) => shape.reduce((product, extent) => product * extent, 1);

/** Rows of a word of each bank; an element is as wide as its bytes.
 * @type {(row: GpuTrace, memory: GpuMemory) => Rows} */
function banksOf({ banks, bank_bytes: bytes }, memory) {
  const words = memory.itemsize / bytes;
  const size = { least: 6 * words, most: 14 * words, height: 11 };
  return { count: sizeOf(memory), columns: Math.max(1, banks / words), ...size };
}

/** Rows in the shape of a memory, its last axis across.
 * @type {(memory: GpuMemory) => Rows} */
function shapeOf(memory) {
  const columns = Math.min(memory.shape.at(-1) ?? 1, MOST_COLUMNS);
  const isWhole = memory.shape.length > 2 && columns === memory.shape.at(-1);
  const together = isWhole ? memory.shape.at(-2) : undefined;
  return { count: sizeOf(memory), columns, least: 4, most: 14, height: 12, together };
}

/** What a cell holds, its writer and its bank, and its part in the step.
 * @type {(steps: GroupSteps, memory: GpuMemory, state: State, element: number) => string} */
function wordsOf(steps, { name, space, itemsize }, { cells, touched, conflicting }, element) {
  const { banks, bank_bytes: bytes } = steps.row;
  const who = cells.writers[element];
  return [
    who === NO_WRITER
      ? `${name}[${element}]: unwritten`
      : `${name}[${element}] = ${valueText(cells.values[element])}: work-item ${
        steps.itemText(who)
      }, step ${cells.steps[element]}`,
    space === "shared" && `bank ${Math.floor((element * itemsize) / bytes) % banks}`,
    touched.has(element) && "accessed in this step",
    conflicting.has(element) && "in a bank conflict",
  ].filter(Boolean).join(", ");
}

/** @type {(steps: GroupSteps, state: State, element: number, isChosen: boolean) => Look} */
function lookOf({ items }, { cells, touched, conflicting }, element, isChosen) {
  const who = cells.writers[element];
  const isConflict = conflicting.has(element);
  return {
    fill: who === NO_WRITER ? "hatched" : hue(who, items),
    edge: who === NO_WRITER ? "line-colour" : "",
    frame: isChosen || isConflict ? "bad" : touched.has(element) ? "fg" : "",
    isThick: isChosen || isConflict,
    isDashed: isConflict && !isChosen,
  };
}

/** What a reader who does not see the cells needs to know of a step.
 * @param {State} drawn */
function summaryOf({ cells: { writers }, touched, conflicting }) {
  const unwritten = writers.reduce((count, who) => count + Number(who === NO_WRITER), 0);
  return [
    unwritten && `${unwritten} unwritten`,
    touched.size && `${touched.size} accessed in this step`,
    conflicting.size && `${plural(conflicting.size, "element")} in a bank conflict`,
  ].filter(Boolean).map((text) => `; ${text}`).join("");
}

/** The caption of a memory: arrays of the group, or of each work-item.
 * @param {GpuMemory[]} memories */
function headingText(memories) {
  const has = (/** @type {GpuMemory["space"]} */ space) =>
    memories.some((memory) => memory.space === space);
  if (!has("private")) return "SHARED MEMORY";
  return has("shared") ? "SHARED AND PRIVATE MEMORY" : "PRIVATE MEMORY";
}

/** The colour of a work-item, from a circle of colours.
 * @type {(item: number, items: number) => string} */
const hue = (item, items) => `hsl(${Math.round((300 * item) / items)} 65% 62%)`;

/** @param {boolean} hasCells */
const legend = (hasCells) =>
  hasCells &&
  h(
    "span",
    { class: "wb-quiet" },
    "colour: the work-item that wrote it; framed: accessed in this step; dashed red: in a bank conflict; hatched: unwritten",
  );
