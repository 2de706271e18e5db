// A graph view: pan by dragging, zoom by buttons or Ctrl+wheel (a plain wheel scrolls the page),
// search, minimap, and the nodes as a list for readers who do not see the picture.

import { h } from "../base/elements.js";
import { Camera, graphBounds } from "./camera.js";
import { canvasPainter, COLOURS } from "./canvas_painter.js";
import { mapScale, Minimap } from "./minimap.js";
import { graphFind, graphListing, graphSearch } from "./node_list.js";
import { graphHits, graphPointer } from "./pointer.js";
import { SvgPainter } from "./svg_painter.js";

/** @import { Drawing, GraphListener, GraphMatch, GraphNode, Hit, Key, Marks, Painter, Wish } from "./graph.d.ts" */

const MOST_SVG = 150; // nodes; above it a canvas: laying out more SVG texts costs 60 ms a step

/** A pane with a graph. */
export class GraphView {
  /** @type {Camera} */
  camera = new Camera(() => this.#beside?.camera.wholeScale ?? Infinity);
  stage = h("div", { class: "wb-g-stage", tabindex: -1 });
  /** @type {Drawing} */
  drawing = { nodes: [], edges: [] };
  /** @type {Map<Key, GraphNode>} */
  #byKey = new Map();
  /** @type {Marks} */
  #marks = { picked: null, found: new Set(), lit: new Set(), values: new Set() };
  #map = new Minimap();
  #note = h("span", { class: "wb-g-note" });
  /** @type {{svg?: Painter, canvas?: Painter}} */
  #painters = {};
  /** @type {Painter | null} */
  #painter = null;
  #isMapPlanned = false;
  /** @type {GraphView | null} */
  #pair = null;
  /** The part of the drawing under the pointer.
   * @type {Hit} */
  #under = {};
  /** @type {(x: number, y: number, scale: number) => Hit} */
  #hit = () => ({});

  /**
   * @param {string} label
   * @param {GraphListener} listener */
  constructor(label, listener = {}) {
    this.listener = listener;
    this.search = graphSearch(label, (query) => this.#find(query));
    this.listing = graphListing(label, (node) => this.#choose(node));
    this.field = this.search.field;
    this.tools = h(
      "div",
      { class: "wb-g-tools" },
      this.search.field,
      graphTool("−", "zoom out", () => this.#zoomAt(1 / 1.3)),
      graphTool("+", "zoom in", () => this.#zoomAt(1.3)),
      graphTool("fit", "fit everything (f)", () => this.fit()),
      this.listing.button,
      this.search.count,
      this.#note,
    );
    this.el = h(
      "div",
      { class: "wb-g", role: "group", "aria-label": label },
      this.tools,
      this.stage,
      this.listing.el,
    );
    this.#listen();
  }

  /** Show a drawing, and bring the requested nodes into sight; null: stay.
   * @param {Drawing} drawing
   * @param {Wish | null} [wish]
   * @param {string} [note] */
  show(drawing, wish = null, note = "") {
    const { camera, stage } = this;
    this.drawing = drawing;
    this.#note.textContent = note;
    this.#byKey = new Map(drawing.nodes.map((node) => [node.key, node]));
    this.#hit = graphHits(drawing);
    camera.bounds = graphBounds(drawing);
    const painter = this.#painterOf(drawing);
    if (this.#painter !== painter) {
      this.#painter = painter;
      stage.replaceChildren(painter.el, this.#map.el);
      painter.resize(camera.size.width, camera.size.height);
    }
    painter.paint(drawing);
    this.search.search();
    this.listing.show(drawing.nodes, this.#marks.picked);
    painter.mark(this.#marks);
    camera.wish = wish || camera.wish;
    this.#look();
  }

  /** Mark the picked node.
   * @param {Key | null} key */
  pick(key) {
    this.#mark({ picked: key });
    this.listing.pick(key);
  }

  /** Pick a node, and bring it into sight.
   * @param {Key} key */
  lookAt(key) {
    const node = this.#byKey.get(key);
    if (!node) return;
    this.pick(key);
    this.camera.bringIntoSight([node]);
    this.#place();
  }

  /** Light up some boxes, and the lines that read some nodes of the record.
   * @param {Set<Key>} keys
   * @param {Set<number>} [values] */
  light(keys, values = new Set()) {
    this.#mark({ lit: keys, values });
  }

  fit() {
    const beside = this.#beside;
    for (const view of beside ? [this, beside] : [this]) {
      view.camera.fit();
      view.#place();
    }
  }

  /** Show the drawing at the scale of another one, and move it with that; null: by itself.
   * @param {GraphView | null} other */
  pairWith(other) {
    this.#pair = other;
  }

  get isPaired() {
    return Boolean(this.#beside);
  }

  /** The view that moves with this one, while it is on the page.
   * @returns {GraphView | null} */
  get #beside() {
    return this.#pair?.el.isConnected ? this.#pair : null;
  }

  /** Expect another size of the pane. */
  measure() {
    this.camera.wish = null; // the next drawing names the nodes to bring into sight
    this.#resized();
  }

  /** Redraw in another theme. */
  repaint() {
    if (this.#painters.canvas) COLOURS.delete(this.#painters.canvas.el);
    this.#painter?.redraw?.();
    this.#place();
  }

  /** @param {Drawing} drawing */
  #painterOf({ nodes }) {
    return nodes.length > MOST_SVG
      ? this.#painters.canvas ??= canvasPainter()
      : this.#painters.svg ??= new SvgPainter();
  }

  #look() {
    if (!this.camera.size.width || !this.camera.size.height) return;
    this.camera.look((keys) => keys.flatMap((key) => this.#byKey.get(key) ?? []));
    this.#place();
    const beside = this.#beside;
    if (!beside) return;
    for (const view of [this, beside]) {
      view.camera.again(); // it fits at another scale now
      view.#place();
    }
  }

  #place() {
    this.#painter?.place(this.camera.placement);
    this.#planMap();
  }

  #planMap() {
    if (!this.#isMapPlanned) {
      requestAnimationFrame(() => {
        this.#isMapPlanned = false;
        this.#map.draw(this.drawing, this.camera, this.#marks);
      });
    }
    this.#isMapPlanned = true;
  }

  /** @param {Partial<Marks>} marks */
  #mark(marks) {
    Object.assign(this.#marks, marks);
    this.#painter?.mark(this.#marks);
    this.#planMap();
  }

  /** @param {string} query
   * @returns {GraphMatch[]} */
  #find(query) {
    const drawn = (/** @type {GraphNode} */ node) => ({
      id: node.key,
      key: node.key,
      isFolded: false,
      go: () => this.#choose(node),
    });
    const listed = this.listener.find?.(query)?.map((match) => ({
      ...match,
      go: () => (match.go(), this.lookAt(match.key)),
    }));
    const matches = listed ?? graphFind(this.drawing, query).map(drawn);
    this.#mark({ found: new Set(matches.map(({ key }) => key)) });
    return matches;
  }

  /** @param {GraphNode} node */
  #choose(node) {
    this.pick(node.key);
    this.camera.follow(node);
    this.#place();
    this.listener.node?.(node);
  }

  /** Move by hand, and the view beside with it.
   * @param {(camera: Camera) => void} move */
  #move(move) {
    const before = this.camera.placement;
    move(this.camera);
    this.#place();
    const beside = this.#beside;
    if (!beside) return;
    beside.camera.moveAlike(before, this.camera.placement);
    beside.#place();
  }

  /** @type {(factor: number, x?: number, y?: number) => void} */
  #zoomAt(factor, x, y) {
    this.#move((camera) => camera.zoomAt(factor, x, y));
  }

  /** @type {(x: number, y: number) => Hit} */
  #hitAt(x, y) {
    return this.#hit(...this.camera.pointAt(x, y), this.camera.placement.scale);
  }

  /** @type {(x: number, y: number) => void} */
  #click(x, y) {
    const { node, edge, region } = this.#hitAt(x, y);
    if (node) this.#choose(node);
    else if (edge) this.listener.edge?.(edge);
    else if (region) this.listener.region?.(region);
  }

  /** @type {(hit: Hit) => void} */
  #hover({ node, edge, region }) {
    const before = this.#under.node || this.#under.edge || this.#under.region;
    const now = node || edge || region;
    this.#under = { node, edge, region };
    if (now === before) return;
    this.stage.title = node ? hoverText(node) : (edge || region)?.hint || "";
    this.stage.classList.toggle("wb-g-over", Boolean(now));
    this.listener.hover?.(node || null);
  }

