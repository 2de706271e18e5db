import assert from "node:assert/strict";
import {
  exprChange,
  exprInline,
  exprLines,
} from "../../../workbench/viz/static/record/expression.js";
import { stateOrder, Timeline } from "../../../workbench/viz/static/record/states.js";

/** Columns of a record from rows [op, sources, arg or label]. */
function nodesOf(rows) {
  const columns = {
    op: [],
    src: [],
    arg: [],
    label: [],
    dtype: [],
    shape: [],
    line: [],
    inner: [],
  };
  for (const [op, src = [], text = ""] of rows) {
    const row = {
      op,
      src,
      arg: text,
      label: text,
      dtype: "float32",
      shape: "",
      line: -1,
      inner: [],
    };
    for (const name of Object.keys(columns)) columns[name].push(row[name]);
  }
  return { ...columns, made: rows.map(() => []) };
}

// x * 1 + y, then x + y
const nodes = nodesOf([
  ["PARAM", [], "x"],
  ["CONST", [], "1"],
  ["MUL", [0, 1]],
  ["PARAM", [], "y"],
  ["ADD", [2, 3]],
  ["ADD", [0, 3]],
]);
const pass = (root) => ({
  unit: "rewrite",
  changed: true,
  before: [4],
  after: [5],
  rewrites: [[7, 2, 0, root]],
});

Deno.test("sources come before what reads them, each once", () => {
  assert.deepEqual(stateOrder(nodes, [4]), [0, 1, 2, 3, 4]);
  assert.deepEqual(stateOrder(nodes, [4], new Set([2])), [2, 3, 4]);
});

Deno.test("a step tells what went and what came, and who took whose place", () => {
  const timeline = new Timeline(nodes, pass(5));
  const { gone, fresh } = timeline.change(1);
  assert.deepEqual([gone, fresh], [[1, 2], []]);
  assert.equal(timeline.keyOf(5), 4);
});

Deno.test("a state that the record left out is replayed", () => {
  const replayed = new Timeline(nodes, pass(-1));
  assert.deepEqual(replayed.roots(1), [5]);
});

Deno.test("expressions are infix, bracketed only where they must be", () => {
  assert.equal(exprInline(nodes, 4), "x * 1 + y");
  const product = nodesOf([["PARAM", [], "a"], ["PARAM", [], "b"], ["ADD", [0, 1]], ["MUL", [
    2,
    0,
  ]]]);
  assert.equal(exprInline(product, 3), "(a + b) * a");
  assert.deepEqual(exprLines(product, 3), ["(a + b) * a"]);
  assert.equal(exprInline(product, 3, 6), "(a + …");
});

Deno.test("only what differs is spelled out", () => {
  const { before, after } = exprChange(nodes, 2, 0);
  assert.deepEqual([before, after], [["x * 1"], ["x"]]);
});
