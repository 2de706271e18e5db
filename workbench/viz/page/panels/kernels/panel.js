// KERNELS: a line each, with the user's line, the time, the share of the total time, and the bytes;
// several can be sorted and searched. Sorted by a number, equal kernels are one row, which a click
// unfolds; kernels that draw weights are one row in every order.

import { act, canAsk } from "../../app/actions.js";
import { linked } from "../../app/links.js";
import { button, failure, hasAny, headingOf, kernelNumber, phaseMark } from "../../app/pieces.js";
import { lineLink, rowAt } from "../../app/store.js";
import { BUSY } from "../../app/timing.js";
import { elementsOf, h, recordText, refill } from "../../base/elements.js";
import { longList, rove } from "../../base/lists.js";
import { bytesText, countText } from "../../base/text.js";
import {
  checkedVariants,
  distinctions,
  kernelColour,
  kernelGroups,
  kernelWork,
  phasesOf,
  sharedLines,
  sharedModule,
  timedCount,
  timeWords,
  togetherWork,
  weightKernels,
  WEIGHTS,
  withoutPhases,
  workShare,
  workTime,
  workTotal,
} from "../../record/kernels.js";

/** @import { App } from "../../app/store.js" */
/** @import { CheckRow, KernelRow } from "../../record.d.ts" */
/** @import { KernelGroup, KernelOrder, Work } from "../../record/kernels.js" */
/** @import { Changes, PanelRow } from "../../types.d.ts" */

/** @type {[KernelOrder, string][]} */
const ORDERS = [
  ["place", "in the order in which they run"],
  ["time", "the greatest share of the time of all first; equal kernels together"],
  ["bytes", "those that read and write most first; equal kernels together"],
  ["module", "those of one module together, with their sum, as the model has them"],
];

/** @satisfies {PanelRow} */
export const panel = { place: "pane", order: 20, title: "Kernels", make: kernelsPane };

/** The order of the list, its search, the keys of unfolded groups, and its rows.
 * @typedef {{order: KernelOrder, query: string, unfolded: Set<string>, rows: Row[]}} KernelsState
 * A row: a kernel, or a group of several, within so many others.
 * @typedef {KernelGroup & {isOpen: boolean, depth: number}} Row
 * @param {App} app */
function kernelsPane(app) {
  const head = h("div", {});
  const rows = h("div", { class: "wb-kernels-rows" });
  /** @type {KernelsState} */
  const state = { order: "place", query: "", unfolded: new Set(), rows: [] };
  const field = h("input", {
    type: "search",
    class: "wb-input",
    placeholder: "find a kernel",
    "aria-label": "find a kernel",
    oninput: ({ target }) => ((state.query = target.value), fillRows()),
  });
  const sorting = h("div", {});
  // it stays in place while times arrive: typed text would be lost otherwise
  const tools = h("div", { class: "wb-kernels-tools" }, sorting, field);
  const el = h("section", { class: "wb-kernels", "aria-label": "kernels" }, head, tools, rows);
  const fillRows = () => {
    const before = elementsOf(rows, "[data-item]").length; // the reader may be in the list
    refill(rows, ...kernelList(app, state, before, fillRows));
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
    const isSelected = changes.has("kernel");
    const isUnfolded = isSelected && unfoldSelected(app, state);
    if (hasAny(changes, "record", "live", "pending", "failure")) fill();
    else if (isUnfolded || (isSelected && !markRow(rows, state, app.view.kernel))) fillRows();
  };
  return { el, update };
}

/** Unfold the kernels that draw weights if one of them is selected, since their row does not name
 * it. Return whether they were folded.
 * @param {App} app
 * @param {KernelsState} state */
function unfoldSelected({ record, view }, { unfolded }) {
  const isFolded = !unfolded.has(WEIGHTS) && weightKernels(record).includes(view.kernel);
  if (isFolded) unfolded.add(WEIGHTS);
  return isFolded;
}

/** @param {KernelGroup} group */
const rowKey = ({ places, name, isWeights }) => {
  if (isWeights) return WEIGHTS;
  return name ? `module-${name}` : `${places.length > 1 ? "equal" : "kernel"}-${places[0]}`;
};

/** Whether a row represents a kernel: an unfolded group leaves that to its rows.
 * @type {(row: Row, kernel: number) => boolean} */
const has = ({ places, isOpen }, kernel) => !isOpen && places.includes(kernel);

/** Mark the row of the selected kernel; return whether it has one.
 * @param {HTMLElement} el
 * @param {KernelsState} state
 * @param {number} kernel */
