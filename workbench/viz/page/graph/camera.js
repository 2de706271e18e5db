// The camera of a drawing: its scale, its position, and their changes.

import { stubNames } from "./paths.js";

/** @import { Bounds, Drawing, GraphNode, Key, Placement, Size, Wish } from "./graph.d.ts" */

const SCALES = [0.02, 3]; // the least and the greatest scale
const READABLE = 0.75; // a scale at which a whole box can be read
const LEGIBLE = 0.45; // the least at which its shortened label can be read
const MOST_FITTED = 1.2;

/** Return the rectangle around a drawing.
 * @param {Partial<Drawing> & Pick<Drawing, "nodes">} drawing
 * @returns {Bounds} */
export function graphBounds(drawing) {
  const { nodes, edges = [], regions = [], labels = [] } = drawing;
  if (!nodes.length) return { left: 0, top: 0, right: 1, bottom: 1 };
  const margin = regions.length ? 14 : 10;
  const box = { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity };
  for (const { x, y, w, h: height } of nodes) {
    box.left = Math.min(box.left, x - w / 2 - margin);
    box.right = Math.max(box.right, x + w / 2 + margin);
    box.top = Math.min(box.top, y - height / 2 - margin);
    box.bottom = Math.max(box.bottom, y + height / 2 + margin);
  }
  for (const { x, y, w, h: height } of labels) {
    // labels grow a little as the picture shrinks
    box.left = Math.min(box.left, x - 0.65 * w);
    box.right = Math.max(box.right, x + 0.65 * w);
    box.top = Math.min(box.top, y - 0.65 * height);
    box.bottom = Math.max(box.bottom, y + 0.65 * height);
  }
  for (const edge of edges) {
    if (edge.points) continue;
    const { x, w } = stubNames({ nodes, edges }, edge);
    box.right = Math.max(box.right, x + w);
  }
  return box;
}

/** A pane's view of a drawing. */
export class Camera {
  /** @type {Placement} */
  placement = { scale: 1, x: 0, y: 0 };
  /** The size of the pane; 0 while it is hidden.
   * @type {Size} */
  size = { width: 0, height: 0 };
  /** @type {Bounds} */
  bounds = { left: 0, top: 0, right: 1, bottom: 1 };
  /** The nodes to bring into sight once the pane has a size.
   * @type {Wish | null} */
  wish = null;
  /** The nodes that were last brought into sight, until the reader pans or zooms.
   * @type {Wish | null} */
  aim = null;
  #isFirst = true;
  /** Whether the whole drawing is shown, and stays so when the pane changes its size. */
  isFitted = false;

  /** @param {() => number} most the greatest scale of a drawing that is shown as a whole */
  constructor(most = () => Infinity) {
    this.most = most;
  }

  /** The scale at which the whole drawing is shown; Infinity in a pane without a size. */
  get wholeScale() {
    const { width, height } = this.size;
    return width && height ? Math.min(MOST_FITTED, this.scaleToFit(this.bounds)) : Infinity;
  }

  /** Bring the requested nodes into sight.
   * @param {(keys: Key[]) => GraphNode[]} nodesOf */
  look(nodesOf) {
    const { wish } = this;
    if (wish === "start") return this.begin();
    const isWhole = wish && wish !== "all" && wish.whole && this.scaleToFit(this.bounds) >= LEGIBLE;
    if (wish === "all" || isWhole || (this.isFitted && !wish)) this.fit();
    else if (wish) {
      const [all, first] = [nodesOf(wish.keys), nodesOf(wish.first ?? [])];
      const fits = all.length && this.scaleToFit(graphBounds({ nodes: all })) >= LEGIBLE;
      this.bringIntoSight(fits || !first.length ? all : first, wish.isAnew);
      if (wish.whole) this.#fill(this.placement);
    }
    this.aim = wish || this.aim;
    this.wish = null;
    this.#isFirst = false;
  }

  /** Show the whole drawing. */
  fit() {
    if (!this.size.width) return;
    this.#centre(this.bounds, Math.min(this.wholeScale, this.most()));
    this.isFitted = true;
    this.aim = "all";
  }

  /** Show the whole drawing if it is legible then, else its upper end. */
  begin() {
    this.fit();
    if (this.placement.scale < LEGIBLE) {
      const { left, right, top } = this.bounds;
      const x = this.size.width / 2 - ((left + right) / 2) * LEGIBLE;
      this.#fill({ scale: LEGIBLE, x, y: -top * LEGIBLE });
    }
    [this.wish, this.aim] = [null, "start"];
    this.#isFirst = false;
  }

