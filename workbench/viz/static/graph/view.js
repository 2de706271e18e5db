// A graph to look at: pan by dragging, zoom by buttons or Ctrl+wheel (a plain wheel scrolls the
// page), search, minimap, and the same nodes as a list for those who do not see the picture.

import { h, refill } from "../base/elements.js";
import { walkable } from "../base/lists.js";
import { plural } from "../base/text.js";
import { canvasPainter } from "./canvas_painter.js";
import { COLOURS } from "./colours.js";
import { graphHits } from "./hits.js";
import {
  centred,
  drawMap,
  graphBounds,
  mapScale,
  outOfSight,
  SCALES,
  scaleToFit,
} from "./overview.js";
import { graphPointer } from "./pointer.js";
import { graphFind, graphSearch } from "./search.js";
import { svgPainter } from "./svg_painter.js";

const MOST_SVG = 150; // nodes; above it a canvas: laying out so many SVG texts costs 60 ms a step
const READABLE = 0.8; // a scale at which boxes can be read
const LEGIBLE = 0.45; // the least at which a reader finds their way about
const MOST_FITTED = 1.2;
const MOST_LISTED = 500;

/** Return a graph pane {el, show, pick, light, fit, repaint, field, ..}. `on.node(node)` hears of clicks,
 * `on.edge(edge)` of clicks on a line that is cut, `on.region(region)` of those on the ground of a
 * kernel, `on.open(node)` of double clicks. */
