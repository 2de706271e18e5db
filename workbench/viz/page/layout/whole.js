// The layout of a whole graph, such as the plan: without heights, with other gaps, with a line for
// nearly every edge, and with layers by network simplex. Python calls it
// (`workbench/viz/javascript.py`).

import { layoutPort } from "./geometry.js";
import { layoutColumns, layoutLayers, layoutProper } from "./layered.js";
import { layoutRows } from "./row_order.js";

const DUMMIES = 1500; // of a graph, at most
const DUMMIES_EACH = 3; // per node, if that is more

/** Return the layout of nodes with these widths, a `gap` apart, and edges [source, target], those
 * into one target in the order of its operands: `x` and `layer` per node; `lines`, the x of the
 * line down from each node, layer by layer; per edge the `port` at which it ends and the number of
 * layers of its source's line in its `chain`, null for an edge without a line.
 * @param {{widths: number[], edges: [number, number][], gap: number}} graph */
export function layoutWhole({ widths, edges, gap }) {
  const slots = widths.map(() => 0);
  const listed = edges.map(([a, b]) => ({ a, b, slot: slots[b]++, slots: 0 }));
  for (const edge of listed) edge.slots = slots[edge.b];
  const graph = { nodes: widths.map((w, key) => ({ key, w, h: 0 })), edges: listed };
  if (!widths.length) return { x: [], layer: [], lines: [], ports: [], chains: [], width: 0 };
  const layers = layoutShortest(listed, layoutLayers(graph));
  const proper = layoutProper(graph, layers, layoutLongest(graph, layers));
  const middles = layoutColumns(proper, layoutRows(proper), gap);
  const left = middles.reduce((least, x, v) => Math.min(least, x - proper.width[v] / 2), Infinity);
  /** @type {number[][]} */
  const lines = proper.lines;
  const x = middles.map((middle) => middle - left);
  return {
    x: x.slice(0, widths.length),
    layer: layers,
    lines: lines.map((line) => line.map((v) => x[v])),
    ports: listed.map(({ b, slot, slots }) =>
      layoutPort(graph.nodes[b], { x: x[b], y: 0 }, slot, slots)[0]
    ),
    chains: proper.chains,
    width: x.reduce((most, middle, v) => Math.max(most, middle + proper.width[v] / 2), 0),
  };
}

/** Return the number of layers that an edge may span and still be drawn, so that dummies do not
 * become too many.
 * @param {{nodes: object[], edges: {a: number, b: number}[]}} graph
 * @param {number[]} layers */
export function layoutLongest({ nodes, edges }, layers) {
  const most = Math.max(DUMMIES, DUMMIES_EACH * nodes.length);
  const spans = edges.map(({ a, b }) => [layers[b] - layers[a], a]).sort((p, q) => p[0] - q[0]);
  const passed = new Int32Array(nodes.length); // dummies under each node, of the edges so far
  let dummies = 0;
  for (const [span, a] of spans) {
    dummies += span - 1 - passed[a];
    if (dummies > most) return span - 1;
    passed[a] = span - 1;
  }
  return Infinity;
}

// The layers of a graph with the shortest lines, by network simplex.
//
// What is short is the way from each source down to its farthest reader, because the lines of one
// source run together: a spare vertex under all readers of a source measures it. The sum of weight *
// length over all springs is a sum of layer * pull over the vertices, where `pull` is the weight of
// the springs in less that of those out. A spanning tree of springs without slack gives sets that move
// together: cut one of its springs, and what hangs below may move, until another spring has no slack
// left, which takes the place of the cut one.
//
// Source: Gansner, Koutsofios, North, Vo 1993, "A technique for drawing directed graphs".

const [NONE, NEVER] = [-1, -2]; // in place of a vertex's parent: it is a root, it is in no tree yet
const LINE = 16; // the cost of a layer of a source's line
const EDGE = 1; // and of one of a single edge
const WORK_EACH = 150; // visited vertices, per vertex; the layers are valid at any time
const LOOK = 24; // springs among which the one with the strongest wrong pull is chosen

