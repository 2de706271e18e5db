import assert from "node:assert/strict";
import { Camera, graphBounds } from "../../../workbench/viz/page/graph/camera.js";

const nodes = [[0, 0], [0, 4000], [3000, 4000]].map(([x, y], key) => ({ key, x, y, w: 80, h: 34 }));
const nodesOf = (keys) => keys.map((key) => nodes[key]);

function cameraOn(shown, wish) {
  const camera = new Camera();
  camera.size = { width: 400, height: 300 };
  camera.bounds = graphBounds({ nodes: shown });
  camera.wish = wish;
  camera.look(nodesOf);
  return camera;
}

Deno.test("all of a drawing is in sight when it is fitted, also in another size", () => {
  const camera = cameraOn(nodes, "all");
  assert.ok(!camera.isOutOfSight(camera.bounds));
  camera.size = { width: 200, height: 100 };
  camera.wish = camera.aim;
  camera.look(nodesOf);
  assert.ok(!camera.isOutOfSight(camera.bounds));
});

Deno.test("what does not fit gives way to what counts", () => {
  const camera = cameraOn(nodes, { keys: [0, 1, 2], first: [1] });
  assert.ok(!camera.isOutOfSight(graphBounds({ nodes: [nodes[1]] })));
  assert.ok(camera.placement.scale >= 0.75);
});

Deno.test("what is in sight and can be read is left alone", () => {
  const camera = cameraOn(nodes, { keys: [1] });
  const { placement } = camera;
  camera.wish = { keys: [1] };
  camera.look(nodesOf);
  assert.equal(camera.placement, placement);
});

Deno.test("to zoom leaves the point below the pointer where it is", () => {
  const camera = cameraOn(nodes, "all");
  const point = camera.pointAt(100, 50);
  camera.zoomAt(1.7, 100, 50);
  camera.pointAt(100, 50).forEach((v, i) => assert.ok(Math.abs(v - point[i]) < 1e-6));
  assert.equal(camera.aim, null);
});
