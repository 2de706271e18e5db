// Values: the values of the picked node on the user's data, or of what the kernel computes: as a
// histogram, as a picture of two of its axes, and as numbers. Python sends means of blocks of large
// matrices, and the numbers of a part, which a click in the picture moves.

import { act, canAsk } from "../../app/actions.js";
import {
  button,
  chooser,
  failure,
  hasAny,
  heading,
  kernelNumber,
  nodeLines,
} from "../../app/pieces.js";
import { CellGrid } from "../../base/cell_grid.js";
import { debounced, h, recordText, refill } from "../../base/elements.js";
import { plural } from "../../base/text.js";
import { NO_VALUES, readingOf } from "../../record/states.js";
import { finite, markedColour, NOT_FINITE, notFinite, scaleOf } from "./colours.js";

/** @import { App } from "../../app/store.js" */
/** @import { Look } from "../../base/cell_grid.js" */
/** @import { ValueSummary, ValueTable } from "../../record.d.ts" */
/** @import { Changes, PanelRow } from "../../types.d.ts" */

const NO_PYTHON = "Values are computed by Python: run the cell again.";
const PICTURE_PIXELS = 240; // the height of a picture, where its cells are not too small or large
const CELL = { least: 4, most: 20 }; // pixels
const NUMBER = { width: 62, height: 17 };
const LEAST = 8; // marks of cells
const GREATEST = 16;

/** @satisfies {PanelRow} */
export const panel = {
  place: "pane",
  order: 25,
  title: "Values",
  make: (/** @type {App} */ app) => new Values(app),
};

class Values {
  /** @type {ValueTable | null} */
  reply = null;
  /** The node and variant of the reply or of the pending request, with the record's plan. */
  #of = "";
  /** @type {object | null} */
  #plan = null;
  /** The chosen axes of rows and columns ("": the last ones), the positions of the others, and the
   * place of the first number. */
  #choice = none();
  /** The node that differs from numpy's, with the choice that shows where it differs most.
   * @type {{node: number, choice: ReturnType<typeof none>} | null} */
  #worst = null;
  /** @type {CellGrid[]} */
  #grids = [];
  checks = h("pre", { class: "wb-values-text", role: "status", tabindex: 0, hidden: true });

  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.tools = h("span", {});
    this.about = h("div", { class: "wb-values-bar", title: "whose values these are" });
    this.errors = h("div", {});
    this.content = h("div", { class: "wb-values-content" });
    this.el = h(
      "section",
      { class: "wb-values", "aria-label": "values", tabindex: 0 },
      heading("Values", this.tools),
      this.about,
      this.errors,
      this.checks,
      this.content,
    );
    this.askSoon = debounced(() => this.#ask(), 120);
  }

  focus() {
    this.el.focus();
  }

  /** @param {Changes} changes */
  update(changes) {
    const { app } = this;
    if (changes.has("theme")) this.#grids.forEach((grid) => grid.repaint());
    if (
      !hasAny(
        changes,
        "record",
        "board",
        "mode",
        "node",
        "variant",
        "live",
        "failure",
        "pending",
        "values",
      )
    ) return;
    const { node, variant } = app.view;
    const of = `${node} ${variant}`;
    if (of !== this.#of || app.record.plan !== this.#plan) {
      if (app.record.plan !== this.#plan) {
        this.#say("");
        this.#worst = null;
      }
      Object.assign(this, { reply: null });
      this.#of = "";
      this.#choice = this.#worst?.node === node ? this.#worst.choice : none();
      this.#ask();
    }
    refill(this.errors, failure(app, "values"));
    const isBusy = app.pending("check_nodes");
    refill(
      this.tools,
      button(app, isBusy ? "comparing .." : "compare with numpy", () => this.#compare(), {
        python: true,
        name: "values-check",
        title: "compute each value of the expression by kernels, in order, up to the first that" +
          " differs from numpy's",
      }),
    );
    refill(this.about, ...this.#aboutNode());
    if (!this.reply) refill(this.content, h("p", { class: "wb-quiet" }, this.#waiting()));
    else if (changes.has("values")) this.#show(this.reply);
  }

  /** Why the picked node has no values; "" if it has some. */
  get #why() {
    const { node } = this.app.view;
    const { nodes } = this.app.record;
    return node === null ? "" : NO_VALUES[readingOf(nodes, node).values ?? ""];
  }

  #waiting() {
    const { app } = this;
    if (!canAsk(app)) return NO_PYTHON;
    return this.#why || (app.failures.values || !app.record.kernels.length ? "" : "computing ..");
  }

