// Where the nodes of a graph go: layers by longest path, lines past a layer as shared dummies,
// rows ordered by barycentres, columns by pooling.
//
// A graph is {nodes: [{key, w, h}], edges: [{a, b, slot, slots}]}: `a` is source number `slot` of
// `slots` of `b`, both places in `nodes`. The result has {x, y} per node (middle of the box) and
// the points of each edge; null for one that is too long to draw: a stub at each end.

const PITCH = 56; // from a layer to the next, pixels
const COLUMN_GAP = 18;
const LONG_EDGE = 6; // layers; what is longer is a stub
const SWEEPS = 12;
const DUMMY_WIDTH = 6;

/** Return the layout of a graph: the next one after `before` (Map key -> {x, y}) where they have
 * nodes in common, else a fresh one. */
function layout_graph(graph, before = new Map()) {
  if (graph.nodes.some((node) => before.has(node.key))) return layout_next(graph, before);
  return layout_fresh(graph);
}

function layout_fresh(graph) {
  const proper = layout_proper(graph, layout_layers(graph));
  const rows = layout_rows(proper);
  const x = layout_columns(proper, rows);
  const places = graph.nodes.map((node, i) => ({ x: x[i], y: proper.layer[i] * PITCH }));
  const routes = graph.edges.map((edge, i) => layout_route(graph, places, edge, proper, proper.chains[i], x));
  return { places, routes };
}

/** Return the nodes, sources first; where edges go in a circle, one of them is taken anyway. */
function layout_topological(graph) {
  const waiting = graph.nodes.map(() => 0);
  const targets = graph.nodes.map(() => []);
  for (const { a, b } of graph.edges) waiting[b]++, targets[a].push(b);
  const order = [];
  const done = new Uint8Array(graph.nodes.length);
  const ready = graph.nodes.map((_, i) => i).filter((i) => !waiting[i]).reverse();
  let next = 0;
  while (order.length < graph.nodes.length) {
    if (!ready.length) {
      while (done[next]) next++;
      ready.push(next);
    }
    const n = ready.pop();
    if (done[n]) continue;
    done[n] = 1;
    order.push(n);
    for (const t of targets[n]) if (--waiting[t] === 0) ready.push(t);
  }
  return order;
}

/** Return a layer per node: the longest way from a source; what has none stands by its reader. */
function layout_layers(graph) {
  const order = layout_topological(graph);
  const place = new Int32Array(order.length);
  order.forEach((n, i) => (place[n] = i));
  const layer = new Array(order.length).fill(0);
  const sources = graph.nodes.map(() => []);
  const targets = graph.nodes.map(() => []);
  for (const { a, b } of graph.edges)
    if (place[a] < place[b]) sources[b].push(a), targets[a].push(b);
  for (const n of order) for (const t of targets[n]) layer[t] = Math.max(layer[t], layer[n] + 1);
  for (const n of order)
    if (!sources[n].length && targets[n].length) layer[n] = Math.min(...targets[n].map((t) => layer[t])) - 1;
  return layer;
}

/** Return the graph with a dummy wherever a line passes a layer; lines of one source share. */
function layout_proper(graph, layers) {
  const count = graph.nodes.length;
  const layer = [...layers];
  const width = graph.nodes.map((node) => node.w);
  const links = []; // [above, below, share of the width below at which the line ends]
  const chains = graph.edges.map(() => null);
  const passed = new Map(); // source * 100000 + layer -> dummy
  graph.edges.forEach(({ a, b, slot, slots }, i) => {
    const span = layer[b] - layer[a];
    if (span < 1 || span > LONG_EDGE) return;
    let from = a;
    chains[i] = [];
    for (let at = layer[a] + 1; at < layer[b]; at++) {
      const key = a * 100000 + at;
      if (!passed.has(key)) {
        passed.set(key, layer.length);
        links.push([from, layer.length, 0]);
        layer.push(at);
        width.push(DUMMY_WIDTH);
      }
      from = passed.get(key);
      chains[i].push(from);
    }
    links.push([from, b, (slot + 1) / (slots + 1) - 0.5]);
  });
  const up = layer.map(() => []);
  const down = layer.map(() => []);
  const entering = new Map();
  for (const [, below] of links) entering.set(below, (entering.get(below) || 0) + 1);
  for (const [above, below, share] of links) {
    const port = entering.get(below) > 1 ? share : 0; // a chain goes straight down
    up[below].push([above, port]);
    down[above].push([below, port]);
  }
  return { count, layer, width, up, down, chains };
}

