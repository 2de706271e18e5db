// Crossings of lines between rows, counted for every order of a row at once, and the moves that
// reduce them. Of a row, cell [u, v] of a matrix counts the crossings of the lines at u with those
// at v if u is left of v: it depends on the rows beside, not on the order of the row itself, so
// that what a move gains is a sum of cells. Lines into one box end at its ports, in their order.
//
// Source: Juenger and Mutzel 1997 (the crossing table); Matuszewski, Schoenfeld, Molitor 1999,
// "Using sifting for k-layer crossing minimization" (the moves).

/** @import { ProperGraph } from "./graph.d.ts" */

/** @typedef {(Int32Array | null)[]} Matrices
 * @typedef {[Int32Array[], Matrices, Matrices, (number | null)[]]} Saved */

/** Rows of vertices that improve in place; `work` counts the visited cells. */
export class LayoutOrder {
  /**
   * @param {Pick<ProperGraph, "up" | "down">} graph
   * @param {number[][]} rows */
  constructor({ up, down }, rows) {
    this.vertices = rows; // a row's matrices are numbered as it was at first
    this.number = new Int32Array(up.length);
    for (const row of rows) row.forEach((v, i) => (this.number[v] = i));
    // per row and vertex: the numbers of what leads to it, port by port, and of what it leads to
    this.sources = rows.map((row) => row.map((v) => up[v].map(([s]) => this.number[s])));
    this.readers = rows.map((row) => row.map((v) => down[v].map(([t]) => this.number[t])));
    /** @type {Int32Array[]} */
    this.orders = rows.map((row) => Int32Array.from(row.keys()));
    /** Matrices, null where one must be counted anew.
     * @type {(Int32Array | null)[]} */
    this.above = rows.map(() => null);
    /** @type {(Int32Array | null)[]} */
    this.below = rows.map(() => null);
    /** Crossings below each row.
     * @type {(number | null)[]} */
    this.counts = rows.map(() => null);
    this.work = 0;
  }

  rows() {
    return this.orders.map((order, r) => Array.from(order, (i) => this.vertices[r][i]));
  }

  /**
   * @param {number} r
   * @param {number[]} vertices */
  setRow(r, vertices) {
    this.setOrder(r, Int32Array.from(vertices, (v) => this.number[v]));
  }

  /** What `restore` takes: arrays are replaced, never changed, once they stand in these lists.
   * @returns {Saved} */
  saved() {
    return [[...this.orders], [...this.above], [...this.below], [...this.counts]];
  }

  /** @param {Saved} saved */
  restore([orders, above, below, counts]) {
    Object.assign(this, { orders, above, below, counts });
  }

  crossings() {
    return this.orders.reduce((sum, _, r) => sum + this.crossingsBelow(r), 0);
  }

  /** @param {number} r */
  crossingsBelow(r) {
    const known = this.counts[r];
    if (known !== null) return known;
    const [order, cells] = [this.orders[r], this.matrixBelow(r)];
    const count = order.length;
    let sum = 0;
    for (let i = 0; i < count; i++) {
      for (let k = i + 1; k < count; k++) sum += cells[order[i] * count + order[k]];
    }
    this.work += (count * count) / 2;
    this.counts[r] = sum;
    return sum;
  }

  /** Move each vertex of a row to its best place, until none has a better one; whether one had.
   * @param {number} r */
  improve(r) {
    const count = this.orders[r].length;
    if (count < 2) return false;
    const [above, below] = [this.matrixAbove(r), this.matrixBelow(r)];
    const order = Int32Array.from(this.orders[r]);
    let [hasMoved, isResting] = [false, false];
    while (!isResting) {
      isResting = true;
      for (const v of this.orders[r]) if (layoutSift(order, v, above, below)) isResting = false;
      this.work += 2 * count * count;
      hasMoved ||= !isResting;
    }
    if (hasMoved) this.setOrder(r, order);
    return hasMoved;
  }

  /**
   * @param {number} r
   * @param {Int32Array} order */
  setOrder(r, order) {
    this.orders[r] = order;
    this.counts[r] = null;
    if (r > 0) this.below[r - 1] = this.counts[r - 1] = null;
    if (r + 1 < this.orders.length) this.above[r + 1] = null;
  }

  /** Crossings of the lines that come from the row above.
   * @param {number} r */
  matrixAbove(r) {
    const known = this.above[r];
    if (known) return known;
    const places = r > 0 ? Array.from(this.orders[r - 1], (s) => this.readers[r - 1][s]) : [];
    return (this.above[r] = this.matrix(this.orders[r].length, places));
  }

  /** Crossings of the lines that lead to the row below: each port is a place of its own there.
   * @param {number} r */
  matrixBelow(r) {
    const known = this.below[r];
    if (known) return known;
    /** @type {number[][]} */
    const ports = [];
    for (const t of this.orders[r + 1] || []) {
      for (const s of this.sources[r + 1][t]) ports.push([s]);
    }
    return (this.below[r] = this.matrix(this.orders[r].length, ports));
  }

  /** Return the matrix of a row of `count`; `places` has, for each place beside the row from the
   * left, the vertices that have a line there.
   * @param {number} count
   * @param {number[][]} places */
  matrix(count, places) {
    const cells = new Int32Array(count * count);
    const left = new Int32Array(count); // lines of each vertex that end left of here
    for (const lines of places) {
      for (const u of lines) for (let v = 0; v < count; v++) cells[u * count + v] += left[v];
      for (const u of lines) left[u]++;
      this.work += lines.length * count;
    }
    return cells;
  }
}

/** Move vertex `v` of a row to where its lines cross least; whether that is another place.
 * @param {Int32Array} order
 * @param {number} v
 * @param {Int32Array} above
 * @param {Int32Array} below */
function layoutSift(order, v, above, below) {
  const count = order.length;
  const at = order.indexOf(v);
  const cost = (/** @type {number} */ k) => {
    const [here, there] = [v * count + order[k], order[k] * count + v];
    return above[here] + below[here] - above[there] - below[there]; // of `v` left of k
  };
  let [best, place, change] = [0, at, 0];
  for (let k = at - 1; k >= 0; k--) if ((change += cost(k)) < best) [best, place] = [change, k];
  change = 0;
  for (let k = at + 1; k < count; k++) if ((change -= cost(k)) < best) [best, place] = [change, k];
  if (place < at) order.copyWithin(place + 1, place, at);
  else order.copyWithin(at, at + 1, place + 1);
  order[place] = v;
  return place !== at;
}
