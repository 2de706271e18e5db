// Two painters of one drawing: SVG for what people read, canvas for what is too large for that.
// A drawing is {nodes: [{key, label, sub, family, shape, state, x, y, w, h, letter, badge, tint}], edges:
// [{points: [[x, y]..] | null, a, b, state}], regions: [{path, colour}], words: (gwords.js)};
// x and y are the middle of a box. Both read the same colours (`--wb-g-*` in graph.css).

const TEXT_FROM = 0.42; // the scale below which a box is only its colour
const STUB = 16; // pixels of a line that is too long to draw

/** Return the outline of a box about the origin, as an SVG path. */
function outline_path(shape, w, h) {
  const [x, y] = [w / 2, h / 2];
  const cut = Math.min(9, y);
  if (shape === "six") return `M${-x + cut} ${-y}H${x - cut}L${x} 0L${x - cut} ${y}H${-x + cut}L${-x} 0Z`;
  if (shape === "slant") return `M${-x + 5} ${-y}H${x}L${x - 5} ${y}H${-x}Z`;
  if (shape === "cut") return `M${-x} ${-y}H${x - cut}L${x} ${-y + cut}V${y}H${-x}Z`;
  const r = shape === "pill" ? y : shape === "box" ? 0 : 6;
  if (!r) return `M${-x} ${-y}H${x}V${y}H${-x}Z`;
  const arc = (dx, dy) => `a${r} ${r} 0 0 1 ${dx} ${dy}`;
  return `M${-x + r} ${-y}H${x - r}${arc(r, r)}V${y - r}${arc(-r, r)}H${-x + r}${arc(-r, -r)}V${-y + r}${arc(r, -r)}Z`;
}

/** Return the path of a line that leaves and enters every point vertically. */
function line_path(points) {
  let [x, y] = points[0];
  let path = `M${x.toFixed(1)} ${y.toFixed(1)}`;
  for (const [to_x, to_y] of points.slice(1)) {
    const middle = (y + to_y) / 2;
    path += `C${x.toFixed(1)} ${middle.toFixed(1)} ${to_x.toFixed(1)} ${middle.toFixed(1)} ${to_x.toFixed(1)} ${to_y.toFixed(1)}`;
    [x, y] = [to_x, to_y];
  }
  return path;
}

/** Return the path of an edge; one that is too long leaves a stub at its reader, no more. */
function edge_path(drawing, edge) {
  if (edge.points) return line_path(edge.points);
  const to = drawing.nodes[edge.b];
  const x = to.x + ((edge.slot + 1) / (edge.slots + 1) - 0.5) * to.w * 0.8;
  return `M${x.toFixed(1)} ${(to.y - to.h / 2 - STUB).toFixed(1)}V${(to.y - to.h / 2).toFixed(1)}`;
}

/** The words beside the stub of an edge: where it comes from. */
function stub_words(drawing, edge) {
  const [from, to] = [drawing.nodes[edge.a], drawing.nodes[edge.b]];
  const x = to.x + ((edge.slot + 1) / (edge.slots + 1) - 0.5) * to.w * 0.8;
  const text = from.label.length > 14 ? `${from.label.slice(0, 13)}…` : from.label;
  return { x: x + 4, y: to.y - to.h / 2 - STUB + 7, text };
}

// SVG

function svg_painter() {
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
    const regions = (drawing.regions || []).map((r) => svg("path", { class: "wb-g-region", d: r.path, fill: r.colour }));
    const edges = drawing.edges.map((edge) => {
      const path = edge_path(drawing, edge);
      const said = edge.points ? "" : stub_words(drawing, edge).text;
      return keep(`${edge.state} ${path} ${said}`, () => svg_edge(drawing, edge, path));
    });
    for (const node of drawing.nodes) {
      const { key, label, sub, state, x, y, badge, stored } = node;
      const box = keep(`${key} ${state} ${x} ${y} ${label} ${sub} ${badge} ${stored}`, () => svg_node(node));
      boxes.set(key, linked(box, { by: "node", axes: [], nodes: [node.n], lines: [] }));
    }
    grounds.replaceChildren(...regions);
    swap_children(lines, new Set(edges));
    swap_children(shapes, new Set(boxes.values()));
    words = (drawing.words || []).map((word) => [word, svg_word(word)]);
    tags.replaceChildren(...words.map(([, element]) => element));
    made = again;
  };
  const place = ({ scale, x, y }) => {
    world.setAttribute("transform", `translate(${x.toFixed(2)} ${y.toFixed(2)}) scale(${scale.toFixed(4)})`);
    el.classList.toggle("wb-g-far", scale < TEXT_FROM);
    const grow = words_scale(scale).toFixed(3);
    for (const [word, element] of words)
      element.setAttribute("transform", `translate(${word.x.toFixed(1)} ${word.y.toFixed(1)}) scale(${grow})`);
  };
  const mark = (marks) => {
    for (const [key, box] of boxes) {
      box.classList.toggle("wb-g-picked", marks.picked === key);
      box.classList.toggle("wb-g-found", marks.found.has(key));
      box.classList.toggle("wb-g-lit", marks.lit.has(key));
    }
  };
  return { el, paint, place, mark, resize: () => {} };
}

