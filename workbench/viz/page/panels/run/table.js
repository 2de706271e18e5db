// The tables of a run: kernels by their share of the time, one by one or in groups; the modules as an
// icicle; what would help; and what differs from the run before.

import { button } from "../../app/pieces.js";
import { h, recordText, svg } from "../../base/elements.js";
import { bytesText, countText, plural, three } from "../../base/text.js";
import { comparedRuns, groupsOf, icicleOf, isOff, letterOf, roundOf } from "./shares.js";
import { timeText } from "./words.js";

/** @import { App } from "../../app/store.js" */
/** @import { Child } from "../../base/elements.d.ts" */
/** @import { Kernel, Run } from "./run.d.ts" */
/** @import { Group, Grouping, Pair, Part } from "./shares.js" */

export const ROWS_AT_FIRST = 60;

/** A share as a text.
 * @param {number} share */
export const percent = (share) => share > 0 && share < 0.01 ? "<1%" : `${Math.round(100 * share)}%`;

/** The glossary's terms of headings that mean something else elsewhere.
 * @type {Record<string, string>} */
const TERMS = {
  share: "share of the run",
  kernel: "kernels",
  kind: "kind of kernel",
  module: "module of a kernel",
  phase: "phase of a kernel",
  time: "time in the run",
  bytes: "bytes of a launch",
  operations: "operations of a launch",
  bound: "bound of a kernel",
  predicted: "predicted time",
  before: "time before",
  now: "time now",
  saved: "saved in a round",
};

/** A table with headings that are glossary terms.
 * @param {string} label
 * @param {string[]} terms
 * @param {Child[]} rows */
const tableOf = (label, terms, rows) =>
  h(
    "div",
    { class: "wb-run-scroll", tabindex: 0, role: "region", "aria-label": label },
    h(
      "table",
      { class: "wb-run-table" },
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          ...terms.map((term) => h("th", { scope: "col", "data-term": TERMS[term] ?? term }, term)),
        ),
      ),
      h("tbody", {}, ...rows),
    ),
  );

/** The kernels, or groups of them, the greatest share first.
 * @param {App} app
 * @param {Run} run
 * @param {{by: Grouping, most: number, colours: number[], open: (kernel: Kernel) => void}} state */
export function sharesTable(app, run, { by, most, colours, open }) {
  const groups = groupsOf(run, by);
  const shown = groups.slice(0, most);
  if (by === "kernel") {
    return tableOf(
      "kernels of the run",
      KERNEL_COLUMNS,
      shown.map((group) => kernelRow(app, run, group, colours[group.kernels[0]], open)),
    );
  }
  return tableOf(
    `time by ${by}`,
    [by, ...GROUP_COLUMNS],
    shown.map((group) => groupRow(run, group)),
  );
}

const KERNEL_COLUMNS = [
  "share",
  "kernel",
  "module",
  "launches",
  "median",
  "spread",
  "predicted",
  "ratio",
  "bound",
  "bytes",
  "operations",
  "kind",
];
const GROUP_COLUMNS = ["share", "kernels", "launches", "time", "bytes", "operations", "ratio"];

/** A bar and a figure.
 * @param {number} share */
const shareCell = (share) =>
  h(
    "td",
    { class: "wb-run-share" },
    h("span", {}, percent(share)),
    h("i", { style: `width:${(60 * share).toFixed(1)}px` }),
  );

/** @param {...Child} of */
const figure = (...of) => h("td", { class: "wb-figure" }, ...of);

/** Measured by predicted: marked where it is off by more than 1.5.
 * @param {number | null} ratio */
const ratioCell = (ratio) =>
  h(
    "td",
    { class: `wb-figure${isOff(ratio) ? " wb-run-off" : ""}` },
    ratio === null ? "" : `${isOff(ratio) ? "≠ " : ""}${three(ratio)}x`,
  );

const RIDGE = 12; // where bandwidth is no longer the bound, in a picture of 30 by 12
const ROOF = 2;

