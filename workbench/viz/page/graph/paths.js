// SVG paths of boxes and of the lines between them, for both painters.

/** @import { Drawing, GraphEdge, GraphNode, Point } from "./graph.d.ts" */
/** @import { FamilyRow } from "../record.d.ts" */

export const STUB = 16; // pixels of a line that is too long to draw
const MOST_LETTERS = 14; // of a name beside a stub
const MOST_NAMES = 3; // beside a stub
export const STUB_FONT = 10; // pixels
const STUB_LETTER = 0.56; // the width of a letter beside a stub, as a share of its font's size

/** Return the outline of a box about the origin, as an SVG path.
 * @param {FamilyRow["shape"]} shape
 * @param {number} w
 * @param {number} h */
export function outlinePath(shape, w, h) {
  const [x, y] = [w / 2, h / 2];
  const cut = Math.min(9, y);
  if (shape === "six") {
    return `M${-x + cut} ${-y}H${x - cut}L${x} 0L${x - cut} ${y}H${-x + cut}L${-x} 0Z`;
  }
  if (shape === "slant") return `M${-x + 5} ${-y}H${x}L${x - 5} ${y}H${-x}Z`;
  if (shape === "cut") return `M${-x} ${-y}H${x - cut}L${x} ${-y + cut}V${y}H${-x}Z`;
  const r = shape === "pill" ? y : shape === "box" ? 0 : 6;
  if (!r) return `M${-x} ${-y}H${x}V${y}H${-x}Z`;
  /** @type {(dx: number, dy: number) => string} */
  const arc = (dx, dy) => `a${r} ${r} 0 0 1 ${dx} ${dy}`;
  return `M${-x + r} ${-y}H${x - r}${arc(r, r)}V${y - r}${arc(-r, r)}H${-x + r}${arc(-r, -r)}V${
    -y + r
  }${arc(r, -r)}Z`;
}

/** Return the path of a line that leaves and enters every point vertically.
 * @param {Point[]} points */
export function linePath(points) {
  let [x, y] = points[0];
  let path = `M${x.toFixed(1)} ${y.toFixed(1)}`;
  for (const [toX, toY] of points.slice(1)) {
    const middle = (y + toY) / 2;
    path += `C${x.toFixed(1)} ${middle.toFixed(1)} ${toX.toFixed(1)} ${middle.toFixed(1)} ${
      toX.toFixed(1)
    } ${toY.toFixed(1)}`;
    [x, y] = [toX, toY];
  }
  return path;
}

/** Add the line of an edge to a path for a canvas: the same as `edgePath`, without a text between.
 * @param {Path2D} path
 * @param {Drawing} drawing
 * @param {GraphEdge} edge */
export function addEdge(path, drawing, edge) {
  if (!edge.points) return path.addPath(new Path2D(edgePath(drawing, edge)));
  let [x, y] = edge.points[0];
  path.moveTo(x, y);
  for (const [toX, toY] of edge.points.slice(1)) {
    const middle = (y + toY) / 2;
    path.bezierCurveTo(x, middle, toX, middle, toX, toY);
    [x, y] = [toX, toY];
  }
}

/** Return the path of an edge; one that is too long has only a stub at its reader.
 * @param {Drawing} drawing
 * @param {GraphEdge} edge */
export function edgePath(drawing, edge) {
  if (edge.points) return linePath(edge.points);
  const to = drawing.nodes[edge.b];
  const x = stubAt(to, edge);
  return `M${x.toFixed(1)} ${(to.y - to.h / 2 - STUB).toFixed(1)}V${(to.y - to.h / 2).toFixed(1)}`;
}

/** The names beside the stub of an edge: those of its source. The last stub of several beside each
 * other has the names of all, as far as they fit before those of the next box.
 * @param {Drawing} drawing
 * @param {GraphEdge} edge
 * @param {number} [size] of the font, in the drawing's pixels: larger where the picture is small */