function markRow(el, { rows }, kernel) {
  const items = elementsOf(el, "[data-item]");
  const own = rows.find((row) => has(row, kernel));
  const isOwn = (/** @type {HTMLElement} */ item) => own && item.dataset.key === rowKey(own);
  for (const item of items) item.setAttribute("aria-selected", String(Boolean(isOwn(item))));
  const list = elementsOf(el, "[data-walk]")[0];
  if (list) rove(list);
  return items.some(isOwn);
}

/** @param {App} app */
function totalText(app) {
  const work = kernelWork(app.record);
  if (!work.length) return null;
  const count = timedCount(work);
  const title = [
    "one run of each kernel with the default opts, warm: the sum of their times; the bytes that they read and write",
    timeWords(work),
    count && "the shares are exact once all are timed",
  ];
  const total = [workTotal(work), count].filter(Boolean).join(", ");
  const text = work.length > 1 ? total : String(work.length);
  return h("span", { class: "wb-quiet", title: title.filter(Boolean).join("\n") }, text);
}

/** Time the kernels without a time.
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

/** Check everything, unless nothing is computed.
 * @param {App} app */
const checkButton = (app) =>
  app.record.kernels.length > 0 && canAsk(app) &&
  button(app, "check all", () => act(app, "kernels", { do: "check_all" }), {
    python: true,
    name: "check-all",
    title:
      "compare each kernel with the default opts, and all results, with the meaning of the expression",
  });

/** The verdict on the whole in a line; its error, and the reference of the comparison, on hover.
 * @param {CheckRow | null | undefined} check */
const wholeCheck = (check) =>
  check && h(
    "p",
    { class: `wb-clip ${check.ok ? "wb-good" : "wb-bad"}`, title: check.text },
    `${check.ok ? "✓" : "✗"} ${check.text.split("; ")[0]}`,
  );

/** ✓ or ✗ by the checked variants of kernels that were not edited, each verdict with its name.
 * @param {App} app
 * @param {number[]} places */
