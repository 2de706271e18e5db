// The order of nodes in each row of a layout, with few crossings.
//
// A start is a walk from the results up through the sources, a barycentre sweep down, and then
// moves of single vertices until none helps. The best of some starts is shaken (some vertices that
// hang together are pushed aside), mended, and kept where that is no worse. How long is counted in
// cells of matrices, not in seconds, so that a graph always gets the same picture.
//
// Source: Sugiyama, Tagawa, Toda 1981 (barycentre sweeps); Lourenco, Martin, Stuetzle 2003
// (iterated local search).

/** @import { ProperGraph } from "./graph.d.ts" */

const ORDER_STARTS = 6;
const ORDER_SHAKES = 250; // at most
const ORDER_SHAKES_EACH = 3; // per vertex, so that a small graph is drawn at once
const ORDER_WORK = 12e6; // visited cells in all
const ORDER_WIDEST = 600; // vertices; wider rows stay as the sweep orders them: matrices too big
const ORDER_GROUP = 16; // vertices that a shake pushes, at most
const ORDER_SHIFT = 0.6; // how far, as a share of their row

/** Return the rows: vertices from left to right.
 * @param {ProperGraph} graph */
export function layoutRows(graph) {
  const first = layoutWalk(graph, null);
  if (Math.max(...first.map((row) => row.length)) > ORDER_WIDEST) return layoutSwept(graph, first);
  const random = new SeededRandom();
  /** @type {LayoutOrder | null} */
  let best = null;
  let work = 0;
  for (let start = 0; start < ORDER_STARTS && work < ORDER_WORK / 2; start++) {
    const rows = layoutWalk(graph, start ? random : null);
    const order = new LayoutOrder(graph, start % 2 ? rows : layoutSwept(graph, rows));
    layoutMend(order, rows.keys());
    work += order.work;
    if (!best || order.crossings() < best.crossings()) best = order;
    if (!best.crossings()) break;
  }
  if (!best) return first;
  best.work = work;
  const shakes = Math.min(ORDER_SHAKES, ORDER_SHAKES_EACH * graph.layer.length);
  for (let shake = 0; shake < shakes && best.crossings() && best.work < ORDER_WORK; shake++) {
    const [fewest, saved] = [best.crossings(), best.saved()];
    layoutMend(best, layoutShake(graph, best, random));
    if (best.crossings() > fewest) best.restore(saved);
  }
  return best.rows();
}

/** Return rows in which vertices stand as a walk up from the results visits them: a tree starts
 * without crossings. Sources come in their order, or shuffled by `random`.
 * @param {ProperGraph} graph
 * @param {SeededRandom | null} random */
function layoutWalk({ layer, up, down }, random) {
  const rows = layoutEmptyRows(layer);
  const begun = new Uint8Array(layer.length);
  /** @type {number[]} */
  const stack = [];
  for (let v = layer.length - 1; v >= 0; v--) if (!down[v].length) stack.push(v);
  for (let v = stack.pop(); v !== undefined; v = stack.pop()) {
    if (v < 0) rows[layer[~v]].push(~v); // all above it stand
    else if (!begun[v]) {
      begun[v] = 1;
      const sources = up[v].map(([s]) => s).reverse();
      if (random) random.shuffle(sources);
      stack.push(~v, ...sources);
    }
  }
  return rows;
}

/**
 * @param {number[]} layer
 * @returns {number[][]} */
const layoutEmptyRows = (layer) =>
  Array.from({ length: layer.reduce((most, l) => Math.max(most, l), -1) + 1 }, () => []);

/** Sort each row, from the top, by the mean position of each vertex's sources; vertices without
 * sources keep their place.
 * @param {ProperGraph} graph
 * @param {number[][]} rows */
function layoutSwept({ layer, up }, rows) {
  const at = new Float64Array(layer.length);
  return rows.map((row) => {
    /** @type {Map<number, number>} */
    const mean = new Map();
    for (const v of row) {
      if (up[v].length) {
        mean.set(
          v,
          up[v].reduce((sum, [s]) => sum + at[s], 0) / up[v].length,
        );
      }
    }
    const moved = [...mean].sort((a, b) => a[1] - b[1]);
    const sorted = row.map((v) => (mean.has(v) ? moved.shift()?.[0] ?? v : v));
    sorted.forEach((v, i) => (at[v] = i));
    return sorted;
  });
}

/** Improve the rows given, and the rows beside any that changed, until none changes.
 * @param {LayoutOrder} order
 * @param {Iterable<number>} rows */
function layoutMend(order, rows) {
  const waiting = new Set(rows);
  for (let isDown = true; waiting.size; isDown = !isDown) {
    const listed = [...waiting].sort((a, b) => (isDown ? a - b : b - a));
    for (const r of listed) {
      waiting.delete(r);
      if (order.work > 2 * ORDER_WORK || !order.improve(r)) continue;
      for (const beside of [r - 1, r + 1]) if (order.orders[beside]) waiting.add(beside);
    }
  }
}

/** Push some connected vertices aside; return the rows whose lines change.
 * @param {ProperGraph} graph
 * @param {LayoutOrder} order
 * @param {SeededRandom} random */