  #aboutNode() {
    const { app, reply } = this;
    const { node } = app.view;
    if (node === null) {
      const words =
        "what the kernel computes; pick a node in a graph or in the plan to see its own";
      return [h("span", { class: "wb-quiet" }, words)];
    }
    const all = () => app.select({ node: null });
    return [
      reply && reply.kernel !== null && kernelNumber(app, reply.kernel),
      recordText(app.record.nodes.label[node]),
      ...nodeLines(app, node),
      button(app, "the result", all, { name: "values-result", title: "what the kernel computes" }),
    ].filter(Boolean);
  }

  async #ask() {
    const { app } = this;
    const { node, variant } = app.view;
    const isShown = app.arrangements.shows("values");
    if (!canAsk(app) || !isShown || this.#why || !app.record.kernels.length) return;
    const of = `${node} ${variant}`;
    this.#of = of;
    this.#plan = app.record.plan;
    const choice = this.#choice;
    const reply = await act(app, "values", { do: "table", variant, node, ...choice });
    if (this.#of !== of || this.#choice !== choice) return;
    this.reply = reply?.result ?? null;
    app.changed("values");
  }

  /** Say what the comparison found.
   * @param {string} text */
  #say(text) {
    refill(this.checks, text);
    this.checks.hidden = !text;
  }

  /** Find the first value that differs from numpy's, and show it where it differs most. */
  async #compare() {
    const { app } = this;
    const { plan } = app.record;
    this.#say("");
    const reply = await act(app, "values", { do: "check_nodes" });
    const result = reply?.result;
    if (!result || app.record.plan !== plan) return;
    this.#say(result.text);
    const { node, at } = result;
    if (node === null || node === undefined) return;
    const outer = at.slice(0, -2).map((place, axis) => [String(axis), place]);
    const choice = { ...none(), at: Object.fromEntries(outer), first: [0, 0, ...at].slice(-2) };
    this.#worst = { node, choice };
    if (app.view.node === node) return this.#choose(choice);
    app.select({ node });
  }

  /** @param {Partial<ReturnType<typeof none>>} changes */
  #choose(changes, isSoon = false) {
    this.#choice = { ...this.#choice, ...changes };
    if (isSoon) this.askSoon();
    else this.#ask();
  }

  /** @param {ValueTable} table */
  #show(table) {
    const { picture, summary, window } = table;
    const isEmpty = !picture.height || !picture.width;
    this.#grids = isEmpty ? [] : [this.#picture(table), this.#numbers(table)];
    const [drawn, numbers] = this.#grids;
    const [rows, columns] = [window.values.length / (window.columns || 1), window.columns];
    const isPart = rows < picture.height || columns < picture.width;
    const ends = [span(window.first[0], rows), span(window.first[1], columns)];
    const part = `rows ${ends[0]}, columns ${ends[1]}; a click in the picture shows others`;
    refill(
      this.content,
      h("pre", { class: "wb-values-text", tabindex: 0 }, `${table.text}  (${table.dtype})`),
      this.#axes(table),
      h("p", { role: "status" }, summaryText(summary)),
      histogram(summary),
      h(
        "div",
        { class: "wb-values-grids" },
        drawn && h(
          "div",
          {},
          h("p", { class: "wb-quiet" }, pictureText(table)),
          drawn.el,
          legend(summary),
        ),
        numbers && h(
          "div",
          {},
          h("p", { class: "wb-quiet" }, isPart ? part : "all numbers of the picture"),
          numbers.el,
        ),
      ),
    );
    this.#grids.forEach((grid) => grid.show(-1, [table]));
  }

  /** The axes of rows and columns, and the positions of the others.
   * @param {ValueTable} table */
  #axes({ axes, rows, columns, at, part }) {
    const free = axes.map(({ name }) => name).filter((name) => !part.includes(name));
    const still = axes.filter(({ name }) => name in at);
    if (axes.length < 2) return h("p", { class: "wb-quiet" }, axesText(axes));
    /** @type {(label: "rows" | "columns", chosen: string) => (HTMLElement | string)[]} */
    const choice = (label, chosen) => [
      `${label} `,
      chooser(
        `${label} of the picture`,
        free.map((name, i) => [i, axisText(axes.find((a) => a.name === name))]),
        free.indexOf(chosen),
        (i) => {
          const other = label === "rows" ? columns : rows;
          const swapped = { rows: columns, columns: rows };
          const own = { rows, columns, [label]: free[i] };
          this.#choose({ ...(free[i] === other ? swapped : own), first: [0, 0] });
        },
      ),
    ];
    return h(
      "div",
      {
        class: "wb-values-bar",
        title: "the axes of the picture, and the positions on the others",
      },
      ...(free.length > 1 ? [...choice("rows", rows), ...choice("columns", columns)] : []),
      ...still.map(({ name, size }) =>
        h(
          "label",
          {},
          `${axisName(name)} `,
          h("input", {
            type: "number",
            min: 0,
            max: size - 1,
            value: at[name],
            "aria-label": `position on ${name}`,
            "data-key": `values-at-${name}`,
            oninput: ({ target }) => {
              const place = Math.max(0, Math.min(size - 1, Math.round(Number(target.value))));
              this.#choose({ at: { ...at, [name]: place } }, true);
            },
          }),
          ` of ${size}`,
        )
      ),
      part.length > 0 &&
        h("span", { class: "wb-quiet" }, `all of ${part.join(", ")} would be too many values`),
    );
  }

  /** The picture: a cell for each value, or for each block of a large matrix.
   * @param {ValueTable} table */
  #picture({ picture, summary, rows, columns }) {
    const { block: [high, wide], means, marks, columns: across } = picture;
    const down = means.length / across;
    const scale = scaleOf(summary);
    const pixels = Math.max(CELL.least, Math.min(CELL.most, PICTURE_PIXELS / down));
    const isWhole = high * wide === 1;
    return new CellGrid({
      name: "values-cell",
      label: "picture of the values",
      rows: {
        count: means.length,
        columns: across,
        least: CELL.least,
        most: Math.max(pixels, Math.min(CELL.most, 480 / across)),
        height: pixels,
        gap: pixels > 8 ? 1 : 0,
      },
      look: (cell) => {
        const mean = means[cell];
        const fill = markedColour(marks[cell]) ?? (mean === null ? "bg" : scale.at(mean));
        const isLeast = Boolean(marks[cell] & LEAST);
        return isLeast || marks[cell] & GREATEST
          ? { fill, frame: "fg", isThick: true, isDashed: isLeast }
          : { fill };
      },
      words: (cell) => {
        const [row, column] = [Math.floor(cell / across) * high, cell % across * wide];
        const ends = [Math.min(high, picture.height - row), Math.min(wide, picture.width - column)];
        const place = [[rows, row, ends[0]], [columns, column, ends[1]]]
          .flatMap(([name, at, size]) =>
            name ? [`${axisName(String(name))} = ${span(Number(at), Number(size))}`] : []
          )
          .join(", ");
        return `${place || "the value"}: ${cellText(means[cell], marks[cell], isWhole)}`;
      },
      pick: (cell) =>
        this.#choose({ first: [Math.floor(cell / across) * high, cell % across * wide] }),
    });
  }

  /** The numbers of a part of the matrix, on the colours of the picture.
   * @param {ValueTable} table */
  #numbers({ window: { first: [top, left], values, columns: across }, summary, rows, columns }) {
    const scale = scaleOf(summary);
    const ofRow = (/** @type {number} */ row) => rows ? String(top + row) : "";
    return new CellGrid({
      name: "values-number",
      label: "numbers",
      rows: {
        count: values.length,
        columns: across,
        least: NUMBER.width,
        most: NUMBER.width,
        height: NUMBER.height,
        names: rows ? 36 : 0,
      },
      rowName: ofRow,
      look: (cell) => numberLook(values[cell], scale),
      words: (cell) => {
        const [row, column] = [top + Math.floor(cell / across), left + cell % across];
        const place = [[rows, row], [columns, column]]
          .flatMap(([name, at]) => name ? [`${axisName(String(name))} = ${at}`] : []).join(", ");
        return `${place || "the value"}: ${values[cell]}`;
      },
    });
  }
}