function checkMark(app, places) {
  const checked = checkedVariants(app.record, places);
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
 * @param {number} before rows that there were
 * @param {() => void} changed */
function kernelList(app, state, before, changed) {
  const { record, view } = app;
  if (!record.kernels.length) {
    return [h("p", { class: "wb-quiet", style: "white-space:pre-wrap" }, record.nothing)];
  }
  const all = {
    work: kernelWork(record),
    distinctions: distinctions(record),
    sharedLines: sharedLines(record.kernels),
  };
  /** @type {(group: KernelGroup, depth: number) => Row[]} */
  const rowsOf = (group, depth) => {
    const isOpen = group.inside.length > 0 && state.unfolded.has(rowKey(group));
    const inside = isOpen ? group.inside.flatMap((each) => rowsOf(each, depth + 1)) : [];
    return [{ ...group, isOpen, depth }, ...inside];
  };
  const groups = kernelGroups(record, state.order, state.query);
  const rows = groups.flatMap((group) => rowsOf(group, 0));
  state.rows = rows;
  const toggle = (/** @type {Row} */ row) => {
    const key = rowKey(row);
    row.isOpen ? state.unfolded.delete(key) : state.unfolded.add(key);
    changed();
  };
  return [
    longList("listbox", "kernels", { class: "wb-list", "data-key": "kernels" }, {
      count: rows.length,
      row: (at) => kernelRow(app, rows[at], all, toggle),
      least: Math.max(rows.findIndex((row) => has(row, view.kernel)), before - 1),
      grown: () => app.changed("rows"),
    }),
    !rows.length && h("p", { class: "wb-quiet" }, "nothing found"),
  ];
}

/** What the rows need of all kernels: the work of each, what tells it from others with its title, and
 * the lines that several have.
 * @typedef {{
 *   work: Work[], distinctions: string[], sharedLines: Set<number | null>
 * }} AllKernels */

/**
 * @param {App} app
 * @param {Row} row
 * @param {AllKernels} all
 * @param {(row: Row) => void} toggle */
function kernelRow(app, row, all, toggle) {
  const { places, name, isWeights, isOpen, depth } = row;
  const [i] = places;
  const isGroup = places.length > 1;
  const kernel = app.record.kernels[i];
  const own = places.map((k) => app.record.kernels[k]);
  const each = places.map((k) => all.work[k]);
  const work = togetherWork(each);
  const isOnePhase = own.every(({ phases }) => phases.join() === kernel.phases.join());
  const phases = isOnePhase ? phasesOf(app.record, [i]) : [];
  const lines = [...new Set((name ? own : [kernel]).flatMap(linesOf))];
  // a line that many kernels share does not identify them: their own lines stand inside it
  const isShared = kernel.modules.length > 0 && all.sharedLines.has(kernel.line);
  const at = (isShared ? kernel.inner.at(-1) : null) ?? kernel.line;
  const line = name ? null : rowAt(app.record.lines, at);
  const module = name ? "" : sharedModule(own);
  const title = [withoutPhases(kernel.title, phases), all.distinctions[i]].filter(Boolean);
  return linked(
    h(
      "div",
      {
        class: `wb-row wb-kernel ${depth ? "wb-kernel-inside" : ""} ${
          isWeights ? "wb-kernel-weights" : ""
        }`,
        style: depth ? `--depth:${depth}` : "",
        role: "option",
        "aria-selected": String(has(row, app.view.kernel)),
        "data-item": "",
        "data-key": rowKey(row),
        title: name ? aboutFold(app, row, each) : aboutKernel(app, row, each, module),
        onclick: isGroup ? () => toggle(row) : () => app.select({ kernel: i }),
      },
      h(
        "span",
        { class: "wb-kernel-what" },
        isGroup
          ? h("b", { class: "wb-kernel-times" }, `${isOpen ? "▾" : "▸"} ${countOf(row)}`)
          : kernelNumber(app, i),
        phaseMark(phases, kernelColour(app.record, i)),
        checkMark(app, places),
        recordText(name || title.join(" "), "wb-clip"),
      ),
      module &&
        recordText(isGroup ? module : `${module} ${kernel.fused}`, "wb-kernel-module wb-clip"),
      line && recordText(line.where, "wb-quiet wb-clip"),
      figures(work),
    ),
    { ...lineLink(lines), kernels: places },
  );
}

/** @param {Work} work */
const figures = (work) =>
  h(
    "span",
    { class: "wb-kernel-figures" },
    h("span", { class: "wb-figure wb-kernel-time" }, ...timeOf(work)),
    h("span", { class: "wb-figure wb-kernel-share" }, workShare(work)),
    h("span", { class: "wb-figure wb-kernel-bytes" }, bytesText(work.bytes)),
  );

/** The variant, its time, and whether that was disturbed: together in any width, since a time
 * without its variant may be taken for that of another one.
 * @param {Work} work */
const timeOf = (work) =>
  work.seconds === null ? [] : [
    recordText(work.name, "wb-quiet wb-small", MOST_NAME),
    ` ${workTime(work)}`,
    work.mark in DOUBTS &&
    h("span", { class: "wb-quiet wb-small", "data-term": work.mark }, ` ${DOUBTS[work.mark]}`),
  ];

/** The signs of times that are not certain.
 * @type {Record<string, string>} */
const DOUBTS = { busy: BUSY, uncertain: "?" };

const MOST_NAME = 16; // characters of the name of a variant

/** @param {Row} row */
const countOf = ({ places, name }) => `${places.length} ${name ? "kernels" : "×"}`;

/** @param {KernelRow} kernel */
const linesOf = ({ line, inner }) => line === null ? [] : [line, ...inner];

/** @param {Work[]} work of the kernels of a row */
const timeInWords = (work) => {
  const time = workTime(togetherWork(work));
  const own = time && `${time} with the default opts`;
  return [own, timeWords(work)].filter(Boolean).join(", ");
};

/** @param {Row} row */
const clickInWords = ({ places, isOpen }) =>
  `${places.map((k) => k + 1).join(", ")}: click to ${isOpen ? "fold" : "unfold"}`;

/** The hover text of a fold: kernels that draw weights, or those of a module.
 * @param {App} app
 * @param {Row} row
 * @param {Work[]} work of each kernel */
function aboutFold(app, row, work) {
  const time = timeInWords(work);
  const about = row.isWeights ? app.record.plan.hint : row.name;
  return [about, time && `${time}, together`, clickInWords(row)]
    .filter(Boolean).join("\n").slice(0, 1000);
}

/** The hover text of a row.
 * @param {App} app
 * @param {Row} row
 * @param {Work[]} work of each kernel
 * @param {string} module */
function aboutKernel(app, row, work, module) {
  const { places } = row;
  const kernel = app.record.kernels[places[0]];
  const isGroup = places.length > 1;
  const time = timeInWords(work);
  return [
    isGroup && `${places.length} equal kernels, ${clickInWords(row)}`,
    `${kernel.name}: ${countText(kernel.flops)} operations, ${bytesText(kernel.bytes)}${
      isGroup ? " each" : ""
    }`,
    kernel.decoded,
    kernel.opts_in_code,
    !isGroup && kernel.phases.join(" and "),
    ...(isGroup ? [module] : kernel.modules),
    time && `${time}${isGroup ? ", together" : ""}`,
    ...linesOf(kernel).map((at) => `${app.record.lines[at].where}: ${app.record.lines[at].text}`),
  ].filter(Boolean).join("\n").slice(0, 1000);
}
