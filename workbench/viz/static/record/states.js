// The states of a pass. The record has the root after every rewrite and every node once, so a
// state is what is reachable from its root. A rewrite makes all readers of what it changed
// anew: from the roots down, those are paired with what they were, and keep their key.

import { replayRoot, replayTable } from "./replay.js";

const MOST_STATES = 65; // of a pass that are kept
const TIMELINES = new WeakMap(); // row of a pass -> its timeline

/** Return what is below `roots`, sources before users. `stop`: not entered; `known`: left out. */
export function stateOrder(nodes, roots, stop = null, known = null) {
  const order = [];
  const seen = new Set();
  const stack = [...roots].reverse();
  while (stack.length) {
    const n = stack.pop();
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
 * not count. */
export function stateOrderWithin(nodes, root, depth) {
  const level = new Map([[root, 0]]);
  for (const [n, at] of level) { // a Map goes on to what is added while it is walked
    if (at < depth) {
      for (const s of nodes.src[n]) {
        if (!level.has(s)) level.set(s, at + Number(nodes.dtype[s] !== "index"));
      }
    }
  }
  const far = new Set([...level].filter(([, at]) => at === depth).map(([n]) => n));
  return stateOrder(nodes, [root], far).filter((n) => level.has(n));
}

/** Return the timeline of a pass: its states, their keys, and what each step changed. One that has
 * nodes of its own is made anew when the record has more: they have taken the numbers. */
export function timelineOf(record, pass) {
  if (!TIMELINES.get(pass)?.isOf(record.nodes)) {
    TIMELINES.set(pass, newTimeline(record.nodes, pass));
  }
  return TIMELINES.get(pass);
}

export function newTimeline(recordNodes, pass) {
  const steps = timelineSteps(pass);
  const keys = new Map(); // node -> the node whose place it took
  const changes = new Map(); // before -> after, of the steps up to `replayed`
  const isGraph = pass.before.length === 1 && pass.unit !== "decision";
  const table = isGraph && steps.some((step) => step.root < 0) ? replayTable(recordNodes) : null;
  const nodes = table ? table.columns : recordNodes;
  const ownRoots = [pass.before[0]]; // by step, where the record has none
  let paired = 0;

  const roots = (k) => {
    if (k === 0) return pass.before;
    if (steps[k - 1].root >= 0) return [steps[k - 1].root];
    if (!table) return null;
    for (let i = ownRoots.length; i <= k; i++) {
      const { before, after, root } = steps[i - 1];
      changes.set(before, after);
      ownRoots[i] = root >= 0 ? root : replayRoot(table, changes, ownRoots[i - 1]);
    }
    return [ownRoots[k]];
  };
  const keyOf = (n) => keys.get(n) ?? n;
  function pairUpTo(k) {
    for (; paired < k; paired++) {
      const [old, now] = [roots(paired), roots(paired + 1)];
      if (old && now) pairStates(nodes, state(paired), old, now, keys);
    }
  }
  /** The state after `k` steps: {roots, order, users, byKey}; null where it was not kept. */
  const state = cached(MOST_STATES, (k) => roots(k) && newState(nodes, roots(k)));
  /** What step `k` (from 1) changed: {rule, before, after, old, now, gone, fresh}. */
  function change(k) {
    pairUpTo(k);
    const step = steps[k - 1];
    const [old, now] = [state(k - 1), state(k)];
    if (!old || !now) {
      return { ...step, old: null, now: null, gone: [], fresh: [step.before, step.after] };
    }
    const oldKeys = new Set(old.order.map(keyOf));
    const nowKeys = new Set(now.order.map(keyOf));
    const gone = old.order.filter((n) => !now.users.has(n) && !nowKeys.has(keyOf(n)));
    const fresh = now.order.filter((n) => !old.users.has(n) && !oldKeys.has(keyOf(n)));
    return { ...step, old, now, gone, fresh };
  }
  /** The node of the record that stands for `n`: itself, or the one whose place it took. */
  const real = (n) => (!table || table.isReal(n) ? n : keyOf(n));
  const isOf = ({ op }) => !table || table.count === op.length;
  return { nodes, steps, roots, state, change, keyOf, pairUpTo, real, isOf };
}

/** Return a function that remembers what it gave for the last `most` numbers. */
function cached(most, make) {
  const known = new Map();
  return (k) => {
    if (!known.has(k)) {
      if (known.size >= most) known.delete(known.keys().next().value);
      known.set(k, make(k));
    }
    return known.get(k);
  };
}

/** A pass that is one function is one step, from what it was given to what it made. */
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

function newState(nodes, roots) {
  const order = stateOrder(nodes, roots);
  const users = new Map(order.map((n) => [n, []]));
  for (const n of order) for (const s of nodes.src[n]) users.get(s).push(n);
  return { roots, order, users };
}

/** Pair what a step made anew with what it was: same op, same place below the roots, in one of
 * the two states only. What was rewritten is paired if it is still the same op. */
function pairStates(nodes, old, oldRoots, nowRoots, keys) {
  const nowLive = new Set(stateOrder(nodes, nowRoots));
  const seen = new Set();
  const taken = new Set();
  const stack = oldRoots.map((n, i) => [n, nowRoots[i]]);
  while (stack.length) {
    const [was, is] = stack.pop();
    if (is === undefined || was === is || seen.has(is)) continue;
    if (old.users.has(is) || nowLive.has(was) || taken.has(was) || keys.has(is)) continue;
    if (nodes.op[was] !== nodes.op[is]) continue;
    seen.add(is);
    taken.add(was);
    keys.set(is, keys.get(was) ?? was);
    nodes.src[was].forEach((s, i) => i < nodes.src[is].length && stack.push([s, nodes.src[is][i]]));
  }
}
