// The cost of a line of code: the meaning and cycles of an instruction, its share of a run, and the
// accesses of a run on the emulator.

import { percent } from "../app/timing.js";
import { h } from "../base/elements.js";

/** @import { App } from "../app/store.js" */
/** @import { AccessCosts, CodeRow, VariantRow } from "../record.d.ts" */

/** The share of each line in a run, null if nothing is known, with the source of the numbers; and
 * the share of each line in the time of the core's busiest port, if that is known.
 * @typedef {{
 *   shares: (number | null)[], by: string, port: {name: string, shares: (number | null)[]} | null
 * }} Heat */

/** A line as the text before its mnemonic, the mnemonic, and the operands; null for a label.
 * @param {string} line */
export const partsOf = (line) => /^(\s+)(\S+)(.*)$/.exec(line)?.slice(1) ?? null;

/** The meaning and cost of the instruction of a line; "" if nothing is known.
 * @param {CodeRow} code
 * @param {number} i */
export function aboutLine({ lines, help = {}, costs = [], costs_by = "", live = [] }, i) {
  const mnemonic = partsOf(lines[i])?.[1] ?? "";
  const cost = costs[i];
  const words = cost && [
        `the result is ready after ${cost[0]} ${cost[0] === 1 ? "cycle" : "cycles"};`,
        `one can begin every ${cost[1]} ${cost[1] === 1 ? "cycle" : "cycles"} (${costs_by})`,
      ].join(" ") + portsText(cost[2]);
  const text = Object.hasOwn(help, mnemonic) ? `${mnemonic}: ${help[mnemonic]}` : "";
  const count = live[i];
  const inUse = typeof count === "number" ? `${count} registers in use` : "";
  return [text, words, inUse].filter(Boolean).join("\n");
}

/** @param {Record<string, number>} [ports] */
function portsText(ports = {}) {
  const used = Object.entries(ports).map(([port, cycles]) => `${port} ${cycles}`);
  return used.length ? `\noccupies, in cycles: ${used.join(", ")}` : "";
}

/** The share of each instruction in a run: the number of times that its loops run it, times the
 * cycles that a tool reports, or counted alike without a tool.
 * @param {VariantRow | null} variant
 * @param {CodeRow} code
 * @returns {Heat} */
export function heatOf(variant, { lines, links, costs = [], costs_by = "" }) {
  const loops = variant?.loops?.rows.filter(({ kind }) => kind === "loop") ?? [];
  const sizes = new Map(loops.map(({ axis, size }) => [axis, size]));
  const runs = lines.map((line, i) => {
    if (!partsOf(line)) return null;
    const around = links[i]?.axes ?? [];
    return around.reduce((product, axis) => product * (sizes.get(axis) ?? 1), 1);
  });
  return {
    shares: sharesOf(runs.map((count, i) => count && count * (costs[i]?.[1] ?? 1))),
    port: busiestPort(runs, costs),
    by: costs.length
      ? `of the cycles of a run at best, by ${costs_by} and how often its loops run it`
      : "of the instructions of a run, by how often loops run it; its cycles are unknown",
  };
}

/** Each weight as a share of all together.
 * @param {(number | null)[]} weights */
function sharesOf(weights) {
  const sum = weights.reduce((/** @type {number} */ total, weight) => total + (weight ?? 0), 0);
  return weights.map((weight) => (weight === null || !sum ? null : weight / sum));
}

/** The port that a run occupies longest, and the share of each line in that; null if none is known.
 * @param {(number | null)[]} runs
 * @param {NonNullable<CodeRow["costs"]>} costs */
function busiestPort(runs, costs) {
  /** @type {Map<string, number>} */
  const cycles = new Map();
  costs.forEach((cost, i) => {
    for (const [port, own] of Object.entries(cost?.[2] ?? {})) {
      cycles.set(port, (cycles.get(port) ?? 0) + (runs[i] ?? 0) * own);
    }
  });
  const [busiest] = [...cycles].sort(([, a], [, b]) => b - a);
  if (!busiest) return null;
  const [name] = busiest;
  return { name, shares: sharesOf(runs.map((n, i) => n && n * (costs[i]?.[2]?.[name] ?? 0))) };
}

