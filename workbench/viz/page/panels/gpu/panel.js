// GPU: the run of a kernel on a device with work-groups, one group step by step: the current line,
// the active work-items, the values of one, the cost of the access, and shared memory with its
// writers.

import { act, canAsk } from "../../app/actions.js";
import { button, failure, hasAny, heading } from "../../app/pieces.js";
import { h, recordText, refill } from "../../base/elements.js";
import { walkable } from "../../base/lists.js";
import { AccessPane } from "./access.js";
import { StepBar } from "./bar.js";
import { CellsPane } from "./cells.js";
import { LanesPane } from "./lanes.js";
import { ProgramPane } from "./program.js";
import { GroupSteps } from "./steps.js";
import { TilesPane } from "./tiles.js";

/** @import { App } from "../../app/store.js" */
/** @import { Steps } from "../../base/player.js" */
/** @import { GpuFinding, GpuLine, GpuTrace, VariantRow } from "../../record.d.ts" */
/** @import { Changes, Keys, PanelRow } from "../../types.d.ts" */

/** @satisfies {PanelRow} */
export const panel = {
  place: "pane",
  order: 10,
  title: "GPU",
  make: (/** @type {App} */ app) => new Gpu(app),
};

const NO_RUN =
  "This file has no run of this variant on the emulator, and a run needs Python. A file has the runs that were looked at before it was written; one of this pane alone has those of the first kernels.";

/** The selection: a step, a work-item, a cell of a memory, an element of a tile.
 * @typedef {{memory: number, element: number}} Cell */

export class Gpu {
  /** @type {GpuTrace | null} */
  row = null;
  /** @type {GroupSteps | null} */
  steps = null;
  at = 0;
  item = 0;
  /** @type {Cell | null} */
  cell = null;
  /** @type {{tile: number, place: number} | null} */
  element = null;
  nothing = h("div", { class: "wb-pad" });
  /** The runs without a request, so that a failed one is not repeated.
   * @type {WeakSet<VariantRow>} */
  #tried = new WeakSet();

  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.bar = new StepBar(this);
    this.program = new ProgramPane(this);
    this.lanes = new LanesPane(this);
    this.access = new AccessPane(this);
    this.tiles = new TilesPane(this);
    this.cells = new CellsPane(this);
    this.findings = h("div", { class: "wb-gpu-findings" });
    this.errors = h("div", {});
    const left = h("div", { class: "wb-gpu-left" }, this.program.el, this.findings);
    const right = h(
      "div",
      { class: "wb-gpu-right", tabindex: 0, role: "region", "aria-label": "the step" },
      this.lanes.el,
      this.tiles.el,
      this.access.el,
      this.cells.el,
    );
    this.body = h("div", { class: "wb-gpu-body" }, left, right);
    this.el = h(
      "div",
      { class: "wb-gpu" },
      this.bar.el,
      this.errors,
      this.nothing,
      this.body,
    );
  }

  /** @param {Changes} changes */
  update(changes) {
    const { app } = this;
    if (changes.has("answers")) this.#runFirst();
    if (
      hasAny(changes, "record", "mode", "board", "kernel", "variant", "live", "pending", "failure")
    ) {
      this.#runFirst();
      refill(this.errors, failure(app, "gpu"));
      const row = app.variant()?.gpu ?? null;
      if (row !== this.row) this.#renew(row);
      this.bar.renew();
      refill(this.nothing, ...this.#nothingYet());
      this.nothing.hidden = row !== null;
      this.body.hidden = row === null;
    }
    if (changes.has("gpu")) this.#show();
    if (changes.has("theme")) {
      [this.lanes, this.tiles, this.access, this.cells].forEach((pane) => pane.repaint());
    }
  }

  focus() {
    this.program.focus();
  }

  /** The steps, for the player.
   * @returns {Steps} */
  get played() {
    return {
      first: 0,
      last: () => (this.steps?.count ?? 0) - 1,
      at: () => this.steps && this.at,
      isShown: () => this.app.arrangements.shows("gpu"),
      go: (step) => this.go(step),
      changed: () => this.app.changed("gpu"),
    };
  }

  /** Go to a step.
   * @param {number} at */
  go(at) {
    if (!this.steps) return;
    this.at = Math.max(0, Math.min(this.steps.count - 1, at));
    this.app.changed("gpu");
  }

  /** Select a work-item, a cell, an element of a tile.
   * @param {{item?: number, cell?: Cell | null, element?: Gpu["element"]}} what */
  select(what) {
    Object.assign(this, what);
    this.app.changed("gpu");
  }

  /** Run the selected variant on the emulator.
   * @param {number[] | null} group
   * @param {number | null} without a barrier that is taken away, by its number
   * @param {boolean} unasked without a request of the reader: long runs are left out */
  run(group, without = null, unasked = false) {
    const { variant } = this.app.view;
    if (variant === null) return;
    act(this.app, "gpu", { do: "emulate", variant, group, without, unasked });
  }

  /** Run the selected variant, unless it has run. */
  #runFirst() {
    const { app } = this;
    const variant = app.variant();
    const isSeen = app.arrangements.shows("gpu") && app.live === "live";
    if (!isSeen || !variant || variant.gpu || variant.edited || this.#tried.has(variant)) return;
    this.#tried.add(variant);
    this.run(null, null, true);
  }

  /** @returns {Keys} */
  get keys() {
    return this.bar.player.keys;
  }

  /** Show other steps: from the first finding, if there is one.
   * @param {GpuTrace | null} row */
  #renew(row) {
    const sameGroup = row && this.row && String(row.group) === String(this.row.group);
    this.bar.player.pause();
    this.row = row;
    this.steps = row && new GroupSteps(row);
    const finding = row?.findings.find((one) => one.is_defect && one.steps.length);
    this.at = finding ? finding.steps[finding.steps.length - 1] : sameGroup ? this.at : 0;
    if (this.steps) this.at = Math.min(this.at, this.steps.count - 1);
    this.item = 0;
    this.cell = null;
    this.element = null;
    if (!this.steps || !row) return;
    this.program.fill(row);
    refill(this.findings, ...findingList(this, row));
    this.lanes.fill(this.steps);
    this.cells.fill(this.steps);
    this.#show();
  }

  #show() {
    const { steps } = this;
    if (!steps) return;
    this.bar.show(steps);
    this.lanes.show(steps);
    this.tiles.show(steps);
    this.access.show(steps);
    this.cells.show(steps);
    this.program.show(steps); // it scrolls: the one layout of a step, after all that changes it
  }

  #nothingYet() {
    const { app } = this;
    const variant = app.variant();
    if (!variant) return [h("p", { class: "wb-quiet" }, app.record.nothing)];
    if (app.pending("emulate")) return [h("p", { class: "wb-quiet" }, "Running on the emulator…")];
    if (!canAsk(app)) return [heading("WORK-GROUPS"), h("p", {}, NO_RUN)];
    const run = button(app, "run on the emulator", () => this.run(null), {
      python: true,
      name: "emulate",
      title: "all work-items, in lock step, with checks; no GPU is needed",
    });
    return [
      heading("WORK-GROUPS"),
      h(
        "p",
        {},
        "This variant as a device with work-groups runs it: every access counted and checked, and one work-group step by step.",
      ),
      run,
    ];
  }
}

