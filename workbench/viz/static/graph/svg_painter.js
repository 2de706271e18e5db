// The painter of what people read: SVG.

import { linked } from "../app/links.js";
import { svg } from "../base/elements.js";
import { edgePath, outlinePath, roomIn, stateSign, stubWords, TEXT_FROM } from "./paths.js";
import { textWidth, wordsScale } from "./words.js";

function svgWord(word) {
  const { text, kind, w, h: height } = word;
  return svg(
    "g",
    { class: `wb-g-words wb-g-words-${kind}` },
    svg("rect", { x: -w / 2, y: -height / 2, width: w, height, rx: height / 2 }),
    svg("text", { y: 4 }, text),
  );
}

export function svgPainter() {
  const [grounds, lines, shapes, tags] = [svg("g"), svg("g"), svg("g"), svg("g")];
  const world = svg("g", {}, grounds, lines, shapes, tags);
  const el = svg("svg", { class: "wb-g-svg", "aria-hidden": "true" }, world);
  let boxes = new Map(); // key -> element
  let words = []; // [word, its element]
  let made = new Map(); // what an element shows -> element, so that what is the same is not made again
  const paint = (drawing) => {
    const again = new Map();
    const keep = (name, make) => {
      const element = again.get(name) || made.get(name) || make();
      again.set(name, element);
      return element;
    };
    boxes = new Map();
    const regions = (drawing.regions || []).map((r) =>
      svg("path", { class: "wb-g-region", d: r.path, fill: r.colour })
    );
    const edges = drawing.edges.map((edge) => {
      const path = edgePath(drawing, edge);
      const said = edge.points ? "" : stubWords(drawing, edge).text;
      return keep(`${edge.state} ${path} ${said}`, () => svgEdge(drawing, edge, path));
    });
    for (const node of drawing.nodes) {
      const { key, label, sub, state, x, y, badge, stored } = node;
      const box = keep(
        `${key} ${state} ${x} ${y} ${label} ${sub} ${badge} ${stored}`,
        () => svgNode(node),
      );
      boxes.set(key, linked(box, { by: "node", axes: [], nodes: [node.n], lines: [] }));
    }
    grounds.replaceChildren(...regions);
    swapChildren(lines, new Set(edges));
    swapChildren(shapes, new Set(boxes.values()));
    words = (drawing.words || []).map((word) => [word, svgWord(word)]);
    tags.replaceChildren(...words.map(([, element]) => element));
    made = again;
  };
  const place = ({ scale, x, y }) => {
    const at = `${x.toFixed(2)} ${y.toFixed(2)}`;
    world.setAttribute("transform", `translate(${at}) scale(${scale.toFixed(4)})`);
    el.classList.toggle("wb-g-far", scale < TEXT_FROM);
    const grow = wordsScale(scale).toFixed(3);
    for (const [{ x, y }, element] of words) {
      const at = `${x.toFixed(1)} ${y.toFixed(1)}`;
      element.setAttribute("transform", `translate(${at}) scale(${grow})`);
    }
  };
  return { el, paint, place, mark: (marks) => markBoxes(boxes, marks), resize: () => {} };
}

function markBoxes(boxes, marks) {
  for (const [key, box] of boxes) {
    box.classList.toggle("wb-g-picked", marks.picked === key);
    box.classList.toggle("wb-g-found", marks.found.has(key));
    box.classList.toggle("wb-g-lit", marks.lit.has(key));
  }
}

/** Let `parent` have these children: what stays is not touched, so it is not laid out again. */
function swapChildren(parent, wanted) {
  for (const child of [...parent.children]) if (!wanted.has(child)) child.remove();
  for (const child of wanted) if (child.parentNode !== parent) parent.append(child);
}

function svgNode(node) {
  const left = -node.w / 2;
  const middle = node.letter ? 6 : 0;
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
    node.letter && svg("text", { class: "wb-g-letter", x: left + 7, y: 4 }, node.letter),
    svg("text", {
      class: "wb-g-label",
      x: middle,
      y: node.sub ? -2 : 4,
      ...fittingText(node.label, node.small ? 10.5 : 12, node),
    }, node.label),
    node.sub &&
      svg(
        "text",
        { class: "wb-g-sub", x: middle, y: 11, ...fittingText(node.sub, 10, node) },
        node.sub,
      ),
    node.badge &&
      svg("circle", {
        class: "wb-g-disc",
        cx: left,
        cy: -node.h / 2,
        r: 8.5,
        style: `fill:${node.badgeTint}`,
      }),
    node.badge && svg("text", { class: "wb-g-badge", x: left, y: -node.h / 2 + 3.5 }, node.badge),
    stateSign(node.state) &&
      svg("text", { class: "wb-g-sign", x: node.w / 2 + 9, y: -6 }, stateSign(node.state)),
  );
}

/** A text that is wider than its box is pressed into it: fonts differ from reader to reader. */
function fittingText(text, size, node) {
  const room = roomIn(node);
  return textWidth(text, size) > room ? { textLength: room, lengthAdjust: "spacingAndGlyphs" } : {};
}

function svgEdge(drawing, edge, path) {
  const line = svg("path", { class: `wb-g-edge wb-g-${edge.state}`, d: path });
  if (!edge.points) {
    const { x, y, text } = stubWords(drawing, edge);
    return svg("g", {}, line, svg("text", { class: "wb-g-tag", x, y }, text));
  }
  if (edge.state !== "cut") return line;
  return svg("g", { class: "wb-g-cut" }, line, svg("path", { class: "wb-g-hit", d: path }));
}