/** Let `parent` have these children: what stays is not touched, so it is not laid out again. */
function swap_children(parent, wanted) {
  for (const child of [...parent.children]) if (!wanted.has(child)) child.remove();
  for (const child of wanted) if (child.parentNode !== parent) parent.append(child);
}

function svg_node(node) {
  const left = -node.w / 2;
  const middle = node.letter ? 6 : 0;
  const kind = node.stored ? "stored" : node.state;
  return svg("g", {
    class: `wb-g-node wb-g-${kind} wb-g-f${node.family} ${node.small ? "wb-g-small" : ""}`, "data-node": node.key,
    transform: `translate(${node.x.toFixed(1)} ${node.y.toFixed(1)})`,
  },
    svg("path", { class: "wb-g-box", d: outline_path(node.shape, node.w, node.h), style: node.tint ? `fill:${node.tint}` : null }),
    node.letter && svg("text", { class: "wb-g-letter", x: left + 7, y: 4 }, node.letter),
    svg("text", { class: "wb-g-label", x: middle, y: node.sub ? -2 : 4, ...fitting_text(node.label, node.small ? 10.5 : 12, node) }, node.label),
    node.sub && svg("text", { class: "wb-g-sub", x: middle, y: 11, ...fitting_text(node.sub, 10, node) }, node.sub),
    node.badge && svg("circle", { class: "wb-g-disc", cx: left, cy: -node.h / 2, r: 8.5, style: `fill:${node.badge_tint}` }),
    node.badge && svg("text", { class: "wb-g-badge", x: left, y: -node.h / 2 + 3.5 }, node.badge),
    state_sign(node.state) && svg("text", { class: "wb-g-sign", x: node.w / 2 + 9, y: -6 }, state_sign(node.state)));
}

/** A text that is wider than its box is pressed into it: fonts differ from reader to reader. */
function fitting_text(text, size, node) {
  const room = room_in(node);
  return text_width(text, size) > room ? { textLength: room, lengthAdjust: "spacingAndGlyphs" } : {};
}

const room_in = (node) => node.w - (node.letter ? 22 : node.small ? 12 : 10);

/** New and gone are told apart by a sign too, not by colour alone. */
const state_sign = (state) => ({ new: "+", gone: "−", changed: "~" })[state] || "";

function svg_edge(drawing, edge, path) {
  const line = svg("path", { class: `wb-g-edge wb-g-${edge.state}`, d: path });
  if (!edge.points) {
    const { x, y, text } = stub_words(drawing, edge);
    return svg("g", {}, line, svg("text", { class: "wb-g-tag", x, y }, text));
  }
  if (edge.state !== "cut") return line;
  return svg("g", { class: "wb-g-cut" }, line, svg("path", { class: "wb-g-hit", d: path }));
}

// canvas

function canvas_painter() {
  const el = h("canvas", { class: "wb-g-canvas", "aria-hidden": "true" });
  const context = el.getContext("2d");
  let drawing = null;
  let view = { scale: 1, x: 0, y: 0 };
  let marks = { picked: null, found: new Set(), lit: new Set() };
  let lines = new Map();
  let planned = false;
  const outlines = new Map();

  const outline = (node) => {
    const name = `${node.shape} ${node.w} ${node.h}`;
    if (!outlines.has(name)) outlines.set(name, new Path2D(outline_path(node.shape, node.w, node.h)));
    return outlines.get(name);
  };
  const paint = (made) => {
    drawing = made;
    lines = new Map(); // state of an edge -> all such lines as one path
    for (const edge of made.edges) {
      const kind = edge.points ? edge.state : "stub";
      if (!lines.has(kind)) lines.set(kind, new Path2D());
      lines.get(kind).addPath(new Path2D(edge_path(made, edge)));
    }
    regions = (made.regions || []).map((r) => [new Path2D(r.path), r.colour]);
    plan();
  };
  let regions = [];
  const plan = () => {
    if (!planned) requestAnimationFrame(now);
    planned = true;
  };
  const now = () => {
    planned = false;
    if (drawing && el.isConnected) canvas_draw(el, context, { drawing, view, marks, lines, regions, outline });
  };
  const place = (wanted) => ((view = { ...wanted }), plan());
  const mark = (wanted) => ((marks = wanted), plan());
  const resize = (width, height) => {
    const ratio = window.devicePixelRatio || 1;
    Object.assign(el, { width: Math.round(width * ratio), height: Math.round(height * ratio) });
    plan();
  };
  return { el, paint, place, mark, resize, redraw: plan };
}

