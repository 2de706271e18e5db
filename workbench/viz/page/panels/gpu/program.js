// The program of a work-item, with the current line and the cost of its accesses.

import { linked } from "../../app/links.js";
import { heading, withNames } from "../../app/pieces.js";
import { NO_SELECTION } from "../../app/store.js";
import { h, noteScroll, refill } from "../../base/elements.js";
import { focusItem, rove, walkable } from "../../base/lists.js";
import { plural } from "../../base/text.js";
import { costText } from "../../listing/line_costs.js";

/** @import { AccessCosts, GpuLine, GpuTrace } from "../../record.d.ts" */
/** @import { Link } from "../../types.d.ts" */
/** @import { Gpu } from "./panel.js" */
/** @import { GroupSteps } from "./steps.js" */

export class ProgramPane {
  #shown = -1;
  /** @type {HTMLElement[]} */
  #lines = [];

  /** @param {Gpu} gpu */
  constructor(gpu) {
    this.gpu = gpu;
    this.el = h("section", { class: "wb-gpu-program", "aria-label": "program" });
    this.list = h("div", {});
  }

  /** @param {GpuTrace} row */
  fill(row) {
    this.#lines = row.lines.map((line, place) => this.#line(row, line, place));
    const attributes = { class: "wb-gpu-lines" };
    this.list = walkable("listbox", "lines of the program", attributes, ...this.#lines);
    this.el.classList.toggle("wb-gpu-numbered", row.lines.some((line) => line.number !== null));
    this.#shown = -1;
    refill(
      this.el,
      heading("PROGRAM", h("span", { class: "wb-quiet" }, launchText(row))),
      h(
        "div",
        { class: "wb-gpu-line wb-gpu-head wb-quiet" },
        h("span", {}),
        h("span", { "data-term": "sectors" }, "sectors"),
        h("span", { "data-term": "used" }, "used"),
        h("span", { "data-term": "conflicts" }, "conflicts"),
      ),
      this.list,
    );
  }

  /** @param {GroupSteps} steps */
  show(steps) {
    const place = steps.row.line[this.gpu.at];
    if (place === this.#shown) return;
    const [before, now] = [this.#lines[this.#shown], this.#lines[place]];
    this.#shown = place;
    before?.setAttribute("aria-selected", "false");
    now.setAttribute("aria-selected", "true");
    rove(this.list, now);
    now.scrollIntoView({ block: "nearest" });
    noteScroll(now);
    const { app } = this.gpu;
    app.select({ ...NO_SELECTION, picked: linkOf(steps.row.lines[place]) });
  }

  focus() {
    focusItem(this.list, this.#lines[this.#shown]);
  }

  /**
   * @param {GpuTrace} row
   * @param {GpuLine} line
   * @param {number} place */
  #line(row, line, place) {
    const { gpu } = this;
    const costs = line.accesses;
    const main = costs.filter(({ memory }) => row.memories[memory].space === "global");
    const shared = costs.filter(({ memory }) => row.memories[memory].space === "shared");
    const [wanted, moved] = [sum(main, "bytes_wanted"), sum(main, "bytes_moved")];
    const conflicts = sum(shared, "conflicts");
    const figure = (/** @type {string | false} */ text, kind = "") =>
      h("span", { class: `wb-figure ${kind}` }, text);
    const el = h(
      "div",
      {
        class: "wb-row wb-gpu-line",
        role: "option",
        "data-item": "",
        "data-key": `gpu-line-${place}`,
        "aria-selected": "false",
        title: lineTitle(row, line),
        onclick: () => gpu.steps && gpu.go(gpu.steps.stepAt(place, gpu.at)),
      },
      line.number !== null && h("span", { class: "wb-quiet wb-gpu-number" }, String(line.number)),
      h("code", { style: `--depth: ${line.depth}` }, ...withNames(gpu.app.variant(), line.text)),
      figure(moved > 0 && sum(main, "transactions").toLocaleString("en")),
      figure(moved > 0 && `${share(wanted, moved)}%`, wanted < moved ? "wb-bad" : ""),
      figure(shared.length > 0 && conflicts.toLocaleString("en"), conflicts ? "wb-bad" : ""),
    );
    return linked(el, linkOf(line));
  }
}

/** @type {(line: GpuLine) => Link} */
const linkOf = ({ nodes, lines }) => ({ by: "loop", axes: [], nodes, lines });

/** @type {(costs: AccessCosts[], name: "transactions" | "conflicts" | "bytes_wanted" | "bytes_moved") => number} */
const sum = (costs, name) => costs.reduce((total, cost) => total + cost[name], 0);

/** Percent of the moved bytes that were requested, if below 100.
 * @type {(wanted: number, moved: number) => number} */
export const share = (wanted, moved) => Math.floor((100 * wanted) / moved);

/** @param {GpuTrace} row */
function launchText({ device, grid, items, is_whole: isWhole }) {
  const product = (/** @type {number[]} */ sizes) => sizes.reduce((a, b) => a * b, 1);
  const launch = `${device}: ${plural(product(grid), "group")} of ${
    plural(product(items), "work-item")
  }`;
  return isWhole ? launch : `${launch}; counts are of this group alone: the launch is too large`;
}

/** The cost of a line, as text.
 * @param {GpuTrace} row
 * @param {GpuLine} line */
function lineTitle({ memories, is_whole: isWhole }, line) {
  const all = isWhole ? "all groups together" : "this group";
  const words = line.accesses.map((cost) => costText(memories[cost.memory], cost));
  if (line.executed) words.push(`executed ${plural(line.executed, "time")} by single work-items`);
  if (line.divergent) words.push(`${plural(line.divergent, "warp")} of which some go on, some not`);
  if (line.shuffles) words.push(`${plural(line.shuffles, "warp")} exchanged values`);
  if (line.barriers) words.push(`${plural(line.barriers, "group")} waited`);
  const click = "a click goes to the next step at this line";
  return [line.text, ...words.map((text) => `${text} (${all})`), click].join("\n");
}
