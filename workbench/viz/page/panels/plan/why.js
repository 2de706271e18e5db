// The reasons of the plan's cuts in words: of the whole, of one kernel, of one value. The words and
// numbers are those that the scheduler recorded.

import { decisionParts, readersLine } from "../../app/decision.js";
import { meaningOf } from "../../app/glossary.js";
import { linked } from "../../app/links.js";
import {
  button,
  heading,
  headingOf,
  kernelNumber,
  lineButton,
  nodeLines,
  phaseMark,
} from "../../app/pieces.js";
import { nodeLink } from "../../app/store.js";
import { h, recordText } from "../../base/elements.js";
import { walkable } from "../../base/lists.js";
import { bytesText, plural } from "../../base/text.js";
import { kernelColour, phasesOf, weightKernels } from "../../record/kernels.js";
import { decisionOf } from "../../record/rule_uses.js";
import { choiceOffers, choicesMade } from "./by_hand.js";
import { activationList, equalKernelsLine } from "./groups.js";

/** @import { App } from "../../app/store.js" */
/** @import { DecisionRow, PageRecord, PlanNode } from "../../record.d.ts" */

const MOST_CUTS = 40; // that are shown; the list of decisions has all
const MOST_MODULES = 3; // of a kernel

/** The text about the picked value; else about a kernel; else why there are several kernels.
 * @param {App} app
 * @param {number | null} kernel
 * @param {ShowKernel} showKernel */
export function planDetail(app, kernel, showKernel) {
  const n = app.view.node;
  const decision = decisionOf(app, n);
  const drawn = app.record.plan.nodes.find((node) => node.n === n);
  if (n !== null && (decision || drawn)) return valueParts(app, n, decision, drawn, showKernel);
  return kernel !== null && app.record.kernels[kernel]
    ? kernelParts(app, kernel, showKernel)
    : wholeParts(app);
}

/** A value that goes from one kernel to another through memory.
 * `times`: the number of equal kernels that end for the same reason.
 * @typedef {{
 *   decision: DecisionRow, kernel: number, bytes?: number, readers: number[], times?: number
 * }} Cut
 * @typedef {(kernel: number | null) => void} ShowKernel */

/** The values that go from one kernel to another through memory, by the kernels that store them;
 * weights last.
 * @param {PageRecord} record
 * @returns {Cut[]} */
function cutsOf(record) {
  const { nodes, edges, decisions } = record.plan;
  const weights = new Set(weightKernels(record));
  /** For each node its bytes, and the kernels that read it.
   * @type {Map<number, {bytes: number, kernels: Set<number>}>} */
  const values = new Map();
  for (const { a, b, cut, bytes } of edges) {
    if (!cut) continue;
    const { n, stored_by } = nodes[a];
    const value = values.get(n) ?? { bytes, kernels: new Set() };
    for (const k of nodes[b].kernels) if (k !== stored_by) value.kernels.add(k);
    values.set(n, value);
  }
  for (const [source, reader, n, bytes] of nodes.length ? [] : record.plan.reads) { // not drawn
    const value = values.get(n) ?? { bytes, kernels: new Set() };
    if (reader !== source) value.kernels.add(reader);
    values.set(n, value);
  }
  return decisions.flatMap((decision) => {
    const { node, stored, kernel, estimates } = decision;
    const { bytes, kernels = [] } = values.get(node) ?? {};
    const readers = [...kernels].sort((a, b) => a - b);
    const isCut = stored && kernel !== null &&
      (readers.length || (!nodes.length && estimates.length));
    return isCut ? [{ decision, kernel, bytes, readers }] : [];
  }).sort((a, b) =>
    Number(weights.has(a.kernel)) - Number(weights.has(b.kernel)) || a.kernel - b.kernel
  );
}

/** The first of the cuts between equal kernels, for the same reason, with their number.
 * @param {PageRecord} record
 * @param {Cut[]} cuts
 * @returns {Cut[]} */
function distinctCuts({ plan: { runs } }, cuts) {
  /** @type {Map<string, Cut>} */
  const firsts = new Map();
  for (const cut of cuts) {
    const kernels = [cut.kernel, ...cut.readers].map((k) => runs[k].like);
    const key = `${kernels} ${cut.decision.reason}`;
    const first = firsts.get(key);
    firsts.set(key, { ...first ?? cut, times: (first?.times ?? 0) + 1 });
  }
  return [...firsts.values()];
}

const COUNTS = ["", "ONE KERNEL", "TWO KERNELS", "THREE KERNELS", "FOUR KERNELS"];

/** @param {App} app */
function wholeParts(app) {
  const cuts = cutsOf(app.record);
  const n = app.record.kernels.length;
  if (!n) return [h("p", { class: "wb-quiet" }, app.record.nothing)];
  const intro = cuts.length
    ? "A kernel ends where its value must go through memory. Everything else is fused into its readers."
    : n === 1
    ? oneKernel(app)
    : "The kernels do not read each other's results: each computes one of its own.";
  return [
    choicesMade(app),
    ...activationList(app),
    headingOf("kernels?", `WHY ${COUNTS[n] || `${n} KERNELS`}?`),
    h("p", {}, intro),
    app.record.plan.hint && h("p", {}, app.record.plan.hint),
    ...cutList(app, distinctCuts(app.record, cuts)),
    ...explained(app, n === 1),
    h("p", { class: "wb-quiet" }, "Click a cut line, a value, or the area of a kernel."),
  ];
}

