// Groups of kernels: the phases of training, the values that the forward stores for the backward,
// equal kernels.

import { linked } from "../../app/links.js";
import { button, headingOf, kernelNumber, phaseMark } from "../../app/pieces.js";
import { nodeLink } from "../../app/store.js";
import { h, recordText } from "../../base/elements.js";
import { walkable } from "../../base/lists.js";
import { bytesText, plural } from "../../base/text.js";
import { equalKernels, kernelWork, phaseCount } from "../../record/kernels.js";
import { repeatsAround } from "../../record/units.js";

/** @import { App } from "../../app/store.js" */
/** @import { ActivationRow } from "../../record.d.ts" */

const MOST_LISTED = 60; // activations
const MOST_READERS = 3; // of each, by number

/** A letter, a word and a number of kernels for each phase.
 * @param {App} app
 * @returns {(HTMLElement | null)[]} */
export function phaseLegend({ record }) {
  const work = kernelWork(record);
  return record.plan.phases.map((phase) => {
    const { count, share } = phaseCount(record, work, phase);
    const title = `${phase.name}: ${plural(count, "kernel")}${share && `, ${share} of the time`}`;
    return h(
      "span",
      { class: "wb-plan-phase", title },
      phaseMark([phase]),
      h("span", {}, phase.name),
      h("span", { class: "wb-quiet" }, String(count)),
    );
  });
}

/** The values that the forward stores for the backward, the largest first; hovering one marks its
 * lines.
 * @param {App} app */
export function activationList(app) {
  const { activations } = app.record.plan;
  if (!activations.length) return [];
  const total = activations.reduce((sum, { bytes }) => sum + bytes, 0);
  const more = activations.length - MOST_LISTED;
  return [
    h(
      "details",
      { class: "wb-plan-kept", open: true },
      h(
        "summary",
        {},
        headingOf(
          "stored for the backward",
          "STORED FOR THE BACKWARD",
          h(
            "span",
            { class: "wb-quiet" },
            `${plural(activations.length, "value")}, ${bytesText(total)}`,
          ),
        ),
      ),
      walkable(
        "listbox",
        "stored for the backward",
        { class: "wb-plan-activations" },
        ...activations.slice(0, MOST_LISTED).map((row) => activationItem(app, row)),
      ),
      more > 0 && h("p", { class: "wb-quiet" }, `and ${more} more`),
    ),
  ];
}

/** 2 -> 16 18  the value, its bytes; below it the module and the line of the forward.
 * @param {App} app
 * @param {ActivationRow} row */
function activationItem(app, { node, name, module, line, kernel, readers, bytes }) {
  const others = readers.length - MOST_READERS;
  return linked(
    h(
      "div",
      {
        role: "option",
        "data-item": "",
        "data-key": `activation-${node}`,
        "aria-selected": String(app.view.node === node),
        title: `${name}, ${bytesText(bytes)}: kernel ${kernel + 1} stores it, ${
          readers.length > 1 ? "kernels" : "kernel"
        } ${readers.map((k) => k + 1).join(", ")} of the backward ${
          readers.length > 1 ? "read" : "reads"
        } it`,
        onclick: () => app.select({ node }),
      },
      h(
        "div",
        { class: "wb-plan-way" },
        kernelNumber(app, kernel),
        h("span", { "aria-label": "to" }, "→"),
        ...readers.slice(0, MOST_READERS).map((k) => kernelNumber(app, k)),
        others > 0 && h("span", { class: "wb-quiet" }, `+${others}`),
        recordText(name, "wb-clip", 40),
        h("b", { class: "wb-figure" }, bytesText(bytes)),
      ),
      h(
        "div",
        { class: "wb-plan-way" },
        recordText(module, "wb-quiet wb-clip", 60),
        line !== null && recordText(app.record.lines[line].where, "wb-quiet wb-plan-line"),
      ),
    ),
    nodeLink(node),
  );
}

// Equal kernels: their list, and the link to the next one.

const MOST_NAMED = 12; // numbers of kernels in the sentence

/** The kernels equal to one, its round of a repeat, and buttons that lead to the previous and the
 * next one; null if it is the only one.
 * @param {App} app
 * @param {number} kernel
 * @param {(kernel: number) => void} showKernel */
export function equalKernelsLine(app, kernel, showKernel) {
  const { plan } = app.record;
  const equal = equalKernels(plan, kernel);
  if (equal.length < 2) return null;
  const at = equal.indexOf(kernel);
  const rounds = repeatsAround(plan, kernel).filter(({ times }) => times > 1)
    .map(({ first, size, times, title }) =>
      `round ${1 + Math.floor((kernel - first) / size)} of ${times} × ${title}`
    );
  const numbers = equal.slice(0, MOST_NAMED).map((k) => k + 1).join(", ");
  /** @type {(by: number, text: string, title: string) => HTMLElement} */
  const step = (by, text, title) => {
    const other = equal[(at + by + equal.length) % equal.length];
    return button(app, text, () => showKernel(other), {
      title: `${title} equal kernel: ${other + 1}`,
      name: `alike${by}`,
    });
  };
  return h(
    "div",
    { class: "wb-buttons wb-plan-alike" },
    h(
      "span",
      {
        title: `kernels ${numbers}${equal.length > MOST_NAMED ? ", …" : ""}: they compute the same`,
      },
      `${at + 1} of ${equal.length} `,
      h("span", { "data-term": "equal kernels" }, "equal kernels"),
    ),
    step(-1, "‹", "the previous"),
    step(1, "›", "the next"),
    rounds.length > 0 && h("span", { class: "wb-quiet" }, rounds.join(", ")),
  );
}
