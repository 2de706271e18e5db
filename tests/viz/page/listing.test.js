// Lines of code without a page: tokens, what differs, statements, and code that is edited.

import assert from "node:assert/strict";
import { belongs, reach } from "../../../workbench/viz/page/app/links.js";
import { App } from "../../../workbench/viz/page/app/store.js";
import {
  beforeEdit,
  beginEdit,
  changedLines,
  draftHere,
  draftOf,
  faultOf,
  leaveEdit,
  undoEdit,
  write,
} from "../../../workbench/viz/page/listing/drafts.js";
import { buffersIn } from "../../../workbench/viz/page/browser/webgpu.js";
import { changesOf } from "../../../workbench/viz/page/listing/compiler.js";
import { codeLink, diffSigns, tokensOf } from "../../../workbench/viz/page/listing/lines.js";
import { aboutLine, heatOf, shareText } from "../../../workbench/viz/page/listing/line_costs.js";
import { hasNoLine } from "../../../workbench/viz/page/listing/origin.js";
import {
  codeFor,
  isOnlyCompiled,
  machineCode,
  machineOfEdited,
  ownLanguages,
} from "../../../workbench/viz/page/listing/programs.js";
import { recordOf } from "./record.js";

const C = { comment: "//.*$", word: String.raw`\b(?:for|long)\b` };

Deno.test("the tokens of a line together are the line", () => {
  const line = "for (long g0 = 0; g0 < 512; g0++) {  // for 512";
  const tokens = tokensOf(C, line);
  assert.equal(tokens.map(([, text]) => text).join(""), line);
  const named = tokens.filter(([kind]) => kind);
  assert.deepEqual(named, [
    ["word", "for"],
    ["word", "long"],
    ["number", "0"],
    ["number", "512"],
    ["comment", "// for 512"],
  ]);
  assert.deepEqual(tokensOf(undefined, line), [["", line]]);
  assert.deepEqual(tokensOf(C, ""), []);
});

Deno.test("a pattern that matches nothing at a place comes to an end", () => {
  assert.deepEqual(tokensOf({ comment: "#.*$", word: "x*" }, "ab"), [["", "ab"]]);
});

Deno.test("what was typed is between the lines that begin and end alike", () => {
  const lines = ["a", "b", "b", "c"];
  for (
    const typed of [["a", "b", "c"], ["a", "b", "b", "b", "c"], [], ["x", ...lines], [...lines, ""]]
  ) {
    const { start, end, added } = changedLines(lines, typed);
    const now = [...lines];
    now.splice(start, end - start, ...typed.slice(start, start + added));
    assert.deepEqual(now, typed);
  }
  assert.deepEqual(changedLines(lines, lines).added, 0);
});

Deno.test("two programs say which of their lines the other lacks", () => {
  assert.deepEqual(diffSigns(["a", "b", "c"], ["a", "x", "c", "d"]), [
    ["", "−", ""],
    ["", "+", "", "+"],
  ]);
});

Deno.test("lines of one statement belong together, of one variant only", () => {
  const record = recordOf();
  const link = (statement, variant = 0, axes = ["g0"]) =>
    codeLink({ axes, nodes: [1], lines: [0], source: [], statement }, variant);
  const reached = reach(record, link(19));
  assert.equal(belongs(link(19), reached), "lit");
  for (const other of [link(18), link(19, 1), link(null)]) {
    assert.equal(belongs(other, reached), "");
  }
  assert.equal(belongs(link(null), reach(record, link(null))), "");
});

Deno.test("side by side stand the first language and machine code, of variants that exist", () => {
  const record = recordOf();
  record.languages = [{ name: "C", device: "C" }, { name: "asm", device: "", role: "machine" }];
  const app = new App(record);
  const columns = [{ variant: null, language: "C" }, { variant: null, language: "asm" }];
  assert.deepEqual(app.view.columns, columns);
  app.select({ columns: [{ variant: 1, language: "C" }, { variant: 9, language: "C" }] });
  assert.deepEqual(app.view.columns.map(({ variant }) => variant), [1, null]);
});