function layoutShake(graph, order, random) {
  const far = (2 * random.next() - 1) * ORDER_SHIFT;
  /** Vertices by their rows.
   * @type {Map<number, Set<number>>} */
  const pushed = new Map();
  for (const v of layoutGroup(graph, layoutCrossed(order, random), random)) {
    const r = graph.layer[v];
    pushed.set(r, (pushed.get(r) || new Set()).add(v));
  }
  const touched = new Set();
  for (const [r, members] of pushed) {
    const row = Array.from(order.orders[r], (i) => order.vertices[r][i]);
    const place = new Map(row.map((v, i) => [v, members.has(v) ? i + far * row.length : i]));
    const placeOf = (/** @type {number} */ v) => place.get(v) ?? 0;
    order.setRow(r, row.sort((a, b) => placeOf(a) - placeOf(b)));
    for (const beside of [r - 1, r, r + 1]) if (order.orders[beside]) touched.add(beside);
  }
  return touched;
}

/** Return a vertex, with more probability the more lines cross beside its row.
 * @param {LayoutOrder} order
 * @param {SeededRandom} random */
function layoutCrossed(order, random) {
  let left = random.next() * order.crossings();
  let r = 0;
  while (r < order.orders.length - 2 && (left -= order.crossingsBelow(r)) >= 0) r++;
  const row = order.vertices[r + random.below(2)];
  return row[random.below(row.length)];
}

/** Return a vertex and some of its neighbours.
 * @param {ProperGraph} graph
 * @param {number} vertex
 * @param {SeededRandom} random */
function layoutGroup({ up, down }, vertex, random) {
  const group = new Set([vertex]);
  const size = 1 + random.below(ORDER_GROUP - 1);
  for (const v of group) {
    const beside = [...up[v], ...down[v]].map(([w]) => w);
    for (const w of random.shuffle(beside)) if (group.size < size) group.add(w);
    if (group.size >= size) break;
  }
  return group;
}

/** Reproducible numbers from 0 to 1 (mulberry32), and two uses of them. */
class SeededRandom {
  #seed = 1;

  next() {
    this.#seed = (this.#seed + 0x6d2b79f5) | 0;
    let t = Math.imul(this.#seed ^ (this.#seed >>> 15), 1 | this.#seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  }

  /** @param {number} count */
  below(count) {
    return Math.floor(this.next() * count);
  }

  /** @param {number[]} list */
  shuffle(list) {
    for (let i = list.length - 1; i > 0; i--) {
      const k = this.below(i + 1);
      [list[i], list[k]] = [list[k], list[i]];
    }
    return list;
  }
}

// Crossings of lines between rows, counted for every order of a row at once, and the moves that
// reduce them. Of a row, cell [u, v] of a matrix counts the crossings of the lines at u with those
// at v if u is left of v: it depends on the rows beside, not on the order of the row itself, so
// that what a move gains is a sum of cells. Lines into one box end at its ports, in their order.
//
// Source: Juenger and Mutzel 1997 (the crossing table); Matuszewski, Schoenfeld, Molitor 1999,
// "Using sifting for k-layer crossing minimization" (the moves).

/** @typedef {(Int32Array | null)[]} Matrices
 * @typedef {[Int32Array[], Matrices, Matrices, (number | null)[]]} Saved */

/** Rows of vertices that improve in place; `work` counts the visited cells. */
export class LayoutOrder {
  /**
   * @param {Pick<ProperGraph, "up" | "down">} graph
   * @param {number[][]} rows */
  constructor({ up, down }, rows) {
    this.vertices = rows; // a row's matrices are numbered by its first order
    this.number = new Int32Array(up.length);
    for (const row of rows) row.forEach((v, i) => (this.number[v] = i));
    // per row and vertex: the numbers of its sources, port by port, and of its readers
    this.sources = rows.map((row) => row.map((v) => up[v].map(([s]) => this.number[s])));
    this.readers = rows.map((row) => row.map((v) => down[v].map(([t]) => this.number[t])));
    /** @type {Int32Array[]} */
    this.orders = rows.map((row) => Int32Array.from(row.keys()));
    /** Matrices, null for one that must be counted anew.
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

  /** The state for `restore`: arrays in these lists are replaced, never changed.
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

  /** Move each vertex of a row to its best place, until none has a better one; return whether any
   * moved.
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

  /** Crossings of the lines from the row above.
   * @param {number} r */
  matrixAbove(r) {
    const known = this.above[r];
    if (known) return known;
    const places = r > 0 ? Array.from(this.orders[r - 1], (s) => this.readers[r - 1][s]) : [];
    return (this.above[r] = this.matrix(this.orders[r].length, places));
  }

  /** Crossings of the lines to the row below: each port is a place of its own in it.
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
   * left, the vertices that have a line to it.
   * @param {number} count
   * @param {number[][]} places */
  matrix(count, places) {
    const cells = new Int32Array(count * count);
    const left = new Int32Array(count); // lines of each vertex that end further left
    for (const lines of places) {
      for (const u of lines) for (let v = 0; v < count; v++) cells[u * count + v] += left[v];
      for (const u of lines) left[u]++;
      this.work += lines.length * count;
    }
    return cells;
  }
}

/** Move vertex `v` of a row to the place with fewest crossings; return whether that is another one.
 * @param {Int32Array} order
 * @param {number} v
 * @param {Int32Array} above
 * @param {Int32Array} below */
function layoutSift(order, v, above, below) {
  const count = order.length;
  const at = order.indexOf(v);
  const cost = (/** @type {number} */ k) => {
    const [asLeft, asRight] = [v * count + order[k], order[k] * count + v];
    return above[asLeft] + below[asLeft] - above[asRight] - below[asRight]; // of `v` left of k
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
