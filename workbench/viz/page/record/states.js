// The states of a pass, and the readings of their nodes: text, and a box in a graph. The record has
// the root after every rewrite and every node once, so a state is what is reachable from its root.
// A rewrite makes all readers of what it changed anew: from the roots down, those are paired with
// what they were, and keep their key.

/** @import { NodeColumns, PageRecord, Reading, RecordedPass } from "../record.d.ts" */

const MOST_STATES = 65; // of a pass that are kept

/** A rewrite, or a pass that is one function; `root` is -1 where it is not recorded.
 * @typedef {{rule: number, before: number, after: number, root: number}} Step */
/** The state after some steps: all nodes, sources first, and the readers of each.
 * @typedef {{roots: number[], order: number[], users: Map<number, number[]>}} State */

/** @type {WeakMap<RecordedPass, Timeline>} */
const TIMELINES = new WeakMap();

/** The reason for which the values of a node cannot be computed; "": they can.
 * @type {Record<"" | "lowered" | "none", string>} */
export const NO_VALUES = {
  "": "",
  lowered: "no values here: they are in registers. Pick the node in a pass before statement-tree.",
  none: "no values: it is not computed from anything",
};

/** Return the nodes below `roots`, sources before users. `stop`: not entered; `known`: left out.
 * @param {NodeColumns} nodes
 * @param {number[]} roots
 * @param {{has(n: number): boolean} | null} [stop]
 * @param {{has(n: number): boolean} | null} [known] */
export function stateOrder(nodes, roots, stop = null, known = null) {
  const order = [];
  const seen = new Set();
  const stack = [...roots].reverse();
  for (let n = stack.pop(); n !== undefined; n = stack.pop()) {
    if (n < 0) order.push(~n);
    else if (!seen.has(n) && !(known && known.has(n))) {
      seen.add(n);
      stack.push(~n);
      if (stop && stop.has(n)) continue;
      const src = nodes.src[n];
      for (let i = src.length - 1; i >= 0; i--) if (!seen.has(src[i])) stack.push(src[i]);
    }
  }
  return order;
}

/** Return the nodes at most `depth` below `root`, sources before users; index arithmetic does not
 * count.
 * @param {NodeColumns} nodes
 * @param {number} root
 * @param {number} depth */
export function stateOrderWithin(nodes, root, depth) {
  const level = new Map([[root, 0]]);
  for (const [n, at] of level) { // a Map grows on the way
    if (at < depth) {
      for (const s of nodes.src[n]) {
        if (!level.has(s)) level.set(s, at + Number(!readingOf(nodes, s).is_index));
      }
    }
  }
  const far = new Set([...level].filter(([, at]) => at === depth).map(([n]) => n));
  return stateOrder(nodes, [root], far).filter((n) => level.has(n));
}

/** Return the timeline of a pass: its states, their keys, and the changes of each step. One with
 * nodes of its own is made anew when the record has more: they have taken the numbers.
 * @param {PageRecord} record
 * @param {RecordedPass} pass */
export function timelineOf(record, pass) {
  const known = TIMELINES.get(pass);
  const timeline = known?.isOf(record.nodes) ? known : new Timeline(record.nodes, pass);
  TIMELINES.set(pass, timeline);
  return timeline;
}

/** The states of a pass after each of its steps. */
export class Timeline {
  /** For each node, the one whose place it took.
   * @type {Map<number, number>} */
  #keys = new Map();
  /** The roots after the steps that were replayed; null where they are not known.
   * @type {(number[] | null)[]} */
  #roots;
  /** The nodes of the state that was replayed last. */
  #live;
  /** The roots that the record leaves out. */
  #replay;

  /**
   * @param {NodeColumns} nodes
   * @param {RecordedPass} pass */
  constructor(nodes, pass) {
    const isGraph = pass.before.length === 1 && pass.unit !== "decision";
    this.pass = pass;
    this.steps = timelineSteps(pass);
    const isWhole = this.steps.every((step) => step.root >= 0);
    this.table = isGraph && !isWhole ? new ReplayTable(nodes) : null;
    this.nodes = this.table ? this.table.columns : nodes;
    this.#roots = [pass.before];
    this.#live = new LiveNodes(this.nodes);
    this.#live.moveTo(pass.before);
    this.#replay = this.table && new Replay(this.table, this.#live);
  }

  /** The roots after `k` steps; null if they were not recorded.
   * @param {number} k */
  roots(k) {
    if (k === 0) return this.pass.before;
    const { root } = this.steps[k - 1];
    if (root >= 0) return [root];
    if (this.table) this.pairUpTo(k);
    return this.#roots[k] ?? null;
  }