/** The place of a kernel under the roofline: on the slope if bandwidth is its bound, under the flat part if
 * arithmetic is; the further down, the longer it takes than predicted.
 * @param {Kernel} kernel */
function roofDot({ bound, ratio }) {
  const isFlat = bound === "arithmetic";
  if (ratio === null || !(isFlat || bound.endsWith("bandwidth"))) return null;
  const x = isFlat ? 21 : 7;
  const roof = isFlat ? ROOF : 6;
  const y = Math.min(11, Math.max(roof - 1, roof + 3 * Math.log2(ratio)));
  return svg(
    "svg",
    { class: "wb-run-roof", viewBox: "0 0 30 12", "aria-hidden": "true" },
    svg("path", { d: `M1 11 ${RIDGE} ${ROOF} H29` }),
    svg("circle", { cx: x, cy: y, r: 2 }),
  );
}

/** What is known of a kernel in a text.
 * @param {Kernel} kernel */
const aboutKernel = (kernel) =>
  [
    `${kernel.title}: ${plural(kernel.launches, "launch")}, ${timeText(kernel.total_ns)}`,
    kernel.opts && `opts ${kernel.opts}`,
    kernel.module && `module ${kernel.module}`,
    kernel.phase,
    kernel.line,
    kernel.why && `${kernel.bound}: ${kernel.why}`,
    isOff(kernel.ratio) && "measured and predicted differ by more than 1.5",
  ].filter(Boolean).join("\n").slice(0, 1000);

/**
 * @param {App} app
 * @param {Run} run
 * @param {Group} group
 * @param {number} colour
 * @param {(kernel: Kernel) => void} open */
function kernelRow(app, run, { kernels: [place], share }, colour, open) {
  const kernel = run.kernels[place];
  const spread = kernel.launches > 1
    ? `±${percent((kernel.high_ns - kernel.low_ns) / 2 / (kernel.median_ns || 1))}`
    : "";
  const mark = h(
    "i",
    { class: "wb-run-letter", style: `background:var(--wb-run-${colour})` },
    letterOf(colour),
  );
  const name = kernel.place === null
    ? recordText(kernel.title, "", 60)
    : button(app, kernel.title.slice(0, 60), () => open(kernel), { name: `run-kernel-${place}` });
  return h(
    "tr",
    { title: aboutKernel(kernel) },
    shareCell(share),
    h("td", { class: "wb-run-name" }, mark, name),
    h("td", {}, recordText(kernel.module, "wb-clip", 40)),
    figure(kernel.launches.toLocaleString("en")),
    figure(kernel.launches ? timeText(kernel.median_ns) : "failed"),
    figure(spread),
    figure(kernel.predicted_ns === null ? "" : timeText(kernel.predicted_ns)),
    ratioCell(kernel.ratio),
    h("td", {}, roofDot(kernel), kernel.bound),
    figure(bytesText(kernel.bytes)),
    figure(countText(kernel.flops)),
    h("td", {}, kernel.kind),
  );
}

/**
 * @param {Run} run
 * @param {Group} group */
function groupRow({ kernels }, { name, kernels: own, launches, ns, share, bytes, flops, ratio }) {
  const titles = own.slice(0, 8).map((place) => kernels[place].title);
  return h(
    "tr",
    { title: [`${name}: ${timeText(ns)}`, ...titles].join("\n").slice(0, 1000) },
    h("td", {}, recordText(name, "", 60)),
    shareCell(share),
    figure(own.length.toLocaleString("en")),
    figure(launches.toLocaleString("en")),
    figure(timeText(ns)),
    figure(bytesText(bytes)),
    figure(countText(flops)),
    ratioCell(ratio),
  );
}

const LEAST_PART = 0.004; // of the width: narrower parts are left out

/** The modules, each below the one that it is inside of; the table of modules says the same.
 * @param {Run} run */
