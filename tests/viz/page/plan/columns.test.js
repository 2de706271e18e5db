// A layout that is folded to the shape of a pane.

import assert from "node:assert/strict";
import { layoutFolded } from "../../../../workbench/viz/page/layout/columns.js";
import { layoutGraph } from "../../../../workbench/viz/page/layout/layout.js";

function chainOf(count, more = []) {
  const edges = Array.from({ length: count - 1 }, (_, i) => [i, i + 1]).concat(more);
  return {
    nodes: Array.from({ length: count }, (_, key) => ({ key, w: 100, h: 36 })),
    edges: edges.map(([a, b], i) => ({ a, b, slot: i < count - 1 ? 0 : 1, slots: 2 })),
  };
}

function sizeOf({ places }) {
  const [xs, ys] = [places.map(({ x }) => x), places.map(({ y }) => y)];
  return [Math.max(...xs) - Math.min(...xs) + 100, Math.max(...ys) - Math.min(...ys) + 36];
}

Deno.test("a long chain fills the pane, and nothing overlaps", () => {
  const graph = chainOf(36);
  for (const pane of [{ width: 900, height: 500 }, { width: 430, height: 600 }]) {
    const folded = layoutFolded(graph, layoutGraph(graph), pane);
    const [width, height] = sizeOf(folded);
    const scale = Math.min(pane.width / width, pane.height / height);
    assert.ok(scale > 0.5, `${pane.width}: ${scale}`);
    folded.places.forEach((p, i) =>
      folded.places.slice(0, i).forEach((q) =>
        assert.ok(Math.abs(p.x - q.x) >= 100 || Math.abs(p.y - q.y) >= 36)
      )
    );
  }
});

Deno.test("lines lead from the end of a column to the top of the next one", () => {
  const graph = chainOf(12);
  const { places, routes } = layoutFolded(graph, layoutGraph(graph), { width: 400, height: 400 });
  const turns = graph.edges.filter(({ a, b }) => places[b].y < places[a].y);
  assert.ok(turns.length >= 1);
  graph.edges.forEach(({ a, b }, i) => {
    const [first, last] = [routes[i][0], routes[i].at(-1)];
    assert.deepEqual(first, [places[a].x, places[a].y + 18]);
    assert.equal(last[1], places[b].y - 18);
    assert.ok(Math.abs(last[0] - places[b].x) <= 50);
  });
});

Deno.test("a line past the end of a column is a stub at its reader", () => {
  const graph = chainOf(12, [[0, 11]]);
  const { routes } = layoutFolded(graph, layoutGraph(graph), { width: 400, height: 400 });
  assert.equal(routes.at(-1), null);
});

Deno.test("what fits stays in one column, as it was laid out", () => {
  const graph = chainOf(3);
  const layout = layoutGraph(graph);
  assert.equal(layoutFolded(graph, layout, { width: 300, height: 900 }), layout);
  const empty = { nodes: [], edges: [] };
  assert.deepEqual(layoutFolded(empty, layoutGraph(empty), { width: 9, height: 9 }).places, []);
});
