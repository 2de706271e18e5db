// Details of machine code: the meaning and cost of an instruction, and its share of a run.

import { percent } from "../app/timing.js";

/** @import { CodeRow, VariantRow } from "../record.d.ts" */
/** @import { App } from "../app/store.js" */

/** The share of each line in a run, null where nothing is known; and how that is known. Of the busiest
 * port of the core, where one is known, the share of each line in what keeps that busy.
 * @typedef {{
 *   shares: (number | null)[], by: string, port: {name: string, shares: (number | null)[]} | null
 * }} Heat */

/** A line as what stands before its mnemonic, that, and the rest; null for a label.
 * @param {string} line */
export const partsOf = (line) => /^(\s+)(\S+)(.*)$/.exec(line)?.slice(1) ?? null;

/** What the instruction of a line does, and costs; "" where nothing is known.
 * @param {CodeRow} code
 * @param {number} i */
export function aboutLine({ lines, help = {}, costs = [], costs_by = "", live = [] }, i) {
  const mnemonic = partsOf(lines[i])?.[1] ?? "";
  const cost = costs[i];
  const words = cost && [
        `the result is there after ${cost[0]} ${cost[0] === 1 ? "cycle" : "cycles"};`,
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

/** How much of a run each instruction is: how often its loops run it, times the cycles that a tool
 * says it takes, or counted alike where none does.
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
      : "of the instructions of a run, by how often its loops run it; what one takes is not known",
  };
}

/** Each weight as a share of all together.
 * @param {(number | null)[]} weights */
function sharesOf(weights) {
  const sum = weights.reduce((/** @type {number} */ total, weight) => total + (weight ?? 0), 0);
  return weights.map((weight) => (weight === null || !sum ? null : weight / sum));
}

/** The port that a run occupies longest, and the share of each line in that; null where none is known.
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

/** 0.123 -> "12%"; of what is next to nothing, nothing.
 * @param {number | null} share */
export const shareText = (share) => (share === null || share < 0.001 ? "" : percent(share));

/** Ask once what the instructions of a variant cost.
 * @param {App} app
 * @param {number | null} place
 * @param {CodeRow | null} code
 * @param {{priced: unknown}} state */
export function askForCosts(app, place, code, state) {
  if (place === null || !code?.help || code.costs || code.note || app.live !== "live") return;
  const { code: here, code_elsewhere: others = [] } = app.record.variants[place];
  const isDraft = !here.includes(code) && !others.includes(code);
  if (isDraft || state.priced === code.lines) return;
  state.priced = code.lines;
  const { device } = code;
  app.ask({ do: "costs", variant: place, device }).catch(() => {}); // it is only told on hover
}
