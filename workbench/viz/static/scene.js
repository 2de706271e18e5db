// What of a state is drawn: the neighbourhood of a change with a ghost of what was before, or a
// whole state; constants and index arithmetic stand in the words of what uses them.
//
// A scene is {nodes: [{key, n, w, h, label, sub, family, state}], edges: [{a, b, slot, slots,
// state}], left: how many nodes there was no room for}. State: "kept", "new", "gone", "changed".

const HOPS = 2;
const MOST_NEAR = 120; // nodes of a neighbourhood
const HUB = 8; // readers; beyond what has more of them a neighbourhood does not go
const BOX_HEIGHT = 34;
const FAMILIES = {
  M: { name: "memory", shape: "cut", ops: "BUFFER COPY CONTIGUOUS PARAM DEFINE REG INDEX LOAD STORE STAGE SET" },
  V: { name: "movement", shape: "slant", ops: "RESHAPE PERMUTE EXPAND SHRINK PAD FLIP" },
  R: { name: "reduction", shape: "six", ops: "REDUCE REDUCE_AXIS ACCUMULATE HREDUCE" },
  L: { name: "loops and order", shape: "pill", ops: "RANGE VAR LOOP ENDLOOP END AFTER BLOCK SINK" },
  C: { name: "constant", shape: "box", ops: "CONST INVALID IOTA LANES" },
  A: { name: "arithmetic", shape: "round", ops: "" },
};
const FAMILY_OF = new Map(Object.entries(FAMILIES).flatMap(([letter, { ops }]) => ops.split(" ").map((op) => [op, letter])));
const family_of = (op) => FAMILY_OF.get(op) || "A";

/** Return the scene of step `k`: what it took away, what it put there, and two hops around. */
function change_scene(timeline, k, fold = true) {
  const change = timeline.change(k);
  const is_index = timeline.nodes.dtype[change.before] === "index"; // then that is what it is about
  const view = scene_view(timeline, change, fold && !is_index);
  const near = new Set(view.core);
  const left = new Set();
  let edge = [...near];
  for (let hop = 0; hop < HOPS; hop++) {
    const next = [];
    for (const key of edge)
      for (const other of view.around(key)) {
        if (near.has(other)) continue;
        if (near.size >= MOST_NEAR) left.add(other);
        else near.add(other), next.push(other);
      }
    edge = next;
  }
  return { ...scene_of(timeline, view, near), left: left.size, ...view.focus };
}

/** Return the scene of a whole state, with the ghost of the step that led to it. */
function whole_scene(timeline, k, fold = true, closed = new Set()) {
  timeline.pair_up_to(k);
  const state = timeline.state(k);
  if (!state) return null;
  const change = k > 0 ? timeline.change(k) : { before: null, after: null, old: null, now: state, gone: [], fresh: [] };
  const view = scene_view(timeline, { ...change, now: state }, fold, closed);
  const shown = new Set(view.core);
  for (const n of state_order(timeline.nodes, state.roots, { has: (m) => closed.has(timeline.key_of(m)) }))
    if (!view.is_hidden(n)) shown.add(timeline.key_of(n));
  return { ...scene_of(timeline, view, shown), left: 0, ...view.focus };
}

/** Look at two states as one graph: by key, with what is hidden passed over. */
function scene_view(timeline, change, fold, closed = new Set()) {
  const { nodes } = timeline;
  const { old, now, before, after } = change;
  const gone = new Set(change.gone);
  const fresh = new Set(change.fresh);
  const is_core = (n) => n === before || n === after || gone.has(n) || fresh.has(n);
  const is_hidden = (n) => {
    if (n === before || n === after) return false;
    return nodes.op[n] === "CONST" || (fold && nodes.dtype[n] === "index" && nodes.op[n] !== "STAGE");
  };
  const old_of = new Map();
  const now_of = new Map();
  if (!now) for (const root of [before, after]) for (const n of state_order_within(nodes, root, HOPS)) now_of.set(n, n);
  for (const n of old ? old.order : []) old_of.set(timeline.key_of(n), n);
  for (const n of now ? now.order : []) now_of.set(timeline.key_of(n), n);
  const key_of = now ? timeline.key_of : (n) => n;

  const state_of = (key) => {
    const [n, was] = [now_of.get(key), old_of.get(key)];
    if (n === undefined || (!now && n === before)) return "gone";
    if (fresh.has(n) || (!now && n === after)) return "new";
    return was !== undefined && was !== n && (n === after || differs(was, n)) ? "changed" : "kept";
  };
  /** Whether what is paired is not the same: an argument, or an operand in its words. */
  const differs = (was, n) => nodes.arg[was] !== nodes.arg[n] || nodes.src[was].length !== nodes.src[n].length ||
    nodes.src[n].some((s, i) => s !== nodes.src[was][i] && is_hidden(s));
  function* around(key) {
    for (const [by_key, state] of [[now_of, now], [old_of, old]]) {
      const n = by_key.get(key);
      if (n === undefined) continue;
      const is_through = nodes.op[n] !== "SINK" && nodes.src[n].length <= HUB; // what a sink joins has nothing in common
      if (is_through || is_core(n)) for (const s of nodes.src[n]) if (!is_hidden(s)) yield key_of(s);
      const users = state ? state.users.get(n) || [] : [];
      if (users.length <= HUB) for (const user of users) if (!is_hidden(user)) yield key_of(user);
    }
  }
  /** What is hidden is seen in the words of those that read it. */
  const seen_in = (n) => {
    const found = new Set([n]);
    for (const m of found)
      if (is_hidden(m) && (now?.users.has(m) || old?.users.has(m)))
        for (const user of (now?.users.get(m) || []).concat(old?.users.get(m) || [])) found.add(user);
    return [...found].filter((m) => !is_hidden(m));
  };
  const all = [...change.gone, ...change.fresh, before, after].filter((n) => n !== null && (!now || now.users.has(n) || old?.users.has(n)));
  const core = all.flatMap((n) => (is_hidden(n) && nodes.op[n] !== "CONST" ? seen_in(n) : is_hidden(n) ? [] : [n]));
  const focus = { focus: [...new Set(core.map(key_of))], first: [before, after].filter((n) => n !== null).map(key_of) };
  return { core: new Set(focus.focus), focus, around, is_hidden, old_of, now_of, key_of, state_of, closed };
}

