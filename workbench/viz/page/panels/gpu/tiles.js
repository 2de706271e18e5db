// A product by a tensor core: its tiles A, B and C, each element in the colour of its lane. A lane
// highlights its elements, an element its lane, and an element of C also the terms of its sum.

import { heading } from "../../app/pieces.js";
import { CellGrid } from "../../base/cell_grid.js";
import { h, refill } from "../../base/elements.js";
import { numbersOf, valueText } from "./steps.js";

/** @import { TensorCoreRow, TensorTile, TileProduct } from "../../record.d.ts" */
/** @import { Gpu } from "./panel.js" */
/** @import { GroupSteps } from "./steps.js" */

/** For each place in a tile, the lanes that hold it, each with the index of its element.
 * @typedef {[lane: number, element: number][]} Holders */
/** A drawn tile.
 * @typedef {{tile: TensorTile, holders: Holders[], grid: CellGrid}} Drawn */

const IN_ORDER = "row and column of each of its elements, in the order of its register";
const TURN = 137.5; // degrees between the colours of neighbouring lanes: none is like another
const INK = "#111"; // on the colours of lanes, in either theme
const MARK = "#b00020"; // likewise
const RESULT = 3; // the place of the result among the registers of a product

export class TilesPane {
  /** @type {TensorCoreRow | null} */
  #core = null;
  /** @type {Drawn[]} */
  #tiles = [];
  /** The current step, while it has a product.
   * @type {{steps: GroupSteps, product: TileProduct} | null} */
  #shown = null;
  lane = h("div", {});
  words = h("p", { role: "status" });

  /** @param {Gpu} gpu */
  constructor(gpu) {
    this.gpu = gpu;
    this.el = h("section", { class: "wb-gpu-tiles", "aria-label": "tensor core", hidden: true });
  }

