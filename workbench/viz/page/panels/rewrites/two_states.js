// Two states as one graph, by key: removed, added and changed nodes of a step. Hidden nodes are
// skipped: the text of their users contains them.

import { stateOrderWithin } from "../../record/states.js";
import { readingOf } from "../../record/readings.js";

/** @import { Key } from "../../graph/graph.d.ts" */
/** @import { State, Timeline } from "../../record/states.js" */

/** What a step did; without states where those were not recorded.
 * @typedef {{
 *   before: number | null, after: number | null, old: State | null, now: State | null,
 *   gone: number[], fresh: number[]
 * }} Change */

export const HOPS = 2;
const HUB = 8; // readers; beyond what has more of them a neighbourhood does not go

export class TwoStates {
  /** The nodes of the two states, by their keys.
   * @type {Map<number, number>} */
  oldOf = new Map();
  /** @type {Map<number, number>} */
  nowOf = new Map();

  /**
   * @param {Timeline} timeline
   * @param {Change} change
   * @param {boolean} isFolded
   * @param {Set<Key>} closed */
  constructor(timeline, change, isFolded, closed = new Set()) {
    this.nodes = timeline.nodes;
    this.timeline = timeline;
    this.change = change;
    this.isFolded = isFolded;
    this.closed = closed;
    this.gone = new Set(change.gone);
    this.fresh = new Set(change.fresh);
    const { old, now } = change;
    for (const n of old?.order ?? []) this.oldOf.set(timeline.keyOf(n), n);
    for (const n of now ? now.order : this.#withoutStates()) this.nowOf.set(this.keyOf(n), n);
  }

  /** The key of a node: that of the one whose place it took.
   * @param {number} n */
  keyOf(n) {
    return this.change.now ? this.timeline.keyOf(n) : n;
  }

  /** Whether a node stands in the words of what reads it.
   * @param {number} n */
  isHidden(n) {
    if (n === this.change.before || n === this.change.after) return false;
    const { role, is_index = false } = readingOf(this.nodes, n);
    return role === "constant" || (this.isFolded && is_index);
  }

  /** What became of a node.
   * @param {number} key
   * @returns {"kept" | "new" | "gone" | "changed"} */
  stateOf(key) {
    const { before, after, now } = this.change;
    const [n, was] = [this.nowOf.get(key), this.oldOf.get(key)];
    if (n === undefined || (!now && n === before)) return "gone";
    if (this.fresh.has(n) || (!now && n === after)) return "new";
    if (was === undefined || was === n) return "kept";
    return n === after || this.#differs(was, n) ? "changed" : "kept";
  }

  /** Whether the step turns what a sink joins into a tree of statements: the two have no place in
   * common. */
  isOtherLevel() {
    const { before, after, old } = this.change;
    if (before === null || after === null || !old?.roots.includes(before)) return false;
    const [was, is] = [before, after].map((n) => readingOf(this.nodes, n).role === "join");
    return was && !is;
  }

  /** The keys of what is beside a node, in one of the states.
   * @param {number} key */
  *around(key) {
    const { src } = this.nodes;
    const { old, now } = this.change;
    for (const [n, state] of [pair(this.nowOf.get(key), now), pair(this.oldOf.get(key), old)]) {
      if (n === undefined) continue;
      // what a sink joins has nothing in common
      const isThrough = readingOf(this.nodes, n).role !== "join" && src[n].length <= HUB;
      const sources = isThrough || this.#isCore(n) ? src[n] : [];
      const users = state?.users.get(n) ?? [];
      for (const other of users.length <= HUB ? [...sources, ...users] : sources) {
        if (!this.isHidden(other)) yield this.keyOf(other);
      }
    }
  }

  /** What the step is about, by key: all that it took away, put there and changed; `first` is what
   * was rewritten. */
  focus() {
    const { gone, fresh, before, after, old, now } = this.change;
    const rewritten = [before, after].filter((n) => n !== null);
    const all = [...gone, ...fresh, ...rewritten].filter((n) =>
      !now || now.users.has(n) || old?.users.has(n)
    );
    const core = all.flatMap((n) => this.#seenIn(n));
    return {
      focus: [...new Set(core.map((n) => this.keyOf(n)))],
      first: rewritten.map((n) => this.keyOf(n)),
    };
  }

  /** What is near the change, where the states were not recorded. */
  #withoutStates() {
    const roots = [this.change.before, this.change.after].filter((n) => n !== null);
    return roots.flatMap((root) => stateOrderWithin(this.nodes, root, HOPS));
  }

  /** @param {number} n */
  #isCore(n) {
    const { before, after } = this.change;
    return n === before || n === after || this.gone.has(n) || this.fresh.has(n);
  }

  /** Whether what is paired is not the same: an argument, or an operand in its words.
   * @param {number} was
   * @param {number} n */
  #differs(was, n) {
    const { arg, src } = this.nodes;
    return arg[was] !== arg[n] || src[was].length !== src[n].length ||
      src[n].some((s, i) => s !== src[was][i] && this.isHidden(s));
  }

  /** Where a node is seen: what is hidden in those that read it; a constant is no matter of its own.
   * @param {number} n */
  #seenIn(n) {
    const { old, now } = this.change;
    if (this.isHidden(n) && readingOf(this.nodes, n).role === "constant") return [];
    const seen = new Set([n]);
    for (const m of seen) { // a Set goes on to what is added while it is walked
      if (!this.isHidden(m)) continue;
      for (const state of [now, old]) for (const user of state?.users.get(m) ?? []) seen.add(user);
    }
    return [...seen].filter((m) => !this.isHidden(m));
  }
}

/** @type {(n: number | undefined, state: State | null) => [number | undefined, State | null]} */
const pair = (n, state) => [n, state];