/** @returns {{rows: string, columns: string, at: Record<string, number>, first: number[]}} */
function none() {
  return { rows: "", columns: "", at: {}, first: [0, 0] };
}

/** "3", or "3 to 5".
 * @param {number} from
 * @param {number} count */
const span = (from, count) => count === 1 ? String(from) : `${from} to ${from + count - 1}`;

/** @param {ValueTable["axes"]} axes */
const axesText = (axes) => axes.map(axisText).join(", ");

/** "axis 0 of 128", or "g0 of 128", where an axis has a name.
 * @param {ValueTable["axes"][number] | undefined} axis */
const axisText = (axis) => axis ? `${axisName(axis.name)} of ${axis.size}` : "";

/** "axis 0": an axis of a tensor has a number; "g0": a loop has a name.
 * @param {string} name */
const axisName = (name) => /^\d/.test(name) ? `axis ${name}` : name;

/** A number in at most eight characters or so.
 * @param {unknown} value */
export function shortText(value) {
  if (typeof value !== "number") return String(value);
  if (Number.isInteger(value) && Math.abs(value) < 1e7) return String(value);
  const text = value.toPrecision(4);
  return text.includes("e") ? text.replace(/\.?0+e/, "e") : text.replace(/\.?0+$/, "");
}

/**
 * @param {unknown} value
 * @param {ReturnType<typeof scaleOf>} scale
 * @returns {Look} */