  /** @param {GroupSteps} steps */
  show(steps) {
    const { product } = steps.row.lines[steps.row.line[this.gpu.at]];
    this.el.hidden = !product;
    if (!product) return;
    const core = steps.row.cores[product.core];
    if (core !== this.#core) this.#fill(core);
    const lane = this.gpu.item % core.lanes;
    const chosen = this.#chosen(lane);
    this.#shown = { steps, product };
    this.#tiles.forEach(({ grid }, place) =>
      grid.show(chosen?.tile === place ? chosen.place : -1, [lane, chosen?.tile, chosen?.place])
    );
    refill(this.lane, this.#lane(steps, product, core, lane));
    this.words.textContent = chosen
      ? [this.#element(this.#shown, chosen.tile, chosen.place), this.#sum(chosen)].join("")
      : "an element lights up its lane; one of C also the terms of its sum";
  }

  /** @param {TensorCoreRow} core */
  #fill(core) {
    this.#core = core;
    this.#tiles = core.tiles.map((tile, place) => this.#tile(core, tile, place));
    const drawn = this.#tiles.map(({ tile, grid }) => {
      const size = `${tile.name} ${tile.rows} × ${tile.columns}`;
      const title = h("p", { title: `${size}, ${tile.each} elements in each lane` }, size);
      return h("div", {}, title, grid.el);
    });
    refill(
      this.el,
      heading("TENSOR CORE", h("span", { class: "wb-quiet" }, `${core.text}; number: the lane`)),
      this.words,
      h("div", { class: "wb-gpu-tile-row" }, ...drawn),
      this.lane,
    );
  }

  /**
   * @param {TensorCoreRow} core
   * @param {TensorTile} tile
   * @param {number} place
   * @returns {Drawn} */
  #tile(core, tile, place) {
    /** @type {Holders[]} */
    const holders = Array.from({ length: tile.rows * tile.columns }, () => []);
    numbersOf(tile.places).forEach((at, number) =>
      holders[at].push([Math.floor(number / tile.each), number % tile.each])
    );
    const isOf = (/** @type {number} */ at) => {
      const lane = this.gpu.item % core.lanes;
      return holders[at].some(([one]) => one === lane);
    };
    const isChosen = (/** @type {number} */ at) => {
      const chosen = this.#chosen(this.gpu.item % core.lanes);
      return chosen?.tile === place && chosen.place === at;
    };
    const grid = new CellGrid({
      name: `gpu-${tile.name}`,
      label: `elements of ${tile.name}`,
      rows: { count: holders.length, columns: tile.columns, least: 7, most: 17, height: 14 },
      words: (at) => {
        const own = isOf(at) ? ", of the selected lane" : "";
        const term = this.#isTerm(place, at) ? ", in a term of the selected sum" : "";
        return this.#shown ? this.#element(this.#shown, place, at) + own + term : "";
      },
      look: (at) => ({
        fill: `hsl(${(holders[at][0][0] * TURN) % 360} 70% 80%)`,
        frame: this.#isTerm(place, at) || isChosen(at) ? MARK : isOf(at) ? INK : "",
        isThick: isChosen(at) || isOf(at),
        isDashed: this.#isTerm(place, at),
        text: String(holders[at][0][0]),
      }),
      pick: (at) => this.#pick(core, place, at, holders[at][0][0]),
    });
    return { tile, holders, grid };
  }

  repaint() {
    this.#tiles.forEach(({ grid }) => grid.repaint());
  }

  /** Select an element, and with it the lane of this warp that holds it.
   * @type {(core: TensorCoreRow, tile: number, place: number, lane: number) => void} */
  #pick(core, tile, place, lane) {
    const { item } = this.gpu;
    this.gpu.select({ item: item - (item % core.lanes) + lane, element: { tile, place } });
  }

  /** The selected element, if the lane holds it.
   * @param {number} lane */
  #chosen(lane) {
    const { element } = this.gpu;
    const holders = element && this.#tiles[element.tile]?.holders[element.place];
    return holders?.some(([one]) => one === lane) ? element : null;
  }

  /** Whether an element of A or B is in the sum of the selected element of C.
   * @type {(tile: number, place: number) => boolean} */
  #isTerm(tile, place) {
    const chosen = this.#core && this.#chosen(this.gpu.item % this.#core.lanes);
    if (chosen?.tile !== 2 || tile === 2) return false;
    const at = (/** @type {number} */ which, /** @type {number} */ where) =>
      rowAndColumn(this.#tiles[which].tile, where)[tile];
    return at(tile, place) === at(2, chosen.place);
  }

  /** The place of an element, its value, and the lanes that hold it.
   * @type {(shown: {steps: GroupSteps, product: TileProduct}, place: number, at: number) => string} */
  #element({ steps, product }, place, at) {
    const { tile, holders } = this.#tiles[place];
    const [[lane, element], ...copies] = holders[at];
    const names = place === 2
      ? [product.registers[place], product.registers[RESULT]]
      : [product.registers[place]];
    const isMultiplied = !steps.access(this.gpu.at); // an access loads the operands
    const values = names.map((name) => this.#value(steps, name, lane, element)).join(" → ");
    const also = copies.length ? `, and lane ${copies.map(([one]) => one).join(", ")}` : "";
    const who = `lane ${lane}${also}, element ${element} of ${names.join(" → ")}`;
    const which = `${tile.name}[${rowAndColumn(tile, at).join(", ")}]`;
    return `${which}${isMultiplied ? ` = ${values}` : ""}: ${who}`;
  }

  /** The value of an element of a register in a lane of the selected warp.
   * @type {(steps: GroupSteps, name: string, lane: number, element: number) => string} */
  #value(steps, name, lane, element) {
    const { at, item } = this.gpu;
    const first = item - (item % (this.#core?.lanes ?? 1));
    const values = steps.register(name, at, first + lane);
    return values ? valueText(values[element % values.length]) : "unwritten";
  }

  /** The elements of a lane.
   * @type {(steps: GroupSteps, product: TileProduct, core: TensorCoreRow, lane: number) => HTMLElement} */
  #lane(steps, product, core, lane) {
    const rows = core.tiles.map((tile, place) => {
      const mine = numbersOf(tile.places).slice(lane * tile.each, (lane + 1) * tile.each);
      const places = [...mine].map((at) => `[${rowAndColumn(tile, at).join(", ")}]`);
      const name = product.registers[place === 2 ? RESULT : place];
      return h(
        "tr",
        {},
        h("th", { scope: "row", title: name }, tile.name),
        h("td", {}, places.join(" ")),
      );
    });
    const who = `lane ${lane} of warp ${Math.floor(this.gpu.item / steps.row.warp_lanes)}`;
    return h(
      "table",
      { class: "wb-figures" },
      h("caption", { title: IN_ORDER }, `${who} holds`),
      ...rows,
    );
  }

  /** The sum that an element of C is, as text.
   * @param {{tile: number, place: number}} chosen */
  #sum({ tile, place }) {
    if (tile !== 2) return "";
    const [row, column] = rowAndColumn(this.#tiles[2].tile, place);
    const last = this.#tiles[0].tile.columns - 1;
    const term = (/** @type {number} */ k) => `A[${row}, ${k}]·B[${k}, ${column}]`;
    return `; it grows by ${term(0)} + … + ${term(last)}`;
  }
}

/** @type {(tile: TensorTile, place: number) => number[]} */
const rowAndColumn = ({ columns }, place) => [Math.floor(place / columns), place % columns];
