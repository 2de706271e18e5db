// Findings: each links to its step.

import { heading } from "../../app/pieces.js";
import { h, words } from "../../base/elements.js";
import { walkable } from "../../base/lists.js";

/** @import { GpuFinding, GpuTrace } from "../../record.d.ts" */
/** @import { Gpu } from "./panel.js" */

/** The findings of a run, each leading to its steps; to its group where that is another one.
 * @param {Gpu} gpu
 * @param {GpuTrace} row */
export function findingList(gpu, row) {
  const { findings } = row;
  const isRight = !findings.some((finding) => finding.is_defect);
  const quiet = "no race, nothing unwritten that is used, nothing out of bounds";
  const items = findings.map((finding, place) => findingRow(gpu, row, finding, place));
  return [
    heading("FINDINGS", isRight && h("span", { class: "wb-quiet" }, quiet)),
    items.length > 0 && walkable("listbox", "findings", {}, ...items),
  ];
}

/**
 * @param {Gpu} gpu
 * @param {GpuTrace} row
 * @param {GpuFinding} finding
 * @param {number} place */
function findingRow(gpu, row, finding, place) {
  const isHere = finding.steps.length > 0;
  const lines = [...new Set(finding.lines)].map((line) => row.lines[line].text);
  const numbers = [...new Set(finding.steps)];
  const where = isHere
    ? `${numbers.length > 1 ? "steps" : "step"} ${numbers.join(" and ")}`
    : "another group: step it";
  return h(
    "div",
    {
      class: "wb-row wb-gpu-finding",
      role: "option",
      "data-item": "",
      "data-key": `gpu-finding-${place}`,
      "aria-selected": "false",
      title: "go to its step; again: to the one before it",
      onclick: () => goTo(gpu, finding),
    },
    h("b", { class: finding.is_defect ? "wb-bad" : "", "data-term": finding.kind }, finding.kind),
    " ",
    words(finding.words, "", 400),
    h("div", { class: "wb-quiet" }, where),
    ...lines.map((text) => h("div", {}, h("code", {}, text))),
  );
}

/** Go to the last step of a finding, to the work-item and the cell of it; from there to the step before,
 * and back.
 * @param {Gpu} gpu
 * @param {GpuFinding} finding */
function goTo(gpu, { steps, group, items, memory, element }) {
  if (!steps.length) return gpu.run(group.slice(0, gpu.row?.grid.length));
  const place = steps.indexOf(gpu.at);
  const next = (place > 0 ? place : steps.length) - 1;
  const item = items[items.length === steps.length ? next : items.length - 1] ?? 0;
  const isCell = memory !== null && gpu.row?.memories[memory].space !== "global";
  gpu.look({ item, cell: isCell && memory !== null ? { memory, element } : null });
  gpu.go(steps[next]);
}
