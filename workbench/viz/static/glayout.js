// Where the nodes of a graph go: layers by longest path, lines past a layer as shared dummies,
// rows ordered by barycentres, columns by pooling. What was there before stays where it is.
//
// A graph is {nodes: [{key, w, h}], edges: [{a, b, slot, slots}]}: `a` is source number `slot` of
// `slots` of `b`, both places in `nodes`. The result has {x, y} per node (middle of the box) and
// the points of each edge; null for one that is too long to draw: a stub at each end.

const PITCH = 62; // from a layer to the next, pixels
const TIGHT = 40; // the least, where something new is put between what stays
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
  for (const [above, below, port] of links) up[below].push([above, port]), down[above].push([below, port]);
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

// the next state

/** Return the layout of a graph of which a part has a place already: that part stays, and is
 * pushed down only where what is new between it does not fit. */
function layout_next(graph, before) {
  const order = layout_topological(graph);
  const known = graph.nodes.map((node) => before.get(node.key) || null);
  const y = layout_heights(graph, order, known);
  const places = y.map((at, i) => ({ x: known[i] ? known[i].x : NaN, y: at }));
  layout_beside(graph, order, places);
  const routes = graph.edges.map((edge) => {
    if (Math.abs(places[edge.b].y - places[edge.a].y) > LONG_EDGE * PITCH) return null;
    const from = [places[edge.a].x, places[edge.a].y + graph.nodes[edge.a].h / 2];
    return [from, layout_port(graph.nodes[edge.b], places[edge.b], edge.slot, edge.slots)];
  });
  return { places, routes };
}

/** Return y per node: known ones keep theirs, new ones are spread between their neighbours. */
function layout_heights(graph, order, known) {
  const up = graph.nodes.map(() => []);
  const down = graph.nodes.map(() => []);
  const place = new Int32Array(order.length);
  order.forEach((n, i) => (place[n] = i));
  for (const { a, b } of graph.edges) if (place[a] < place[b]) up[b].push(a), down[a].push(b);
  // steps to, and place of, the next known node below
  const below = known.map(() => [0, Infinity]);
  for (const n of [...order].reverse())
    for (const t of down[n]) {
      const [steps, end] = known[t] ? [1, known[t].y] : [below[t][0] + 1, below[t][1]];
      if (end - steps * TIGHT < below[n][1] - below[n][0] * TIGHT || below[n][0] === 0) below[n] = [steps, end];
    }
  const y = known.map((at) => (at ? at.y : NaN));
  for (const n of order) {
    const tops = up[n].map((s) => y[s]).filter((v) => !Number.isNaN(v));
    const top = tops.length ? Math.max(...tops) : null;
    const [steps, end] = below[n];
    if (known[n]) y[n] = top === null ? known[n].y : Math.max(known[n].y, top + TIGHT);
    else if (top === null) y[n] = end === Infinity ? 0 : end - steps * PITCH;
    else if (end === Infinity) y[n] = top + PITCH;
    else y[n] = top + Math.max(TIGHT, Math.min(PITCH, (end - top) / (steps + 1)));
  }
  return y;
}

/** Give what has no column yet the free place nearest to its neighbours. */
function layout_beside(graph, order, places) {
  const near = graph.nodes.map(() => []);
  for (const { a, b } of graph.edges) near[a].push(b), near[b].push(a);
  const shelf = new Map(); // what stands about a height: number -> places in `graph.nodes`
  const shelves = (n) => {
    const { y } = places[n];
    const half = graph.nodes[n].h / 2 + 4;
    const found = [];
    for (let s = Math.floor((y - half) / TIGHT); s <= Math.floor((y + half) / TIGHT); s++) found.push(s);
    return found;
  };
  const put = (n) => shelves(n).forEach((s) => shelf.set(s, [...(shelf.get(s) || []), n]));
  const unplaced = order.filter((n) => Number.isNaN(places[n].x));
  order.filter((n) => !Number.isNaN(places[n].x)).forEach(put);
  const is_placed = (n) => !Number.isNaN(places[n].x);
  // outward from what has a place, so that each new one has a neighbour to stand by
  while (unplaced.length) {
    const at = Math.max(0, unplaced.findIndex((n) => near[n].some(is_placed)));
    const [n] = unplaced.splice(at, 1);
    const xs = near[n].filter(is_placed).map((m) => places[m].x);
    const wanted = xs.length ? xs.reduce((sum, x) => sum + x, 0) / xs.length : 0;
    const others = [...new Set(shelves(n).flatMap((s) => shelf.get(s) || []))];
    places[n].x = layout_free(graph, places, n, wanted, others);
    put(n);
  }
}

function layout_free(graph, places, n, wanted, others) {
  const { w, h } = graph.nodes[n];
  const taken = others
    .filter((m) => Math.abs(places[m].y - places[n].y) < (h + graph.nodes[m].h) / 2 + 4)
    .map((m) => [places[m].x, (w + graph.nodes[m].w) / 2 + COLUMN_GAP]);
  const is_free = (x) => taken.every(([at, apart]) => Math.abs(at - x) >= apart - 0.01);
  const sides = taken.flatMap(([at, apart]) => [at - apart, at + apart]);
  const fits = [wanted, ...sides].filter(is_free);
  return fits.reduce((best, x) => (Math.abs(x - wanted) < Math.abs(best - wanted) ? x : best), fits[0]);
}