  /** The state after `k` steps; null if it was not recorded. */
  state = cached(MOST_STATES, (k) => {
    const roots = this.roots(k);
    return roots && newState(this.nodes, roots);
  });

  /** The change of step `k` (from 1), and the states before and after it.
   * @param {number} k */
  change(k) {
    this.pairUpTo(k);
    const step = this.steps[k - 1];
    const [old, now] = [this.state(k - 1), this.state(k)];
    if (!old || !now) {
      return { ...step, old: null, now: null, gone: [], fresh: [step.before, step.after] };
    }
    const oldKeys = new Set(old.order.map(this.keyOf));
    const nowKeys = new Set(now.order.map(this.keyOf));
    const gone = old.order.filter((n) => !now.users.has(n) && !nowKeys.has(this.keyOf(n)));
    const fresh = now.order.filter((n) => !old.users.has(n) && !oldKeys.has(this.keyOf(n)));
    return { ...step, old, now, gone, fresh };
  }

  /** The key of a node: that of the one whose place it took. */
  keyOf = (/** @type {number} */ n) => this.#keys.get(n) ?? n;

  /** Pair the states up to that after `k` steps, without building them: of each step only what it
   * changed is walked, since a pass has thousands.
   * @param {number} k */
  pairUpTo(k) {
    for (let i = this.#roots.length; i <= k; i++) {
      const step = this.steps[i - 1];
      const old = this.#roots[i - 1];
      const now = this.#replay?.step(step, old) ?? (step.root >= 0 ? [step.root] : null);
      this.#roots[i] = now;
      if (!now) continue;
      const { fresh, gone } = this.#live.moveTo(now);
      this.#replay?.moved(fresh, gone);
      if (old) pairStates(this.nodes, old, now, fresh, gone, this.#keys);
    }
  }

  /** The node of the record that stands for `n`: itself, or the one whose place it took. */
  real = (/** @type {number} */ n) => (!this.table || this.table.isReal(n) ? n : this.keyOf(n));

  /** Whether the timeline is valid for these nodes: it has no own ones, or the record has no new
   * ones.
   * @param {NodeColumns} nodes */
  isOf({ op }) {
    return !this.table || this.table.count === op.length;
  }
}

/** Return a function that caches its results for the last `most` numbers.
 * @template Value
 * @param {number} most
 * @param {(k: number) => Value} make */
function cached(most, make) {
  /** @type {Map<number, Value>} */
  const known = new Map();
  return (/** @type {number} */ k) => {
    const value = known.get(k) ?? make(k);
    if (!known.has(k) && known.size >= most) known.delete([...known.keys()][0]);
    known.set(k, value);
    return value;
  };
}

/** A pass that is one function is one step, from its input to its result.
 * @param {RecordedPass} pass
 * @returns {Step[]} */
function timelineSteps(pass) {
  const listed = pass.rewrites.map(([rule, before, after, root]) => ({
    rule,
    before,
    after,
    root,
  }));
  if (listed.length || !pass.changed || pass.before.length !== 1 || pass.after.length !== 1) {
    return listed;
  }
  return [{ rule: -1, before: pass.before[0], after: pass.after[0], root: pass.after[0] }];
}

/**
 * @param {NodeColumns} nodes
 * @param {number[]} roots
 * @returns {State} */
function newState(nodes, roots) {
  const order = stateOrder(nodes, roots);
  /** @type {State["users"]} */
  const users = new Map(order.map((n) => [n, []]));
  for (const n of order) for (const s of nodes.src[n]) users.get(s)?.push(n);
  return { roots, order, users };
}

/** The nodes below some roots, and the readers of each, as the roots move: only nodes that come and
 * go are walked. */
class LiveNodes {
  /** The number of edges and roots that need each node.
   * @type {number[]} */
  #uses = [];
  /** The readers of each live node; some may be gone.
   * @type {Map<number, number[]>} */
  #readers = new Map();
  /** @type {number[]} */
  #roots = [];

  /** @param {NodeColumns} nodes */
  constructor(nodes) {
    this.nodes = nodes;
  }

  has = (/** @type {number} */ n) => this.#uses[n] > 0;

