// The steps of a work-group from the record: active work-items, their values, and memory at a step.
// The record has the changes of each step; the state at a step is computed from them.

/** @import { AccessStep, GpuTrace, NumberArray, RegisterRow } from "../../record.d.ts" */

/** @typedef {Float32Array | Float64Array | Int32Array} Numbers */
/** An access: for each work-item and lane the element, -1 if it takes no part, and the value.
 * @typedef {{
 *   step: number, memory: number, isStore: boolean, lanes: number, elements: Int32Array,
 *   values: Numbers, transactions: number, conflicts: number, wanted: number, moved: number
 * }} Access */
/** The state of a memory: for each cell its value, its last writer, and the step of the write (-1:
 * none).
 * @typedef {{values: Float64Array, writers: Int32Array, steps: Int32Array}} Cells */
/** A read or write of a cell.
 * @typedef {{step: number, item: number, isStore: boolean, value: number}} CellUse */

export const NO_WRITER = -1;
const ARRAYS = { f4: Float32Array, f8: Float64Array, i4: Int32Array };

/** @type {(data: string) => Uint8Array<ArrayBuffer>} */
const bytesOf = (data) => Uint8Array.from(atob(data), (c) => c.charCodeAt(0));

/** @type {(bytes: Uint8Array, place: number) => boolean} */
const isSet = (bytes, place) => ((bytes[place >> 3] >> (place & 7)) & 1) === 1;

/** @type {(array: NumberArray) => Numbers} */
export const numbersOf = ([kind, data]) => new ARRAYS[kind](bytesOf(data).buffer);

export class GroupSteps {
  /** @type {Uint8Array[]} */
  #masks;
  /** @type {Access[]} */
  #accesses;
  /** The values of names that were asked for, by the place of their step.
   * @type {Map<RegisterRow, Map<number, Numbers>>} */
  #values = new Map();

  /** The state of each memory that was asked for last: after which access, and of which work-item.
   * @type {Map<number, {written: number, who: number, cells: Cells}>} */
  #cells = new Map();

  /** @param {GpuTrace} row */
  constructor(row) {
    this.row = row;
    this.items = row.items.reduce((product, size) => product * size, 1);
    this.#masks = row.masks.map(bytesOf);
    this.#accesses = row.accesses.map((access) => accessOf(access, this.items));
  }

  get count() {
    return this.row.line.length;
  }

  /** Whether a work-item is active.
   * @param {number} step
   * @param {number} item */
  isOn(step, item) {
    return isSet(this.#masks[this.row.mask[step]], item);
  }

  /** The number of active work-items.
   * @param {number} step */
  countOn(step) {
    let on = 0;
    for (let item = 0; item < this.items; item++) on += Number(this.isOn(step, item));
    return on;
  }

  /** The rounds of the loops around a step, by their names.
   * @param {number} step
   * @returns {[string, number][]} */
  rounds(step) {
    return Object.entries(this.row.rounds).map((
      [name, rounds],
    ) => /** @type {[string, number]} */ ([name, rounds[step]])).filter(([, round]) => round >= 0);
  }

  /** The access of a step.
   * @param {number} step */
  access(step) {
    return this.#accesses.find((access) => access.step === step) ?? null;
  }

  /** The values of a work-item, by name; null: it depends on unwritten memory.
   * @param {number} step
   * @param {number} item
   * @returns {[string, number[] | null][]} */
  registers(step, item) {
    /** @type {[string, number[] | null][]} */
    const rows = this.row.registers.flatMap((row) => {
      const values = this.#register(row, step, item);
      return values === undefined ? [] : [[row.name, values]];
    });
    return [...rows, ...this.rounds(step).map(oneValue)];
  }

  /** The value of a name in a work-item; null: unwritten, or not set yet.
   * @param {string} name
   * @param {number} step
   * @param {number} item */
  register(name, step, item) {
    const row = this.row.registers.find((one) => one.name === name);
    return row && this.#register(row, step, item) || null;
  }

  /**
   * @param {RegisterRow} row
   * @param {number} step
   * @param {number} item
   * @returns {number[] | null | undefined} */
  #register(row, step, item) {
    const place = row.steps.findLastIndex((from) => from <= step);
    if (place < 0) return undefined;
    const values = this.#valuesAt(row, place);
    const first = values.length > row.lanes ? item * row.lanes : 0;
    const unwritten = row.unwritten[row.steps[place]];
    const bits = unwritten ? bytesOf(unwritten) : null;
    const parts = Array.from({ length: row.lanes }, (_, lane) => first + lane);
    const isKnown = !bits || !parts.some((part) => isSet(bits, part));
    return isKnown ? parts.map((part) => values[part % values.length]) : null;
  }

