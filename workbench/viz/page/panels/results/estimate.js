// The predicted cost of a variant beside the measured one.

import { medianText, real } from "../../app/timing.js";
import { fold, h, recordText } from "../../base/elements.js";
import { bytesText, countText, plural, secondsText, three } from "../../base/text.js";

/** @import { App } from "../../app/store.js" */
/** @import { CostRow, KernelRow, MachineRow, VariantRow } from "../../record.d.ts" */

/** "auto: predicted 134 µs, limited by L2; measured 131 µs", and the time of each part.
 * @param {App} app
 * @param {VariantRow} variant */
export function estimateParts(app, { cost, timing, name }) {
  if (!cost) return [];
  const limit = ["core", "launch"].includes(cost.limit) ? `the ${cost.limit}` : cost.limit;
  const kernel = app.kernel();
  const unmeasured = app.record.elsewhere ? "; predicted, not run here" : "; not measured";
  return [
    h(
      "p",
      { class: "wb-estimate", title: "for repeated runs, with warm caches" },
      h("b", { "data-term": "estimate" }, "ESTIMATE "),
      recordText(name, "", 80),
      `: predicted ${secondsText(cost.predicted_s)}, limited by ${limit}`,
      real(timing)
        ? `; measured ${medianText(timing)}, ${
          three(timing.median_s / cost.predicted_s)
        } times the prediction`
        : unmeasured,
    ),
    ...cost.notes.map((note) => h("p", { class: "wb-small" }, note)),
    kernel && fold("estimate", "estimate as numbers", () => estimateTable(kernel, cost)),
  ];
}

const LATENCY =
  " A group that waits takes its part of the others meanwhile: latency is the limit only where it is clearly longer.";

/** The traffic of each level of memory, and the time that it alone would take.
 * @param {KernelRow} kernel
 * @param {CostRow} cost */
function estimateTable({ bytes: needed }, { flops, bytes, seconds, threads, of }) {
  const timeOf = (/** @type {string} */ part) =>
    part in seconds ? secondsText(seconds[part]) : "in core";
  const rows = [
    ...Object.keys(seconds).filter((part) => !(part in bytes)).map((
      part,
    ) => [part, "", timeOf(part)]),
    ...Object.entries(bytes).map(([level, n]) => [level, bytesText(n), n ? timeOf(level) : ""]),
  ];
  const about = `${countText(flops)} operations on ${bytesText(needed)}: ${
    three(flops / needed)
  } per byte`;
  return h(
    "div",
    {},
    h("p", { class: "wb-quiet" }, about),
    figureTable(`each part alone, on ${plural(threads, of)}`, ["", "bytes", "time"], rows),
    h(
      "p",
      { class: "wb-quiet" },
      `The prediction is the slowest part, a share of the others, and the launch.${
        "latency" in seconds ? LATENCY : ""
      }`,
    ),
  );
}

/** The peaks of this machine, as they were measured once.
 * @param {MachineRow} machine */
export function speedTable({ bandwidth, copy, one_thread, sources = [] }) {
  if (sources.length) return sourceList(sources);
  if (!bandwidth || !copy || !one_thread) return null;
  const columns = [bandwidth, copy, one_thread.bandwidth, one_thread.copy].map((rates) =>
    new Map(rates)
  );
  const rows = bandwidth.map(([level]) => [
    level,
    ...columns.map((rates) => three((rates.get(level) ?? 0) / 1e9)),
  ]);
  const heads = ["GB/s", "read", "copy", "read, one", "copy, one"];
  return figureTable(
    "the best speeds of this machine, with all threads and with one; a copied byte counts twice",
    heads,
    rows,
  );
}

/** The documents with the figures of a machine other than this one.
 * @param {string[]} sources */
const sourceList = (sources) =>
  h(
    "p",
    { class: "wb-quiet wb-small" },
    "Figures of the machine: ",
    ...sources.map((source, i) => [i > 0 && "; ", recordText(source, "", 200)]).flat(),
  );

/** A table of figures; the first of each row is its name.
 * @param {string} title
 * @param {string[]} heads
 * @param {string[][]} rows */
export function figureTable(title, heads, rows) {
  const row = (/** @type {string[]} */ [name, ...cells]) =>
    h(
      "tr",
      {},
      h("th", { scope: "row", "data-term": name }, recordText(name, "", 24)),
      ...cells.map((cell) => h("td", { "data-term": cell.includes("±") ? "±" : cell }, cell)),
    );
  return h(
    "table",
    { class: "wb-figures", "data-term": title },
    h("caption", {}, title),
    heads.length > 0 &&
      h(
        "thead",
        {},
        h("tr", {}, ...heads.map((head) => h("th", { scope: "col", "data-term": head }, head))),
      ),
    h("tbody", {}, ...rows.map(row)),
  );
}