  /** Move to other roots; return the nodes that came and those that went.
   * @param {number[]} roots */
  moveTo(roots) {
    const before = this.#roots;
    this.#roots = roots;
    return { fresh: this.#hold(roots), gone: this.#drop(before) }; // what both need stays
  }

  /** Return some nodes and all that are computed from them.
   * @param {Iterable<number>} nodes */
  above(nodes) {
    const all = new Set(nodes);
    for (const n of all) { // a Set grows on the way
      for (const reader of this.#readers.get(n) ?? []) if (this.has(reader)) all.add(reader);
    }
    return all;
  }

  /** @param {number[]} roots */
  #hold(roots) {
    /** @type {Set<number>} */
    const fresh = new Set();
    const use = (/** @type {number} */ n) => {
      this.#uses[n] = (this.#uses[n] ?? 0) + 1;
      if (this.#uses[n] === 1) fresh.add(n);
    };
    for (const n of roots) use(n);
    for (const n of fresh) { // it grows on the way
      for (const s of this.nodes.src[n]) {
        use(s);
        const readers = this.#readers.get(s);
        if (readers) readers.push(n);
        else this.#readers.set(s, [n]);
      }
    }
    return fresh;
  }

  /** @param {number[]} roots */
  #drop(roots) {
    /** @type {Set<number>} */
    const gone = new Set();
    const leave = (/** @type {number} */ n) => {
      this.#uses[n] -= 1;
      if (this.#uses[n] === 0) gone.add(n), this.#readers.delete(n);
    };
    for (const n of roots) leave(n);
    for (const n of gone) for (const s of this.nodes.src[n]) leave(s); // it grows on the way
    return gone;
  }
}

/** Pair the new nodes of a step with the old ones: same op, same place below the roots, in one of
 * the two states only. The rewritten node is paired if it keeps its op.
 * @param {NodeColumns} nodes
 * @param {number[]} oldRoots
 * @param {number[]} nowRoots
 * @param {Set<number>} fresh the nodes that only the new state has
 * @param {Set<number>} gone those that only the old one has
 * @param {Map<number, number>} keys */
function pairStates(nodes, oldRoots, nowRoots, fresh, gone, keys) {
  const partners = new Set();
  /** @type {[number, number][]} */
  const stack = [];
  const push = (/** @type {number[]} */ olds, /** @type {number[]} */ news) => {
    for (let i = 0; i < olds.length && i < news.length; i++) {
      if (fresh.has(news[i]) && gone.has(olds[i])) stack.push([olds[i], news[i]]);
    }
  };
  push(oldRoots, nowRoots);
  for (let top = stack.pop(); top; top = stack.pop()) {
    const [was, is] = top;
    if (partners.has(was) || keys.has(is) || nodes.op[was] !== nodes.op[is]) continue;
    partners.add(was);
    keys.set(is, keys.get(was) ?? was);
    push(nodes.src[was], nodes.src[is]);
  }
}

// States that a record leaves out to save space, computed in the page: a rewrite replaces one node,
// and its users are made anew. New nodes go into a table of the page's own, behind those of the
// record; `workbench/viz/record/nodes.py` computes the same states in Python.

/** A table to which nodes can be added; those of the record keep their numbers. */
class ReplayTable {
  /** The number of each op with its dtype and argument, by node.
   * @type {number[]} */
  #kinds = [];
  /** The last node of each hash, and the one before each node that has the same hash: numbers are
   * cheaper than texts, and a pass of thousands of steps asks for a hundred thousand.
   * @type {Map<number, number>} */
  #last = new Map();
  /** @type {(number | undefined)[]} */
  #before = [];
  /** @type {unknown[][]} */
  #lists;

  /** @param {NodeColumns} nodes */
  constructor(nodes) {
    this.count = nodes.op.length;
    this.columns = { ...nodes };
    for (const [name, column] of Object.entries(nodes)) {
      Reflect.set(this.columns, name, column.slice());
    }
    readAs(this.columns, nodes);
    this.#lists = Object.values(this.columns);
  }

  /** Return the node that equals `n` but for its sources.
   * @param {number} n
   * @param {(n: number) => number} resultOf the new source in place of each */
  rebuild(n, resultOf) {
    const { columns } = this;
    if (columns.src[n].every((s) => resultOf(s) === s)) return n;
    if (!this.#kinds.length) this.#enter();
    const src = columns.src[n].map(resultOf);
    const kind = this.#kinds[n];
    const hash = hashOf(kind, src);
    for (let m = this.#last.get(hash); m !== undefined; m = this.#before[m]) {
      const known = columns.src[m];
      const isEqual = this.#kinds[m] === kind && known.length === src.length;
      if (isEqual && known.every((s, i) => s === src[i])) return m;
    }
    const number = columns.op.length;
    for (const column of this.#lists) column.push(column[n]);
    columns.src[number] = src;
    columns.causes[number] = [];
    this.#kinds[number] = kind;
    this.#note(number, hash);
    return number;
  }

  /** Whether a node is of the record.
   * @param {number} n */
  isReal(n) {
    return n < this.count;
  }

  /** Enter the nodes of the record. */
  #enter() {
    const { op, dtype, arg, src } = this.columns;
    /** @type {Map<string, number>} */
    const kinds = new Map();
    this.#kinds = op.map((name, n) => {
      const text = `${name} ${dtype[n]} ${arg[n]}`;
      const kind = kinds.get(text) ?? kinds.size;
      kinds.set(text, kind);
      return kind;
    });
    for (let n = 0; n < op.length; n++) this.#note(n, hashOf(this.#kinds[n], src[n]));
  }

  /**
   * @param {number} n
   * @param {number} hash */
  #note(n, hash) {
    this.#before[n] = this.#last.get(hash);
    this.#last.set(hash, n);
  }
}

/** @type {(kind: number, src: number[]) => number} */
const hashOf = (kind, src) => src.reduce((hash, s) => (Math.imul(hash, 16777619) ^ s) | 0, kind);

/** The states of a pass, step by step. */
class Replay {
  /** The replacement of each node, up to the last step.
   * @type {Map<number, number>} */
  #changes = new Map();
  /** The nodes of the last state that have a replacement.
   * @type {Set<number>} */
  #due = new Set();

