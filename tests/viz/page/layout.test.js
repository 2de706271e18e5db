import assert from "node:assert/strict";
import { PITCH } from "../../../workbench/viz/page/layout/geometry.js";
import { layoutGraph } from "../../../workbench/viz/page/layout/layout.js";

function graphOf(count, edges) {
  return {
    nodes: Array.from({ length: count }, (_, key) => ({ key, w: 50 + (key * 37) % 90, h: 34 })),
    edges: edges.map(([a, b], i) => ({ a, b, slot: i % 2, slots: 2 })),
  };
}

function overlaps({ nodes }, { places }) {
  return places.flatMap((p, i) =>
    places.slice(0, i).filter((q, j) =>
      Math.abs(p.x - q.x) < (nodes[i].w + nodes[j].w) / 2 - 0.1 && Math.abs(p.y - q.y) < 33.9
    )
  ).length;
}

const tree = graphOf(60, Array.from({ length: 59 }, (_, i) => [Math.floor(i / 2), i + 1]));

Deno.test("nothing overlaps, and sources stand above", () => {
  const layout = layoutGraph(tree);
  assert.equal(overlaps(tree, layout), 0);
  for (const { a, b } of tree.edges) {
    assert.ok(layout.places[b].y >= layout.places[a].y + PITCH);
  }
});

Deno.test("what has a place keeps it", () => {
  const first = layoutGraph(tree);
  const half = new Map(first.places.slice(0, 30).map((place, key) => [key, place]));
  const next = layoutGraph(tree, half);
  assert.equal(overlaps(tree, next), 0);
  for (const [key, { x }] of half) assert.equal(next.places[key].x, x);
});

Deno.test("a graph always gets the same picture", () => {
  assert.deepEqual(layoutGraph(tree), layoutGraph(tree));
});

Deno.test("depth has no limit, and a circle has an end", () => {
  const deep = graphOf(5000, Array.from({ length: 4999 }, (_, i) => [i, i + 1]));
  assert.ok(layoutGraph(deep).places.at(-1).y > 100_000);
  const circle = layoutGraph(graphOf(3, [[0, 1], [1, 2], [2, 0]]));
  assert.ok(circle.places.every(({ x, y }) => Number.isFinite(x + y)));
});

Deno.test("an edge that is too long has no line", () => {
  const edges = [...Array.from({ length: 9 }, (_, i) => [i, i + 1]), [0, 9]];
  const { routes } = layoutGraph(graphOf(10, edges));
  assert.equal(routes.at(-1), null);
  assert.ok(routes.slice(0, -1).every(Boolean));
});

Deno.test("a thousand that are new stand free in one row", () => {
  const star = graphOf(1001, Array.from({ length: 1000 }, (_, i) => [0, i + 1]));
  const layout = layoutGraph(star, new Map([[0, { x: 0, y: 0 }]]));
  assert.equal(new Set(layout.places.slice(1).map(({ y }) => y)).size, 1);
  assert.equal(overlaps(star, layout), 0);
});
