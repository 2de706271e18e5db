// Cells in rows on a canvas: as many as there are, of which only those in sight are drawn. For
// screen readers and for the ring of the focus, one element stands for the active cell; arrow keys
// move it, Enter picks it.

import { colourAt, h, noteScroll } from "./elements.js";

/** The rows of a grid, in pixels: `columns` cells a row, each `least` to `most` wide, with their gap,
 * and `height` high; `together` rows stand closer to each other than to the next ones. Rows have
 * names if there is room for them: `names` pixels at their left. `across`: several rows stand side
 * by side, as many as fit.
 * @typedef {{
 *   count: number, columns: number, least: number, most: number, height: number,
 *   together?: number, names?: number, across?: boolean, gap?: number
 * }} Rows */
/** How a cell is drawn: `fill` and `frame` are colours, by name (see `readInks`) or of CSS; "hatched"
 * and "hatched bad" are fills too. A frame is thick, dashed or neither; `text` stands in the middle.
 * @typedef {{
 *   fill: string, edge?: string, frame?: string, isThick?: boolean, isDashed?: boolean,
 *   text?: string
 * }} Look */
/** A grid: `name` begins the data-key of its cells. `look` null: the cell is not drawn. `words` are
 * those of a cell, its title and what a screen reader says; `pick` is told the picked cell.
 * @typedef {{
 *   name: string, label: string, rows: Rows, look: (cell: number) => Look | null,
 *   words: (cell: number) => string, pick?: (cell: number) => void,
 *   rowName?: (row: number) => string
 * }} Grid */
/** The places of cells: the width of a cell with its gap, of a row, and the number of rows side by
 * side.
 * @typedef {{pitch: number, rowWidth: number, across: number}} Places */

const BETWEEN = 6; // pixels between rows that are not together
const BESIDE = 8; // between rows side by side
const TEXT_FROM = 8; // the least width of a cell with text
const INK = "#111"; // of a text on its colour, in either theme
const RATIO_MOST = 3; // device pixels for each pixel; finer is not seen
const HINT = "the pointer names a cell; arrow keys go from cell to cell, Enter picks one";
const PAGE_ROWS = 10; // by which a page key moves

/** The colours of each theme's pages, by the element that asked; they are read once, since that makes
 * the browser compute the styles of the page.
 * @type {WeakMap<Element, Record<string, string>>} */
const INKS = new WeakMap();

export class CellGrid {
  /** The active cell: that of the keys. */
  #active = 0;
  /** @type {number} */
  #chosen = -1;
  #size = { width: 0, height: 0 };
  #scrolled = { left: 0, top: 0 };
  /** @type {Places} */
  #places = { pitch: 1, rowWidth: 1, across: 1 };
  /** @type {unknown[] | null} */
  #state = null;
  #isPlanned = false;
  #canvas = h("canvas", { class: "wb-cells-canvas", "aria-hidden": "true" });
  #cell = h("div", { class: "wb-cells-active", role: "option" });

