import assert from "node:assert/strict";
import { Camera, graphBounds } from "../../../../workbench/viz/page/graph/camera.js";

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

Deno.test("a title above the boxes is in sight when all of a drawing is", () => {
  const labels = [{ x: 0, y: -60, w: 80, h: 20 }];
  assert.ok(graphBounds({ nodes, labels }).top <= -70);
});

Deno.test("what does not fit gives way to what counts", () => {
  const camera = cameraOn(nodes, { keys: [0, 1, 2], first: [1] });
  assert.ok(!camera.isOutOfSight(graphBounds({ nodes: [nodes[1]] })));
  assert.ok(camera.placement.scale >= 0.75);
});

Deno.test("what is brought into sight leaves no room empty beside a large drawing", () => {
  for (const at of [0, 1, 2]) {
    const { bounds, placement: { scale, x, y }, size } = cameraOn(nodes, { keys: [at] });
    assert.ok(bounds.left * scale + x < 1e-6 && bounds.top * scale + y < 1e-6);
    assert.ok(bounds.right * scale + x > size.width - 1e-6);
    assert.ok(bounds.bottom * scale + y > size.height - 1e-6);
  }
  const camera = cameraOn([{ ...nodes[0], x: 40, y: 20 }], { keys: [0] });
  camera.bounds = graphBounds({ nodes }); // it is unfolded
  camera.wish = { keys: [0, 1, 2], first: [0], whole: true };
  camera.look(nodesOf);
  const { placement: at } = camera;
  assert.ok(camera.bounds.left * at.scale + at.x < 1e-6);
  const row = nodes.map((node) => ({ ...node, y: 0 }));
  const { bounds, placement: { scale, y }, size } = cameraOn(row, { keys: [0, 2], first: [0] });
  assert.ok(Math.abs((bounds.top + bounds.bottom) * scale / 2 + y - size.height / 2) < 1e-6);
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

/** Two cameras of panes of one size, of drawings with these boxes, as views beside each other. */
function pairOf(...drawings) {
  const pair = [0, 1].map((i) => new Camera(() => pair[1 - i].wholeScale));
  pair.forEach((camera, i) => {
    camera.size = { width: 400, height: 300 };
    camera.bounds = graphBounds({ nodes: drawings[i] });
  });
  for (const camera of pair) {
    camera.wish = "start";
    camera.look(nodesOf);
  }
  for (const camera of pair) camera.again();
  return pair;
}

Deno.test("two drawings are fitted at the scale of the one that needs more room", () => {
  const tall = [0, 250, 500].map((y) => ({ ...nodes[0], y }));
  const [one, other] = pairOf(tall, [nodes[0]]);
  assert.equal(one.placement.scale, one.scaleToFit(one.bounds));
  assert.equal(other.placement.scale, one.placement.scale);
  for (const camera of [one, other]) assert.ok(!camera.isOutOfSight(camera.bounds));
  one.size = { width: 400, height: 270 };
  for (const camera of [one, other]) camera.again();
  assert.equal(one.placement.scale, one.scaleToFit(one.bounds), "in a smaller pane");
  assert.equal(other.placement.scale, one.placement.scale);
});

Deno.test("two drawings of which one would not be legible begin with their upper ends", () => {
  const [one, other] = pairOf(nodes, [nodes[1], { ...nodes[1], y: 4500 }]);
  assert.ok(one.placement.scale >= 0.45);
  assert.equal(other.placement.scale, one.placement.scale);
  assert.ok(Math.abs(one.bounds.top * one.placement.scale + one.placement.y) < 1e-6);
  assert.ok(!other.isOutOfSight(other.bounds), "the small one is in the middle");
});

Deno.test("what moves one drawing moves the other alike", () => {
  const [one, other] = pairOf([nodes[0]], [nodes[1]]);
  const before = one.placement;
  const point = [100, 80], at = [one, other].map((camera) => camera.pointAt(...point));
  one.zoomAt(1.5, ...point);
  other.moveAlike(before, one.placement);
  assert.equal(other.placement.scale, one.placement.scale);
  [one, other].forEach((camera, i) =>
    camera.pointAt(...point).forEach((value, k) => assert.ok(Math.abs(value - at[i][k]) < 1e-6))
  );
});
