// The drawn part of a state: the neighbourhood of a change with a ghost of the replaced nodes, or
// the whole state; constants and index arithmetic are text in the boxes of their users.

import { outline } from "../../record/node_text.js";
import { readingOf, stateOrder, stateOrderWithin } from "../../record/states.js";

/** @import { Pairing } from "../../app/beside.js" */
/** @import { GraphEdge, GraphNode, Key } from "../../graph/graph.d.ts" */
/** @import { NodeColumns } from "../../record.d.ts" */
/** @import { State, Timeline } from "../../record/states.js" */

const MOST_NEAR = 120; // nodes of a neighbourhood
const MOST_WIDE = 400; // of one that reaches further
const MOST_OPENING = 600; // nodes of a state that is drawn unasked: reading it takes no time
const MOST_CHANGED = 200; // changed nodes of a step; a picture of more shows nothing
const BOX_HEIGHT = 34;
const MOST_LETTERS = 72; // of a label: an index of three axes is whole

/** A drawing before its layout: `left` counts the nodes beyond its limit; the keys of the nodes of
 * the step, and of the rewritten ones; whether the root is rewritten, which is far from the rest.
 * @typedef {Omit<GraphNode, "x" | "y" | "shape">} SceneNode
 * @typedef {Omit<GraphEdge, "points">} SceneEdge
 * @typedef {{
 *   nodes: SceneNode[], edges: SceneEdge[], left: number, focus: number[], first: number[],
 *   isOfRoot?: boolean
 * }} Scene */

/** The states of a scene: the two as one, with a ghost of the old nodes, or one of them.
 * @typedef {"both" | "old" | "now"} Side */

/** Return the scene of step `k`: the removed and the new nodes, and some edges around them.
 * @param {Timeline} timeline
 * @param {number} k
 * @param {boolean} [isFolded]
 * @param {Side} [side]
 * @param {number} [hops]
 * @returns {Scene} */
export function changeScene(timeline, k, isFolded = true, side = "both", hops = HOPS) {
  const change = timeline.change(k);
  const isIndex = readingOf(timeline.nodes, change.before).is_index; // then that is its subject
  const states = new TwoStates(timeline, change, isFolded && !isIndex);
  const focus = states.focus();
  const changed = new Set(focus.focus);
  const near = new Set(focus.focus.slice(0, MOST_CHANGED));
  for (const key of focus.first) if (changed.has(key)) near.add(key);
  const left = new Set(focus.focus.filter((key) => !near.has(key)));
  let edge = [...near];
  const most = hops > HOPS ? MOST_WIDE : MOST_NEAR;
  for (let hop = 0; hop < hops; hop++) {
    const next = [];
    for (const key of edge) {
      for (const other of states.around(key)) {
        if (near.has(other)) continue;
        if (near.size >= most) left.add(other);
        else near.add(other), next.push(other);
      }
    }
    edge = next;
  }
  return { ...sceneOf(states, near, side), left: left.size, ...focus };
}

/** Return the scene of a whole state, with the ghost of the step that led to it; before the first
 * step its subject is what that step changes.
 * @param {Timeline} timeline
 * @param {number} k
 * @param {boolean} [isFolded]
 * @param {Set<Key>} [closed]
 * @param {Side} [side]
 * @returns {Scene | null} */
export function wholeScene(timeline, k, isFolded = true, closed = new Set(), side = "both") {
  timeline.pairUpTo(k);
  const now = timeline.state(k);
  if (!now) return null;
  const change = k > 0
    ? { ...timeline.change(k), now }
    : { before: null, after: null, old: null, now, gone: [], fresh: [] };
  const states = new TwoStates(timeline, change, isFolded, closed);
  const focus = k === 0 && timeline.steps.length
    ? new TwoStates(timeline, timeline.change(1), isFolded).focus()
    : states.focus();
  const shown = new Set(k === 0 ? [] : focus.focus);
  const isClosed = { has: (/** @type {number} */ m) => closed.has(timeline.keyOf(m)) };
  const { roots } = (side === "old" && change.old) || now;
  for (const n of stateOrder(timeline.nodes, roots, isClosed)) {
    if (!states.isHidden(n)) shown.add(timeline.keyOf(n));
  }
  return { ...sceneOf(states, shown, side), left: 0, ...focus };
}

