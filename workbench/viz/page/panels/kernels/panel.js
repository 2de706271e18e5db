// Kernels: a line each, with the user's line that it computes, its time, its share of the time of
// all, and its bytes; several are sorted and searched.

import { act, canAsk } from "../../app/actions.js";
import { linked } from "../../app/links.js";
import { button, failure, hasAny, headingOf, kernelNumber, phaseMark } from "../../app/pieces.js";
import { lineLink, rowAt } from "../../app/store.js";
import { elementsOf, h, refill, words } from "../../base/elements.js";
import { longList, rove } from "../../base/lists.js";
import { bytesText, countText } from "../../base/text.js";
import { kernelColour, phasesOf, withoutPhases } from "../../record/phases.js";
import { kernelPlaces, kernelWork, workShare, workTime, workTotal } from "../../record/kernels.js";

/** @import { CheckRow } from "../../record.d.ts" */
/** @import { Changes, PanelRow } from "../../types.d.ts" */
/** @import { KernelOrder, Work } from "../../record/kernels.js" */
/** @import { App } from "../../app/store.js" */

/** @type {[KernelOrder, string][]} */
const ORDERS = [
  ["place", "in the order in which they run"],
  ["time", "the longest first: the greatest share of the time of all"],
  ["bytes", "those that read and write most first"],
  ["module", "those of one module together, in the order of their paths"],
];

/** @satisfies {PanelRow} */
export const panel = { place: "left", order: 1, make: kernelsPane };

/** How the list is sorted, and what is searched in it.
 * @typedef {{order: KernelOrder, query: string}} KernelsState
 * @param {App} app */
function kernelsPane(app) {
  const head = h("div", {});
  const rows = h("div", { class: "wb-kernels-rows" });
  /** @type {KernelsState} */
  const state = { order: "place", query: "" };
  const field = h("input", {
    type: "search",
    class: "wb-input",
    placeholder: "find a kernel",
    "aria-label": "find a kernel",
    oninput: ({ target }) => ((state.query = target.value), fillRows()),
  });
  const sorting = h("div", {});
  // it stays where it is while times arrive: what somebody types would be lost in between
  const tools = h("div", { class: "wb-kernels-tools" }, sorting, field);
  const el = h("section", { class: "wb-kernels", "aria-label": "kernels" }, head, tools, rows);
  const fillRows = () => {
    const before = elementsOf(rows, "[data-item]").length; // the reader may be among them
    refill(rows, ...kernelList(app, state, before));
  };
  const setOrder = (/** @type {KernelOrder} */ order) => ((state.order = order), fill());
  const fill = () => {
    const { kernels } = app.record;
    el.dataset.order = state.order;
    const isOne = kernels.length < 2;
    refill(
      head,
      headingOf(
        "kernels",
        isOne ? "KERNELS" : `${kernels.length} KERNELS`,
        totalText(app),
        timeButton(app),
        checkButton(app),
      ),
      failure(app, "kernels"),
      wholeCheck(app.record.plan.check),
    );
    tools.hidden = isOne;
    refill(sorting, sortButtons(app, state, setOrder));
    fillRows();
  };
  const update = (/** @type {Changes} */ changes) => {
    if (hasAny(changes, "record", "live", "pending", "failure")) fill();
    else if (changes.has("kernel") && !markRow(rows, app.view.kernel)) fillRows();
  };
  return { el, update };
}

/** Mark the row of the kernel that is selected; return whether it has one.
 * @param {HTMLElement} rows
 * @param {number} kernel */
function markRow(rows, kernel) {
  const items = elementsOf(rows, "[data-item]");
  const isOfKernel = (/** @type {HTMLElement} */ item) => item.dataset.key === `kernel-${kernel}`;
  for (const item of items) item.setAttribute("aria-selected", String(isOfKernel(item)));
  const list = elementsOf(rows, "[data-walk]")[0];
  if (list) rove(list);
  return items.some(isOfKernel);
}

/** @param {App} app */
function totalText(app) {
  const work = kernelWork(app.record);
  if (!work.length) return null;
  const predicted = work.filter(({ isMeasured }) => !isMeasured).length;
  const title = [
    "one run of each kernel with the default opts, warm: the sum of their times; the bytes that they read and write",
    predicted && `~: predicted for ${predicted} of ${work.length}`,
  ];
  const text = work.length > 1 ? workTotal(work) : String(work.length);
  return h("span", { class: "wb-quiet", title: title.filter(Boolean).join("\n") }, text);
}

/** Time what has no time yet.
 * @param {App} app */
function timeButton(app) {
  const { plan: { runs }, kernels } = app.record;
  const isTimed = runs.every(({ like }) => runs[like].measured_s !== null);
  if (kernels.length < 2 || isTimed || !canAsk(app)) return null;
  if (app.pending("kernels")) return h("span", { class: "wb-quiet" }, "timing …");
  return button(app, "time all", () => act(app, "kernels", { do: "kernels" }), {
    python: true,
    name: "time-kernels",
    title: "time each kernel with the default opts, equal ones once",
  });
}