/** Return the rows: vertices from left to right, so that few lines cross. */
function layout_rows({ layer, up, down }) {
  const least = Math.min(...layer, 0);
  const rows = [];
  const first = new Float64Array(layer.length).fill(-1);
  let count = 0;
  // the first order: depth first from below, so that a tree starts out without crossings
  const below = layer.map((_, v) => v).filter((v) => !down[v].length);
  const stack = below.sort((a, b) => layer[b] - layer[a]).reverse();
  while (stack.length) {
    const v = stack.pop();
    if (first[v] >= 0) continue;
    first[v] = count++;
    stack.push(...up[v].map(([s]) => s).reverse());
  }
  layer.forEach((l, v) => (rows[l - least] ??= []).push(v));
  for (let i = 0; i < rows.length; i++) (rows[i] ??= []).sort((a, b) => first[a] - first[b]);
  return layout_sweep(rows, up, down);
}

function layout_sweep(rows, up, down) {
  const at = [];
  const number = (row) => row.forEach((v, i) => (at[v] = i));
  rows.forEach(number);
  let best = rows.map((row) => [...row]);
  let fewest = layout_crossings(rows, up, at);
  for (let sweep = 0; sweep < SWEEPS && fewest; sweep++) {
    const near = sweep % 2 ? down : up;
    for (const row of sweep % 2 ? [...rows].reverse() : rows) {
      const middle = new Map(row.map((v) => [v, layout_middle(near[v], at, at[v])]));
      row.sort((a, b) => middle.get(a) - middle.get(b) || at[a] - at[b]);
      number(row);
    }
    const crossings = layout_crossings(rows, up, at);
    if (crossings < fewest) [best, fewest] = [rows.map((row) => [...row]), crossings];
  }
  return best;
}

function layout_middle(near, at, otherwise) {
  if (!near.length) return otherwise;
  return near.reduce((sum, [v, port]) => sum + at[v] + port * 0.5, 0) / near.length;
}

/** Count crossings between neighbouring rows, by a tree of counts over the upper row. */
function layout_crossings(rows, up, at) {
  let crossings = 0;
  for (let i = 1; i < rows.length; i++) {
    const size = rows[i - 1].length + 1;
    const tree = new Int32Array(size + 1);
    let total = 0;
    for (const v of rows[i]) {
      const ends = up[v].map(([s]) => at[s]);
      for (const end of ends) {
        let upto = 0;
        for (let k = end + 1; k > 0; k -= k & -k) upto += tree[k];
        crossings += total - upto;
      }
      for (const end of ends) {
        total++;
        for (let k = end + 1; k <= size; k += k & -k) tree[k]++;
      }
    }
  }
  return crossings;
}

/** Return x per vertex: each row as near to its neighbours as order and widths allow. */
function layout_columns({ layer, width, up, down, count }, rows) {
  const x = new Array(layer.length).fill(0);
  for (const row of rows) {
    let at = 0;
    for (const v of row) (x[v] = at + width[v] / 2), (at += width[v] + COLUMN_GAP);
    for (const v of row) x[v] -= at / 2;
  }
  for (let sweep = 0; sweep < 10; sweep++) {
    for (const row of sweep % 2 ? [...rows].reverse() : rows) {
      const wanted = row.map((v) => {
        let [sum, weight] = [x[v] * 0.01, 0.01];
        const pull = (s, shift) => {
          const w = v >= count && s >= count ? 8 : v >= count || s >= count ? 2 : 1;
          (sum += w * (x[s] + shift)), (weight += w);
        };
        if (sweep % 2 === 0 || sweep > 7) up[v].forEach(([s, port]) => pull(s, -port * width[v]));
        if (sweep % 2 === 1 || sweep > 7) down[v].forEach(([t, port]) => pull(t, port * width[t]));
        return [sum / weight, weight];
      });
      layout_settle(row, wanted, width, x);
    }
  }
  return x;
}

/** Put a row at the places it wants, in its order and without overlap (isotonic regression). */
function layout_settle(row, wanted, width, x) {
  const offsets = [];
  let at = 0;
  for (const v of row) offsets.push(at + width[v] / 2), (at += width[v] + COLUMN_GAP);
  const blocks = []; // [mean, weight, members]
  wanted.forEach(([place, weight], i) => {
    let block = [place - offsets[i], weight, 1];
    while (blocks.length && blocks.at(-1)[0] > block[0]) {
      const [mean, w, n] = blocks.pop();
      block = [(mean * w + block[0] * block[1]) / (w + block[1]), w + block[1], n + block[2]];
    }
    blocks.push(block);
  });
  let i = 0;
  for (const [mean, , members] of blocks) for (let k = 0; k < members; k++, i++) x[row[i]] = mean + offsets[i];
}

function layout_route(graph, places, { a, b, slot, slots }, proper, chain, x) {
  if (!chain) return null;
  const points = [[places[a].x, places[a].y + graph.nodes[a].h / 2]];
  for (const v of chain) points.push([x[v], proper.layer[v] * PITCH]);
  points.push(layout_port(graph.nodes[b], places[b], slot, slots));
  return points;
}

/** Where source number `slot` enters a box: along its top, in the order of the sources. */
function layout_port(node, place, slot, slots) {
  return [place.x + ((slot + 1) / (slots + 1) - 0.5) * node.w * 0.8, place.y - node.h / 2];
}