export function icicle(run) {
  const whole = icicleOf(run);
  if (!whole.inside.length || !whole.ns) return null;
  /** @type {HTMLElement[]} */
  const boxes = [];
  let depth = 0;
  /** @type {(part: Part, left: number, level: number) => void} */
  const add = (part, left, level) => {
    const share = part.ns / whole.ns;
    if (share < LEAST_PART) return;
    depth = Math.max(depth, level);
    const at = `left:${(100 * left).toFixed(2)}%;width:${(100 * share).toFixed(2)}%;top:${
      18 * level
    }px`;
    const title = `${part.path || "all kernels"}: ${timeText(part.ns)}, ${percent(share)}`;
    boxes.push(h("div", { class: "wb-run-part wb-clip", style: at, title }, part.name));
    let next = left;
    for (const inside of [...part.inside].sort((a, b) => b.ns - a.ns)) {
      add(inside, next, level + 1);
      next += inside.ns / whole.ns;
    }
  };
  add(whole, 0, 0);
  const style = `height:${18 * (depth + 1)}px`;
  return h("div", { class: "wb-run-icicle", "aria-hidden": "true", style }, ...boxes);
}

/** The changes that would save most of the run.
 * @param {App} app
 * @param {Run} run
 * @param {(kernel: Kernel) => void} open */
export function helpRows(app, run, open) {
  if (!run.help.length) return null;
  return h(
    "div",
    { class: "wb-run-help" },
    h("b", { "data-term": "what would help" }, "what would help"),
    ...run.help.map((row) => {
      const kernel = run.kernels[row.kernel];
      const words = `saves ${timeText(row.saves_ns)} of ${timeText(run.length_ns)}, ${
        row.is_measured ? "measured" : "predicted"
      }: ${timeText(row.from_ns)} → ${timeText(row.to_ns)} a launch with ${row.opts || "no opts"}`;
      return h(
        "div",
        { title: words },
        kernel.place === null
          ? recordText(kernel.title, "", 60)
          : button(app, kernel.title.slice(0, 60), () => open(kernel), {
            name: `run-help-${row.kernel}`,
          }),
        ` ${words}`,
      );
    }),
  );
}

const MOST_PAIRS = 20;

/** What differs from the run before, beyond the noise.
 * @param {Run} before
 * @param {Run} run */
export function comparison(before, run) {
  const { pairs, same, unknown } = comparedRuns(before, run);
  const unlike = same ? `${plural(same, "kernel")} the same within the noise` : "";
  const head = `${timeText(roundOf(before))} → ${timeText(roundOf(run))} ${
    run.rounds.length && before.rounds.length ? "a round" : "in all"
  }`;
  const unclear = unknown ? `${plural(unknown, "kernel")} with too few launches to tell` : "";
  const words = [head, unlike, unclear, pairs.length ? "" : "nothing differs"].filter(Boolean).join(
    " · ",
  );
  return h(
    "div",
    { class: "wb-run-compared" },
    h(
      "div",
      { "data-term": "against the run before" },
      h("b", {}, "against the run before"),
      before.title === run.title && before.machine === run.machine
        ? ""
        : ` ${before.title} on ${before.machine}:`,
      ` ${words}`,
    ),
    pairs.length > 0 &&
      tableOf(
        "kernels that differ from the run before",
        ["kernel", "before", "now", "saved"],
        pairs.slice(0, MOST_PAIRS).map(pairRow),
      ),
  );
}

/** @param {Pair} pair */
function pairRow({ title, before, now, saved }) {
  const sign = saved < 0 ? "−" : "";
  return h(
    "tr",
    { title: `${title}: the median of its launches, and what a round saves` },
    h("td", {}, recordText(title, "", 60)),
    figure(before === null ? "not there" : timeText(before)),
    figure(now === null ? "not there" : timeText(now)),
    h(
      "td",
      { class: `wb-figure ${saved < 0 ? "wb-bad" : "wb-good"}` },
      `${sign}${timeText(Math.abs(saved))}`,
    ),
  );
}