Deno.test("a column may show what another device makes, of languages that no device runs", () => {
  const record = recordOf();
  record.device = "LLVM";
  record.devices = ["LLVM", "C"].map((name) => ({ name, available: true }));
  record.languages = [{ name: "C", device: "C" }, { name: "asm", device: "", role: "machine" }];
  const rows = [["C", "C"], ["asm", "LLVM"]].map(([language, device]) => ({ language, device }));
  const other = { language: "asm", device: "C" };
  Object.assign(record.variants[0], { code: rows, code_elsewhere: [other] });
  const app = new App(record);
  const of = (language, device) => codeFor(app, record.variants[0], language, device);
  assert.deepEqual([of("asm", "C"), of("asm", "LLVM"), of("asm", null)], [other, rows[1], rows[1]]);
  assert.equal(of("C", "LLVM"), rows[0], "what one device writes is the same for all");
  app.select({
    columns: ["C", "NONE"].map((device) => ({ variant: null, language: "asm", device })),
  });
  assert.deepEqual(app.view.columns.map(({ device }) => device), ["C", null]);
});

/** An app whose Python compiles all but what has an "!", when it is told to. */
function compiling() {
  const sent = [];
  const app = new App(recordOf(), { send: (message) => sent.push(message) });
  const answer = () => {
    const { id, text, language } = sent.findLast((message) => message.do === "compile");
    const line = text.split("\n").findIndex((row) => row.includes("!")) + 1;
    const error = line
      ? { what: "cannot compile", because: `<stdin>:${line}:1: error: no "!"`, try: "", line }
      : null;
    const code = line ? [] : [{ language, lines: text.split("\n"), links: [] }];
    return app.channel.receive({ id, ok: true, error: null, result: { code, error }, patch: null });
  };
  const texts = () => sent.filter((message) => message.do === "compile").map(({ text }) => text);
  return { app, answer, texts };
}

/** What waits for others has had its turn. */
const settled = () => new Promise((go) => setTimeout(go));

Deno.test("what is typed is compiled after a moment, one text at a time", async () => {
  const { app, answer, texts } = compiling();
  beginEdit(app, 0, { language: "C", lines: ["a"] });
  const draft = draftHere(app, 0, "C");
  assert.deepEqual(texts(), ["a"]);
  for (const text of ["ab", "abc", "abcd"]) write(app, draft, text);
  assert.deepEqual(texts(), ["a"], "the compiler is still at the first");
  await answer();
  await settled();
  assert.deepEqual(texts(), ["a", "abcd"], "then at the last");
  assert.deepEqual(draftOf(app, 0, "C").lines, ["a"]);
  await answer();
  await settled();
  assert.deepEqual(draftOf(app, 0, "C").lines, ["abcd"]);
  assert.equal(texts().length, 2, "and at no text twice");
  app.channel.stopWatching();
});

Deno.test("an error has its line, and what compiled last stays", async () => {
  const { app, answer, texts } = compiling();
  beginEdit(app, 0, { language: "C", lines: ["a"] });
  const draft = draftHere(app, 0, "C");
  await answer();
  await settled();
  write(app, draft, "a\nb!");
  while (texts().length < 2) await settled();
  await answer();
  await settled();
  assert.equal(draft.error.line, 2);
  assert.equal(faultOf(draft.error), 'no "!"');
  assert.deepEqual(draftOf(app, 0, "C").lines, ["a"]);
  assert.equal(draftOf(app, 1, "C"), null, "of another variant there is none");
  app.channel.stopWatching();
});

Deno.test("what is written stays when the editor is closed", () => {
  const { app } = compiling();
  const code = { language: "C", lines: ["a"] };
  beginEdit(app, 0, code);
  const draft = draftHere(app, 0, "C");
  write(app, draft, "ab");
  leaveEdit(app);
  assert.equal(app.editing, null);
  beginEdit(app, 1, code);
  assert.equal(app.editing.text, "a", "another variant has its own");
  beginEdit(app, 0, { language: "C", lines: ["a"] });
  assert.equal(app.editing, draft, "also where another program is edited meanwhile");
  undoEdit(app, draft);
  assert.equal(draft.text, "a");
  leaveEdit(app);
  beginEdit(app, 0, code);
  assert.notEqual(app.editing, draft, "nothing was written");
  write(app, app.editing, "abc");
  leaveEdit(app);
  beginEdit(app, 0, { language: "C", lines: ["b"] });
  assert.equal(app.editing.text, "b", "the program is another one");
  app.channel.stopWatching();
});