export function graphView(label, on = {}) {
  const stage = h("div", { class: "wb-g-stage", tabindex: -1 });
  const searchField = graphSearch(label);
  const list = h("div", { class: "wb-g-list" });
  const listing = h(
    "details",
    { class: "wb-g-listing" },
    h("summary", {}, "nodes as a list"),
    list,
  );
  const note = h("span", { class: "wb-g-note" });
  const map = h("canvas", { class: "wb-g-map", "aria-hidden": "true" });
  const tools = h(
    "div",
    { class: "wb-g-tools" },
    searchField.el,
    graphTool("−", "zoom out", () => zoomAt(1 / 1.3)),
    graphTool("+", "zoom in", () => zoomAt(1.3)),
    graphTool("fit", "fit everything (f)", () => fit()),
    note,
  );
  const el = h("div", { class: "wb-g", role: "group", "aria-label": label }, tools, stage, listing);
  const painters = {};
  let painter = null;
  let drawing = { nodes: [], edges: [] };
  let byKey = new Map();
  let bounds = { left: 0, top: 0, right: 1, bottom: 1 };
  let view = { scale: 1, x: 0, y: 0 };
  let size = { width: 0, height: 0 };
  let isFirst = true;
  let isFitted = false; // all of it is shown, and stays so when the pane changes its size
  /** @type {(x: number, y: number, scale: number) => {node?: any, edge?: any, region?: any}} */
  let hit = () => ({});
  let wish = null; // what to bring into sight once there is a size
  let aim = null; // what was brought into sight last, until the reader pans or zooms
  const marks = { picked: null, found: new Set(), lit: new Set() };

  /** Show a drawing; `at` says what to look at: {keys, first: those of them that count if not
   * all fit, whole: the whole drawing, if it is legible then}, "all", or null to stay. */
  function show(made, at = null, said = "") {
    drawing = made;
    note.textContent = said;
    byKey = new Map(made.nodes.map((node) => [node.key, node]));
    bounds = graphBounds(made);
    hit = graphHits(made);
    const kind = made.nodes.length > MOST_SVG ? "canvas" : "svg";
    painters[kind] ??= kind === "svg" ? svgPainter() : canvasPainter();
    if (painter !== painters[kind]) {
      painter = painters[kind];
      stage.replaceChildren(painter.el, map);
      painter.resize(size.width, size.height);
    }
    painter.paint(made);
    searchField.search();
    if (listing.open) fillList();
    painter.mark(marks);
    wish = at || wish;
    if (size.width && size.height) look();
  }

  function look() {
    const fitsWhole = wish?.whole && scaleToFit(bounds, size) >= LEGIBLE;
    if (wish === "all" || fitsWhole || (isFitted && !wish)) fit();
    else if (wish) {
      const [all, first] = [wish.keys, wish.first || []].map((keys) =>
        keys.map((key) => byKey.get(key)).filter(Boolean)
      );
      const fits = all.length && scaleToFit(graphBounds({ nodes: all }), size) >= READABLE;
      bringIntoSight(fits || !first.length ? all : first);
    }
    aim = wish || aim;
    wish = null;
    isFirst = false;
    place();
  }

  let isPlanned = false;
  function move(wanted) {
    view = wanted;
    isFitted = false;
    place();
  }

  /** The reader moved it: from now on it stays as it is when the pane changes its size. */
  function moveByHand(wanted) {
    aim = null;
    move(wanted);
  }

  function place() {
    painter?.place(view);
    if (!isPlanned) {
      requestAnimationFrame(() => ((isPlanned = false), drawMap(map, drawing, bounds, view, size)));
    }
    isPlanned = true;
  }

  /** Leave the view alone if all of it is in sight and readable, else centre on it. */
  function bringIntoSight(nodes) {
    if (!nodes.length) return;
    const box = graphBounds({ nodes });
    const whole = scaleToFit(bounds, size);
    if (whole >= READABLE) {
      const isOut = isFirst || view.scale < READABLE - 0.01 || outOfSight(bounds, view, size);
      if (isOut) move(centred(bounds, Math.min(whole, 1), size));
      return;
    }
    if (view.scale >= LEGIBLE && !outOfSight(box, view, size)) return;
    move(centred(box, Math.max(READABLE, Math.min(1, scaleToFit(box, size))), size));
  }

  function fit() {
    if (!size.width) return;
    move(centred(bounds, Math.min(MOST_FITTED, scaleToFit(bounds, size)), size));
    isFitted = true;
    aim = "all";
  }

  function zoomAt(factor, x = size.width / 2, y = size.height / 2) {
    const scale = Math.min(SCALES[1], Math.max(SCALES[0], view.scale * factor));
    const by = scale / view.scale;
    moveByHand({ scale, x: x - (x - view.x) * by, y: y - (y - view.y) * by });
  }

  function pick(key) {
    marks.picked = key;
    painter?.mark(marks);
    for (const item of list.querySelectorAll("[data-item]")) {
      item.setAttribute("aria-selected", String(item.dataset.key === `g${key}`));
    }
  }

  function fillList() {
    const nodes = drawing.nodes.slice(0, MOST_LISTED);
    const items = nodes.map((node) =>
      h(
        "div",
        {
          role: "option",
          "data-item": "",
          "data-key": `g${node.key}`,
          "aria-selected": String(node.key === marks.picked),
          onclick: () => chosen(node),
        },
        `${node.badge || node.letter || ""} ${node.label} ${node.sub || ""}${
          node.state === "kept" ? "" : ` (${node.state})`
        }${node.hint ? `: ${node.hint}` : ""}`,
      )
    );
    const more = drawing.nodes.length - nodes.length;
    refill(
      list,
      walkable("listbox", `${label}: nodes`, {}, ...items),
      more > 0 && h("p", {}, `and ${plural(more, "node")} more: search finds them`),
    );
  }

  function chosen(node) {
    pick(node.key);
    if (outOfSight(graphBounds({ nodes: [node] }), view, size)) {
      move(centred(graphBounds({ nodes: [node] }), Math.max(view.scale, READABLE), size));
    }
    on.node?.(node);
  }

  listing.addEventListener("toggle", () => listing.open && fillList());
  searchField.onFind = (query) => {
    const found = graphFind(drawing, query);
    marks.found = new Set(found.map((node) => node.key));
    painter?.mark(marks);
    return found;
  };
  searchField.onGo = chosen;
  let hovered = null;
  /** @param {{node?: any, edge?: any, region?: any}} what */
  const hover = ({ node, edge, region }) => {
    const thing = node || edge || region || null;
    if (thing === hovered) return;
    hovered = thing;
    stage.title = node ? hoverText(node) : thing?.hint || "";
    stage.classList.toggle("wb-g-over", Boolean(thing));
    on.hover?.(node || null);
  };
  const hitAt = (x, y) => hit((x - view.x) / view.scale, (y - view.y) / view.scale, view.scale);
  graphPointer(stage, map, {
    view: () => view,
    move: moveByHand,
    zoomAt,
    click: (x, y) => {
      const { node, edge, region } = hitAt(x, y);
      if (node) chosen(node);
      else if (edge) on.edge?.(edge);
      else if (region) on.region?.(region);
    },
    open: (x, y) => hitAt(x, y).node && on.open?.(hitAt(x, y).node),
    hover: (x, y) => hover(hitAt(x, y)),
    leave: () => hover({}),
    mapTo: (x, y) => {
      const k = mapScale(bounds);
      moveByHand({
        ...view,
        x: size.width / 2 - (bounds.left + x / k) * view.scale,
        y: size.height / 2 - (bounds.top + y / k) * view.scale,
      });
    },
  });
  new ResizeObserver(() => {
    size = { width: stage.clientWidth, height: stage.clientHeight };
    painter?.resize(size.width, size.height);
    if (!size.width || !size.height || !painter) return; // not shown now
    wish ??= aim;
    look();
    if (aim && byKey.has(marks.picked)) bringIntoSight([byKey.get(marks.picked)]);
  }).observe(stage);
  /** The theme has changed. */
  function repaint() {
    for (const canvas of [map, painters.canvas?.el]) COLOURS.delete(canvas);
    painter?.redraw?.();
    place();
  }

  return {
    el,
    show,
    pick,
    fit,
    repaint,
    stage,
    field: searchField.field,
    light: (keys) => ((marks.lit = keys), painter?.mark(marks)),
    lookAt: (key) => byKey.has(key) && (pick(key), bringIntoSight([byKey.get(key)])),
    drawing: () => drawing,
    view: () => view,
  };
}

const graphTool = (text, title, actOn) =>
  h(
    "button",
    { class: "wb-button", type: "button", title, "aria-label": title, onclick: actOn },
    text,
  );

const hoverText = (
  node,
) => (node ? `${node.label} ${node.sub || ""}${node.hint ? `\n${node.hint}` : ""}` : "");
