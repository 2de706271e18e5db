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
  /** The replacement of each node, up to the step that was replayed last.
   * @type {Map<number, number>} */
  #changes = new Map();
  /** The steps up to which states are paired. */
  #paired = 0;

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
    this.ownRoots = [pass.before[0]]; // by step, where the record has none
  }

  /** The roots after `k` steps; null if they were not recorded.
   * @param {number} k */
  roots(k) {
    const { steps, table, ownRoots } = this;
    if (k === 0) return this.pass.before;
    if (steps[k - 1].root >= 0) return [steps[k - 1].root];
    if (!table) return null;
    for (let i = ownRoots.length; i <= k; i++) {
      const { before, after, root } = steps[i - 1];
      this.#changes.set(before, after);
      ownRoots[i] = root >= 0 ? root : replayRoot(table, this.#changes, ownRoots[i - 1]);
    }
    return [ownRoots[k]];
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

  /** Pair the states up to that after `k` steps.
   * @param {number} k */
  pairUpTo(k) {
    for (; this.#paired < k; this.#paired++) {
      const [old, roots] = [this.state(this.#paired), this.roots(this.#paired + 1)];
      if (old && roots) pairStates(this.nodes, old, roots, this.#keys);
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

/** Pair the new nodes of a step with the old ones: same op, same place below the roots, in one of
 * the two states only. The rewritten node is paired if it keeps its op.
 * @param {NodeColumns} nodes
 * @param {State} old
 * @param {number[]} nowRoots
 * @param {Map<number, number>} keys */
function pairStates(nodes, old, nowRoots, keys) {
  const nowLive = new Set(stateOrder(nodes, nowRoots));
  const seen = new Set();
  const partners = new Set();
  const stack = old.roots.map((n, i) => [n, nowRoots[i]]);
  for (let top = stack.pop(); top; top = stack.pop()) {
    const [was, is] = top;
    if (is === undefined || was === is || seen.has(is)) continue;
    if (old.users.has(is) || nowLive.has(was) || partners.has(was) || keys.has(is)) continue;
    if (nodes.op[was] !== nodes.op[is]) continue;
    seen.add(is);
    partners.add(was);
    keys.set(is, keys.get(was) ?? was);
    nodes.src[was].forEach((s, i) => i < nodes.src[is].length && stack.push([s, nodes.src[is][i]]));
  }
}

// States that a record leaves out to save space, computed in the page: a rewrite replaces one node,
// and its users are made anew. New nodes go into a table of the page's own, behind those of the
// record; `workbench/viz/record/nodes.py` computes the same states in Python.

/** A table to which nodes can be added; those of the record keep their numbers. */
class ReplayTable {
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

  /** Return the node that equals `n` but for its sources.
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

  /** The row of a node.
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
function replayRoot(table, changes, root) {
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
