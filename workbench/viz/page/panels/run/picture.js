// The picture of a run on a canvas: an axis, a row for each lane and depth with its spans and gaps,
// and the memory below. Only what is in sight is drawn, and at most two marks for each pixel.

import { cut } from "../../base/text.js";
import { peaksIn } from "./memory.js";
import { letterOf } from "./shares.js";
import { marksIn, ticksOf, trackOf, tracksOf } from "./tracks.js";
import { kernelOf, spanLabel } from "./words.js";

/** @import { Run } from "./run.d.ts" */
/** @import { Curve } from "./memory.js" */
/** @import { Range, Track } from "./tracks.js" */

/** A row at its place; `gaps` are those of a device. Units: pixels.
 * @typedef {{track: Track, gaps: Track | null, top: number, height: number, name: string}} Row
 * The rows of a run, and where its memory begins; `height` is that of all.
 * @typedef {{rows: Row[], memoryTop: number, height: number}} Rows
 * A span or a gap: the place of its row and its index there.
 * @typedef {{row: number, index: number, isGap: boolean}} Spot
 * What is drawn.
 * @typedef {{
 *   run: Run, rows: Rows, curve: Curve, range: Range, colours: number[],
 *   inks: Record<string, string>, spot: Spot | null, time: number | null
 * }} Scene */

const AXIS = 20;
/** @type {Record<string, number>} */
const HEIGHTS = { python: 16, device: 22, worker: 12 };
const BETWEEN_LANES = 6;
export const MEMORY_HEIGHT = 56;
const LETTER_WIDTH = 6.2; // pixels of a letter, about: measuring each text would take longer
const OTHER = 8; // the colour of what has none of its own

/** The width of the names at the left.
 * @param {number} width of the picture */
export const namesWidth = (width) => width < 560 ? 72 : 128;

/** The places of all rows.
 * @param {Run} run
 * @returns {Rows} */
export function rowsOf(run) {
  const { lanes, gaps } = run;
  /** @type {number[][]} */
  const gapPlaces = lanes.map(() => []);
  gaps.lane.forEach((lane, place) => gapPlaces[lane].push(place));
  let top = AXIS;
  const rows = tracksOf(run).map((track) => {
    const { name, kind } = lanes[track.lane];
    const own = gapPlaces[track.lane].sort((a, b) => gaps.start_ns[a] - gaps.start_ns[b]);
    const hasGaps = track.depth === 0 && own.length > 0;
    if (track.depth === 0) top += BETWEEN_LANES;
    const height = HEIGHTS[kind];
    const row = {
      track,
      gaps: hasGaps ? trackOf(track.lane, 0, own, gaps.start_ns, gaps.length_ns) : null,
      top,
      height,
      name: track.depth === 0 ? name : "",
    };
    top += height;
    return row;
  });
  const memoryTop = top + BETWEEN_LANES;
  return { rows, memoryTop, height: memoryTop + MEMORY_HEIGHT + 2 };
}

/** Draw a scene.
 * @param {CanvasRenderingContext2D} context
 * @param {number} width in pixels
 * @param {Scene} scene */
