// Accesses: which elements of each buffer the steps of a loop, work-item or lane touch, in order:
// played step by step, with their cache lines; of shared memory a row has a word of each bank.

import { act, canAsk } from "../../app/actions.js";
import { chooser, failure, hasAny, heading } from "../../app/pieces.js";
import { CellGrid } from "../../base/cell_grid.js";
import { h, refill } from "../../base/elements.js";
import { Player } from "../../base/player.js";
import { bytesText, plural } from "../../base/text.js";

/** @import { App } from "../../app/store.js" */
/** @import { Look } from "../../base/cell_grid.js" */
/** @import { AccessedBuffer, AccessesReply } from "../../record.d.ts" */
/** @import { Changes, PanelRow } from "../../types.d.ts" */

const STEPS = 64; // asked for at a time
const PAGE_BYTES = 4096;
const BANKS = 32;
const BANK_BYTES = 4;
const MOST_CELLS = 200_000; // of a buffer that are drawn, around its first access
const MARGIN_ROWS = 2; // above the first access where rows are left out
const TINTS = ["#d4e4f7", "#a9caf0", "#7bade6", "#4d8fd9"]; // touched in 1, 2, 3, more steps before
const NOW = "#e8780c"; // touched in this step
const TOUCHED_LINE = "#fbe3c8"; // in a cache line of this step, and not touched
const NO_PYTHON = "Accesses are listed by Python: run the cell again.";

/** @satisfies {PanelRow} */
export const panel = {
  place: "pane",
  order: 24,
  title: "Accesses",
  make: (/** @type {App} */ app) => new Accesses(app),
};

/** The accesses of a buffer: the steps that touch each element, and the drawn part.
 * @typedef {{
 *   row: AccessedBuffer, steps: Map<number, number[]>, first: number, count: number,
 *   columns: number, grid: CellGrid, words: HTMLElement,
 *   now: {elements: Set<number>, lines: Set<number>}
 * }} Drawn */

class Accesses {
  /** @type {AccessesReply | null} */
  reply = null;
  /** @type {Drawn[]} */
  #drawn = [];
  /** The variant of the reply, or of the pending request. */
  #of = -1;
  #device = "";
  /** @type {object | null} */
  #plan = null;
  /** The chosen axis ("": the innermost loop), its first step, and the positions of others. */
  #axis = "";
  #first = 0;
  /** @type {Record<string, number>} */
  #at = {};
  #step = 0;

  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.player = new Player(
      {
        first: 0,
        last: () => this.#count - 1,
        at: () => (this.reply ? this.#step : null),
        isShown: () => app.arrangements.shows("accesses"),
        go: (step) => this.#go(step),
        changed: () => app.changed("accesses"),
      },
      {
        name: "accesses",
        label: "steps of the loop",
        step: "step",
        slider: "the step of the loop",
        play: "play the steps",
        term: "step of a loop",
        stepMs: 250,
        list: ".wb-accesses",
      },
    );
    this.choices = h("div", { class: "wb-accesses-bar" });
    this.buffers = h("div", { class: "wb-accesses-buffers" });
    this.errors = h("div", {});
    this.el = h(
      "section",
      { class: "wb-accesses", "aria-label": "accesses" },
      heading("Accesses"),
      this.choices,
      this.player.el,
      this.errors,
      this.buffers,
    );
  }

  get keys() {
    return this.player.keys;
  }

  focus() {
    this.player.slider.focus();
  }

