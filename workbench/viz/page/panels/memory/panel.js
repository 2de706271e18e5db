// MEMORY, in Plan: a bar for each kernel, as high as the bytes that live while it runs, results
// below intermediate values. The highest bar is marked; on hover a bar names its live values. The
// enlarged panel takes the room of the passes, and lists each value with its first and last kernel.

import { linked } from "../../app/links.js";
import { button, hasAny, headingOf } from "../../app/pieces.js";
import { h, recordText, refill } from "../../base/elements.js";
import { walkable } from "../../base/lists.js";
import { bytesText } from "../../base/text.js";

/** @import { App } from "../../app/store.js" */
/** @import { MemoryChart, MemoryStep, MemoryValue } from "../../record.d.ts" */
/** @import { Changes, PanelRow } from "../../types.d.ts" */

const LEAST_KERNELS = 2; // kernels; a chart of fewer shows no more than a number
const HEIGHT = 30; // pixels of the highest bar
const LARGE_HEIGHT = 120; // of an enlarged one
const MOST_NAMES = 12; // values named on hover

/** @satisfies {PanelRow} */
export const panel = {
  place: "pane",
  order: 22,
  title: "Memory",
  make: memoryPane,
  isOptional: true,
};

/**
 * @param {App} app
 * @param {() => MemoryChart} section */
function memoryPane(app, section) {
  const el = h("section", { class: "wb-held", "aria-label": "memory" });
  let isLarge = false;
  const enlarge = () => {
    isLarge = !isLarge;
    update(new Set(["record"]));
  };
  const update = (/** @type {Changes} */ changes) => {
    if (!hasAny(changes, "record", "kernel", "mode", "beside")) return;
    const chart = section();
    const kernels = chart.steps.filter(({ kernel }) => kernel !== null).length;
    if (kernels < LEAST_KERNELS && app.view.only !== "memory") {
      return refill(el, budgetOf(chart), h("p", { class: "wb-quiet" }, fewWords(chart)));
    }
    const most = Math.max(1, ...chart.steps.map(({ bytes }) => bytes));
    const differing = differingValues(app, chart);
    const bars = walkable(
      "listbox",
      "memory",
      { class: "wb-held-bars", "aria-orientation": "horizontal", "data-key": "memory-bars" },
      ...chart.steps.map((_, place) =>
        bar(app, chart, place, differing, most, isLarge ? LARGE_HEIGHT : HEIGHT)
      ),
    );
    const sentence = h("span", { class: "wb-held-words", title: chart.words }, chart.words);
    const size = button(app, isLarge ? "smaller" : "larger", enlarge, {
      name: "memory-size",
      title: "high bars, and each value with the kernels from and to which it lives",
    });
    el.classList.toggle("wb-held-large", isLarge);
    refill(
      el,
      budgetOf(chart),
      h(
        "div",
        { class: "wb-held-head" },
        headingOf("memory of the plan", "MEMORY", size),
        sentence,
      ),
      bars,
      isLarge && lives(app, chart, differing),
    );
  };
  return { el, update };
}

/** What a budget of memory did to the plan.
 * @param {MemoryChart} chart */
function budgetOf({ budget }) {
  return budget && h("p", { class: "wb-held-budget" }, budget);
}

/** What stands in place of bars where there are too few of them.
 * @param {MemoryChart} chart */
function fewWords({ steps }) {
  const only = steps.find(({ kernel }) => kernel !== null);
  const now = only
    ? `${bytesText(only.bytes)} live while the only kernel runs.`
    : "No kernel runs.";
  return `${now} From two kernels on, each has a bar here, as high as the bytes that live while it runs.`;
}

/**
 * @param {App} app
 * @param {MemoryChart} chart
 * @param {number} place
 * @param {Set<MemoryValue>} differing
 * @param {number} most
 * @param {number} height pixels of the highest bar */
function bar(app, chart, place, differing, most, height) {
  const step = chart.steps[place];
  const values = step.values.map((number) => chart.values[number]);
  const results = bytesOf(values.filter((value) => value.is_result));
  const pixels = (/** @type {number} */ bytes) =>
    `height:${Math.ceil((height * Math.min(bytes, most)) / most)}px`;
  const differs = values.filter((value) => differing.has(value))
    .map(({ name }) => `not held in the other plan: ${name}`);
  const item = h(
    "div",
    {
      class: `wb-held-bar ${place === chart.peak ? "wb-held-peak" : ""}${
        differs.length ? " wb-differs" : ""
      }`,
      role: "option",
      "data-item": "",
      "data-key": `memory-${place}`,
      "aria-selected": String(step.kernel !== null && app.view.kernel === step.kernel),
      "aria-label": label(chart, place),
      title: [label(chart, place), ...names(values), ...differs].join("\n"),
      onclick: () => step.kernel !== null && app.select({ kernel: step.kernel }),
    },
    h("i", { style: pixels(step.bytes - results) }),
    h("b", { style: pixels(results) }),
  );
  return linked(item, { by: "node", axes: [], nodes: values.map(({ node }) => node), lines: [] });
}