export function paint(context, width, scene) {
  const { rows, inks } = scene;
  const left = namesWidth(width);
  const { from, to } = scene.range;
  const pixel = (to - from) / Math.max(1, width - left);
  const xOf = (/** @type {number} */ time) => left + (time - from) / pixel;
  context.clearRect(0, 0, width, rows.height);
  context.font = `11px ${inks.font}`;
  context.textBaseline = "middle";
  context.save();
  context.beginPath();
  context.rect(left, 0, width - left, rows.height);
  context.clip();
  paintAxis(context, width, scene, xOf);
  const pen = new Pen(context, scene, xOf, pixel, left, width);
  rows.rows.forEach((row) => pen.row(row));
  pen.memory();
  pen.marked();
  context.restore();
  paintNames(context, left, scene);
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {number} width
 * @param {Scene} scene
 * @param {(time: number) => number} xOf */
function paintAxis(context, width, { run, rows, range, inks }, xOf) {
  const left = namesWidth(width);
  for (const { at, text } of ticksOf(range, width - left)) {
    context.fillStyle = inks["line-colour"];
    context.fillRect(Math.round(xOf(at)), AXIS - 4, 1, rows.height - AXIS);
    context.fillStyle = inks.muted;
    const isWhole = xOf(at) + 3 + text.length * LETTER_WIDTH < width;
    if (isWhole) context.fillText(text, xOf(at) + 3, AXIS / 2);
  }
  context.fillStyle = inks.edge;
  for (const start of run.rounds.length < 1000 ? run.rounds : []) {
    const x = Math.round(xOf(start));
    if (x >= left && x < width) context.fillRect(x, AXIS - 4, 1, 6);
  }
}

/** The names of lanes, over the left edge.
 * @param {CanvasRenderingContext2D} context
 * @param {number} left
 * @param {Scene} scene */
function paintNames(context, left, { rows, inks }) {
  const most = Math.floor((left - 6) / LETTER_WIDTH);
  context.fillStyle = inks.fg;
  for (const { name, top, height } of rows.rows) {
    if (name) context.fillText(cut(name, most), 2, top + height / 2);
  }
  context.fillText("memory", 2, rows.memoryTop + MEMORY_HEIGHT / 2);
  context.fillStyle = inks["line-colour"];
  context.fillRect(left - 1, 0, 1, rows.height);
}

class Pen {
  /**
   * @param {CanvasRenderingContext2D} context
   * @param {Scene} scene
   * @param {(time: number) => number} xOf
   * @param {number} pixel its length in nanoseconds
   * @param {number} left
   * @param {number} right */
  constructor(context, scene, xOf, pixel, left, right) {
    this.context = context;
    this.scene = scene;
    this.xOf = xOf;
    this.pixel = pixel;
    this.left = left;
    this.right = right;
    this.failed = new Set(scene.run.errors.map(({ span }) => span));
  }

  /** @param {Row} row */
  row({ track, gaps, top, height }) {
    const { range } = this.scene;
    for (const mark of gaps ? marksIn(gaps, range, this.pixel) : []) this.#gap(mark, top, height);
    for (const mark of marksIn(track, range, this.pixel)) this.#span(mark, top, height);
  }

  /** The part of a mark that is in sight: its left edge and its width.
   * @param {{from: number, to: number}} mark
   * @returns {[number, number]} */
  #across({ from, to }) {
    const x = Math.max(this.left, this.xOf(from));
    return [x, Math.max(1, Math.min(this.right, this.xOf(to)) - x)];
  }

  /**
   * @param {{from: number, to: number, place: number, count: number, share: number}} mark
   * @param {number} top
   * @param {number} height */
  #span(mark, top, height) {
    const { context, scene: { run, inks, colours } } = this;
    const kernel = kernelOf(run, mark.place);
    const colour = kernel ? colours[run.spans.subject[mark.place]] : null;
    const [x, width] = this.#across(mark);
    context.fillStyle = this.failed.has(mark.place)
      ? inks.removed
      : colour === null
      ? inks.chosen
      : inks[`run-${colour}`];
    context.globalAlpha = Math.max(0.3, mark.share); // a pixel that is not full is paler
    context.fillRect(x, top, width > 3 ? width - 0.5 : width, height - 1);
    context.globalAlpha = 1;
    const letters = Math.floor((width - 4) / LETTER_WIDTH);
    if (mark.count > 1 || letters < 1) return;
    const label = letters < 4 && colour !== null
      ? colour < OTHER ? letterOf(colour) : ""
      : letters < 4
      ? ""
      : cut(spanLabel(run, mark.place), letters);
    context.fillStyle = inks.fg;
    if (height >= 12) context.fillText(label, x + 2, top + height / 2);
  }

  /**
   * @param {{from: number, to: number, place: number, count: number}} mark
   * @param {number} top
   * @param {number} height */
  #gap(mark, top, height) {
    const { context, scene: { run, inks } } = this;
    const [x, width] = this.#across(mark);
    context.fillStyle = inks["line-colour"];
    context.fillRect(x, top + height - 3, width, 1);
    const letters = Math.floor((width - 4) / LETTER_WIDTH);
    if (mark.count > 1 || letters < 4) return;
    context.fillStyle = inks.muted;
    context.fillText(cut(run.causes[run.gaps.cause[mark.place]], letters), x + 2, top + height / 2);
  }

  /** The memory: a line over a filled ground, from 0 to its peak. */
  memory() {
    const { context, scene: { curve, range, rows, inks }, left, right } = this;
    const [top, bottom] = [rows.memoryTop, rows.memoryTop + MEMORY_HEIGHT];
    const width = Math.max(1, Math.round(right - left));
    const scale = (MEMORY_HEIGHT - 4) / Math.max(1, curve.peak);
    context.fillStyle = inks.chosen;
    context.strokeStyle = inks.accent;
    context.beginPath();
    context.moveTo(left, bottom);
    peaksIn(curve, range, width).forEach((bytes, x) => {
      context.lineTo(left + x, bottom - bytes * scale);
      context.lineTo(left + x + 1, bottom - bytes * scale);
    });
    context.lineTo(left + width, bottom);
    context.fill();
    context.stroke();
    context.fillStyle = inks["line-colour"];
    context.fillRect(left, top, width, 1);
  }

  /** The frame of the span that has the keys or the pointer, and a line at the pointer. */
  marked() {
    const { context, scene: { spot, time, rows, inks } } = this;
    if (time !== null) {
      context.fillStyle = inks.edge;
      context.fillRect(Math.round(this.xOf(time)), AXIS - 4, 1, rows.height - AXIS);
    }
    const row = spot && rows.rows[spot.row];
    const track = row && (spot.isGap ? row.gaps : row.track);
    if (!row || !track || spot.index >= track.places.length) return;
    const [x, width] = this.#across({ from: track.start[spot.index], to: track.end[spot.index] });
    context.strokeStyle = inks.fg;
    context.lineWidth = 1.5;
    context.strokeRect(x, row.top + 0.5, Math.max(2, width), row.height - 2);
    context.lineWidth = 1;
  }
}
