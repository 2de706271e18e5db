// The SVG painter: of graphs that people read, and of exported pictures.

import { linked } from "../app/links.js";
import { nodeLink } from "../app/store.js";
import { svg } from "../base/elements.js";
import {
  badgeRadius,
  boxTexts,
  isLitLine,
  labelScale,
  relationsOf,
  TEXT_FROM,
  textScale,
  textSize,
  textWidth,
} from "./labels.js";
import { edgePath, outlinePath, stateSign, STUB_FONT, stubNames } from "./paths.js";

/** @import { Drawing, GraphEdge, GraphNode, GraphLabel, Key, Marks, Painter, Placement } from "./graph.d.ts" */
/** @import { BoxText, Relation } from "./labels.js" */

/** @param {GraphLabel} label */
function svgLabel(label) {
  const { text, kind, w, h: height } = label;
  return svg(
    "g",
    { class: `wb-g-words wb-g-words-${kind}` },
    svg("rect", { x: -w / 2, y: -height / 2, width: w, height, rx: height / 2 }),
    svg("text", { y: 4 }, text),
  );
}

/** @implements {Painter} */
export class SvgPainter {
  #grounds = svg("g");
  #lines = svg("g");
  #shapes = svg("g");
  #tags = svg("g");
  #world = svg("g", {}, this.#grounds, this.#lines, this.#shapes, this.#tags);
  el = svg("svg", { class: "wb-g-svg", "aria-hidden": "true" }, this.#world);
  /** @type {Map<Key, SVGElement>} */
  #boxes = new Map();
  /** @type {[GraphEdge, SVGElement][]} */
  #edges = [];
  /** @type {[GraphLabel, SVGElement][]} */
  #labels = [];
  /** Elements by their contents, so that unchanged ones are not made again.
   * @type {Map<string, SVGElement>} */
  #drawn = new Map();
  /** @type {Drawing} */
  #drawing = { nodes: [], edges: [] };
  /** @type {Marks | null} */
  #marks = null;
  /** The scale for which the texts are written. */
  #scale = 1;

  /** @param {Drawing} drawing */
  paint(drawing) {
    this.#drawing = drawing;
    const scale = this.#scale;
    const before = this.#drawn;
    const drawn = this.#drawn = new Map();
    /** @type {(name: string, make: () => SVGElement) => SVGElement} */
    const keep = (name, make) => {
      const element = drawn.get(name) || before.get(name) || make();
      drawn.set(name, element);
      return element;
    };
    const edges = drawing.edges.map((edge) => {
      const path = edgePath(drawing, edge);
      const text = edge.points ? "" : stubNames(drawing, edge, textSize(STUB_FONT, scale)).text;
      return keep(
        `${edge.state} ${path} ${text} ${scale}`,
        () => svgEdge(drawing, edge, path, scale),
      );
    });
    this.#boxes = new Map(drawing.nodes.map((node) => {
      const { key, label, sub, state, x, y, badge, stored, tint } = node;
      const name = `${key} ${state} ${x} ${y} ${label} ${sub} ${badge} ${stored} ${tint} ${scale}`;
      return [key, linked(keep(name, () => svgNode(node, scale)), nodeLink(node.n))];
    }));
    const regions = (drawing.regions || []).map((r) =>
      svg("path", { class: "wb-g-region", d: r.path, fill: r.colour })
    );
    this.#grounds.replaceChildren(...regions);
    this.#edges = edges.map((element, i) => [drawing.edges[i], element]);
    swapChildren(this.#lines, new Set(edges));
    swapChildren(this.#shapes, new Set(this.#boxes.values()));
    this.#labels = (drawing.labels || []).map((label) => [label, svgLabel(label)]);
    this.#tags.replaceChildren(...this.#labels.map(([, element]) => element));
  }

  /** @param {Placement} placement */
  place({ scale, x, y }) {
    const at = `${x.toFixed(2)} ${y.toFixed(2)}`;
    this.#world.setAttribute("transform", `translate(${at}) scale(${scale.toFixed(4)})`);
    this.el.classList.toggle("wb-g-far", scale < TEXT_FROM);
    if (this.#scale !== textScale(scale)) {
      this.#scale = textScale(scale);
      this.paint(this.#drawing);
      if (this.#marks) this.mark(this.#marks);
    }
    const grow = labelScale(scale).toFixed(3);
    for (const [label, element] of this.#labels) {
      const at = `${label.x.toFixed(1)} ${label.y.toFixed(1)}`;
      element.setAttribute("transform", `translate(${at}) scale(${grow})`);
    }
  }

  /** @param {Marks} marks */
  mark(marks) {
    this.#marks = marks;
    const near = relationsOf(this.#drawing, marks.picked);
    for (const [key, box] of this.#boxes) {
      markRelation(box, near.boxes.get(key));
      box.classList.toggle("wb-g-picked", marks.picked === key);
      box.classList.toggle("wb-g-found", marks.found.has(key));
      box.classList.toggle("wb-g-lit", marks.lit.has(key));
    }
    for (const [edge, line] of this.#edges) {
      line.classList.toggle("wb-g-lit-line", isLitLine(edge, marks));
      markRelation(line, near.lines.get(edge));
    }
  }

  resize() {}
}

/**
 * @param {SVGElement} element
 * @param {Relation | undefined} relation */
function markRelation({ classList }, relation) {
  classList.toggle("wb-g-operand", relation === "operand");
  classList.toggle("wb-g-reader", relation === "reader");
}

/** Give `parent` these children: unchanged ones are not touched, so they are not laid out again.
 * @param {SVGElement} parent
 * @param {Set<Element>} wanted */
function swapChildren(parent, wanted) {
  for (const child of [...parent.children]) if (!wanted.has(child)) child.remove();
  for (const child of wanted) if (child.parentNode !== parent) parent.append(child);
}

/**
 * @param {GraphNode} node
 * @param {number} scale of the texts */
function svgNode(node, scale) {
  const left = -node.w / 2;
  const { label, sub, letter, middle } = boxTexts(node, scale);
  const kind = node.stored ? "stored" : node.state;
  return svg(
    "g",
    {
      class: `wb-g-node wb-g-${kind} wb-g-f${node.family} ${node.small ? "wb-g-small" : ""}`,
      "data-node": node.key,
      transform: `translate(${node.x.toFixed(1)} ${node.y.toFixed(1)})`,
    },
    svg("path", {
      class: "wb-g-box",
      d: outlinePath(node.shape, node.w, node.h),
      style: node.tint ? `fill:${node.tint}` : null,
    }),
    middle > 0 && svgText("wb-g-letter", left + 7, letter),
    svgText("wb-g-label", middle, label),
    sub && svgText("wb-g-sub", middle, sub),
    node.badge &&
      svg(
        "g",
        {
          class: "wb-g-badge",
          transform: `translate(${left} ${-node.h / 2}) scale(${labelScale(scale).toFixed(3)})`,
        },
        svg("circle", {
          class: "wb-g-disc",
          r: badgeRadius(node),
          style: `fill:${node.badgeTint}`,
        }),
        svg("text", { y: 3.5 }, node.badge),
      ),
    stateSign(node.state) &&
      svg("text", {
        class: "wb-g-sign",
        x: node.w / 2 + 9,
        y: -6,
        style: `font-size:${textSize(15, scale).toFixed(1)}px`,
      }, stateSign(node.state)),
  );
}

/** A text that is wider than its box is compressed: fonts differ from reader to reader.
 * @param {string} name
 * @param {number} x
 * @param {BoxText} line */
function svgText(name, x, { text, size, y, width }) {
  const isWide = textWidth(text, 12) * size > 12 * width;
  const pressed = isWide ? { textLength: width, lengthAdjust: "spacingAndGlyphs" } : {};
  return svg(
    "text",
    { class: name, x, y, style: `font-size:${size.toFixed(1)}px`, ...pressed },
    text,
  );
}

/**
 * @param {Drawing} drawing
 * @param {GraphEdge} edge
 * @param {string} path
 * @param {number} scale of the texts */
function svgEdge(drawing, edge, path, scale) {
  const line = svg("path", { class: `wb-g-edge wb-g-${edge.state}`, d: path });
  if (!edge.points) {
    const size = textSize(STUB_FONT, scale);
    const { x, y, text } = stubNames(drawing, edge, size);
    if (!text) return line;
    return svg(
      "g",
      {},
      line,
      svg(
        "text",
        { class: "wb-g-tag", x, y, style: `font-size:${size.toFixed(1)}px` },
        text,
      ),
    );
  }
  if (edge.state !== "cut") return line;
  return svg("g", { class: "wb-g-cut" }, line, svg("path", { class: "wb-g-hit", d: path }));
}

// A canvas drawing as SVG, for exported pictures.

/** The contents of canvases.
 * @type {WeakMap<Element, {drawing: Drawing, view: Placement, marks: Marks}>} */
export const SCENES = new WeakMap();

/** Return the graph of a canvas as SVG, at the canvas's camera or another one; null for a canvas
 * without a graph.
 * @param {Element} canvas
 * @param {Placement} [view]
 * @returns {SVGSVGElement | null} */
export function vectorOf(canvas, view) {
  const scene = SCENES.get(canvas);
  if (!scene) return null;
  const painter = new SvgPainter();
  painter.paint(scene.drawing);
  painter.place(view ?? scene.view);
  painter.mark(scene.marks);
  return painter.el;
}