Deno.test("what is written runs where the program does now", () => {
  const { app } = compiling();
  const code = { language: "C", lines: ["a"], launch: { entry: "a" } };
  beginEdit(app, 0, code);
  write(app, app.editing, "ab");
  assert.equal(app.editing.launch, null, "Python runs it");
  leaveEdit(app);
  app.live = "silent";
  beginEdit(app, 0, code);
  assert.deepEqual([app.editing.text, app.editing.launch], ["ab", code.launch], "the page does");
  app.channel.stopWatching();
});

Deno.test("what to try says what a line was", () => {
  const before = ["a", "b", "c"];
  assert.equal(beforeEdit(before, "a\n  B\nc", 2), "line 2 as it was: b");
  const begins = "the text as it was before the edit, which begins at line 2";
  assert.equal(beforeEdit(before, "a\nx\nb\nc", 2), begins);
  assert.equal(beforeEdit(before, "a\nB\nc", 3), begins);
  assert.equal(beforeEdit(before, "a\nB\nc", null), begins);
  assert.match(beforeEdit(before, before.join("\n"), 2), /was not edited/);
});

Deno.test("buffers of WGSL are seen with attributes in any order", () => {
  const rows = [
    "@group(0) @binding(0) var<storage, read_write> p0: array<f32>;",
    "@binding(1) @group(0) var<storage, read> p1: array<f32>;",
    "@ binding ( 2u, )\n  // of what comes here: @binding(9) var<storage>\n  @group(0)\nvar",
    "  < storage , read_write , > p2: array<f32>;",
    "/* @group(0) @binding(8) var<storage> /* in each other */ p8: array<f32>; */",
    "@group(1)@binding(3)var<storage>p3:array<f32>;",
    "var<workgroup> t0: array<f32, 4>;",
  ];
  assert.deepEqual(buffersIn(rows.join("\n")), [
    { group: 0, binding: 0, isWritten: true },
    { group: 0, binding: 1, isWritten: false },
    { group: 0, binding: 2, isWritten: true },
    { group: 1, binding: 3, isWritten: false },
  ]);
});

const ASM = {
  lines: ["f:", "  xorl %eax, %eax", ".L2:", "  fma (%rax), %xmm1", "  jl .L2"],
  links: [null, null, null, { axes: ["g0", "r0"] }, { axes: ["g0", "r0", "u0"] }],
  help: { fma: "multiplies and adds" },
};
const OF = {
  loops: {
    rows: [["g0", 3], ["r0", 5]].map(([axis, size]) => ({ kind: "loop", axis, size }))
      .concat({ kind: "lanes", axis: "u0", size: 8 }),
  },
};

Deno.test("an instruction is as much of a run as its loops run it, lanes apart", () => {
  const { shares, by } = heatOf(OF, ASM);
  assert.deepEqual(shares, [null, 1 / 31, null, 15 / 31, 15 / 31]);
  assert.match(by, /cycles are unknown/);
  const costs = [null, [1, 0.25], null, [4, 0.5], [1, 0.5]];
  const priced = heatOf(OF, { ...ASM, costs, costs_by: "a tool" });
  assert.deepEqual(priced.shares[3], 7.5 / 15.25);
  assert.match(priced.by, /by a tool/);
  assert.deepEqual(shareText(priced.shares[3]), "49%");
  assert.equal(priced.port, null, "the tool says nothing of ports");
  const ports = [null, [1, 1, { A: 1 }], null, [4, 1, { A: 0.5, B: 1 }], [1, 1, { A: 0.5 }]];
  const { port } = heatOf(OF, { ...ASM, costs: ports, costs_by: "a tool" });
  assert.deepEqual(port, { name: "A", shares: [null, 1 / 16, null, 7.5 / 16, 7.5 / 16] });
  assert.deepEqual(heatOf(null, { lines: ["f:"], links: [null] }).shares, [null]);
});