/** Return the scene of a pass before its first step: the whole state, or of a large one the
 * neighbourhood of the first change.
 * @param {Timeline} timeline
 * @param {boolean} [isFolded]
 * @returns {Scene | null} */
export function openingScene(timeline, isFolded = true) {
  if (!timeline.steps.length) return null;
  const isLarge = (timeline.state(0)?.order.length ?? Infinity) > MOST_OPENING;
  const whole = isLarge ? null : wholeScene(timeline, 0, isFolded);
  return whole && whole.nodes.length <= MOST_NEAR
    ? whole
    : unchanged(changeScene(timeline, 1, isFolded, "old"));
}

/** Return the scene of a whole state beside another one: the nodes that only this side has are
 * `lone`, those that differ from their partner are changed. Of a large state it has the differences
 * and what is near them.
 * @param {Timeline} timeline
 * @param {number} k
 * @param {Pairing} pairing
 * @param {"new" | "gone"} lone
 * @param {boolean} isFolded
 * @param {Set<Key>} closed
 * @returns {Scene | null} */
export function pairedScene(timeline, k, pairing, lone, isFolded, closed) {
  const now = timeline.state(k);
  if (!now) return null;
  const change = { before: null, after: null, old: null, now, gone: [], fresh: [] };
  const states = new TwoStates(timeline, change, isFolded, closed);
  const isClosed = { has: (/** @type {number} */ m) => closed.has(timeline.keyOf(m)) };
  const drawn = stateOrder(timeline.nodes, now.roots, isClosed).filter((n) => !states.isHidden(n));
  const marks = new Map(drawn.map((n) => [timeline.keyOf(n), markOf(states, pairing, lone, n)]));
  const differing = [...marks].flatMap(([key, mark]) => mark === "kept" ? [] : [key]);
  const shown = new Set(drawn.length > MOST_NEAR && differing.length ? differing : marks.keys());
  for (const key of shown) { // a Set grows on the way
    if (shown.size >= MOST_NEAR) break;
    for (const other of states.around(key)) if (marks.has(other)) shown.add(other);
  }
  const scene = sceneOf(states, shown, "now");
  const nodes = scene.nodes.map((node) => {
    const mark = marks.get(Number(node.key)) ?? "kept";
    return { ...node, state: mark, sign: SIGNS[mark] };
  });
  const edges = scene.edges.map((edge) => ({ ...edge, state: /** @type {const} */ ("kept") }));
  const first = differing.filter((key) => marks.get(key) === lone);
  return { nodes, edges, left: marks.size - shown.size, focus: differing, first };
}

/** What a mark says of a node beside another graph.
 * @type {Record<string, string>} */
const SIGNS = {
  new: "+: only on this side",
  gone: "−: only on this side",
  changed: "≠: it differs from its partner on the other side",
};

/** The mark of a node, which differs if an operand in its text does.
 * @param {TwoStates} states
 * @param {Pairing} pairing
 * @param {"new" | "gone"} lone
 * @param {number} n
 * @returns {GraphNode["state"]} */
function markOf(states, pairing, lone, n) {
  if (pairing.alone.has(n)) return lone;
  if (pairing.changed.has(n)) return "changed";
  const seen = new Set([n]);
  for (const m of seen) { // a Set grows on the way
    for (const s of states.nodes.src[m]) {
      if (!states.isHidden(s)) continue;
      if (pairing.alone.has(s) || pairing.changed.has(s)) return "changed";
      seen.add(s);
    }
  }
  return "kept";
}

/** Return a scene without removed nodes.
 * @param {Scene} scene
 * @returns {Scene} */
