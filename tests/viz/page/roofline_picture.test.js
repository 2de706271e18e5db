// Where the names of the dots of a roofline stand.

import assert from "node:assert/strict";
import { namePlaces } from "../../../workbench/viz/page/panels/results/roofline_picture.js";

Deno.test("names of dots that lie near each other on a roof lie on neither roof nor name", () => {
  const roofs = Array.from({ length: 46 }, (_, i) => [30 + 4 * i, 60]); // a ceiling
  const dots = [[100, 62], [106, 58], [104, 66]].map((at) => ({ at, width: 40, isDue: true }));
  const boxes = namePlaces(dots, roofs).map((place, i) => {
    const [x, y] = [dots[i].at[0] + place[0], dots[i].at[1] + place[1]];
    const left = place[0] < 0 ? x - 40 : x;
    return [left, y - 8, left + 40, y + 2];
  });
  const isFree = ([a, b, c, d], [e, f, g, k]) => a >= g || c <= e || b >= k || d <= f;
  boxes.forEach((box, i) => {
    for (const other of boxes.slice(i + 1)) assert.ok(isFree(box, other), `${box} on ${other}`);
    for (const [x, y] of roofs) assert.ok(isFree(box, [x, y, x, y]), `${box} on the roof`);
  });
});
