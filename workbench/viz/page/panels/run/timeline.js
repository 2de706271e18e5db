// The timeline: the picture of a run, which is moved and scaled by pointer, wheel and keys, and the
// words of what is under the pointer or has the keys. Keys w s zoom, a d move, as in Perfetto; arrows
// go from span to span.

import { colourAt, h } from "../../base/elements.js";
import { curveOf } from "./memory.js";
import { namesWidth, paint, rowsOf } from "./picture.js";
import { COLOURS } from "./shares.js";
import { bounded, firstFrom, indexAt, zoomed } from "./tracks.js";
import { gapWords, kernelOf, memoryWords, spanWords } from "./words.js";

/** @import { Keys } from "../../types.d.ts" */
/** @import { Kernel, Run } from "./run.d.ts" */
/** @import { Spot } from "./picture.js" */
/** @import { Range } from "./tracks.js" */

const HINT =
  "Keys w s zoom, a d move, f shows all, arrows go from span to span, Enter opens a kernel in Tune. Ctrl+wheel zooms, dragging moves.";
const SLACK = 3; // pixels beside a narrow span that are its own, too
const RATIO_MOST = 3; // of the pixels of a screen

export class RunTimeline {
  /** @type {Run | null} */
  run = null;
  /** @type {Range} */
  range = { from: 0, to: 1 };
  /** The span of the keys, and that of the pointer.
   * @type {Spot | null} */
  active = null;
  /** @type {Spot | null} */
  #hovered = null;
  /** @type {number | null} */
  #time = null;
  /** @type {number[]} */
  #colours = [];
  /** @type {Record<string, string> | null} */
  #inks = null;
  #rows = /** @type {ReturnType<typeof rowsOf>} */ ({ rows: [], memoryTop: 0, height: 0 });
  #curve = curveOf({
    memories: [],
    before_bytes: [],
    start_ns: [],
    end_ns: [],
    bytes: [],
    memory: [],
    label: [],
    peak_bytes: 0,
    peak_ns: 0,
  });
  #width = 0;
  #isPlanned = false;
  #canvas = h("canvas", { class: "wb-run-canvas", "aria-hidden": "true" });
  #what = h("div", { class: "wb-run-what", role: "status", title: "the span at the pointer" });
  #memory = h("div", { class: "wb-run-what wb-quiet", title: "the memory at the pointer" });

  /** @param {(kernel: Kernel) => void} open shows a kernel in Tune */
  constructor(open) {
    this.open = open;
    this.stage = h("div", {
      class: "wb-run-time",
      role: "application",
      tabindex: 0,
      "aria-label": "timeline",
      "data-key": "run-timeline",
      title: HINT,
    }, this.#canvas);
    this.el = h("div", { class: "wb-run-timeline" }, this.stage, this.#what, this.#memory);
    listenPointer(this.stage, this);
    new ResizeObserver(([{ contentRect }]) => {
      this.#width = contentRect.width;
      this.#draw(); // at once, or an empty picture would be seen
    }).observe(this.stage);
  }

  /** Show a run, all of it.
   * @param {Run} run */
  show(run) {
    if (run === this.run) return;
    this.run = run;
    this.#rows = rowsOf(run);
    this.#curve = curveOf(run.memory);
    this.active = this.#hovered = null;
    this.#time = null;
    this.stage.style.height = `${this.#rows.height}px`;
    this.whole();
  }

  /** Colour the kernels.
   * @param {number[]} colours */
  colour(colours) {
    this.#colours = colours;
    this.#plan();
  }

  /** Take the colours of another theme. */
  repaint() {
    this.#inks = null;
    this.#draw();
  }

  // the range

  /** Show the whole run. */
  whole() {
    const length = this.run?.length_ns ?? 1;
    this.#go({ from: -length / 50, to: length * 1.02 });
  }

  /** Zoom around a time: that of the pointer, of the active span, or the middle.
   * @param {number} factor
   * @param {number} [at] pixels from the left edge */
  zoom(factor, at) {
    const { from, to } = this.range;
    const active = this.#timesOf(this.active);
    const inSight = active && active.from < to && active.to > from
      ? Math.max(from, Math.min(to, (active.from + active.to) / 2))
      : (from + to) / 2;
    const time = at === undefined ? this.#time ?? inSight : this.timeAt(at);
    this.#go(zoomed(this.range, factor, time));
  }

  /** Move by a share of what is in sight.
   * @param {number} share */
  move(share) {
    const { from, to } = this.range;
    this.#go({ from: from + share * (to - from), to: to + share * (to - from) });
  }

  /** @param {Range} range */
  #go(range) {
    this.range = bounded(range, this.run?.length_ns ?? 1);
    this.#plan();
  }

  // places

  /** The time at so many pixels from the left edge.
   * @param {number} x */
  timeAt(x) {
    const left = namesWidth(this.#width);
    const { from, to } = this.range;
    return from + ((x - left) * (to - from)) / Math.max(1, this.#width - left);
  }

  /** The start and the end of a span or gap.
   * @param {Spot | null} spot
   * @returns {Range | null} */
  #timesOf(spot) {
    const row = spot && this.#rows.rows[spot.row];
    const track = row && (spot.isGap ? row.gaps : row.track);
    return track ? { from: track.start[spot.index], to: track.end[spot.index] } : null;
  }

  /** The span or the gap at a point.
   * @param {number} x
   * @param {number} y
   * @returns {Spot | null} */
  #spotAt(x, y) {
    const place = this.#rows.rows.findIndex(({ top, height }) => y >= top && y < top + height);
    const row = this.#rows.rows[place];
    if (!row || x < namesWidth(this.#width)) return null;
    const time = this.timeAt(x);
    const slack = SLACK * (this.timeAt(x + 1) - time);
    const index = indexAt(row.track, time, slack);
    if (index >= 0) return { row: place, index, isGap: false };
    const gap = row.gaps ? indexAt(row.gaps, time) : -1;
    return gap >= 0 ? { row: place, index: gap, isGap: true } : null;
  }

  /** @param {Spot | null} spot */
  #wordsOf(spot) {
    const row = spot && this.#rows.rows[spot.row];
    if (!row || !this.run) return "";
    if (spot.isGap) return row.gaps ? gapWords(this.run, row.gaps.places[spot.index]) : "";
    return spanWords(this.run, row.track.places[spot.index]);
  }

  // the pointer

  /** @param {number} x
   * @param {number} y */
  hover(x, y) {
    this.#hovered = this.#spotAt(x, y);
    this.#time = x < namesWidth(this.#width) ? null : this.timeAt(x);
    this.stage.classList.toggle("wb-run-over", Boolean(this.#kernelAt(this.#hovered)));
    this.#plan();
  }

  leave() {
    this.#hovered = null;
    this.#time = null;
    this.#plan();
  }

  /** @param {number} x
   * @param {number} y */
  click(x, y) {
    this.active = this.#spotAt(x, y);
    this.#enter();
    this.#plan();
  }

  /** @param {Spot | null} spot
   * @returns {Kernel | null} */
  #kernelAt(spot) {
    if (!this.run || !spot || spot.isGap) return null;
    return kernelOf(this.run, this.#rows.rows[spot.row].track.places[spot.index]);
  }

  #enter() {
    const kernel = this.#kernelAt(this.active);
    if (kernel) this.open(kernel);
  }

  // keys

  /** @type {Keys} */
  keys = {
    w: () => this.zoom(1 / 1.5),
    s: () => this.zoom(1.5),
    a: () => this.move(-0.2),
    d: () => this.move(0.2),
    f: () => this.whole(),
    ArrowRight: (event) => this.#step(event, 0, 1),
    ArrowLeft: (event) => this.#step(event, 0, -1),
    ArrowDown: (event) => this.#step(event, 1, 0),
    ArrowUp: (event) => this.#step(event, -1, 0),
    Enter: ({ target }) => target === this.stage && (this.#enter(), true),
  };

  /** Go to another span: the next one of the row, or the nearest of another row.
   * @param {KeyboardEvent} event
   * @param {number} down rows
   * @param {number} along spans */
  #step({ target }, down, along) {
    if (target !== this.stage) return false;
    const { rows } = this.#rows;
    const filled = rows.flatMap(({ track }, place) => track.places.length ? [place] : []);
    if (!filled.length) return true;
    const now = this.active?.isGap ? null : this.active;
    const at = now ? filled.indexOf(now.row) : 0;
    const row = filled[Math.max(0, Math.min(filled.length - 1, at + (now ? down : 0)))];
    const { track } = rows[row];
    const time = this.#timesOf(now)?.from ?? this.range.from;
    const index = now && !down ? now.index + along : firstFrom(track.start, time);
    const last = track.places.length - 1;
    this.active = { row, index: Math.max(0, Math.min(last, index)), isGap: false };
    this.#reveal();
    return true;
  }

  /** Move until the active span is in sight. */
  #reveal() {
    const times = this.#timesOf(this.active);
    const { from, to } = this.range;
    if (times && (times.to < from || times.from > to)) {
      const middle = (times.from + times.to) / 2;
      this.range = bounded(
        { from: middle - (to - from) / 2, to: middle + (to - from) / 2 },
        this.run?.length_ns ?? 1,
      );
    }
    this.#plan();
  }

  // drawing

  #plan() {
    if (!this.#isPlanned) requestAnimationFrame(() => this.#draw());
    this.#isPlanned = true;
  }

  #draw() {
    this.#isPlanned = false;
    const context = this.#canvas.getContext("2d");
    if (!context || !this.run || !this.#width) return;
    const [width, height] = [this.#width, this.#rows.height];
    const ratio = Math.min(RATIO_MOST, devicePixelRatio || 1);
    const [across, down] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (this.#canvas.width !== across || this.#canvas.height !== down) {
      Object.assign(this.#canvas, { width: across, height: down });
      this.#canvas.style.cssText = `width: ${width}px; height: ${height}px`;
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.#inks ??= readInks(this.stage);
    const spot = this.#hovered ?? this.active;
    paint(context, width, {
      run: this.run,
      rows: this.#rows,
      curve: this.#curve,
      range: this.range,
      colours: this.#colours,
      inks: this.#inks,
      spot,
      time: this.#time,
    });
    this.#say(spot);
  }

  /** @param {Spot | null} spot */
  #say(spot) {
    if (!this.run) return;
    const words = this.#wordsOf(spot) || HINT;
    if (this.#what.textContent !== words) this.#what.textContent = words;
    const time = this.#time ?? this.#timesOf(spot)?.from ?? this.run.memory.peak_ns;
    const memory = memoryWords(this.run, this.#curve, time);
    if (this.#memory.textContent !== memory) this.#memory.textContent = memory;
  }
}

const INKS = ["fg", "bg", "muted", "accent", "edge", "line-colour", "near", "chosen", "removed"];

/** The theme's colours, and the font.
 * @param {HTMLElement} el
 * @returns {Record<string, string>} */
function readInks(el) {
  const own = Array.from({ length: COLOURS + 1 }, (_, i) => `run-${i}`);
  const colours = [...INKS, ...own].map((name) => [name, colourAt(el, `--wb-${name}`)]);
  return { ...Object.fromEntries(colours), font: getComputedStyle(el).fontFamily };
}

/** Drag moves, a click picks; Ctrl or Cmd and the wheel zoom, a wheel across moves.
 * @param {HTMLElement} stage
 * @param {RunTimeline} on */
function listenPointer(stage, on) {
  /** @type {{x: number, y: number, range: Range, moved: boolean} | null} */
  let start = null;
  /** @type {(event: MouseEvent) => [number, number]} */
  const at = (event) => {
    const box = stage.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  stage.addEventListener("pointerdown", (event) => {
    const [x, y] = at(event);
    if (event.button === 0) start = { x, y, range: on.range, moved: false };
  });
  stage.addEventListener("pointermove", (event) => {
    const [x, y] = at(event);
    if (!start) return on.hover(x, y);
    if (!start.moved && Math.abs(x - start.x) < 4) return;
    if (!start.moved) stage.setPointerCapture(event.pointerId);
    start.moved = true;
    const { from, to } = start.range;
    on.range = start.range;
    on.move((on.timeAt(start.x) - on.timeAt(x)) / (to - from));
  });
  const up = (/** @type {PointerEvent} */ event) => {
    if (start && !start.moved && event.type === "pointerup") on.click(...at(event));
    start = null;
  };
  stage.addEventListener("pointerup", up);
  stage.addEventListener("pointercancel", up);
  stage.addEventListener("pointerleave", () => on.leave());
  stage.addEventListener("wheel", (event) => {
    const isAcross = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (!event.ctrlKey && !event.metaKey && !isAcross) return;
    event.preventDefault();
    if (isAcross) on.move((event.deltaX || event.deltaY) / 800);
    else on.zoom(Math.exp(event.deltaY / 300), at(event)[0]);
  }, { passive: false });
}
