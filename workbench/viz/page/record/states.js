// The states of a pass. The record has the root after every rewrite and every node once, so a
// state is what is reachable from its root. A rewrite makes all readers of what it changed
// anew: from the roots down, those are paired with what they were, and keep their key.

import { readingOf } from "./readings.js";
import { replayRoot, ReplayTable } from "./replay.js";

/** @import { NodeColumns, PageRecord, RecordedPass } from "../record.d.ts" */

const MOST_STATES = 65; // of a pass that are kept

/** A rewrite, or a pass that is one function; `root` is -1 where it is not recorded.
 * @typedef {{rule: number, before: number, after: number, root: number}} Step */
/** What there is after some steps: all nodes, sources first, and who reads each.
 * @typedef {{roots: number[], order: number[], users: Map<number, number[]>}} State */

/** @type {WeakMap<RecordedPass, Timeline>} */
const TIMELINES = new WeakMap();

/** Return what is below `roots`, sources before users. `stop`: not entered; `known`: left out.
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

/** Return what is at most `depth` below `root`, sources before users; index arithmetic does
 * not count.
 * @param {NodeColumns} nodes
 * @param {number} root
 * @param {number} depth */
export function stateOrderWithin(nodes, root, depth) {
  const level = new Map([[root, 0]]);
  for (const [n, at] of level) { // a Map goes on to what is added while it is walked
    if (at < depth) {
      for (const s of nodes.src[n]) {
        if (!level.has(s)) level.set(s, at + Number(!readingOf(nodes, s).is_index));
      }
    }
  }
  const far = new Set([...level].filter(([, at]) => at === depth).map(([n]) => n));
  return stateOrder(nodes, [root], far).filter((n) => level.has(n));
}

/** Return the timeline of a pass: its states, their keys, and what each step changed. One that has
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
  /** Of each node the one whose place it took.
   * @type {Map<number, number>} */
  #keys = new Map();
  /** What became of what, up to the step that was replayed last.
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

  /** The roots after `k` steps; null where they were not kept.
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

  /** The state after `k` steps; null where it was not kept. */
  state = cached(MOST_STATES, (k) => {
    const roots = this.roots(k);
    return roots && newState(this.nodes, roots);
  });

  /** What step `k` (from 1) changed, and the states before and after it.
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

  /** Whether it is of these nodes: it has no own ones, or there are no more than there were.
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

/** A pass that is one function is one step, from what it was given to what it made.
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

/** Pair what a step made anew with what it was: same op, same place below the roots, in one of
 * the two states only. What was rewritten is paired if it is still the same op.
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