Deno.test("an instruction says what it does and costs, where that is known", () => {
  assert.equal(aboutLine(ASM, 3), "fma: multiplies and adds");
  assert.equal(aboutLine(ASM, 4), "");
  const costs = [null, null, null, [4, 0.5], null];
  const words = aboutLine({ ...ASM, costs, costs_by: "a tool" }, 3);
  assert.match(words, /^fma: .*\n.*after 4 cycles; one can begin every 0.5 cycles \(a tool\)$/);
  costs[3] = [4, 0.5, { A: 0.5, B: 1 }];
  const more = aboutLine({ ...ASM, costs, costs_by: "a tool" }, 3);
  assert.equal(more, `${words}\noccupies, in cycles: A 0.5, B 1`);
});

Deno.test("an instruction without a line says so; a label and a brace have none anyway", () => {
  const record = recordOf();
  record.languages.push({ name: "asm", role: "machine" });
  const app = new App(record);
  const lines = ["top:", "  mov r1, 4", "  add r1, r2"];
  const links = [null, null, { axes: [], nodes: [1], lines: [0], source: [2], statement: 2 }];
  const rows = lines.map((_, i) => hasNoLine(app, { language: "asm", lines, links }, i));
  assert.deepEqual(rows, [false, true, false]);
  assert.equal(hasNoLine(app, { language: "C", lines, links }, 1), false);
});

Deno.test("a pass of the compiler is told by the lines that it changed", () => {
  const passes = [[0, 1, 2], [0, 3, 2], [2]].map((lines, i) => ({
    name: `pass-${i}`,
    title: "",
    lines,
  }));
  const changes = changesOf({ lines: ["a", "b", "c", "d"], passes });
  assert.deepEqual(changes.map(({ gone, fresh }) => [gone, fresh]), [[0, 0], [1, 1], [2, 0]]);
  assert.deepEqual(changes[1].lines, ["a", "d", "c"]);
  assert.deepEqual(changes[1].before, ["a", "b", "c"]);
});

Deno.test("the languages of the record's device are tabs, the others are asked for", () => {
  const record = {
    device: "GPU:X",
    devices: [
      { name: "C", languages: ["C"] },
      { name: "GPU:X", languages: ["CUDA", "PTX"], machine_code: true },
    ],
    languages: [
      { name: "C", device: "C" },
      { name: "LLVM", device: "LLVM" },
      { name: "CUDA", device: "GPU" },
      { name: "PTX", device: "" },
      { name: "asm", device: "", role: "machine" },
      { name: "IR", device: "", role: "statements" },
    ],
  };
  const names = ownLanguages(record).map(({ name }) => name);
  assert.deepEqual(names, ["C", "CUDA", "PTX", "asm", "IR"]);
  assert.equal(machineCode(record), "asm");
  record.devices[1].machine_code = false;
  assert.ok(!ownLanguages(record).some(({ name }) => name === "asm"));
});

Deno.test("what is edited for a machine that is not here is compiled alone", () => {
  const devices = [
    { name: "C", available: true, languages: ["C"] },
    { name: "GPU", available: false, languages: ["G", "T"] },
    { name: "GPU:Big", available: true, elsewhere: true, languages: ["G", "T"] },
  ];
  const languages = [{ name: "C", device: "C" }, { name: "G", device: "GPU" }];
  const only = (device, language) => isOnlyCompiled({ device, devices, languages }, language);
  assert.deepEqual(["C", "G"].map((each) => only("C", each)), [false, true]);
  assert.deepEqual(["C", "G"].map((each) => only("GPU:Big", each)), [false, true]);
  assert.equal(only("C", "T"), false, "nothing takes it");
  devices[1].available = true;
  assert.equal(only("C", "G"), false, "it runs here");
  assert.equal(only("GPU:Big", "G"), true);
  const variant = (edited, device) => ({ edited, code: [{ device, language: "G" }] });
  assert.equal(machineOfEdited({ devices }, variant(true, "GPU:Big")), "GPU:Big");
  assert.equal(machineOfEdited({ devices }, variant(false, "GPU:Big")), null);
  assert.equal(machineOfEdited({ devices }, variant(true, "C")), null);
  assert.equal(machineOfEdited({ devices }, { edited: true, code: [] }), null);
});
