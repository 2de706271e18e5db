// The sizes of texts in a graph: on the screen none is too small to be read.

import assert from "node:assert/strict";
import {
  boxTexts,
  relationsOf,
  TEXT_FROM,
  textScale,
  textSize,
  textWidth,
} from "../../../../workbench/viz/page/graph/labels.js";

globalThis.document = {
  createElement: () => ({
    getContext: () => ({ measureText: ({ length }) => ({ width: 7 * length }) }),
  }),
};

const SMALLEST = 9;
const box = {
  key: 1,
  n: 1,
  x: 0,
  y: 0,
  w: 96,
  h: 34,
  label: "sum of products",
  sub: "64x64 float32",
  letter: "R",
};
const scales = Array.from({ length: 60 }, (_, i) => TEXT_FROM * 1.034 ** i);

Deno.test("at each scale a text has at least nine pixels", () => {
  for (const scale of scales) {
    assert.ok(textScale(scale) <= scale * 1.0001 || textScale(scale) === 1, `${scale}`);
    const { label, sub } = boxTexts(box, textScale(scale));
    for (const text of [label, sub]) {
      if (text) assert.ok(text.size * scale >= SMALLEST - 1e-9, `${text.text} at ${scale}`);
    }
  }
});

Deno.test("a text that grew is shortened to its box, and is alone there", () => {
  const { label, sub } = boxTexts(box, 0.5);
  assert.equal(sub, null);
  assert.ok(label.text.endsWith("…") && label.text.length > 2);
  assert.ok((textWidth(label.text, 12) * label.size) / 12 <= box.w * 1.05);
  assert.equal(boxTexts({ ...box, label: "+" }, 0.5).label.text, "+", "what fits stays");
  assert.equal(boxTexts({ ...box, w: 12 }, 0.45).label.text, "", "no room, no text");
});

Deno.test("where the picture is large enough, all of a box is there as it is", () => {
  const { label, sub, letter } = boxTexts(box, 1);
  assert.deepEqual([label.text, label.size, sub.text, sub.size], [box.label, 12, box.sub, 10]);
  assert.equal(letter.text, "R");
  assert.equal(textSize(12, 2), 12, "and grows with it");
});

Deno.test("texts are written anew in steps, not at each turn of a wheel", () => {
  const written = new Set(scales.filter((scale) => scale < 0.9).map(textScale));
  assert.ok(written.size <= 8, `${written.size}`);
});

Deno.test("what the picked box reads and what reads it are told apart", () => {
  const drawing = {
    nodes: ["x", "y", "sum", "root", "other"].map((key) => ({ key })),
    edges: [[0, 2], [1, 2], [2, 3], [0, 4]].map(([a, b]) => ({ a, b })),
  };
  const { boxes, lines } = relationsOf(drawing, "sum");
  assert.deepEqual([...boxes], [["x", "operand"], ["y", "operand"], ["root", "reader"]]);
  assert.deepEqual([...lines.values()], ["operand", "operand", "reader"]);
  assert.equal(relationsOf(drawing, null).boxes.size, 0);
  assert.equal(relationsOf(drawing, "gone").lines.size, 0);
});