  /** @param {Grid} of */
  constructor(of) {
    this.of = of;
    this.all = h("div", { class: "wb-cells-all" }, this.#cell);
    this.el = h(
      "div",
      {
        class: "wb-cells",
        role: "listbox",
        tabindex: 0,
        "aria-label": of.label,
        "aria-orientation": "horizontal",
        "data-key": `${of.name}s`,
        title: HINT,
        style: widthOf(of.rows),
        onkeydown: (event) => this.#pressed(event),
        onclick: (event) => this.#clicked(event),
        onmousemove: (event) => this.#hovered(event),
        onscroll: () => this.#scroll(),
      },
      h("div", { class: "wb-cells-sight" }, this.#canvas),
      this.all,
    );
    new ResizeObserver(([{ contentRect }]) => this.#resize(contentRect)).observe(this.el);
    this.#activate(0);
  }

  /** Show other cells in the place of these.
   * @param {Grid} of */
  change(of) {
    this.of = of;
    this.#chosen = -1;
    const { el } = this;
    for (
      const [name, value] of Object.entries({ "aria-label": of.label, "data-key": `${of.name}s` })
    ) {
      if (el.getAttribute(name) !== value) el.setAttribute(name, value);
    }
    if (el.style.cssText !== widthOf(of.rows)) el.style.cssText = widthOf(of.rows);
    this.#state = null;
    this.#arrange();
    this.show(-1, []);
  }

  /** Show the cells as they are now.
   * @param {number} chosen the selected cell, which becomes the active one; -1: there is none
   * @param {unknown[]} state what decides how cells look: if it is the same, they are not drawn anew */
  show(chosen, state) {
    const isOther = chosen !== this.#chosen;
    this.#chosen = chosen;
    this.#activate(isOther && chosen >= 0 ? chosen : this.#active);
    const isSame = !isOther && state.length === this.#state?.length &&
      state.every((value, place) => value === this.#state?.[place]);
    this.#state = state;
    if (!isSame) this.#plan();
  }

  /** Show the cells in the colours of another theme, at once: paper waits for no frame. */
  repaint() {
    INKS.delete(this.el);
    this.#draw();
  }

  /** Scroll until a cell is in sight.
   * @param {number} cell */
  reveal(cell) {
    this.#activate(cell);
    this.#cell.scrollIntoView({ block: "nearest", inline: "nearest" });
    noteScroll(this.#cell);
    this.#scroll();
  }

  // places

  /** The left and top edge of a cell.
   * @param {number} cell
   * @returns {[left: number, top: number]} */
  #corner(cell) {
    const { columns, names = 0 } = this.of.rows;
    const { pitch, rowWidth, across } = this.#places;
    const row = Math.floor(cell / columns);
    return [
      (row % across) * (rowWidth + BESIDE) + names + (cell % columns) * pitch,
      this.#top(Math.floor(row / across)),
    ];
  }

  /** The top of a line of rows.
   * @param {number} line */
  #top(line) {
    const { height, together = Infinity } = this.of.rows;
    return line * height + Math.floor(line / together) * BETWEEN;
  }

  /** The line of rows at a height.
   * @param {number} y */
  #lineAt(y) {
    const { height, together = Infinity } = this.of.rows;
    if (!Number.isFinite(together)) return Math.floor(y / height);
    const part = together * height + BETWEEN;
    const inPart = Math.floor((y % part) / height);
    return Math.floor(y / part) * together + Math.min(together - 1, inPart);
  }

  get #lines() {
    const { count, columns } = this.of.rows;
    return Math.ceil(count / columns / this.#places.across);
  }

  /** The cell at a point of the whole grid; -1: there is none.
   * @param {number} x
   * @param {number} y */
  #cellAt(x, y) {
    const { columns, count, names = 0 } = this.of.rows;
    const { pitch, rowWidth, across } = this.#places;
    const beside = Math.floor(x / (rowWidth + BESIDE));
    const column = Math.floor((x - beside * (rowWidth + BESIDE) - names) / pitch);
    if (x < 0 || y < 0 || beside >= across || column < 0 || column >= columns) return -1;
    const cell = (this.#lineAt(y) * across + beside) * columns + column;
    return cell < count && this.of.look(cell) ? cell : -1;
  }

  /** @param {DOMRectReadOnly} size */
  #resize({ width, height }) {
    this.#size = { width, height };
    this.#arrange();
    this.#draw();
  }

  /** Compute the places of cells from the width. */
  #arrange() {
    const { width } = this.#size;
    if (!width) return;
    const { columns, least, most, names = 0, across: isAcross } = this.of.rows;
    const pitch = Math.max(least, Math.min(most, (width - names) / columns));
    const rowWidth = names + columns * pitch;
    const across = isAcross ? Math.max(1, Math.floor((width + BESIDE) / (rowWidth + BESIDE))) : 1;
    this.#places = { pitch, rowWidth, across };
    const fullWidth = across * (rowWidth + BESIDE) - BESIDE;
    const fullHeight = this.#top(this.#lines - 1) + this.of.rows.height;
    const style = `width: ${fullWidth}px; height: ${fullHeight}px;`;
    if (this.all.style.cssText !== style) this.all.style.cssText = style;
    this.#activate(this.#active);
  }

