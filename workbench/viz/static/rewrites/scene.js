// What of a state is drawn: the neighbourhood of a change with a ghost of what was before, or a
// whole state; constants and index arithmetic stand in the words of what uses them.
//
// A scene is {nodes: [{key, n, w, h, label, sub, family, state}], edges: [{a, b, slot, slots,
// state}], left: how many nodes there was no room for}. State: "kept", "new", "gone", "changed".

import { familyOf } from "../graph/families.js";
import { EXPR_INFIX, exprInline, exprOwnName } from "../record/expression.js";
import { stateOrder, stateOrderWithin } from "../record/states.js";

const HOPS = 2;
const MOST_NEAR = 120; // nodes of a neighbourhood
const HUB = 8; // readers; beyond what has more of them a neighbourhood does not go
const BOX_HEIGHT = 34;

/** Return the scene of step `k`: what it took away, what it put there, and two hops around. */
export function changeScene(timeline, k, fold = true) {
  const change = timeline.change(k);
  const isIndex = timeline.nodes.dtype[change.before] === "index"; // then that is what it is about
  const view = sceneView(timeline, change, fold && !isIndex);
  const near = new Set(view.core);
  const left = new Set();
  let edge = [...near];
  for (let hop = 0; hop < HOPS; hop++) {
    const next = [];
    for (const key of edge) {
      for (const other of view.around(key)) {
        if (near.has(other)) continue;
        if (near.size >= MOST_NEAR) left.add(other);
        else near.add(other), next.push(other);
      }
    }
    edge = next;
  }
  return { ...sceneOf(timeline, view, near), left: left.size, ...view.focus };
}

/** Return the scene of a whole state, with the ghost of the step that led to it. */
export function wholeScene(timeline, k, fold = true, closed = new Set()) {
  timeline.pairUpTo(k);
  const state = timeline.state(k);
  if (!state) return null;
  const change = k > 0
    ? timeline.change(k)
    : { before: null, after: null, old: null, now: state, gone: [], fresh: [] };
  const view = sceneView(timeline, { ...change, now: state }, fold, closed);
  const shown = new Set(view.core);
  for (
    const n of stateOrder(timeline.nodes, state.roots, {
      has: (m) => closed.has(timeline.keyOf(m)),
    })
  ) {
    if (!view.isHidden(n)) shown.add(timeline.keyOf(n));
  }
  return { ...sceneOf(timeline, view, shown), left: 0, ...view.focus };
}

/** Look at two states as one graph: by key, with what is hidden passed over. */
function sceneView(timeline, change, fold, closed = new Set()) {
  const { nodes } = timeline;
  const { old, now, before, after } = change;
  const gone = new Set(change.gone);
  const fresh = new Set(change.fresh);
  const isCore = (n) => n === before || n === after || gone.has(n) || fresh.has(n);
  const isHidden = (n) => {
    if (n === before || n === after) return false;
    return nodes.op[n] === "CONST" ||
      (fold && nodes.dtype[n] === "index" && nodes.op[n] !== "STAGE");
  };
  const oldOf = new Map();
  const nowOf = new Map();
  if (!now) {
    for (const root of [before, after]) {
      for (const n of stateOrderWithin(nodes, root, HOPS)) nowOf.set(n, n);
    }
  }
  for (const n of old ? old.order : []) oldOf.set(timeline.keyOf(n), n);
  for (const n of now ? now.order : []) nowOf.set(timeline.keyOf(n), n);
  const keyOf = now ? timeline.keyOf : (n) => n;

  const stateOf = (key) => {
    const [n, was] = [nowOf.get(key), oldOf.get(key)];
    if (n === undefined || (!now && n === before)) return "gone";
    if (fresh.has(n) || (!now && n === after)) return "new";
    return was !== undefined && was !== n && (n === after || differs(was, n)) ? "changed" : "kept";
  };
  /** Whether what is paired is not the same: an argument, or an operand in its words. */
  const differs = (was, n) =>
    nodes.arg[was] !== nodes.arg[n] || nodes.src[was].length !== nodes.src[n].length ||
    nodes.src[n].some((s, i) => s !== nodes.src[was][i] && isHidden(s));
  function* around(key) {
    for (const [byKey, state] of [[nowOf, now], [oldOf, old]]) {
      const n = byKey.get(key);
      if (n === undefined) continue;
      const isThrough = nodes.op[n] !== "SINK" && nodes.src[n].length <= HUB; // what a sink joins has nothing in common
      if (isThrough || isCore(n)) {
        for (const s of nodes.src[n]) if (!isHidden(s)) yield keyOf(s);
      }
      const users = state ? state.users.get(n) || [] : [];
      if (users.length <= HUB) { for (const user of users) if (!isHidden(user)) yield keyOf(user); }
    }
  }
  /** What is hidden is seen in the words of those that read it. */
  const seenIn = (n) => {
    const found = new Set([n]);
    for (const m of found) {
      if (isHidden(m) && (now?.users.has(m) || old?.users.has(m))) {
        for (const user of (now?.users.get(m) || []).concat(old?.users.get(m) || [])) {
          found.add(user);
        }
      }
    }
    return [...found].filter((m) => !isHidden(m));
  };
  const all = [...change.gone, ...change.fresh, before, after].filter((n) =>
    n !== null && (!now || now.users.has(n) || old?.users.has(n))
  );
  const core = all.flatMap((
    n,
  ) => (isHidden(n) && nodes.op[n] !== "CONST" ? seenIn(n) : isHidden(n) ? [] : [n]));
  const focus = {
    focus: [...new Set(core.map(keyOf))],
    first: [before, after].filter((n) => n !== null).map(keyOf),
  };
  return {
    core: new Set(focus.focus),
    focus,
    around,
    isHidden,
    oldOf,
    nowOf,
    keyOf,
    stateOf,
    closed,
  };
}