function unchanged(scene) {
  const nodes = scene.nodes.map((node) => ({ ...node, state: /** @type {const} */ ("kept") }));
  const edges = scene.edges.map((edge) => ({ ...edge, state: /** @type {const} */ ("kept") }));
  return { ...scene, nodes, edges };
}

/** Return the nodes and edges of a scene from its keys. If a step led to another level, the ghost
 * of the old node stands alone: it has a picture of its own.
 * @param {TwoStates} states
 * @param {Set<number>} keys
 * @param {Side} side */
function sceneOf(states, keys, side) {
  const { nodes, timeline, nowOf, oldOf } = states;
  const other = { both: states.isOtherLevel() ? "gone" : "", old: "new", now: "gone" }[side];
  const listed = [...keys].filter((key) => states.stateOf(key) !== other);
  const place = new Map(listed.map((key, i) => [key, i]));
  const drawn = listed.map((key) => {
    const [first, second] = side === "old" ? [oldOf, nowOf] : [nowOf, oldOf];
    const n = first.get(key) ?? second.get(key) ?? key;
    return { ...sceneNode(states, n, key), n: timeline.real(n) };
  });
  /** By their ends and places, as one number.
   * @type {Map<number, SceneEdge>} */
  const edges = new Map();
  /** @type {(key: number, n: number | undefined, state: SceneEdge["state"]) => void} */
  const add = (key, n, state) => {
    const b = place.get(key);
    if (n === undefined || b === undefined || states.closed.has(key)) return;
    const src = nodes.src[n];
    src.forEach((s, slot) => {
      const a = place.get(states.keyOf(s));
      if (a === undefined || states.isHidden(s)) return;
      const name = (slot * listed.length + a) * listed.length + b;
      const known = edges.get(name);
      if (state === "gone" && known) known.state = "kept";
      else edges.set(name, { a, b, slot, slots: src.length, state });
    });
  };
  for (const key of listed) add(key, nowOf.get(key), oldOf.size ? "new" : "kept");
  for (const key of listed) add(key, oldOf.get(key), "gone");
  const seen = [...edges.values()].filter(({ state }) => state !== other);
  return { nodes: drawn, edges: withPorts(drawn.length, seen) };
}

/** Number the sources of each box from left to right, counting only the drawn ones.
 * @param {number} count
 * @param {SceneEdge[]} edges */
function withPorts(count, edges) {
  /** @type {SceneEdge[][]} */
  const entering = Array.from({ length: count }, () => []);
  for (const edge of edges) entering[edge.b].push(edge);
  for (const listed of entering) {
    listed.sort((a, b) =>
      a.slot - b.slot || Number(a.state === "gone") - Number(b.state === "gone")
    );
    listed.forEach((edge, i) => Object.assign(edge, { slot: i, slots: listed.length }));
  }
  return edges;
}

/**
 * @param {TwoStates} states
 * @param {number} n
 * @param {number} key
 * @returns {SceneNode} */
function sceneNode(states, n, key) {
  const { nodes } = states;
  const state = states.stateOf(key);
  const label = sceneLabel(states, n);
  const sub = [nodes.shape[n], nodes.dtype[n]].filter(Boolean).join(" ");
  const { family } = readingOf(nodes, n);
  const w = Math.max(56, 26 + Math.max(6.9 * label.length, 5.7 * sub.length));
  return { key, n, w, h: BOX_HEIGHT, label, sub, family, letter: family, op: nodes.op[n], state };
}

/** Return the text in a box: its op, and the operands that are not drawn.
 * @param {TwoStates} states
 * @param {number} n */
function sceneLabel(states, n) {
  const { nodes } = states;
  const label = nodes.label[n];
  const { is_leaf, body, role } = readingOf(nodes, n);
  const isHidden = (/** @type {number} */ s) => states.isHidden(s);
  if (states.closed.has(states.keyOf(n))) return `${label} …`;
  if (role === "place") return sceneShort(outline(nodes, n, isHidden, 64));
  if (is_leaf || body !== undefined || !nodes.src[n].some(isHidden)) return label;
  return sceneShort(outline(nodes, n, isHidden, 14));
}