/** Check everything, unless nothing is to be computed.
 * @param {App} app */
const checkButton = (app) =>
  app.record.kernels.length > 0 && canAsk(app) &&
  button(app, "check all", () => act(app, "kernels", { do: "check_all" }), {
    python: true,
    name: "check-all",
    title:
      "compare each kernel with the default opts, and all results, with what the expression means",
  });

/** The verdict on the whole in a line; with how far off it is, and what it was compared with, on
 * hover.
 * @param {CheckRow | null | undefined} check */
const wholeCheck = (check) =>
  check && h(
    "p",
    { class: `wb-clip ${check.ok ? "wb-good" : "wb-bad"}`, title: check.text },
    `${check.ok ? "✓" : "✗"} ${check.text.split("; ")[0]}`,
  );

/** ✓ or ✗ by the variants of a kernel that were checked, each verdict with its name.
 * @param {App} app
 * @param {number} i */
function checkMark(app, i) {
  const checked = app.variantsOf(i).map((at) => app.record.variants[at])
    .filter((row) => row.check);
  if (!checked.length) return null;
  const ok = checked.every((row) => row.check?.ok);
  const title = checked.map((row) => `${row.name}: ${row.check?.text}`).join("\n");
  return h("span", { class: ok ? "wb-good" : "wb-bad", title }, ok ? "✓" : "✗");
}

/**
 * @param {App} app
 * @param {KernelsState} state
 * @param {(order: KernelOrder) => void} setOrder */
const sortButtons = (app, state, setOrder) =>
  h(
    "span",
    { class: "wb-kernels-sort", role: "group", "aria-label": "sort kernels" },
    ...ORDERS.map(([order, title]) =>
      button(app, order, () => setOrder(order), {
        pressed: state.order === order,
        title,
        name: `sort-${order}`,
      })
    ),
  );

/**
 * @param {App} app
 * @param {KernelsState} state
 * @param {number} before rows that there were */
function kernelList(app, { order, query }, before) {
  const { record, view } = app;
  if (!record.kernels.length) {
    return [h("p", { class: "wb-quiet", style: "white-space:pre-wrap" }, record.nothing)];
  }
  const work = kernelWork(record);
  const places = kernelPlaces(record, order, query);
  return [
    longList("listbox", "kernels", { class: "wb-list", "data-key": "kernels" }, {
      count: places.length,
      row: (place) => kernelRow(app, places[place], work[places[place]]),
      least: Math.max(places.indexOf(view.kernel), before - 1),
      grown: () => app.changed("rows"),
    }),
    !places.length && h("p", { class: "wb-quiet" }, "nothing found"),
  ];
}

/** Whether another kernel has the line of kernel i.
 * @param {App} app
 * @param {number} i */
function sharesLine(app, i) {
  const { kernels } = app.record;
  return kernels.some((other, at) => at !== i && other.line === kernels[i].line);
}

/**
 * @param {App} app
 * @param {number} i
 * @param {Work} work */
function kernelRow(app, i, work) {
  const kernel = app.record.kernels[i];
  const phases = phasesOf(app.record, i, i + 1);
  const lines = kernel.line === null ? [] : [kernel.line, ...kernel.inner];
  // a line that many kernels have tells none of them apart: their own stand inside it
  const isShared = kernel.modules.length > 0 && sharesLine(app, i);
  const line = rowAt(app.record.lines, (isShared ? kernel.inner.at(-1) : null) ?? kernel.line);
  const texts = lines.map((at) => `${app.record.lines[at].where}: ${app.record.lines[at].text}`);
  const about = [
    `${kernel.name}: ${countText(kernel.flops)} operations, ${bytesText(kernel.bytes)}`,
    kernel.decoded,
    phases.length > 0 && kernel.phases.join(" and "),
    ...kernel.modules,
    work.seconds === null
      ? ""
      : `${work.isMeasured ? "" : "predicted "}${workTime(work)} with the default opts`,
    ...texts,
  ];
  return linked(
    h(
      "div",
      {
        class: "wb-row wb-kernel",
        role: "option",
        "aria-selected": String(i === app.view.kernel),
        "data-item": "",
        "data-key": `kernel-${i}`,
        title: about.filter(Boolean).join("\n").slice(0, 1000),
        onclick: () => app.select({ kernel: i }),
      },
      kernelNumber(app, i),
      phaseMark(phases, kernelColour(app.record, i)),
      checkMark(app, i),
      words(withoutPhases(kernel.title, phases), "wb-clip"),
      kernel.modules.length > 0 && words(kernel.modules[0], "wb-kernel-module wb-clip"),
      line && words(line.where, "wb-quiet wb-clip"),
      work.seconds !== null && h("span", { class: "wb-quiet wb-small wb-kernel-opts" }, "auto"),
      h("span", { class: "wb-figure wb-kernel-time" }, workTime(work)),
      h("span", { class: "wb-figure wb-kernel-share" }, workShare(work)),
      h("span", { class: "wb-figure wb-kernel-bytes" }, bytesText(kernel.bytes)),
    ),
    lineLink(lines),
  );
}