/** A spring: its target is at least `least` below its source, and pulls with `weight`.
 * @typedef {{source: number, target: number, least: number, weight: number}} Spring */

/** Return short layers, from 0 in each part of the graph, of nodes whose `layers` follow the edges.
 * @param {{a: number, b: number}[]} edges
 * @param {number[]} layers */
export function layoutShortest(edges, layers) {
  const all = [...layers];
  const springs = edges.map(({ a, b }) => ({ source: a, target: b, least: 1, weight: EDGE }));
  /** @type {Set<number>[]} */
  const readers = layers.map(() => new Set());
  for (const { a, b } of edges) readers[a].add(b);
  readers.forEach((below, source) => {
    if (!below.size) return;
    const spare = all.length;
    all.push([...below].reduce((most, t) => Math.max(most, layers[t]), 0));
    for (const t of below) springs.push({ source: t, target: spare, least: 0, weight: 0 });
    springs.push({ source, target: spare, least: 1, weight: LINE });
  });
  const tree = new Tree(all, springs);
  for (let root = 0; root < layers.length; root++) {
    if (tree.parent[root] === NEVER) tree.shorten(root);
  }
  return tree.layers.slice(0, layers.length);
}

/** Spanning trees of springs without slack, one for each part of the graph. `link` is the spring
 * between a vertex and its parent, `pull` the sum over the vertex and its subtree. */
class Tree {
  /**
   * @param {number[]} layers
   * @param {Spring[]} springs */
  constructor(layers, springs) {
    this.layers = layers;
    this.springs = springs;
    /** @type {number[][]} */
    this.at = layers.map(() => []);
    /** @type {Set<number>[]} */
    this.children = layers.map(() => new Set());
    this.parent = new Int32Array(layers.length).fill(NEVER);
    this.link = new Int32Array(layers.length).fill(NONE);
    this.pull = new Float64Array(layers.length);
    springs.forEach(({ source, target, weight }, i) => {
      this.at[source].push(i);
      this.at[target].push(i);
      this.pull[source] -= weight;
      this.pull[target] += weight;
    });
  }

  /** Shorten the part of a vertex.
   * @param {number} root */
  shorten(root) {
    const part = this.grow(root);
    for (const v of part.slice(1).reverse()) this.pull[this.parent[v]] += this.pull[v];
    this.improve(part);
    const top = part.reduce((least, v) => Math.min(least, this.layers[v]), Infinity);
    for (const v of part) this.layers[v] -= top;
  }

  /** Build the tree of `root` over its connected part, each time moving the tree onto the spring
   * with least slack; return these vertices, parents first.
   * @param {number} root */
  grow(root) {
    const part = [root];
    this.parent[root] = NONE;
    for (;;) {
      for (const v of part) {
        for (const [other, i] of this.outside(v)) {
          if (!this.slack(i)) this.hang(other, v, i), part.push(other);
        }
      }
      /** @type {[number, number] | null} */
      let nearest = null; // [slack, move of the tree]
      for (const v of part) {
        for (const [, i] of this.outside(v)) {
          const slack = this.slack(i);
          if (nearest && slack >= nearest[0]) continue;
          nearest = [slack, this.springs[i].source === v ? slack : -slack];
        }
      }
      if (!nearest) return part;
      for (const v of part) this.layers[v] += nearest[1];
    }
  }

  /** The vertices outside of all trees to which a vertex has springs: [vertex, spring].
   * @param {number} v
   * @returns {Generator<[number, number]>} */
  *outside(v) {
    for (const i of this.at[v]) {
      const { source, target } = this.springs[i];
      const other = source === v ? target : source;
      if (this.parent[other] === NEVER) yield [other, i];
    }
  }

  /** @param {number} i */
  slack(i) {
    const { source, target, least } = this.springs[i];
    return this.layers[target] - this.layers[source] - least;
  }