/** @param {string} text */
const sceneShort = (text) =>
  text.length > MOST_LETTERS ? `${text.slice(0, MOST_LETTERS - 1)}…` : text;

// Two states as one graph, by key: removed, added and changed nodes of a step. Hidden nodes are
// skipped: the text of their users contains them.

/** The change of a step; without states if those were not recorded.
 * @typedef {{
 *   before: number | null, after: number | null, old: State | null, now: State | null,
 *   gone: number[], fresh: number[]
 * }} Change */

const HOPS = 2;
const HUB = 8; // readers; a neighbourhood ends at a node with more

class TwoStates {
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

  /** Whether a node is part of its readers' text.
   * @param {number} n */
  isHidden(n) {
    if (n === this.change.before || n === this.change.after) return false;
    const { role, is_index = false } = readingOf(this.nodes, n);
    return role === "constant" || (this.isFolded && is_index);
  }

  /** The state of a node in the step.
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

  /** Whether the step turns the kernel of a sink into a tree of statements: the two have no place
   * in common. */
  isOtherLevel() {
    const { before, after, old } = this.change;
    if (before === null || after === null || !old?.roots.includes(before)) return false;
    const [was, is] = [before, after].map((n) => readingOf(this.nodes, n).role === "join");
    return was && !is;
  }

  /** The keys of the neighbours of a node, in one of the states.
   * @param {number} key */
  *around(key) {
    const { src } = this.nodes;
    const { old, now } = this.change;
    for (const [n, state] of [pair(this.nowOf.get(key), now), pair(this.oldOf.get(key), old)]) {
      if (n === undefined) continue;
      // the nodes below a sink have nothing in common
      const isThrough = readingOf(this.nodes, n).role !== "join" && src[n].length <= HUB;
      const sources = isThrough || this.#isCore(n) ? src[n] : [];
      const users = state?.users.get(n) ?? [];
      for (const other of users.length <= HUB ? [...sources, ...users] : sources) {
        if (!this.isHidden(other)) yield this.keyOf(other);
      }
    }
  }

  /** The subject of the step, by key: all removed, new and changed nodes; `first` is the rewritten
   * one. */
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
      isOfRoot: before !== null && readingOf(this.nodes, before).role === "join",
    };
  }

  /** The neighbourhood of the change, if the states were not recorded. */
  #withoutStates() {
    const roots = [this.change.before, this.change.after].filter((n) => n !== null);
    return roots.flatMap((root) => stateOrderWithin(this.nodes, root, HOPS));
  }

  /** @param {number} n */
  #isCore(n) {
    const { before, after } = this.change;
    return n === before || n === after || this.gone.has(n) || this.fresh.has(n);
  }

  /** Whether paired nodes differ: by an argument, or by an operand in their text.
   * @param {number} was
   * @param {number} n */
  #differs(was, n) {
    const { arg, src } = this.nodes;
    return arg[was] !== arg[n] || src[was].length !== src[n].length ||
      src[n].some((s, i) => s !== src[was][i] && this.isHidden(s));
  }

  /** The drawn nodes in whose text a node stands; none for a constant.
   * @param {number} n */
  #seenIn(n) {
    const { old, now } = this.change;
    if (this.isHidden(n) && readingOf(this.nodes, n).role === "constant") return [];
    const seen = new Set([n]);
    for (const m of seen) { // a Set grows on the way
      if (!this.isHidden(m)) continue;
      for (const state of [now, old]) for (const user of state?.users.get(m) ?? []) seen.add(user);
    }
    return [...seen].filter((m) => !this.isHidden(m));
  }
}

/** @type {(n: number | undefined, state: State | null) => [number | undefined, State | null]} */
const pair = (n, state) => [n, state];
