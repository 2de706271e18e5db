// States that a record leaves out to save space, computed in the page: a rewrite replaces one node,
// and its users are made anew. New nodes go into a table of the page's own, behind those of the
// record; `workbench/viz/record/nodes.py` computes the same states in Python.

import { readAs } from "./readings.js";

/** @import { NodeColumns } from "../record.d.ts" */

/** A table to which nodes can be added; those of the record keep their numbers. */
export class ReplayTable {
  /** @type {Map<string, number> | null} */
  #numbers = null;

  /** @param {NodeColumns} nodes */
  constructor(nodes) {
    this.count = nodes.op.length;
    this.columns = { ...nodes };
    for (const [name, column] of Object.entries(nodes)) {
      Reflect.set(this.columns, name, column.slice());
    }
    readAs(this.columns, nodes);
  }

  /** Return the node that is like `n` but for its sources.
   * @param {number} n
   * @param {number[]} src */
  rebuild(n, src) {
    const { columns } = this;
    if (src.every((s, i) => s === columns.src[n][i])) return n;
    this.#numbers ??= new Map(columns.op.map((_, m) => [this.#nameOf(m, columns.src[m]), m]));
    const name = this.#nameOf(n, src);
    const known = this.#numbers.get(name);
    if (known !== undefined) return known;
    const number = columns.op.length;
    for (const name of Object.keys(columns)) {
      const column = Reflect.get(columns, name);
      column.push(column[n]);
    }
    columns.src[number] = src;
    columns.causes[number] = [];
    this.#numbers.set(name, number);
    return number;
  }

  /** Whether a node is of the record.
   * @param {number} n */
  isReal(n) {
    return n < this.count;
  }

  /** What a node is.
   * @param {number} n
   * @param {number[]} src */
  #nameOf(n, src) {
    const { op, dtype, arg } = this.columns;
    return `${op[n]} ${dtype[n]} ${src} ${arg[n]}`;
  }
}

/** Return the root after all of `changes` (Map before -> after) are applied below `root`.
 * @param {ReplayTable} table
 * @param {Map<number, number>} changes
 * @param {number} root */
export function replayRoot(table, changes, root) {
  const { src } = table.columns;
  /** @type {Map<number, number>} */
  const done = new Map();
  const resultOf = (/** @type {number} */ n) => done.get(n) ?? n;
  const begun = new Set();
  const stack = [[root, 0, root]];
  for (let top = stack.pop(); top; top = stack.pop()) {
    const [n, stage, result] = top;
    if (done.has(n)) continue;
    if (stage === 0) {
      stack.push([n, 1, n]);
      for (const s of src[n]) if (!done.has(s)) stack.push([s, 0, s]);
    } else if (stage === 2) done.set(n, resultOf(result));
    else {
      const next = table.rebuild(n, src[n].map(resultOf));
      const after = changes.get(next);
      if (after === undefined || begun.has(next)) done.set(n, resultOf(next));
      else {
        begun.add(next); // a cycle of rewrites would not end without it
        stack.push([n, 2, after], [next, 2, after], [after, 0, after]);
      }
    }
  }
  return resultOf(root);
}