/** @param {App} app */
const oneKernel = ({ record: { plan } }) =>
  plan.decisions.some(({ tradeoff }) => tradeoff)
    ? "Only the result goes to memory. Other values that could have, and why they do not:"
    : plan.decisions.some(({ rank }) => rank !== null)
    ? "Only the result goes to memory: to fuse the others costs nothing. A kernel could have ended here:"
    : "Only the result goes to memory: there is no other value.";

/** The reasons why there are not more kernels, the most interesting first: values that are fused at
 * a cost; of a single kernel without those, where it could have ended.
 * @param {App} app
 * @param {boolean} isWhole whether this is all that there is to say */
function explained(app, isWhole) {
  const rows = app.record.plan.decisions.filter(({ rank, tradeoff }) =>
    rank !== null && (isWhole || tradeoff)
  ).sort((a, b) => Number(a.rank) - Number(b.rank));
  if (!rows.length) return [];
  return [
    !isWhole && h("p", {}, "Fused, although that costs something:"),
    walkable(
      "listbox",
      "why it is fused",
      { class: "wb-plan-cuts" },
      ...rows.slice(0, MOST_CUTS).map((decision) => explainedItem(app, decision)),
    ),
  ];
}

/** In 1  the value; under it the recorded reason and its numbers.
 * @param {App} app
 * @param {DecisionRow} decision */
function explainedItem(app, { node, value, kernel, reason, costs }) {
  return linked(
    h(
      "div",
      {
        role: "option",
        "data-item": "",
        "data-key": `explained-${node}`,
        "data-term": "fused",
        "aria-selected": String(app.view.node === node),
        onclick: () => app.select({ node }),
      },
      h(
        "div",
        { class: "wb-plan-way" },
        kernelNumber(app, kernel),
        recordText(value, "wb-clip", 40),
      ),
      h("div", { class: "wb-reason" }, recordText(reason, "", 600)),
      h("div", { class: "wb-quiet" }, costs),
    ),
    nodeLink(node),
  );
}

/**
 * @param {App} app
 * @param {Cut[]} cuts */
function cutList(app, cuts) {
  if (!cuts.length) return [];
  return [
    walkable(
      "listbox",
      "why it is cut",
      { class: "wb-plan-cuts" },
      ...cuts.slice(0, MOST_CUTS).map((cut) => cutItem(app, cut)),
    ),
    cuts.length > MOST_CUTS &&
    h("p", { class: "wb-quiet" }, `and ${cuts.length - MOST_CUTS} more, below`),
  ];
}

/** 1 → 2  the value and its bytes; under it the recorded reason and its numbers.
 * @param {App} app
 * @param {Cut} cut */
function cutItem(app, { decision, kernel, bytes, readers, times = 1 }) {
  const { node, name, reason } = decision;
  return linked(
    h(
      "div",
      {
        role: "option",
        "data-item": "",
        "data-key": `cut-${node}`,
        "data-term": "cut",
        "aria-selected": String(app.view.node === node),
        onclick: () => app.select({ node }),
      },
      h(
        "div",
        { class: "wb-plan-way" },
        kernelNumber(app, kernel),
        h("span", { "aria-label": "to" }, "→"),
        ...(readers.length ? readers.slice(0, 4).map((k) => kernelNumber(app, k)) : ["memory"]),
        recordText(name, "wb-clip", 40),
        times > 1 &&
          h("b", { class: "wb-figure", title: `${times} equal kernels end so` }, `${times} ×`),
        bytes !== undefined && h("b", { class: "wb-figure" }, bytesText(bytes)),
      ),
      h("div", { class: "wb-reason" }, recordText(reason, "", 600)),
      h("div", { class: "wb-quiet" }, decision.costs),
    ),
    nodeLink(node),
  );
}

/** Why a kernel begins and ends at its cuts, and the values that it computes between.
 * @param {App} app
 * @param {number} kernel
 * @param {ShowKernel} showKernel */
function kernelParts(app, kernel, showKernel) {
  const { title, name } = app.record.kernels[kernel];
  const cuts = cutsOf(app.record);
  const [before, after] = [
    cuts.filter(({ readers }) => readers.includes(kernel)),
    cuts.filter((cut) => cut.kernel === kernel),
  ];
  const own = app.record.plan.decisions.filter((d) => d.kernel === kernel);
  const result = own.find((d) => d.stored && !after.some(({ decision }) => decision === d));
  return [
    heading(
      "KERNEL",
      kernelNumber(app, kernel),
      h("b", { title: name }, recordText(title)),
      backButton(app, showKernel),
    ),
    madeBy(app, kernel),
    equalKernelsLine(app, kernel, showKernel),
    h(
      "p",
      { class: "wb-quiet", "data-term": "stored" },
      before.length ? "It reads, through memory:" : "It reads inputs only.",
    ),
    ...cutList(app, before),
    h(
      "p",
      { class: "wb-quiet", "data-term": "stored" },
      after.length
        ? "It ends here:"
        : result
        ? `It ends with ${result.name}: ${result.reason}.`
        : "",
    ),
    ...cutList(app, after),
    ...fusedInside(own.filter((d) => !d.stored)),
    tuneButton(app, kernel),
  ];
}