  #scroll() {
    const { scrollLeft: left, scrollTop: top } = this.el;
    this.#scrolled = { left, top };
    this.#plan();
  }

  // pointer and keys

  /** The cell under the pointer.
   * @param {MouseEvent} event */
  #under({ clientX, clientY }) {
    const { left, top } = this.all.getBoundingClientRect();
    return this.#cellAt(clientX - left, clientY - top);
  }

  /** @param {MouseEvent} event */
  #hovered(event) {
    const cell = this.#under(event);
    this.el.title = cell < 0 ? HINT : this.of.words(cell);
    this.el.classList.toggle("wb-cells-over", cell >= 0 && Boolean(this.of.pick));
  }

  /** @param {MouseEvent} event */
  #clicked(event) {
    const cell = this.#under(event);
    if (cell < 0) return;
    this.#activate(cell);
    this.of.pick?.(cell);
  }

  /** Arrows, Home, End and the page keys move the active cell; Enter picks it. Other keys are those
   * of the page.
   * @param {KeyboardEvent} event */
  #pressed(event) {
    const { key, ctrlKey, metaKey, altKey } = event;
    if (ctrlKey || metaKey || altKey) return;
    const { columns, count } = this.of.rows;
    const row = columns * this.#places.across;
    /** @type {Record<string, number>} */
    const steps = {
      ArrowRight: 1,
      ArrowLeft: -1,
      ArrowDown: row,
      ArrowUp: -row,
      PageDown: PAGE_ROWS * row,
      PageUp: -PAGE_ROWS * row,
      Home: -count,
      End: count,
    };
    const step = steps[key];
    if (step === undefined && key !== "Enter") return;
    event.preventDefault();
    event.stopPropagation();
    if (step === undefined) return this.of.pick?.(this.#active);
    const cell = this.#active + step;
    const isInside = cell >= 0 && cell < count;
    if (isInside || !key.startsWith("Arrow")) this.reveal(Math.max(0, Math.min(count - 1, cell)));
  }

  /** Let the element of the active cell stand for this one. Its id changes with the cell, or a screen
   * reader would not notice.
   * @param {number} cell */
  #activate(cell) {
    const { name, rows, words } = this.of;
    this.#active = Math.max(0, Math.min(rows.count - 1, cell));
    const active = this.#active;
    const [left, top] = this.#corner(active);
    const place = { left, top, width: this.#places.pitch, height: rows.height };
    const style = Object.entries(place).map(([side, size]) => `${side}: ${size}px`).join("; ");
    /** @type {Record<string, string>} */
    const attributes = {
      id: `${name}-${active}`,
      "data-key": `${name}-${active}`,
      "aria-label": words(active),
      "aria-selected": String(active === this.#chosen),
      "aria-setsize": String(rows.count),
      "aria-posinset": String(active + 1),
      style,
    };
    for (const [attribute, value] of Object.entries(attributes)) {
      if (this.#cell.getAttribute(attribute) !== value) this.#cell.setAttribute(attribute, value);
    }
    this.el.setAttribute("aria-activedescendant", attributes.id);
  }

  // the picture

  #plan() {
    if (!this.#isPlanned) requestAnimationFrame(() => this.#draw());
    this.#isPlanned = true;
  }

  #draw() {
    this.#isPlanned = false;
    const { width, height } = this.#size;
    const context = this.#canvas.getContext("2d");
    if (!context || !width || !height) return;
    const ratio = Math.min(RATIO_MOST, devicePixelRatio || 1);
    const [across, down] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (this.#canvas.width !== across || this.#canvas.height !== down) {
      Object.assign(this.#canvas, { width: across, height: down });
      this.#canvas.style.cssText = `width: ${width}px; height: ${height}px`;
    }
    const { left, top } = this.#scrolled;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, across, down);
    context.setTransform(ratio, 0, 0, ratio, -left * ratio, -top * ratio);
    const { columns, count } = this.of.rows;
    const row = columns * this.#places.across;
    const first = Math.max(0, this.#lineAt(top)) * row;
    const end = Math.min(count, (this.#lineAt(top + height) + 1) * row);
    const pen = new Pen(context, this.#inks(), ratio);
    const { pitch } = this.#places;
    const { height: cellHeight, gap = pitch > 4 ? 1 : 0 } = this.of.rows;
    const size = { width: pitch - gap, height: cellHeight - gap };
    /** Frames are drawn over the fills beside them.
     * @type {[left: number, top: number, look: Look][]} */
    const framed = [];
    for (let cell = first; cell < end; cell++) {
      const look = this.of.look(cell);
      if (!look) continue;
      const [x, y] = this.#corner(cell);
      pen.fill(x, y, size, look);
      if (look.frame) framed.push([x, y, look]);
    }
    for (const [x, y, look] of framed) pen.frame(x, y, size, look);
    this.#nameRows(pen, first / columns, Math.ceil(end / columns));
  }

  /**
   * @param {Pen} pen
   * @param {number} first row
   * @param {number} end */
  #nameRows(pen, first, end) {
    const { rowName, rows: { names = 0, columns, height } } = this.of;
    if (!rowName || !names) return;
    for (let row = first; row < end; row++) {
      const [x, y] = this.#corner(row * columns);
      pen.name(rowName(row), x - names, y + height / 2, names - 4);
    }
  }

  #inks() {
    const inks = INKS.get(this.el) ?? readInks(this.el);
    INKS.set(this.el, inks);
    return inks;
  }
}

/** The style of a grid that is as wide as its cells; one of several rows side by side is as wide as
 * its place.
 * @param {Rows} rows */
const widthOf = ({ columns, most, names = 0, across }) =>
  across ? "" : `width: ${columns * most + names}px;`;

/** The theme's colours, and the font, around an element.
 * @param {Element} el
 * @returns {Record<string, string>} */
function readInks(el) {
  const style = getComputedStyle(el);
  const names = ["fg", "bg", "muted", "accent", "edge", "bad", "line-colour"];
  const colours = names.map((name) => [name, colourAt(el, `--wb-${name}`)]);
  return { ...Object.fromEntries(colours), font: style.fontFamily };
}

/** Draws cells in the colours of a theme, their edges on whole pixels of the screen. */
class Pen {
  /** @type {Map<string, CanvasPattern | string>} */
  #hatches = new Map();

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {Record<string, string>} inks
   * @param {number} ratio */
  constructor(context, inks, ratio) {
    this.context = context;
    this.inks = inks;
    this.ratio = ratio;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.font = `10px ${inks.font}`;
  }

  /** @param {number} place */
  #whole(place) {
    return Math.round(place * this.ratio) / this.ratio;
  }

  /** @param {string} name */
  #ink(name) {
    if (name === "hatched") return this.#hatched("line-colour");
    if (name === "hatched bad") return this.#hatched("bad");
    return this.inks[name] ?? name;
  }

  /** Stripes of a colour.
   * @param {string} name */
  #hatched(name) {
    const known = this.#hatches.get(name);
    if (known) return known;
    const tile = h("canvas", { width: 4, height: 4 });
    const context = tile.getContext("2d");
    if (context) {
      context.strokeStyle = this.inks[name];
      context.lineWidth = 1.2;
      context.beginPath();
      for (const from of [-4, 0, 4]) (context.moveTo(from, 4), context.lineTo(from + 4, 0));
      context.stroke();
    }
    const hatch = this.context.createPattern(tile, "repeat") ?? this.inks[name];
    this.#hatches.set(name, hatch);
    return hatch;
  }

  /**
   * @param {number} x
   * @param {number} y
   * @param {{width: number, height: number}} size
   * @param {Look} look */
  fill(x, y, { width, height }, { fill, edge, text }) {
    const { context } = this;
    const [left, top] = [this.#whole(x), this.#whole(y)];
    const [wide, high] = [this.#whole(x + width) - left, this.#whole(y + height) - top];
    if (edge) {
      context.fillStyle = this.#ink(edge);
      context.fillRect(left, top, wide, high);
      const inner = fill.startsWith("hatched") ? this.inks.bg : this.#ink(fill);
      context.fillStyle = inner;
      context.fillRect(left + 1, top + 1, wide - 2, high - 2);
    }
    if (!edge || fill.startsWith("hatched")) {
      context.fillStyle = this.#ink(fill);
      context.fillRect(left, top, wide, high);
    }
    if (!text || width < TEXT_FROM) return;
    context.fillStyle = INK;
    context.fillText(text, left + wide / 2, top + high / 2 + 0.5, wide);
  }

  /**
   * @param {number} x
   * @param {number} y
   * @param {{width: number, height: number}} size
   * @param {Look} look */
  frame(x, y, { width, height }, { frame = "fg", isThick = false, isDashed = false }) {
    const { context } = this;
    const line = isThick ? 2 : 1.5;
    context.strokeStyle = this.#ink(frame);
    context.lineWidth = line;
    context.setLineDash(isDashed ? [3, 2] : []);
    const inset = line / 2 - 0.5;
    context.strokeRect(x + inset, y + inset, width - 2 * inset, height - 2 * inset);
    context.setLineDash([]);
  }

  /** @type {(text: string, x: number, y: number, width: number) => void} */
  name(text, x, y, width) {
    const { context } = this;
    context.textAlign = "left";
    context.fillStyle = this.inks.fg;
    context.fillText(text, x, y + 0.5, width);
    context.textAlign = "center";
  }
}
