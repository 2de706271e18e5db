// Kernels: a line each, with the user's line that it computes.

import { linked } from "../../app/links.js";
import { hasAny, heading, kernelNumber } from "../../app/pieces.js";
import { lineLink, rowAt } from "../../app/store.js";
import { h, refill, words } from "../../base/elements.js";
import { walkable } from "../../base/lists.js";
import { bytesText, countText } from "../../base/text.js";

/** @import { KernelRow } from "../../record.d.ts" */
/** @import { Changes, PanelRow } from "../../types.d.ts" */
/** @import { App } from "../../app/store.js" */

/** @satisfies {PanelRow} */
export const panel = { place: "left", order: 1, make: kernelsPane };

/** @param {App} app */
function kernelsPane(app) {
  const el = h("section", { class: "wb-kernels", "aria-label": "kernels" });
  const update = (/** @type {Changes} */ changes) => {
    if (!hasAny(changes, "record", "kernel", "line")) return;
    const rows = app.record.kernels.map((kernel, i) => kernelRow(app, kernel, i));
    refill(
      el,
      heading("KERNELS", h("span", { class: "wb-quiet" }, `${rows.length}`)),
      walkable("listbox", "kernels", { class: "wb-list", "data-key": "kernels" }, ...rows),
      !rows.length &&
        h(
          "p",
          { class: "wb-quiet", style: "white-space:pre-wrap" },
          app.record.nothing,
        ),
    );
  };
  return { el, update };
}

/**
 * @param {App} app
 * @param {KernelRow} kernel
 * @param {number} i */
function kernelRow(app, kernel, i) {
  const chosen = i === app.view.kernel;
  const lines = kernel.line === null ? [] : [kernel.line, ...kernel.inner];
  const line = rowAt(app.record.lines, kernel.line);
  const texts = lines.map((at) => `${app.record.lines[at].where}: ${app.record.lines[at].text}`);
  const work = `${kernel.name}: ${countText(kernel.flops)} operations, ${bytesText(kernel.bytes)}`;
  const about = kernel.decoded ? `${work}\n${kernel.decoded}` : work;
  return linked(
    h(
      "div",
      {
        class: "wb-row wb-kernel",
        role: "option",
        "aria-selected": String(chosen),
        "data-item": "",
        "data-key": `kernel-${i}`,
        title: [about, ...texts].join("\n").slice(0, 1000),
        onclick: () => app.select({ kernel: i }),
      },
      kernelNumber(app, i),
      words(kernel.title, "wb-clip"),
      line && words(line.where, "wb-quiet wb-clip"),
    ),
    lineLink(lines),
  );
}