  get #count() {
    return this.reply?.count ?? 0;
  }

  /** @param {number} step */
  #go(step) {
    this.#step = step;
    this.app.changed("accesses");
  }

  /** @param {Changes} changes */
  update(changes) {
    const { app } = this;
    if (hasAny(changes, "record", "board", "mode", "kernel", "variant", "live", "failure")) {
      const { device, plan } = app.record;
      if (app.view.variant !== this.#of || device !== this.#device || plan !== this.#plan) {
        Object.assign(this, { reply: null });
        this.#first = 0;
        this.#at = {};
        this.#ask();
      }
      refill(this.errors, failure(app, "accesses"));
      if (!this.reply && !canAsk(app)) {
        refill(this.buffers, h("p", { class: "wb-quiet" }, NO_PYTHON));
      }
    }
    if (changes.has("theme")) this.#drawn.forEach(({ grid }) => grid.repaint());
    if (changes.has("accesses")) this.#show();
  }

  /** Ask for the accesses of the selected variant. */
  async #ask() {
    const { app } = this;
    const { variant } = app.view;
    if (variant === null || !canAsk(app) || !app.arrangements.shows("accesses")) return;
    this.#of = variant;
    this.#device = app.record.device;
    this.#plan = app.record.plan;
    const reply = await act(app, "accesses", {
      do: "accesses",
      variant,
      axis: this.#axis,
      at: this.#at,
      first: this.#first,
      steps: STEPS,
    });
    if (this.#of !== variant || app.view.variant !== variant) return;
    if (!reply?.result && this.#axis) {
      this.#axis = ""; // another variant may lack it
      await this.#ask();
      return;
    }
    this.reply = reply?.result ?? null;
    this.#step = 0;
    this.#renew();
  }

  /** @param {{axis?: string, first?: number, at?: Record<string, number>}} choice */
  #choose({ axis = this.#axis, first = 0, at = this.#at }) {
    this.#axis = axis;
    this.#first = first;
    this.#at = at;
    this.#ask();
  }

  #renew() {
    const { reply } = this;
    if (!reply) return refill(this.buffers);
    const { axes, axis, first, around, at } = reply;
    const rows = axes.map((
      { name, kind, size },
      place,
    ) => /** @type {[number, string]} */ ([place, `${name} ${size} (${kind.toLowerCase()})`]));
    const own = axes.findIndex(({ name }) => name === axis);
    const extent = axes[own].size;
    const others = axes.filter(({ name }) => around.includes(name));
    refill(
      this.choices,
      h("span", {}, "steps of "),
      chooser(
        "loop or lane",
        rows,
        own,
        (place) => this.#choose({ axis: axes[place].name, at: {} }),
      ),
      first + this.#count < extent || first > 0
        ? this.#number("from step", first, extent - 1, (value) => this.#choose({ first: value }))
        : null,
      others.length ? h("span", {}, " at ") : null,
      ...others.map(({ name, size }) =>
        this.#number(
          name,
          at[name] ?? 0,
          size - 1,
          (value) => this.#choose({ first, at: { ...at, [name]: value } }),
        )
      ),
    );
    this.#drawn = reply.buffers.map((row, place) => drawn(row, place));
    refill(
      this.buffers,
      ...this.#drawn.map(({ row, grid, words }) =>
        h("div", { class: "wb-accesses-buffer" }, h("p", {}, title(row), " ", words), grid.el)
      ),
      legend(),
    );
    this.app.changed("accesses");
  }

  /**
   * @param {string} label
   * @param {number} value
   * @param {number} most
   * @param {(value: number) => void} actOn */
  #number(label, value, most, actOn) {
    const input = h("input", {
      type: "number",
      min: 0,
      max: most,
      value,
      "aria-label": `position of ${label}`,
      "data-key": `accesses-at-${label}`,
      onchange: ({ target }) =>
        actOn(Math.max(0, Math.min(most, Math.round(Number(target.value))))),
    });
    return h("label", {}, `${label} `, input);
  }

  /** Show the current step. */
  #show() {
    const { reply } = this;
    if (!reply) return;
    const step = reply.first + this.#step;
    const own = reply.axes.find(({ name }) => name === reply.axis);
    const words = `${reply.axis} = ${step} of ${own?.size ?? 0}`;
    this.player.show(words, words);
    for (const one of this.#drawn) {
      const { row, now } = one;
      now.elements = touchedAt(row, step);
      now.lines = new Set([...now.elements].map((element) => lineOf(row, element)));
      const before = new Set(
        row.elements.filter((_, place) => row.steps[place] < step)
          .map((element) => lineOf(row, element)),
      );
      const isNew = [...now.lines].filter((line) => !before.has(line)).length;
      const pages = new Set([...now.elements].map((e) => pageOf(row, e))).size;
      one.words.textContent = `${plural(now.elements.size, "element")}, ` +
        `${plural(now.lines.size, "cache line")}, ${isNew} new, ${plural(pages, "page")}` +
        (row.unknown ? `; ${plural(row.unknown, "index")} from memory: not listed` : "");
      one.grid.show(-1, [step]);
    }
  }
}

/** @type {(row: AccessedBuffer, element: number) => number} */
const lineOf = ({ element_bytes, line_bytes }, element) =>
  Math.floor((element * element_bytes) / line_bytes);

/** @type {(row: AccessedBuffer, element: number) => number} */
const pageOf = ({ element_bytes }, element) => Math.floor((element * element_bytes) / PAGE_BYTES);