/** Return the nodes and edges of a scene from the keys it shows. */
function scene_of(timeline, view, keys) {
  const { nodes } = timeline;
  const listed = [...keys];
  const place = new Map(listed.map((key, i) => [key, i]));
  const made = listed.map((key) => {
    const n = view.now_of.get(key) ?? view.old_of.get(key);
    return { ...scene_node(nodes, n, key, view.state_of(key), view), n: timeline.real(n) };
  });
  const edges = new Map(); // "a b slot" -> edge
  const add = (key, n, state) => {
    if (view.closed.has(key)) return;
    const src = nodes.src[n];
    src.forEach((s, slot) => {
      const from = place.get(view.key_of(s));
      if (from === undefined || view.is_hidden(s)) return;
      const name = `${from} ${place.get(key)} ${slot}`;
      if (state === "gone" && edges.has(name)) edges.get(name).state = "kept";
      else edges.set(name, { a: from, b: place.get(key), slot, slots: src.length, state });
    });
  };
  for (const key of listed) if (view.now_of.has(key)) add(key, view.now_of.get(key), view.old_of.size ? "new" : "kept");
  for (const key of listed) if (view.old_of.has(key)) add(key, view.old_of.get(key), "gone");
  return { nodes: made, edges: with_ports(made.length, [...edges.values()]) };
}

/** Number the sources of each box from left to right, counting only those that are drawn. */
function with_ports(count, edges) {
  const entering = Array.from({ length: count }, () => []);
  for (const edge of edges) entering[edge.b].push(edge);
  for (const listed of entering) {
    listed.sort((a, b) => a.slot - b.slot || (a.state === "gone") - (b.state === "gone"));
    listed.forEach((edge, i) => Object.assign(edge, { slot: i, slots: listed.length }));
  }
  return edges;
}

function scene_node(nodes, n, key, state, view) {
  const label = scene_label(nodes, n, view);
  const sub = [nodes.shape[n], nodes.dtype[n] === "void" ? "" : nodes.dtype[n]].filter(Boolean).join(" ");
  const family = family_of(nodes.op[n]);
  const w = Math.max(56, 26 + Math.max(6.9 * label.length, 5.7 * sub.length));
  return { key, n, w, h: BOX_HEIGHT, label, sub, family, letter: family, op: nodes.op[n], state };
}

/** Return what stands in a box: its op, and in words those operands that are not drawn. */
function scene_label(nodes, n, view) {
  const src = nodes.src[n];
  const label = nodes.label[n];
  if (view.closed.has(view.key_of(n))) return `${label} …`;
  if (nodes.op[n] === "INDEX") return scene_short(`${expr_own_name(nodes, src[0])}[${src.slice(1).map((s) => expr_inline(nodes, s, 26)).join(", ")}]`);
  if (nodes.op[n] === "RANGE" || nodes.op[n] === "LOOP" || !src.some(view.is_hidden)) return label;
  const parts = src.map((s) => (view.is_hidden(s) ? expr_inline(nodes, s, 14) : "·"));
  if (parts.length === 2 && !/^\w+$/.test(label) && nodes.op[n] in EXPR_INFIX) return `${parts[0]} ${label} ${parts[1]}`;
  return scene_short(`${label}(${parts.join(", ")})`);
}

const scene_short = (text) => (text.length > 32 ? `${text.slice(0, 31)}…` : text);
