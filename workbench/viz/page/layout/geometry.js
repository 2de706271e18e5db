// Geometry that all layouts share: distances, the order of nodes, rows without overlap, ports.

/** @import { LayoutGraph, Place } from "./graph.d.ts" */

export const PITCH = 56; // from a layer to the next, pixels
export const COLUMN_GAP = 18;
export const LONG_EDGE = 6; // layers; a longer line is a stub

/** Return the nodes, sources first; in a cycle of edges an arbitrary node comes first.
 * @param {LayoutGraph} graph */
export function layoutTopological(graph) {
  const waiting = graph.nodes.map(() => 0);
  /** @type {number[][]} */
  const targets = graph.nodes.map(() => []);
  for (const { a, b } of graph.edges) waiting[b]++, targets[a].push(b);
  /** @type {number[]} */
  const order = [];
  const done = new Uint8Array(graph.nodes.length);
  const ready = graph.nodes.map((_, i) => i).filter((i) => !waiting[i]).reverse();
  let next = 0;
  while (order.length < graph.nodes.length) {
    if (!ready.length) {
      while (done[next]) next++;
      ready.push(next);
    }
    const n = ready.pop() ?? next;
    if (done[n]) continue;
    done[n] = 1;
    order.push(n);
    for (const t of targets[n]) if (--waiting[t] === 0) ready.push(t);
  }
  return order;
}

/** Place a row as near to the wanted positions as its order and widths allow (isotonic regression).
 * @param {number[]} row
 * @param {number[][]} wanted
 * @param {number[]} width
 * @param {number[]} x
 * @param {number} [gap] */
export function layoutSettle(row, wanted, width, x, gap = COLUMN_GAP) {
  /** @type {number[]} */
  const offsets = [];
  let at = 0;
  for (const v of row) offsets.push(at + width[v] / 2), (at += width[v] + gap);
  /** Mean, weight and members of each pool.
   * @type {[number, number, number][]} */
  const blocks = [];
  wanted.forEach(([place, weight], i) => {
    /** @type {[number, number, number]} */
    let block = [place - offsets[i], weight, 1];
    for (let last = blocks.at(-1); last && last[0] > block[0]; last = blocks.at(-1)) {
      const [mean, w, n] = last;
      blocks.pop();
      block = [(mean * w + block[0] * block[1]) / (w + block[1]), w + block[1], n + block[2]];
    }
    blocks.push(block);
  });
  let i = 0;
  for (const [mean, , members] of blocks) {
    for (let k = 0; k < members; k++, i++) x[row[i]] = mean + offsets[i];
  }
}

/** The point at which source number `slot` enters a box: along its top, in the order of the
 * sources.
 * @param {{w: number, h: number}} node
 * @param {Place} place
 * @param {number} slot
 * @param {number} slots
 * @returns {[number, number]} */
export function layoutPort(node, place, slot, slots) {
  return [place.x + ((slot + 1) / (slots + 1) - 0.5) * node.w * 0.8, place.y - node.h / 2];
}

/** Return the x nearest to `wanted` that is in none of the intervals.
 * @param {number} wanted
 * @param {number[][]} blocked */
export function layoutNearest(wanted, blocked) {
  let [left, right] = [wanted, wanted];
  for (const [begin, end] of [...blocked].sort((a, b) => a[0] - b[0])) {
    if (begin < right && right < end) right = end;
  }
  for (const [begin, end] of [...blocked].sort((a, b) => b[1] - a[1])) {
    if (begin < left && left < end) left = begin;
  }
  return wanted - left <= right - wanted ? left : right;
}
