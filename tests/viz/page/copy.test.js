// What Rewrites copies: lines of the record, joined.

import assert from "node:assert/strict";
import { stepPython } from "../../../workbench/viz/page/panels/rewrites/pass_lists.js";

const record = {
  expr: { python: "ex\n" },
  variants: [{ recipe: "kernel\n" }],
  passes: [
    { variant: null, rewrites: [], python: { outcome: "outcome 0", match: ["[", "]"] } },
    { variant: 0, rewrites: [[], []], python: { outcome: "outcome 1", match: ["[", "]"] } },
  ],
};

Deno.test("a pass of a variant begins with the lines that bind its kernel", () => {
  assert.equal(stepPython(record, 0, 0), "ex\noutcome 0");
  assert.equal(stepPython(record, 1, 0), "ex\nkernel\noutcome 1");
});

Deno.test("a step is the text around its place, counted from 0", () => {
  assert.equal(stepPython(record, 1, 2), "ex\nkernel\n[1]");
});

Deno.test("the step of a pass that is one function has no match, but an outcome", () => {
  assert.equal(stepPython(record, 0, 1), "ex\noutcome 0");
});
