// Equal kernels: their list, and the link to the next one.

import { button } from "../../app/pieces.js";
import { h } from "../../base/elements.js";
import { equalKernels } from "../../record/kernels.js";
import { repeatsAround } from "../../record/units.js";

/** @import { App } from "../../app/store.js" */

const MOST_NAMED = 12; // numbers of kernels in the sentence

/** Which kernels are equal to one, which round of a repeat it is in, and buttons that lead to the one
 * before and the one after; null where it is the only one.
 * @param {App} app
 * @param {number} kernel
 * @param {(kernel: number) => void} tellOf */
export function alikeLine(app, kernel, tellOf) {
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
    return button(app, text, () => tellOf(other), {
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
      `${at + 1} of ${equal.length} equal kernels`,
    ),
    step(-1, "‹", "the previous"),
    step(1, "›", "the next"),
    rounds.length > 0 && h("span", { class: "wb-quiet" }, rounds.join(", ")),
  );
}