  /** Show it as it was shown last, after something changed the scale at which it fits. */
  again() {
    if (this.aim === "start") this.begin();
    else if (this.isFitted) this.fit();
  }

  /** Centre on some nodes that are not in sight, unless all of the drawing can be, and be read.
   * @param {GraphNode[]} nodes
   * @param {boolean} [isAnew] whether those in sight are centred on, too */
  bringIntoSight(nodes, isAnew = false) {
    if (!nodes.length) return;
    const { scale } = this.placement;
    const box = graphBounds({ nodes });
    const whole = this.scaleToFit(this.bounds);
    if (whole >= READABLE) {
      const isOut = this.#isFirst || isAnew || scale < READABLE - 0.01 ||
        this.isOutOfSight(this.bounds);
      if (isOut) this.#centre(this.bounds, Math.min(whole, 1));
    } else if (isAnew || scale < LEGIBLE || this.isOutOfSight(box)) {
      this.#centre(box, Math.max(LEGIBLE, Math.min(READABLE, this.scaleToFit(box))));
    }
  }

  /** Centre on a node that is out of sight, at a scale at which it can be read.
   * @param {GraphNode} node */
  follow(node) {
    const box = graphBounds({ nodes: [node] });
    if (this.isOutOfSight(box)) this.#centre(box, Math.max(this.placement.scale, READABLE));
  }

  /** Note that the reader moved the drawing: from then on it stays when the pane changes its size.
   * @param {Placement} placement */
  moveByHand(placement) {
    this.aim = null;
    this.#move(placement);
  }

  /** Zoom, so that a point of the pane stays where it is.
   * @param {number} factor
   * @param {number} [x]
   * @param {number} [y] */
  zoomAt(factor, x = this.size.width / 2, y = this.size.height / 2) {
    const at = this.placement;
    const scale = within(SCALES, at.scale * factor);
    const by = scale / at.scale;
    this.moveByHand({ scale, x: x - (x - at.x) * by, y: y - (y - at.y) * by });
  }

  /** Move as another camera did by hand, in points of the pane.
   * @param {Placement} from
   * @param {Placement} to */
  moveAlike(from, to) {
    const at = this.placement;
    const by = to.scale / from.scale;
    this.moveByHand({
      scale: within(SCALES, at.scale * by),
      x: to.x + (at.x - from.x) * by,
      y: to.y + (at.y - from.y) * by,
    });
  }

  /** Bring a point of the drawing into the middle.
   * @param {number} x
   * @param {number} y */
  centreOn(x, y) {
    const { scale } = this.placement;
    const { width, height } = this.size;
    this.moveByHand({ scale, x: width / 2 - x * scale, y: height / 2 - y * scale });
  }

  /** The point of the drawing at a point of the pane.
   * @param {number} x
   * @param {number} y
   * @returns {[number, number]} */
  pointAt(x, y) {
    const at = this.placement;
    return [(x - at.x) / at.scale, (y - at.y) / at.scale];
  }

  /** Whether a part of a box is out of sight.
   * @param {Bounds} box */
  isOutOfSight(box) {
    const { scale, x, y } = this.placement;
    return box.left * scale + x < -1 || box.top * scale + y < -1 ||
      box.right * scale + x > this.size.width + 1 || box.bottom * scale + y > this.size.height + 1;
  }

  /** The scale at which a box fills the pane.
   * @param {Bounds} box */
  scaleToFit(box) {
    const { width, height } = this.size;
    return Math.min(width / (box.right - box.left), height / (box.bottom - box.top));
  }

  /** @type {(box: Bounds, wanted: number) => void} */
  #centre(box, wanted) {
    const scale = within(SCALES, wanted);
    const { width, height } = this.size;
    this.#fill({
      scale,
      x: width / 2 - ((box.left + box.right) / 2) * scale,
      y: height / 2 - ((box.top + box.bottom) / 2) * scale,
    });
  }

  /** Move to a position, or as near to it as leaves no empty space beside the drawing.
   * @param {Placement} placement */
  #fill({ scale, x, y }) {
    const { bounds, size } = this;
    /** @type {(size: number, first: number, last: number, start: number) => number} */
    const filled = (size, first, last, start) =>
      (last - first) * scale < size
        ? (size - (first + last) * scale) / 2
        : within([size - last * scale, -first * scale], start);
    this.#move({
      scale,
      x: filled(size.width, bounds.left, bounds.right, x),
      y: filled(size.height, bounds.top, bounds.bottom, y),
    });
  }

  /** @type {(placement: Placement) => void} */
  #move(placement) {
    this.placement = placement;
    this.isFitted = false;
  }
}

/** @type {(limits: number[], value: number) => number} */
const within = ([least, most], value) => Math.min(most, Math.max(least, value));
