/** A record of one kernel with two variants, for units that look at a few of its tables. */
export function recordOf() {
  return {
    n: 1,
    kernels: [{ root: 0 }, { root: 2 }],
    variants: [
      { kernel: 0, parent: null, loops: { rows: [{ axis: "g0", nodes: [1], lines: [0] }] } },
      { kernel: 0, parent: 0, loops: null },
      { kernel: 1, parent: null, loops: null },
    ],
    pinned: null,
    device: "C",
    devices: [{ name: "C", available: true, languages: ["C"], machine_code: true }],
    elsewhere: "",
    languages: [{ name: "C" }, { name: "LLVM" }],
    nodes: { op: ["PARAM", "ADD"], lines: [[], [[0]]], causes: [[], []] },
    lines: [{ where: "In [1], line 1", text: "x + y" }],
    passes: [],
    plan: { compared: null },
    rules: [],
    texts: [],
  };
}
