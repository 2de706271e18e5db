// Levels of detail of the plan: kernels, some of them unfolded, or all values.

import { litByLine, reach } from "../../app/links.js";
import { button } from "../../app/pieces.js";
import { NO_SELECTION, rowAt } from "../../app/store.js";
import { h, refill } from "../../base/elements.js";
import { storedHere, storeHere } from "../../base/notebook.js";
import { graphFind } from "../../graph/node_list.js";
import { litValues } from "../../graph/plan_drawing.js";
import {
  foldStep,
  foldUnit,
  kernelKey,
  unfoldedAtFirst,
  unfoldStep,
  unfoldTo,
  unitKernels,
  unitOfKernel,
  valueKey,
} from "../../record/units.js";
import { figureLegend, FIGURES, scaleOf } from "./figures.js";
import { figureValues, foldedDrawing, foldedShape, searchedParts } from "./folded.js";
import { phaseLegend } from "./groups.js";

/** @import { App } from "../../app/store.js" */
/** @import { Drawing, GraphMatch, Key, Size, Wish } from "../../graph/graph.d.ts" */
/** @import { PlanPicture } from "../../record.d.ts" */
/** @import { Unfolded } from "../../record/units.js" */
/** @import { Keys } from "../../types.d.ts" */
/** @import { Searched, Shape } from "./folded.js" */

const FEW_KERNELS = 4; // of a plan that only shows its values
const STORED_FIGURE = "workbench-plan-colours";
const PANE = { width: 640, height: 480 }; // until it has a size

export class Levels {
  el = h("span", { class: "wb-plan-levels", role: "group", "aria-label": "level of detail" });
  #isFolded = true;
  /** @type {Unfolded} */
  #unfolded = new Set();
  /** What of it the search unfolded.
   * @type {Unfolded} */
  #searchedIn = new Set();
  /** The laid-out units, and their plan.
   * @type {{of: unknown[], shape: Shape} | null} */
  #laidOut = null;
  /** The drawing, and its source.
   * @type {{of: string, shape: Shape, drawing: Drawing} | null} */
  #drawn = null;
  /** The figure that colours the kernels: an index in FIGURES; -1: their own colours. */
  #figure = FIGURES.findIndex(({ name }) => name === storedHere(STORED_FIGURE));
  /** What a search goes through, and its plan.
   * @type {{of: PlanPicture["reads"], nodes: PlanPicture["nodes"], parts: Searched[]} | null} */
  #searched = null;
  /** The nodes to bring into sight.
   * @type {Wish | null} */
  #wish = null;
  /** @type {PlanPicture["reads"] | null} */
  #plan = null;

  /** @param {App} app */
  constructor(app) {
    this.app = app;
  }

  get isFolded() {
    return this.#isFolded && this.#isMany;
  }