/** Return the nodes and edges of a scene from the keys it shows. */
function sceneOf(timeline, view, keys) {
  const { nodes } = timeline;
  const listed = [...keys];
  const place = new Map(listed.map((key, i) => [key, i]));
  const made = listed.map((key) => {
    const n = view.nowOf.get(key) ?? view.oldOf.get(key);
    return { ...sceneNode(nodes, n, key, view.stateOf(key), view), n: timeline.real(n) };
  });
  const edges = new Map(); // "a b slot" -> edge
  const add = (key, n, state) => {
    if (view.closed.has(key)) return;
    const src = nodes.src[n];
    src.forEach((s, slot) => {
      const from = place.get(view.keyOf(s));
      if (from === undefined || view.isHidden(s)) return;
      const name = `${from} ${place.get(key)} ${slot}`;
      if (state === "gone" && edges.has(name)) edges.get(name).state = "kept";
      else edges.set(name, { a: from, b: place.get(key), slot, slots: src.length, state });
    });
  };
  for (const key of listed) {
    if (view.nowOf.has(key)) add(key, view.nowOf.get(key), view.oldOf.size ? "new" : "kept");
  }
  for (const key of listed) if (view.oldOf.has(key)) add(key, view.oldOf.get(key), "gone");
  return { nodes: made, edges: withPorts(made.length, [...edges.values()]) };
}

/** Number the sources of each box from left to right, counting only those that are drawn. */
function withPorts(count, edges) {
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

function sceneNode(nodes, n, key, state, view) {
  const label = sceneLabel(nodes, n, view);
  const sub = [nodes.shape[n], nodes.dtype[n] === "void" ? "" : nodes.dtype[n]].filter(Boolean)
    .join(" ");
  const family = familyOf(nodes.op[n]);
  const w = Math.max(56, 26 + Math.max(6.9 * label.length, 5.7 * sub.length));
  return { key, n, w, h: BOX_HEIGHT, label, sub, family, letter: family, op: nodes.op[n], state };
}

/** Return what stands in a box: its op, and in words those operands that are not drawn. */
function sceneLabel(nodes, n, view) {
  const src = nodes.src[n];
  const label = nodes.label[n];
  if (view.closed.has(view.keyOf(n))) return `${label} …`;
  if (nodes.op[n] === "INDEX") {
    return sceneShort(
      `${exprOwnName(nodes, src[0])}[${
        src.slice(1).map((s) => exprInline(nodes, s, 26)).join(", ")
      }]`,
    );
  }
  if (nodes.op[n] === "RANGE" || nodes.op[n] === "LOOP" || !src.some(view.isHidden)) return label;
  const parts = src.map((s) => (view.isHidden(s) ? exprInline(nodes, s, 14) : "·"));
  if (parts.length === 2 && !/^\w+$/.test(label) && nodes.op[n] in EXPR_INFIX) {
    return `${parts[0]} ${label} ${parts[1]}`;
  }
  return sceneShort(`${label}(${parts.join(", ")})`);
}

const sceneShort = (text) => (text.length > 32 ? `${text.slice(0, 31)}…` : text);