function numberLook(value, scale) {
  const number = finite(value);
  const colour = notFinite(value) ?? (number === null ? "bg" : scale.at(number, true));
  return { fill: colour, text: shortText(value) };
}

/** What a cell of the picture has, in words.
 * @param {number | null} mean
 * @param {number} marks
 * @param {boolean} isWhole */
function cellText(mean, marks, isWhole) {
  const names = ["NaN", "infinity", "minus infinity"].filter((_, bit) => marks & (1 << bit));
  const value = mean === null ? [] : [`${isWhole ? "" : "mean "}${shortText(mean)}`];
  const ends = [marks & LEAST && "the smallest value", marks & GREATEST && "the greatest value"];
  return [...value, ...names, ...ends.filter(Boolean)].join(", ");
}

/** @param {ValueTable} table */
function pictureText({ picture: { height, width, block: [high, wide] } }) {
  const size = height === 1 ? plural(width, "value") : `${height} × ${width} values`;
  if (high * wide === 1) return `${size}, a cell for each`;
  return `${size}; a cell is the mean of ${high} × ${wide}; a click shows its numbers`;
}

/** @param {ValueSummary} summary */
function summaryText({ size, nan, infinite, zeros, min, max, mean }) {
  const figures = min === null || min === undefined
    ? []
    : [`min ${shortText(min)}`, `max ${shortText(max)}`, `mean ${shortText(mean)}`];
  const counts = [
    nan && plural(nan, "NaN"),
    infinite && `${infinite.toLocaleString("en")} infinite`,
    zeros && plural(zeros, "zero"),
  ];
  return [plural(size, "value"), ...figures, ...counts.filter(Boolean)].join(" · ");
}

/** The bars of a histogram, in the colours of the picture.
 * @param {ValueSummary} summary */
function histogram(summary) {
  const { counts, edges, is_whole } = summary;
  if (counts.length < 2) return null;
  const most = Math.max(...counts);
  const scale = scaleOf(summary);
  const bars = counts.map((count, bin) => {
    const [from, to] = [edges[bin], edges[bin + 1]];
    const range = is_whole ? shortText(from) : `${shortText(from)} to ${shortText(to)}`;
    const colour = scale.at(is_whole ? from : (from + to) / 2);
    return h("i", {
      title: `${range}: ${count.toLocaleString("en")}`,
      style: `height:${Math.ceil(100 * count / most)}%;background:${colour}` +
        (count ? "" : ";border:0"),
    });
  });
  const ends = is_whole ? [edges[0], edges[edges.length - 2]] : [edges[0], edges[edges.length - 1]];
  const label = `histogram of the finite values, from ${shortText(ends[0])} to ${
    shortText(ends[1])
  }: ${counts.join(", ")}`;
  return h(
    "div",
    {},
    h("div", { class: "wb-values-bins", role: "img", "aria-label": label }, ...bars),
    h(
      "div",
      { class: "wb-values-ends wb-quiet", title: "the ends of the histogram" },
      ...ends.map((end) => h("span", {}, shortText(end))),
    ),
  );
}

/** The colours of the picture, and of what is in it.
 * @param {ValueSummary} summary */
function legend(summary) {
  const { nan, infinite, min, max } = summary;
  const { low, high, at } = scaleOf(summary);
  const stops = [0, 0.25, 0.5, 0.75, 1].map((share) => at(low * (1 - share) + high * share));
  const isFlat = min === null || min === undefined || low === high;
  const square = (/** @type {string} */ colour, /** @type {string} */ words) =>
    h("span", {}, h("i", { style: `background:${colour}` }), ` ${words}`);
  return h(
    "p",
    { class: "wb-values-legend wb-quiet", title: "the colours of the picture" },
    !isFlat &&
      h(
        "span",
        {},
        `${shortText(low)} `,
        h("span", {
          class: "wb-values-scale",
          style: `background:linear-gradient(to right, ${stops.join(", ")})`,
        }),
        ` ${shortText(high)}`,
      ),
    nan > 0 && square(NOT_FINITE.nan, "NaN"),
    infinite > 0 && square(NOT_FINITE.infinity, "infinity"),
    infinite > 0 && square(NOT_FINITE.minusInfinity, "minus infinity"),
    min !== max && h("span", {}, "framed: the greatest (whole line) and the smallest (dashed)"),
  );
}