  /** Whether there are enough kernels for a level of their own, here or in the plan beside: two plans
   * are compared on one level. */
  get #isMany() {
    const { record, values, partner } = this.app;
    const beside = values && partner ? partner.record.kernels.length : 0;
    return Math.max(record.kernels.length, beside) > FEW_KERNELS;
  }

  /** Show kernels, all folded, or values.
   * @param {boolean} isFolded */
  show(isFolded) {
    this.#isFolded = isFolded;
    this.#unfolded = this.#searchedIn = new Set();
    this.#wish = null;
    this.app.changed("levels");
  }

  /** Show other units unfolded, and bring the kernels concerned into sight.
   * @param {Unfolded} unfolded
   * @param {number[]} kernels */
  #unfold(unfolded, kernels) {
    const own = this.#unfolded;
    if (unfolded.size === own.size && [...unfolded].every((key) => own.has(key))) return;
    this.#unfolded = unfolded;
    const { shape } = this.#lay();
    const keys = shape.boxes.filter(({ kernel }) => kernels.includes(kernel ?? -1))
      .map(({ key }) => key);
    this.#wish = { keys, first: keys.slice(0, 2), whole: true };
    this.app.changed("levels");
  }

  /** Show other units unfolded at the reader's wish: those around stay when the search goes on.
   * @param {Unfolded} unfolded
   * @param {number[]} kernels */
  #unfoldByHand(unfolded, kernels) {
    const around = (/** @type {string} */ key) =>
      kernels.some((k) => unitKernels(this.app.record, key).includes(k));
    this.#searchedIn = new Set([...this.#searchedIn].filter((key) => !around(key)));
    this.#unfold(unfolded, kernels);
  }

  /** The kernels of a shown unit.
   * @param {string} key */
  kernelsOf(key) {
    return this.#lay().shape.units.find((unit) => unit.key === key)?.kernels ?? [];
  }

  /** Unfold a unit.
   * @param {string} key */
  unfold(key) {
    const unit = this.#lay().shape.units.find((u) => u.key === key);
    if (!unit || (unit.kernels.length < 2 && !this.app.record.plan.nodes.length)) return;
    this.#unfoldByHand(new Set([...this.#unfolded, key]), unit.kernels);
  }

  /** Fold a unit.
   * @param {string} key */
  fold(key) {
    const { record } = this.app;
    this.#unfoldByHand(foldUnit(record, this.#unfolded, key), unitKernels(record, key));
  }

  /** The kernels and values that a query finds, also folded ones; going to one unfolds it, until the
   * search goes on or ends.
   * @param {string} query
   * @returns {GraphMatch[]} */
  find(query) {
    const { app } = this;
    const { record } = app;
    if (!query && this.#searchedIn.size) {
      const own = this.#withoutSearch();
      this.#searchedIn = new Set();
      this.#unfold(own, [app.view.kernel]);
    }
    const { shape } = this.#lay();
    const { plan } = record;
    if (this.#searched?.of !== plan.reads || this.#searched.nodes !== plan.nodes) {
      this.#searched = { of: plan.reads, nodes: plan.nodes, parts: searchedParts(record) };
    }
    const { parts } = this.#searched;
    const partOf = new Map(parts.map((part) => [part.box, part]));
    return graphFind({ nodes: [...partOf.keys()] }, query).map((box) => {
      const { kernel, value } = /** @type {Searched} */ (partOf.get(box));
      const unit = unitOfKernel(shape.units, kernel);
      const isShown = value === null ? unit?.kernels.length === 1 : shape.values.has(value);
      return {
        id: box.key,
        key: isShown ? box.key : unit?.key ?? box.key,
        isFolded: !isShown,
        go: () => this.#goTo(kernel, value),
      };
    });
  }

  /** The units that the reader unfolded. */
  #withoutSearch() {
    return new Set([...this.#unfolded].filter((key) => !this.#searchedIn.has(key)));
  }

  /** Select a kernel or a value, unfolded; of a kernel that shows its values the stored one.
   * @param {number} kernel
   * @param {number | null} value */
  #goTo(kernel, value) {
    const { app } = this;
    const { record, record: { plan: { nodes } } } = app;
    const before = this.#withoutSearch();
    const isOpen = before.has(kernelKey(kernel));
    const shown = value ?? (isOpen ? nodes.findIndex((node) => node.stored_by === kernel) : -1);
    const unfolded = unfoldTo(record, before, kernel, value !== null);
    this.#searchedIn = new Set([...unfolded].filter((key) => !before.has(key)));
    this.#unfold(unfolded, [kernel]);
    app.select({ ...NO_SELECTION, kernel, node: rowAt(nodes, shown)?.n ?? null });
  }

  /** The keys that unfold and fold the selected kernel.
   * @type {Keys} */
  get keys() {
    const step = (/** @type {typeof unfoldStep} */ by) => () => {
      if (!this.isFolded) return false;
      const { record, view: { kernel } } = this.app;
      const isDrawn = record.plan.nodes.length > 0;
      const next = by(record, this.#unfolded, kernel);
      if (isDrawn || ![...next].some((key) => key[0] === "k")) this.#unfoldByHand(next, [kernel]);
    };
    return { o: step(unfoldStep), O: step(foldStep) };
  }

  /** The box of the selected value, or else of the selected kernel.
   * @returns {Key | null} */
  picked() {
    const { record: { plan }, view: { node, kernel } } = this.app;
    const { shape } = this.#lay();
    const place = node === null ? -1 : plan.nodes.findIndex(({ n }) => n === node);
    if (shape.values.has(place)) return valueKey(place);
    const decision = plan.decisions.find((d) => d.node === node);
    const own = node === null ? kernel : decision?.kernel ?? plan.nodes[place]?.kernels[0] ?? null;
    const key = own === null ? null : unitOfKernel(shape.units, own)?.key ?? null;
    return shape.boxes.some((box) => box.key === key) ? key : null;
  }

  /** The drawing, the same one while nothing of it changes; and the nodes to bring into sight in a
   * new one.
   * @param {Size} size
   * @returns {{drawing: Drawing, wish: Wish | null}} */
  drawing(size) {
    const { shape } = this.#lay();
    const pane = size.width && size.height ? size : PANE;
    const { record } = this.app;
    const figure = FIGURES[this.#figure] ?? null;
    const values = figure && figureValues(record, shape, figure);
    const of = JSON.stringify([pane, record.plan.runs, this.#figure, values]);
    if (this.#drawn?.shape === shape && this.#drawn.of === of) {
      return { drawing: this.#drawn.drawing, wish: null };
    }
    const scale = this.#scale();
    const drawing = foldedDrawing(record, this.#unfolded, shape, pane, figure, scale);
    const wish = this.#wish;
    this.#wish = null;
    this.#drawn = { of, shape, drawing };
    return { drawing, wish };
  }

  /** The boxes that belong to the hovered link; for a value those that store and read it.
   * @returns {Set<Key>} */
  lit() {
    const { record, hover } = this.app;
    const [reached, isLit] = [reach(record, hover), litByLine(this.app, null)];
    const { shape } = this.#lay();
    const boxes = shape.boxes.filter(({ n }) => reached?.nodes.has(n) || isLit(n));
    const lit = new Set(boxes.map(({ key }) => key));
    const values = litValues(this.app);
    for (const { a, b, nodes } of values.size ? shape.lines : []) {
      if ([...nodes.keys()].some((n) => values.has(n))) lit.add(a), lit.add(b);
    }
    return lit;
  }

  /** Lay out the shown units, unless they are laid out. */
  #lay() {
    const { plan } = this.app.record;
    if (this.#plan !== plan.reads) {
      this.#plan = plan.reads;
      this.#unfolded = unfoldedAtFirst(this.app.record); // another plan has other kernels
      this.#searchedIn = new Set();
      this.#drawn = null;
    }
    const of = [plan.nodes, plan.reads, plan.regions, this.#unfolded];
    if (!this.#laidOut || this.#laidOut.of.some((part, i) => part !== of[i])) {
      this.#laidOut = { of, shape: foldedShape(this.app.record, this.#unfolded) };
    }
    return this.#laidOut;
  }

  #legend() {
    const choose = (/** @type {number} */ figure) => {
      this.#figure = figure;
      storeHere(STORED_FIGURE, FIGURES[figure]?.name);
      this.app.changed("levels");
    };
    return figureLegend(this.#figure, this.#scale(), choose);
  }

  /** The scale of the chosen figure; null without one, or without values. */
  #scale() {
    const figure = FIGURES[this.#figure];
    const { record } = this.app;
    return figure ? scaleOf(figure, figureValues(record, this.#lay().shape, figure)) : null;
  }

  /** Draw the buttons. */
  update() {
    const { app, isFolded } = this;
    refill(
      this.el,
      this.#isMany && button(app, "kernels", () => this.show(true), {
        pressed: isFolded,
        name: "level-kernels",
        title: "a box for each kernel, or for those that repeat: click one (o) to unfold it",
      }),
      this.#isMany && button(app, "values", () => this.show(false), {
        pressed: !isFolded,
        name: "level-values",
        title: "all values, on the grounds of their kernels",
      }),
      ...phaseLegend(app),
      ...(isFolded ? this.#legend() : []),
    );
  }
}
