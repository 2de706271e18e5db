// The cost of the accesses of each line of code, from a run on the emulator.

import { h } from "../base/elements.js";

/** @import { AccessCosts, CodeRow, VariantRow } from "../record.d.ts" */

/** Of each line what its loads and stores cost; null where nothing is known of any. An access that is
 * several instructions is of none of them.
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

/** What an access costs, in words.
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