  /**
   * @param {number} child
   * @param {number} parent
   * @param {number} link */
  hang(child, parent, link) {
    this.parent[child] = parent;
    this.link[child] = link;
    this.children[parent].add(child);
  }

  /** Exchange springs until none of the tree pulls the wrong way, or the budget is spent.
   * @param {number[]} part */
  improve(part) {
    const wrong = new Set(part.filter((v) => this.isWrong(v)));
    for (let work = WORK_EACH * part.length; wrong.size && work > 0;) {
      let [vertex, looks] = [NONE, 0];
      for (const v of wrong) {
        if (vertex === NONE || Math.abs(this.pull[v]) > Math.abs(this.pull[vertex])) vertex = v;
        if (++looks === LOOK) break;
      }
      const hanging = this.below(vertex);
      work -= hanging.size + LOOK;
      for (const v of this.exchange(vertex, hanging)) {
        if (this.isWrong(v)) wrong.add(v);
        else wrong.delete(v);
      }
    }
  }

  /** Whether the cost falls if a vertex and its subtree leave the parent.
   * @param {number} v */
  isWrong(v) {
    if (this.link[v] === NONE) return false;
    return this.springs[this.link[v]].source === v ? this.pull[v] > 0 : this.pull[v] < 0;
  }

  /** @param {number} vertex */
  below(vertex) {
    const hanging = new Set([vertex]);
    for (const v of hanging) for (const child of this.children[v]) hanging.add(child);
    return hanging;
  }

  /** Move the subtree of a vertex as far as it is pulled and can go, and attach it there; return
   * the vertices whose pull or link has changed.
   * @param {number} vertex
   * @param {Set<number>} hanging */
  exchange(vertex, hanging) {
    const isUp = this.pull[vertex] > 0;
    const [slack, link, end] = this.stop(hanging, isUp);
    for (const v of hanging) this.layers[v] += isUp ? -slack : slack;
    const { source, target } = this.springs[link];
    const parent = target === end ? source : target;
    const changed = [
      ...this.add(this.parent[vertex], -this.pull[vertex]),
      ...this.add(parent, this.pull[vertex]),
      ...this.turn(vertex, end),
    ];
    this.hang(end, parent, link);
    return changed;
  }

  /** The [slack, spring, its end inside] that first stops the move of a set.
   * @param {Set<number>} hanging
   * @param {boolean} isUp
   * @returns {[number, number, number]} */
  stop(hanging, isUp) {
    /** @type {[number, number, number]} */
    let first = [Infinity, NONE, NONE];
    for (const v of hanging) {
      for (const i of this.at[v]) {
        const outer = isUp ? this.springs[i].source : this.springs[i].target;
        if (outer === v || hanging.has(outer)) continue;
        const slack = this.slack(i);
        if (slack < first[0]) first = [slack, i, v];
        if (!slack) return first;
      }
    }
    return first;
  }

  /** Add to the pull of a vertex and its ancestors; return them.
   * @param {number} vertex
   * @param {number} pull */
  add(vertex, pull) {
    const way = [];
    for (let v = vertex; v !== NONE; v = this.parent[v]) {
      this.pull[v] += pull;
      way.push(v);
    }
    return way;
  }

  /** Detach `top` from its parent, and make `end` the root of its subtree; return the way between
   * them.
   * @param {number} top
   * @param {number} end */
  turn(top, end) {
    const total = this.pull[top];
    const way = [];
    let [below, parent, link, v] = [0, NONE, NONE, end];
    for (;;) {
      way.push(v);
      const [above, aboveLink] = [this.parent[v], this.link[v]];
      if (above !== NONE) this.children[above].delete(v);
      [this.pull[v], below] = [total - below, this.pull[v]];
      [this.parent[v], this.link[v]] = [parent, link];
      if (parent !== NONE) this.children[parent].add(v);
      if (v === top) return way;
      [parent, link, v] = [v, aboveLink, above];
    }
  }
}
