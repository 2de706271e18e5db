// The words of shared memory that the work-items of a warp access at the same time, by their banks.

/** @import { GpuMemory, GpuTrace } from "../../record.d.ts" */
/** @import { Access, GroupSteps } from "./steps.js" */

/** For each bank, the accessed words, each with an element in it.
 * @typedef {Map<number, number>[]} BankWords */

/** The accessed elements of some work-items, each with the first work-item that accesses it.
 * @param {Access} access
 * @param {number} first
 * @param {number} end
 * @returns {Map<number, number>} */
export function lanesOf({ elements, lanes }, first, end) {
  /** @type {Map<number, number>} */
  const items = new Map();
  for (let place = first * lanes; place < end * lanes; place++) {
    const element = elements[place];
    if (element >= 0 && !items.has(element)) items.set(element, Math.floor(place / lanes));
  }
  return items;
}

/** How many work-items of a warp are served at the same time: words of others do not conflict.
 * @type {(row: GpuTrace, memory: GpuMemory, access: Access) => number} */
export function servedTogether({ banks, bank_bytes: width, warp_lanes: lanes }, memory, access) {
  const words = Math.max(1, (access.lanes * memory.itemsize) / width);
  return Math.max(1, Math.floor(Math.min(lanes, banks) / words));
}

/** The words that work-items of a warp access, in the parts in which the warp is served.
 * @type {(row: GpuTrace, memory: GpuMemory, access: Access, first: number, end: number) => BankWords[]} */
export function bankParts(row, memory, access, first, end) {
  const together = servedTogether(row, memory, access);
  const share = memory.itemsize / row.bank_bytes;
  return Array.from({ length: Math.ceil((end - first) / together) }, (_, part) => {
    const from = first + part * together;
    return wordsOf(lanesOf(access, from, Math.min(end, from + together)), share, row.banks);
  });
}

/** The elements in words that wait for another word of their bank, of all warps of the group.
 * @param {GroupSteps} steps
 * @param {GpuMemory} memory
 * @param {Access} access
 * @returns {Set<number>} */
export function conflictingElements({ row, items }, memory, access) {
  /** @type {Set<number>} */
  const elements = new Set();
  if (!access.conflicts) return elements;
  const { warp_lanes: width, bank_bytes: bytes } = row;
  /** @type {Set<number>} */
  const words = new Set();
  for (let first = 0; first < items; first += width) {
    const end = Math.min(items, first + width);
    for (const banks of bankParts(row, memory, access, first, end)) {
      for (const bank of banks) if (bank.size > 1) bank.forEach((_, word) => words.add(word));
    }
  }
  for (const element of access.elements) {
    if (element >= 0 && words.has(Math.floor((element * memory.itemsize) / bytes))) {
      elements.add(element);
    }
  }
  return elements;
}

/** The words of each bank.
 * @param {Map<number, number>} items
 * @param {number} share of a word that an element is
 * @param {number} count
 * @returns {BankWords} */
function wordsOf(items, share, count) {
  /** @type {BankWords} */
  const wanted = Array.from({ length: count }, () => new Map());
  for (const element of items.keys()) {
    const word = Math.floor(element * share);
    wanted[word % count].set(word, element);
  }
  return wanted;
}