  /**
   * @param {ReplayTable} table
   * @param {LiveNodes} live the nodes of the last state */
  constructor(table, live) {
    this.table = table;
    this.live = live;
  }

  /** Return the roots after one more step; the record has some.
   * @param {Step} step
   * @param {number[] | null} before */
  step(step, before) {
    this.#changes.set(step.before, step.after);
    if (this.live.has(step.before)) this.#due.add(step.before);
    return step.root >= 0 ? [step.root] : before && [this.#replay(before[0])];
  }

  /** Note the nodes that a step brought and took.
   * @param {Set<number>} fresh
   * @param {Set<number>} gone */
  moved(fresh, gone) {
    for (const n of gone) this.#due.delete(n);
    for (const n of fresh) if (this.#changes.has(n)) this.#due.add(n);
  }

  /** Return the root after all replacements below the last one.
   * @param {number} root */
  #replay(root) {
    const { table, live } = this;
    const { src } = table.columns;
    const affected = live.above(this.#due);
    const stays = (/** @type {number} */ n) => live.has(n) && !affected.has(n);
    /** @type {Map<number, number>} */
    const done = new Map();
    const resultOf = (/** @type {number} */ n) => done.get(n) ?? n;
    const begun = new Set();
    const stack = [[root, 0, root]];
    for (let top = stack.pop(); top; top = stack.pop()) {
      const [n, stage, result] = top;
      if (done.has(n) || stays(n)) continue;
      if (stage === 0) {
        stack.push([n, 1, n]);
        for (const s of src[n]) if (!done.has(s) && !stays(s)) stack.push([s, 0, s]);
      } else if (stage === 2) done.set(n, resultOf(result));
      else {
        const next = table.rebuild(n, resultOf);
        const after = this.#changes.get(next);
        if (after === undefined || begun.has(next)) done.set(n, resultOf(next));
        else {
          begun.add(next); // a cycle of rewrites would not end without it
          stack.push([n, 2, after], [next, 2, after], [after, 0, after]);
        }
      }
    }
    return resultOf(root);
  }
}

// Readings of nodes: their text, and their box in a graph (viz/schema/record.py).

/** The rows that the columns of nodes refer to.
 * @type {WeakMap<NodeColumns, Reading[]>} */
const ROWS = new WeakMap();

/** Return a record whose nodes have their readings.
 * @param {PageRecord} record */
export function withReadings(record) {
  ROWS.set(record.nodes, record.readings);
  return record;
}

/** Give columns the readings of `nodes`.
 * @param {NodeColumns} columns
 * @param {NodeColumns} nodes */
function readAs(columns, nodes) {
  ROWS.set(columns, ROWS.get(nodes) ?? []);
}

/** Return the row of a node.
 * @param {NodeColumns} nodes
 * @param {number} n */
export function readingOf(nodes, n) {
  const rows = ROWS.get(nodes) ?? [];
  return rows[nodes.reading[n]];
}