function canvas_draw(el, context, { drawing, view, marks, lines, regions, outline }) {
  const colours = graph_colours(el);
  const ratio = window.devicePixelRatio || 1;
  const { scale, x, y } = view;
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, el.width, el.height);
  context.setTransform(scale * ratio, 0, 0, scale * ratio, x * ratio, y * ratio);
  context.globalAlpha = colours.region_alpha;
  for (const [path, colour] of regions) (context.fillStyle = colour), context.fill(path);
  context.globalAlpha = 1;
  for (const [kind, path] of lines) {
    context.setLineDash(kind === "gone" ? [4, 3] : []);
    context.strokeStyle = { new: colours.new, gone: colours.gone, cut: colours.text }[kind] || colours.edge;
    context.lineWidth = kind === "new" || kind === "cut" ? 2.2 : 1.2;
    context.stroke(path);
  }
  context.setLineDash([]);
  const seen = { left: -x / scale, top: -y / scale, right: (el.width / ratio - x) / scale, bottom: (el.height / ratio - y) / scale };
  for (const node of drawing.nodes)
    if (node.x + node.w / 2 > seen.left && node.x - node.w / 2 < seen.right && node.y + node.h > seen.top && node.y - node.h < seen.bottom)
      canvas_node(context, node, scale, marks, colours, outline(node));
  if (scale >= TEXT_FROM) canvas_stubs(context, drawing, seen, colours);
  for (const word of drawing.words || []) canvas_word(context, word, words_scale(scale), colours);
}

function canvas_node(context, node, scale, marks, colours, path) {
  context.save();
  context.translate(node.x, node.y);
  context.globalAlpha = node.state === "gone" ? 0.35 : 1;
  context.fillStyle = node.tint || colours[node.family];
  context.fill(path);
  context.globalAlpha = 1;
  context.setLineDash(node.state === "gone" ? [4, 3] : []);
  const is_marked = marks.picked === node.key || marks.found.has(node.key) || marks.lit.has(node.key);
  context.strokeStyle = is_marked ? colours.picked : { new: colours.new, changed: colours.new, gone: colours.gone }[node.state] || colours.edge;
  context.lineWidth = is_marked ? Math.max(3, 2 / scale) : node.state === "kept" ? 1.2 : 2.6;
  context.stroke(path);
  if (scale >= TEXT_FROM) {
    context.textAlign = "center";
    context.fillStyle = colours.text;
    context.font = colours.font(node.small ? 10.5 : 12);
    const middle = node.letter ? 6 : 0;
    context.fillText(node.label, middle, node.sub ? -2 : 4, room_in(node));
    context.fillStyle = colours.muted;
    context.font = colours.font(10);
    if (node.sub) context.fillText(node.sub, middle, 11, room_in(node));
    context.font = `bold ${colours.font(10)}`;
    if (node.letter) context.fillText(node.letter, -node.w / 2 + 10, 4);
    if (node.badge) canvas_badge(context, node, colours);
    if (state_sign(node.state)) context.fillText(state_sign(node.state), node.w / 2 + 9, -6);
  }
  context.restore();
}

const BADGE_INK = "#111"; // on the colour of its kernel, in either theme

function canvas_badge(context, node, colours) {
  const [x, y] = [-node.w / 2, -node.h / 2];
  context.beginPath();
  context.arc(x, y, 8.5, 0, 7);
  context.fillStyle = node.badge_tint;
  context.fill();
  context.lineWidth = 1.4;
  context.strokeStyle = colours.text;
  context.stroke();
  context.fillStyle = BADGE_INK;
  context.fillText(node.badge, x, y + 3.5);
}

function canvas_stubs(context, drawing, seen, colours) {
  context.textAlign = "left";
  context.font = colours.font(10);
  context.fillStyle = colours.muted;
  for (const edge of drawing.edges) {
    if (edge.points) continue;
    const { x, y, text } = stub_words(drawing, edge);
    if (x > seen.left - 100 && x < seen.right && y > seen.top && y < seen.bottom) context.fillText(text, x, y);
  }
}

const COLOURS = new WeakMap(); // element -> its colours, until the theme changes

/** Return the colours of the theme that an element stands in; reading them makes the browser
 * work out the styles of the page, so they are kept. */
function graph_colours(el) {
  if (!COLOURS.has(el)) COLOURS.set(el, read_colours(el));
  return COLOURS.get(el);
}

function read_colours(el) {
  const style = getComputedStyle(el);
  const of = (name) => style.getPropertyValue(`--wb-g-${name}`).trim();
  const colours = Object.fromEntries(["new", "gone", "edge", "text", "muted", "picked", "ground", ...Object.keys(FAMILIES)].map((n) => [n, of(n)]));
  return { ...colours, region_alpha: Number(of("region")) || 0.5, font: (size) => `${size}px ${style.fontFamily}` };
}