/** The phase, the modules and the lines that a kernel comes from.
 * @param {App} app
 * @param {number} kernel */
function madeBy(app, kernel) {
  const { modules, line, inner, phases } = app.record.kernels[kernel];
  if (!modules.length && !phases.length) return null;
  return h(
    "div",
    { class: "wb-plan-made" },
    phaseMark(phasesOf(app.record, [kernel]), kernelColour(app.record, kernel)),
    ...modules.slice(0, MOST_MODULES).map((text) =>
      h("span", { title: "the module that made it, and its own modules" }, recordText(text, "", 80))
    ),
    modules.length > MOST_MODULES &&
      h(
        "span",
        { class: "wb-quiet", title: modules.slice(MOST_MODULES).join("\n") },
        `and ${modules.length - MOST_MODULES} more`,
      ),
    ...(line === null ? [] : [line, ...inner]).map((at) => lineButton(app, at)),
  );
}

/** The fused values by reason, the rarest first.
 * @param {DecisionRow[]} fused */
function fusedInside(fused) {
  if (!fused.length) return [];
  /** @type {Map<string, number>} */
  const byReason = new Map();
  for (const { reason } of fused) byReason.set(reason, (byReason.get(reason) || 0) + 1);
  const rows = [...byReason].sort((a, b) => a[1] - b[1]);
  return [
    h(
      "p",
      { class: "wb-quiet", "data-term": "fused" },
      `${plural(fused.length, "value")} fused inside:`,
    ),
    h(
      "ul",
      { class: "wb-plan-fused", "data-term": "fused" },
      ...rows.map(([reason, n]) => h("li", {}, `${n} × `, recordText(reason, "", 300))),
    ),
  ];
}

/** The decision about a value: reason, numbers, and the alternative to try.
 * @param {App} app
 * @param {number} n
 * @param {DecisionRow | undefined} decision
 * @param {PlanNode | undefined} drawn
 * @param {ShowKernel} showKernel */
function valueParts(app, n, decision, drawn, showKernel) {
  const kernel = decision?.kernel ?? drawn?.kernels[0] ?? null;
  const cut = cutsOf(app.record).find(({ decision: other }) => other === decision);
  return [
    heading(
      decision?.stored ? "STORED" : drawn?.role === "input" ? "INPUT" : "FUSED",
      h(
        "b",
        { title: meaningOf(app.record, app.record.nodes.op[n]) },
        recordText(drawn?.label ?? decision?.name ?? ""),
      ),
      h(
        "span",
        { class: "wb-quiet", title: "its shape and dtype" },
        `${app.record.nodes.shape[n]} ${app.record.nodes.dtype[n]}`,
      ),
      ...nodeLines(app, n),
      backButton(app, showKernel),
    ),
    cut && h("p", {}, cutSentence(app, cut)),
    readersLine(app, n),
    ...(decision
      ? decisionParts(app, decision, choiceOffers(app, n))
      : [h("p", { class: "wb-quiet" }, "It needed no decision.")]),
    kernel !== null && tuneButton(app, kernel),
  ];
}

/** Kernel 1 stores these 256 KiB, kernel 2 reads them back.
 * @param {App} app
 * @param {Cut} cut */
function cutSentence(app, { kernel, bytes, readers }) {
  const named = (/** @type {number} */ k) =>
    `kernel ${k + 1} (${app.record.kernels[k]?.title ?? ""})`;
  const sentence = `${named(kernel)} stores ${bytes === undefined ? "it" : bytesText(bytes)}, ${
    readers.length
      ? `${readers.map(named).join(" and ")} ${readers.length > 1 ? "read" : "reads"} it back.`
      : "to be read back."
  }`;
  return sentence[0].toUpperCase() + sentence.slice(1);
}

/** @type {(app: App, showKernel: ShowKernel) => HTMLElement} */
const backButton = (app, showKernel) =>
  button(app, "all reasons", () => showKernel(null), {
    title: "why there are this many kernels",
    name: "plan-all",
  });

/** @type {(app: App, kernel: number) => HTMLElement} */
const tuneButton = (app, kernel) =>
  h(
    "div",
    {},
    button(app, `kernel ${kernel + 1}: ${app.record.kernels[kernel]?.title ?? ""}`, () =>
      app.select({ kernel, ...app.arrangements.toSee("loops", "tune") }), {
      title: "open it in Tune",
      name: "plan-kernel",
    }),
  );