/** The values that the plan beside this one does not hold, or for which it holds other bytes.
 * @param {App} app
 * @param {MemoryChart} chart
 * @returns {Set<MemoryValue>} */
function differingValues({ values, partner }, chart) {
  const section = partner?.record.panels.memory?.data;
  const other = /** @type {MemoryChart | undefined} */ (section);
  if (!values || !other) return new Set();
  const key = (/** @type {number | undefined} */ node, /** @type {number} */ bytes) =>
    `${node} ${bytes}`;
  const held = new Set(other.values.map(({ node, bytes }) => key(node, bytes)));
  const isHeld = (/** @type {MemoryValue} */ { node, bytes }) =>
    held.has(key(values.partner.get(node), bytes));
  return new Set(chart.values.filter((value) => !isHeld(value)));
}

/** @type {(values: MemoryValue[]) => number} */
const bytesOf = (values) => values.reduce((sum, { bytes }) => sum + bytes, 0);

/**
 * @param {MemoryChart} chart
 * @param {number} place */
function label(chart, place) {
  const { kernel, bytes, allocated } = chart.steps[place];
  const where = kernel === null ? "a copy" : `kernel ${kernel + 1}`;
  const most = place === chart.peak ? ", the most" : "";
  return `${where}: ${bytesText(bytes)} live${most}; ${bytesText(allocated)} are allocated`;
}

/** The values that live, the largest first.
 * @param {MemoryValue[]} values */
function names(values) {
  const sorted = [...values].sort((a, b) => b.bytes - a.bytes);
  const lines = sorted.slice(0, MOST_NAMES).map(({ name, bytes, is_result: isResult }) =>
    `${name}: ${bytesText(bytes)}${isResult ? ", a result" : ""}`
  );
  const more = values.length - lines.length;
  return more > 0 ? [...lines, `and ${more} more`] : lines;
}

/** Lifetimes: each value with its bytes and a bar from the first step at which it lives to the
 * last, the earliest first.
 * @param {App} app
 * @param {MemoryChart} chart
 * @param {Set<MemoryValue>} differing */
function lives(app, { values, steps }, differing) {
  const rows = values.map((value, number) => {
    const at = steps.flatMap((step, place) => (step.values.includes(number) ? [place] : []));
    return { value, number, first: at[0] ?? -1, last: at.at(-1) ?? -1 };
  }).filter(({ first }) => first >= 0).sort((a, b) => a.first - b.first || b.last - a.last);
  /** @type {(place: number) => string} */
  const name = (place) => {
    const { kernel } = steps[place];
    return kernel === null ? "copy" : String(kernel + 1);
  };
  const percent = (/** @type {number} */ part) => `${(100 * part) / steps.length}%`;
  return walkable(
    "listbox",
    "lifetimes",
    { class: "wb-list wb-held-lives", "data-key": "memory-lives" },
    ...rows.map(({ value, number, first, last }) => {
      const when = first === last ? name(first) : `${name(first)} to ${name(last)}`;
      const item = h(
        "div",
        {
          class: `wb-row wb-held-life${differing.has(value) ? " wb-differs" : ""}`,
          role: "option",
          "data-item": "",
          "data-key": `life-${number}`,
          title: `${value.name}: ${bytesText(value.bytes)}, lives during ${when}${
            value.is_result ? ", and after: a result" : ""
          }${differing.has(value) ? "; not held in the other plan" : ""}`,
          onclick: () => app.select({ node: value.node }),
        },
        recordText(value.name, "wb-clip"),
        h("span", { class: "wb-figure" }, bytesText(value.bytes)),
        h("span", { class: "wb-figure wb-quiet" }, when),
        h(
          "span",
          { class: "wb-held-span" },
          h("i", {
            class: value.is_result ? "wb-held-result" : "",
            style: `margin-left:${percent(first)};width:${percent(last + 1 - first)}`,
          }),
        ),
      );
      return linked(item, { by: "node", axes: [], nodes: [value.node], lines: [] });
    }),
  );
}