// Findings: each links to its step.

/** The findings of a run, each leading to its steps; to its group if that is another one.
 * @param {Gpu} gpu
 * @param {GpuTrace} row */
function findingList(gpu, row) {
  const { findings } = row;
  const isRight = !findings.some((finding) => finding.is_defect);
  const quiet = "no race, nothing unwritten that is used, nothing out of bounds";
  const items = findings.map((finding, place) => findingRow(gpu, row, finding, place));
  return [
    heading("FINDINGS", isRight && h("span", { class: "wb-quiet" }, quiet)),
    items.length > 0 && walkable("listbox", "findings", {}, ...items),
  ];
}

/**
 * @param {Gpu} gpu
 * @param {GpuTrace} row
 * @param {GpuFinding} finding
 * @param {number} place */
function findingRow(gpu, row, finding, place) {
  const lines = [...new Set(finding.lines)].map((line) => numbered(row.lines[line]));
  const numbers = [...new Set(finding.steps)];
  const where = numbers.length > 0
    ? `${numbers.length > 1 ? "steps" : "step"} ${numbers.join(" and ")}`
    : isElsewhere(row, finding)
    ? `group (${finding.group.join(", ")}): step it`
    : "its steps are not all among these";
  return h(
    "div",
    {
      class: "wb-row wb-gpu-finding",
      role: "option",
      "data-item": "",
      "data-key": `gpu-finding-${place}`,
      "aria-selected": "false",
      title: "go to its step; again: to the one before it",
      onclick: () => goTo(gpu, finding),
    },
    h("b", { class: finding.is_defect ? "wb-bad" : "", "data-term": finding.kind }, finding.kind),
    " ",
    recordText(finding.words, "", 400),
    h("div", { class: "wb-quiet" }, where),
    ...lines.map((text) => h("div", {}, h("code", {}, text))),
  );
}

/** Whether a finding without steps is of a group other than the shown one, which can be stepped.
 * @param {GpuTrace} row
 * @param {GpuFinding} finding */
const isElsewhere = (row, { group }) => group.length > 0 && String(group) !== String(row.group);

/** A line of the program, with its number in an edited text.
 * @param {GpuLine} line */
const numbered = ({ number, text }) => number === null ? text : `line ${number}  ${text}`;

/** Go to the last step of a finding, to its work-item and cell; from there to the previous step,
 * and back.
 * @param {Gpu} gpu
 * @param {GpuFinding} finding */
function goTo(gpu, finding) {
  const { steps, group, items, memory, element } = finding;
  if (!gpu.row) return;
  if (!steps.length) {
    if (isElsewhere(gpu.row, finding)) gpu.run(group.slice(0, gpu.row.grid.length));
    return;
  }
  const place = steps.indexOf(gpu.at);
  const next = (place > 0 ? place : steps.length) - 1;
  const item = items[items.length === steps.length ? next : items.length - 1] ?? 0;
  const isCell = memory !== null && gpu.row.memories[memory].space !== "global";
  gpu.select({ item, cell: isCell && memory !== null ? { memory, element } : null });
  gpu.go(steps[next]);
  gpu.cells.reveal();
}