  #listen() {
    const { camera, stage } = this;
    graphPointer(stage, this.#map.el, {
      placement: () => camera.placement,
      move: (placement) => this.#move(() => camera.moveByHand(placement)),
      zoomAt: (factor, x, y) => this.#zoomAt(factor, x, y),
      click: (x, y) => this.#click(x, y),
      open: (x, y) => {
        const { node } = this.#hitAt(x, y);
        if (node) this.listener.open?.(node);
      },
      hover: (x, y) => this.#hover(this.#hitAt(x, y)),
      leave: () => this.#hover({}),
      mapTo: (x, y) => {
        const k = mapScale(camera);
        const { left, top } = camera.bounds;
        this.#move(() => camera.centreOn(left + x / k, top + y / k));
      },
    });
    new ResizeObserver(() => this.#resized()).observe(stage);
  }

  #resized() {
    const { camera, stage } = this;
    camera.size = { width: stage.clientWidth, height: stage.clientHeight };
    this.#painter?.resize(camera.size.width, camera.size.height);
    if (!camera.size.width || !camera.size.height || !this.#painter) return; // hidden now
    this.listener.resize?.();
    camera.wish ??= camera.aim;
    this.#look();
    const picked = this.#byKey.get(this.#marks.picked ?? "");
    if (camera.aim && picked && !this.#beside) {
      camera.bringIntoSight([picked]);
      this.#place();
    }
  }
}

/** @type {(text: string, title: string, actOn: () => void) => HTMLElement} */
const graphTool = (text, title, actOn) =>
  h(
    "button",
    { class: "wb-button", type: "button", title, "aria-label": title, onclick: actOn },
    text,
  );

/** @param {GraphNode} node */
const hoverText = ({ label, sub, hint, state, sign }) =>
  [`${label} ${sub}`, hint, sign ?? SIGNS[state]].filter(Boolean).join("\n");

/** The meaning of a box's sign.
 * @type {Record<string, string>} */
const SIGNS = {
  new: "+: new in this step",
  gone: "−: removed in this step",
  changed: "≠: its operands changed in this step",
};