/** 0.123 -> "12%"; "" for next to nothing.
 * @param {number | null} share */
export const shareText = (share) => (share === null || share < 0.001 ? "" : percent(share));

/** Request, once, the cost of the instructions of a variant.
 * @param {App} app
 * @param {number | null} place
 * @param {CodeRow | null} code
 * @param {{priced: unknown}} state */
export function askForCosts(app, place, code, state) {
  if (place === null || !code?.help || code.costs || code.note || app.live !== "live") return;
  const { code: own, code_elsewhere: others = [] } = app.record.variants[place];
  const isDraft = !own.includes(code) && !others.includes(code);
  if (isDraft || state.priced === code.lines) return;
  state.priced = code.lines;
  const { device } = code;
  app.ask({ do: "costs", variant: place, device }).catch(() => {}); // shown on hover
}

// The cost of the accesses of each line of code, from a run on the emulator.

/** For each line, the cost of its loads and stores; null if none is known. An access of several
 * instructions belongs to none of them.
 * @param {VariantRow | null} variant
 * @param {CodeRow} code
 * @returns {AccessCosts[][] | null} */
export function lineCosts(variant, { links }) {
  const costs = (variant?.gpu?.lines ?? []).flatMap(({ accesses }) => accesses);
  if (!costs.length) return null;
  const byNode = new Map(costs.map((cost) => [cost.node, cost]));
  /** @type {Map<number, number>} */
  const lines = new Map();
  for (const link of links) {
    for (const node of link?.nodes ?? []) lines.set(node, (lines.get(node) ?? 0) + 1);
  }
  const listed = links.map((link) =>
    (link?.nodes ?? []).flatMap((node) => lines.get(node) === 1 ? byNode.get(node) ?? [] : [])
  );
  return listed.some((line) => line.length) ? listed : null;
}

/** The sectors that a line moves, or its passes for conflicts; more on hover.
 * @param {VariantRow | null} variant
 * @param {AccessCosts[]} costs */
export function costCell(variant, costs) {
  const memories = variant?.gpu?.memories ?? [];
  const isGlobal = (/** @type {AccessCosts} */ { memory }) => memories[memory].space === "global";
  const main = costs.filter(isGlobal);
  /** @type {(of: AccessCosts[], name: "transactions" | "conflicts") => number} */
  const total = (of, name) => of.reduce((sum, cost) => sum + cost[name], 0);
  const sectors = main.length > 0 && total(main, "transactions").toLocaleString("en");
  const conflicts = total(costs, "conflicts");
  const isBad = conflicts > 0 || main.some((cost) => cost.bytes_moved > cost.bytes_wanted);
  const title = costs.map((cost) => costText(memories[cost.memory], cost)).join("\n");
  return h(
    "span",
    { class: `wb-line-cost ${isBad ? "wb-bad" : ""}`, title: title || null },
    [sectors, conflicts > 0 && `+${conflicts.toLocaleString("en")}`].filter(Boolean).join(" "),
  );
}

/** The cost of an access, as text.
 * @param {{name: string, space: string}} memory
 * @param {Omit<AccessCosts, "node" | "memory">} cost */
export function costText({ name, space }, cost) {
  const figure = (/** @type {number} */ count) => count.toLocaleString("en");
  const verb = cost.is_store ? "writes" : "reads";
  if (space === "private") return `${verb} ${name}, of each work-item`;
  if (space === "global") {
    const bytes = `${figure(cost.bytes_wanted)} bytes wanted, ${figure(cost.bytes_moved)} moved`;
    return `${verb} ${name}: ${figure(cost.transactions)} transactions, ${bytes}`;
  }
  const conflicts = cost.conflicts
    ? `${figure(cost.conflicts)} of them for conflicts`
    : "no conflict";
  return `${verb} ${name}: ${figure(cost.transactions)} passes over the banks, ${conflicts}`;
}