export function stubNames(drawing, edge, size = STUB_FONT) {
  const letter = STUB_LETTER * size;
  const to = drawing.nodes[edge.b];
  const x = stubAt(to, edge) + 4;
  const y = to.y - to.h / 2 - STUB + 7;
  const stubs = stubsOf(drawing).get(edge.b) ?? [];
  if (stubs.at(-1) !== edge) return { x, y, w: 0, text: "" };
  const names = [...new Set(stubs.map(({ a }) => stubName(drawing.nodes[a].label)))];
  const more = names.length > MOST_NAMES ? ", …" : "";
  const whole = names.slice(0, MOST_NAMES).join(", ") + more;
  const letters = Math.floor(((nextStubs(drawing).get(edge.b) ?? Infinity) - x) / letter) - 1;
  const text = whole.length <= letters ? whole : `${whole.slice(0, Math.max(0, letters - 1))}…`;
  return { x, y, w: letter * text.length, text: text.length > 3 ? text : "" };
}

/** @type {(to: GraphNode, edge: GraphEdge) => number} */
const stubAt = (to, { slot, slots }) => to.x + ((slot + 1) / (slots + 1) - 0.5) * to.w * 0.8;

/** The x of the first stub of the next box beside one, by the number of its node; Infinity: there is
 * none. They are kept, since a picture that is dragged draws its stubs in each frame.
 * @type {WeakMap<GraphEdge[], {nodes: GraphNode[], next: Map<number, number>}>} */
const NEXT = new WeakMap();

/** @param {Pick<Drawing, "nodes" | "edges">} drawing */
function nextStubs(drawing) {
  const { nodes } = drawing;
  const known = NEXT.get(drawing.edges);
  if (known?.nodes === nodes) return known.next;
  const readers = [...stubsOf(drawing)].map(([b, [first]]) => ({ b, x: stubAt(nodes[b], first) }));
  readers.sort((one, other) => nodes[one.b].y - nodes[other.b].y);
  /** @type {Map<number, number>} */
  const next = new Map();
  readers.forEach(({ b }, place) => {
    const { x, y, h } = nodes[b];
    let least = Infinity;
    for (const by of [1, -1]) {
      for (let at = place + by; readers[at]; at += by) {
        const other = nodes[readers[at].b];
        if (Math.abs(other.y - y) >= h) break;
        if (other.x > x) least = Math.min(least, readers[at].x);
      }
    }
    next.set(b, least);
  });
  NEXT.set(drawing.edges, { nodes, next });
  return next;
}

/** @param {string} label */
const stubName = (label) =>
  label.length > MOST_LETTERS ? `${label.slice(0, MOST_LETTERS - 1)}…` : label;

/** The edges that are drawn as stubs, by their reader, from left to right.
 * @type {WeakMap<GraphEdge[], Map<number, GraphEdge[]>>} */
const STUBS = new WeakMap();

/** @param {Pick<Drawing, "edges">} drawing */
function stubsOf(drawing) {
  const known = STUBS.get(drawing.edges);
  if (known) return known;
  /** @type {Map<number, GraphEdge[]>} */
  const stubs = new Map();
  for (const edge of drawing.edges) {
    if (edge.points) continue;
    const listed = stubs.get(edge.b) ?? [];
    stubs.set(edge.b, listed);
    listed.push(edge);
  }
  for (const listed of stubs.values()) listed.sort((a, b) => a.slot - b.slot);
  STUBS.set(drawing.edges, stubs);
  return stubs;
}

/** @param {GraphNode} node */
export const widthIn = (node) => node.w - (node.letter ? 22 : node.small ? 12 : 10);

/** Signs tell new and removed nodes apart, too, not colour alone.
 * @param {GraphNode["state"]} state */
export const stateSign = (state) =>
  ({ new: "+", gone: "−", changed: "≠", kept: "", waiting: "" })[state];