  /**
   * @param {RegisterRow} row
   * @param {number} place */
  #valuesAt(row, place) {
    const known = this.#values.get(row) ?? new Map();
    this.#values.set(row, known);
    const values = known.get(place) ?? numbersOf(row.values[place]);
    known.set(place, values);
    return values;
  }

  /** A memory after a step; of arrays that each work-item has, that of `item`. Steps without a write
   * return the same object.
   * @param {number} memory
   * @param {number} step
   * @param {number} item
   * @returns {Cells} */
  cells(memory, step, item) {
    const written = this.#accesses.findLastIndex((access) =>
      access.step <= step && access.memory === memory && access.isStore
    );
    const who = this.row.memories[memory].space === "private" ? item : NO_WRITER;
    const known = this.#cells.get(memory);
    if (known?.written === written && known.who === who) return known.cells;
    const cells = this.#cellsAt(memory, step, item);
    this.#cells.set(memory, { written, who, cells });
    return cells;
  }

  /**
   * @param {number} memory
   * @param {number} step
   * @param {number} item
   * @returns {Cells} */
  #cellsAt(memory, step, item) {
    const { shape, space } = this.row.memories[memory];
    const size = shape.reduce((product, extent) => product * extent, 1);
    const values = new Float64Array(size);
    const [writers, steps] = [
      new Int32Array(size).fill(NO_WRITER),
      new Int32Array(size).fill(NO_WRITER),
    ];
    for (const access of this.#accesses) {
      if (access.step > step) break;
      if (access.memory !== memory || !access.isStore) continue;
      access.elements.forEach((element, place) => {
        const who = Math.floor(place / access.lanes);
        if (element < 0 || (space === "private" && who !== item)) return;
        values[element] = access.values[place];
        writers[element] = who;
        steps[element] = access.step;
      });
    }
    return { values, writers, steps };
  }

  /** All reads and writes of a cell, up to a step.
   * @param {number} memory
   * @param {number} element
   * @param {number} step
   * @param {number} item
   * @returns {CellUse[]} */
  uses(memory, element, step, item) {
    const isPrivate = this.row.memories[memory].space === "private";
    return this.#accesses.flatMap((access) => {
      if (access.step > step || access.memory !== memory) return [];
      /** @type {CellUse[]} */
      const uses = [];
      access.elements.forEach((accessed, place) => {
        const who = Math.floor(place / access.lanes);
        if (accessed !== element || (isPrivate && who !== item)) return;
        const { step: at, isStore } = access;
        uses.push({ step: at, item: who, isStore, value: access.values[place] });
      });
      return uses;
    });
  }

  /** The next step at a line after a step, else the first one; -1: there is none.
   * @param {number} line
   * @param {number} step */
  stepAt(line, step) {
    const next = this.row.line.findIndex((at, place) => at === line && place > step);
    return next < 0 ? this.row.line.indexOf(line) : next;
  }

  /** The numbers of a work-item along x, y and z, as text.
   * @param {number} item */
  itemText(item) {
    let rest = item;
    const parts = this.row.items.map((size) => {
      const part = rest % size;
      rest = Math.floor(rest / size);
      return part;
    });
    return parts.length > 1 ? `${item} (${parts.join(", ")})` : String(item);
  }
}

/** @type {(round: [string, number]) => [string, number[]]} */
const oneValue = ([name, round]) => [name, [round]];

/**
 * @param {AccessStep} row
 * @param {number} items
 * @returns {Access} */
function accessOf(row, items) {
  const [step, memory, isStore, lanes, first, active, values, ...costs] = row;
  const [transactions, conflicts, wanted, moved] = costs;
  const [starts, bits] = [numbersOf(first), bytesOf(active)];
  const elements = Int32Array.from({ length: items * lanes }, (_, place) => {
    const start = starts[Math.floor(place / lanes)];
    return isSet(bits, place) ? start + (place % lanes) : NO_WRITER;
  });
  const more = { values: numbersOf(values), transactions, conflicts, wanted, moved };
  return { step, memory, isStore, lanes, elements, ...more };
}

/** 0.70710678 -> 0.70711
 * @param {number} value */
export function valueText(value) {
  if (Number.isInteger(value) || !Number.isFinite(value)) return String(value);
  return String(Number(value.toPrecision(5)));
}