/** @type {(row: AccessedBuffer, step: number) => Set<number>} */
const touchedAt = ({ steps, elements }, step) =>
  new Set(elements.filter((_, place) => steps[place] === step));

/** @param {AccessedBuffer} row */
function title({ name, user, dtype, shape, space, writes }) {
  const does = [writes.includes(false) && "read", writes.includes(true) && "written"];
  const size = shape.join(" × ") || "1";
  return h(
    "span",
    {},
    h("code", {}, user ? `${user} ${name}` : name),
    " ",
    h(
      "span",
      { class: "wb-quiet" },
      [`${dtype} ${size}`, space, ...does].filter(Boolean).join(", "),
    ),
  );
}

/** The grid of a buffer: a row of its last dimension; of shared memory a word of each bank.
 * @param {AccessedBuffer} row
 * @param {number} place
 * @returns {Drawn} */
function drawn(row, place) {
  const perBank = Math.max(1, Math.floor(BANK_BYTES / row.element_bytes));
  const columns = row.space === "shared" ? BANKS * perBank : (row.shape.at(-1) || 1);
  const size = row.shape.reduce((a, b) => a * b, 1);
  const least = Math.max(0, Math.min(...row.elements, size) - MARGIN_ROWS * columns);
  const first = size > MOST_CELLS ? Math.floor(least / columns) * columns : 0;
  /** @type {Map<number, number[]>} */
  const steps = new Map();
  row.elements.forEach((element, n) => {
    const known = steps.get(element) ?? [];
    if (known.at(-1) !== row.steps[n]) known.push(row.steps[n]);
    steps.set(element, known);
  });
  const now = { elements: new Set(), lines: new Set() };
  const grid = new CellGrid({
    name: `accesses-${place}-cell`,
    label: `elements of ${row.name}`,
    rows: {
      count: Math.min(size - first, MOST_CELLS),
      columns,
      least: 4,
      most: 12,
      height: 10,
    },
    look: (cell) => lookOf(made, first + cell),
    words: (cell) => wordsOf(row, steps, columns, first + cell),
  });
  const words = h("span", { class: "wb-quiet", role: "status" });
  /** @type {Drawn} */
  const made = { row, steps, first, count: size, columns, grid, words, now };
  return made;
}

/**
 * @param {Drawn} drawn
 * @param {number} element
 * @returns {Look} */
function lookOf({ row, steps, now }, element) {
  if (now.elements.has(element)) return { fill: NOW, edge: "fg" };
  const touched = steps.get(element)?.length ?? 0;
  const isInLine = now.lines.has(lineOf(row, element));
  if (isInLine && !touched) return { fill: TOUCHED_LINE, edge: "edge" };
  if (!touched) return { fill: "bg", edge: "line-colour" };
  return { fill: TINTS[Math.min(touched, TINTS.length) - 1], edge: isInLine ? NOW : "edge" };
}

/**
 * @param {AccessedBuffer} row
 * @param {Map<number, number[]>} steps
 * @param {number} columns
 * @param {number} element */
function wordsOf(row, steps, columns, element) {
  const touched = steps.get(element) ?? [];
  const at = row.shape.reduceRight(
    (/** @type {{places: number[], rest: number}} */ { places, rest }, size) => ({
      places: [rest % size, ...places],
      rest: Math.floor(rest / size),
    }),
    { places: [], rest: element },
  ).places;
  const by = touched.length
    ? `touched in ${plural(touched.length, "step")}: ${touched.slice(0, 8).join(", ")}` +
      (touched.length > 8 ? ", .." : "")
    : "not touched by the listed steps";
  const bank = row.space === "shared"
    ? `, bank ${Math.floor((element % columns) * BANKS / columns)}`
    : "";
  return `${row.name}[${at.join(", ")}]: ${by}; byte ${
    bytesText(element * row.element_bytes)
  }, cache line ${lineOf(row, element)}${bank}`;
}

const legend = () =>
  h(
    "p",
    { class: "wb-accesses-legend wb-quiet" },
    ...[
      [NOW, "this step"],
      [TOUCHED_LINE, "in its cache lines, unused"],
      [TINTS[0], "one listed step"],
      [TINTS[3], "four or more"],
    ].map(([colour, words]) =>
      h("span", {}, h("i", { style: `background:${colour}` }), ` ${words}`)
    ),
  );
