// A graph to look at: pan by dragging, zoom by buttons or Ctrl+wheel (a plain wheel scrolls the
// page), search, minimap, and the same nodes as a list for those who do not see the picture.

const MOST_SVG = 150; // nodes; above it a canvas: laying out so many SVG texts costs 60 ms a step
const READABLE = 0.8; // a scale at which boxes can be read
const LEGIBLE = 0.45; // the least at which a reader finds their way about
const MOST_FITTED = 1.2;
const MOST_LISTED = 500;

/** Return a graph pane {el, show, pick, light, fit, repaint, field, ..}. `on.node(node)` hears of clicks,
 * `on.edge(edge)` of clicks on a line that is cut, `on.region(region)` of those on the ground of a
 * kernel, `on.open(node)` of double clicks. */
function graph_view(label, on = {}) {
  const stage = h("div", { class: "wb-g-stage", tabindex: -1 });
  const search_field = graph_search(label);
  const list = h("div", { class: "wb-g-list" });
  const listing = h("details", { class: "wb-g-listing" }, h("summary", {}, "nodes as a list"), list);
  const note = h("span", { class: "wb-g-note" });
  const map = h("canvas", { class: "wb-g-map", "aria-hidden": "true" });
  const tools = h("div", { class: "wb-g-tools" },
    search_field.el,
    graph_tool("−", "zoom out", () => zoom_at(1 / 1.3)),
    graph_tool("+", "zoom in", () => zoom_at(1.3)),
    graph_tool("fit", "fit everything (f)", () => fit()), note);
  const el = h("div", { class: "wb-g", role: "group", "aria-label": label }, tools, stage, listing);
  const painters = {};
  let painter = null;
  let drawing = { nodes: [], edges: [] };
  let by_key = new Map();
  let bounds = { left: 0, top: 0, right: 1, bottom: 1 };
  let view = { scale: 1, x: 0, y: 0 };
  let size = { width: 0, height: 0 };
  let is_first = true;
  let is_fitted = false; // all of it is shown, and stays so when the pane changes its size
  let hit = () => ({});
  let wish = null; // what to bring into sight once there is a size
  let aim = null; // what was brought into sight last, until the reader pans or zooms
  const marks = { picked: null, found: new Set(), lit: new Set() };

  /** Show a drawing; `at` says what to look at: {keys, first: those of them that count if not
   * all fit, whole: the whole drawing, if it is legible then}, "all", or null to stay. */
  function show(made, at = null, said = "") {
    drawing = made;
    note.textContent = said;
    by_key = new Map(made.nodes.map((node) => [node.key, node]));
    bounds = graph_bounds(made);
    hit = graph_hits(made);
    const kind = made.nodes.length > MOST_SVG ? "canvas" : "svg";
    painters[kind] ??= kind === "svg" ? svg_painter() : canvas_painter();
    if (painter !== painters[kind]) {
      painter = painters[kind];
      stage.replaceChildren(painter.el, map);
      painter.resize(size.width, size.height);
    }
    painter.paint(made);
    search_field.search();
    if (listing.open) fill_list();
    painter.mark(marks);
    wish = at || wish;
    if (size.width && size.height) look();
  }

  function look() {
    const fits_whole = wish?.whole && scale_to_fit(bounds, size) >= LEGIBLE;
    if (wish === "all" || fits_whole || (is_fitted && !wish)) fit();
    else if (wish) {
      const [all, first] = [wish.keys, wish.first || []].map((keys) => keys.map((key) => by_key.get(key)).filter(Boolean));
      const fits = all.length && scale_to_fit(graph_bounds({ nodes: all }), size) >= READABLE;
      bring_into_sight(fits || !first.length ? all : first);
    }
    aim = wish || aim;
    wish = null;
    is_first = false;
    place();
  }

  let is_planned = false;
  function move(wanted) {
    view = wanted;
    is_fitted = false;
    place();
  }

  /** The reader moved it: from now on it stays as it is when the pane changes its size. */
  function move_by_hand(wanted) {
    aim = null;
    move(wanted);
  }

  function place() {
    painter?.place(view);
    if (!is_planned) requestAnimationFrame(() => ((is_planned = false), draw_map(map, drawing, bounds, view, size)));
    is_planned = true;
  }

  /** Leave the view alone if all of it is in sight and readable, else centre on it. */
  function bring_into_sight(nodes) {
    if (!nodes.length) return;
    const box = graph_bounds({ nodes });
    const whole = scale_to_fit(bounds, size);
    if (whole >= READABLE) {
      const is_out = is_first || view.scale < READABLE - 0.01 || out_of_sight(bounds, view, size);
      if (is_out) move(centred(bounds, Math.min(whole, 1), size));
      return;
    }
    if (view.scale >= LEGIBLE && !out_of_sight(box, view, size)) return;
    move(centred(box, Math.max(READABLE, Math.min(1, scale_to_fit(box, size))), size));
  }

  function fit() {
    if (!size.width) return;
    move(centred(bounds, Math.min(MOST_FITTED, scale_to_fit(bounds, size)), size));
    is_fitted = true;
    aim = "all";
  }

  function zoom_at(factor, x = size.width / 2, y = size.height / 2) {
    const scale = Math.min(SCALES[1], Math.max(SCALES[0], view.scale * factor));
    const by = scale / view.scale;
    move_by_hand({ scale, x: x - (x - view.x) * by, y: y - (y - view.y) * by });
  }

  function pick(key) {
    marks.picked = key;
    painter?.mark(marks);
    for (const item of list.querySelectorAll("[data-item]"))
      item.setAttribute("aria-selected", String(item.dataset.key === `g${key}`));
  }

  function fill_list() {
    const nodes = drawing.nodes.slice(0, MOST_LISTED);
    const items = nodes.map((node) => h("div", {
      role: "option", "data-item": "", "data-key": `g${node.key}`, "aria-selected": String(node.key === marks.picked),
      onclick: () => chosen(node),
    }, `${node.badge || node.letter || ""} ${node.label} ${node.sub || ""}${node.state === "kept" ? "" : ` (${node.state})`}${node.hint ? `: ${node.hint}` : ""}`));
    const more = drawing.nodes.length - nodes.length;
    refill(list, walkable("listbox", `${label}: nodes`, {}, ...items), more > 0 && h("p", {}, `and ${plural(more, "node")} more: search finds them`));
  }

  function chosen(node) {
    pick(node.key);
    if (out_of_sight(graph_bounds({ nodes: [node] }), view, size)) move(centred(graph_bounds({ nodes: [node] }), Math.max(view.scale, READABLE), size));
    on.node?.(node);
  }

  listing.addEventListener("toggle", () => listing.open && fill_list());
  search_field.on_find = (query) => {
    const found = graph_find(drawing, query);
    marks.found = new Set(found.map((node) => node.key));
    painter?.mark(marks);
    return found;
  };
  search_field.on_go = chosen;
  let hovered = null;
  const hover = ({ node, edge, region }) => {
    const thing = node || edge || region || null;
    if (thing === hovered) return;
    hovered = thing;
    stage.title = node ? hover_text(node) : thing?.hint || "";
    stage.classList.toggle("wb-g-over", Boolean(thing));
    on.hover?.(node || null);
  };
  const hit_at = (x, y) => hit((x - view.x) / view.scale, (y - view.y) / view.scale, view.scale);
  graph_pointer(stage, map, {
    view: () => view, move: move_by_hand, zoom_at,
    click: (x, y) => {
      const { node, edge, region } = hit_at(x, y);
      if (node) chosen(node);
      else if (edge) on.edge?.(edge);
      else if (region) on.region?.(region);
    },
    open: (x, y) => hit_at(x, y).node && on.open?.(hit_at(x, y).node),
    hover: (x, y) => hover(hit_at(x, y)),
    leave: () => hover({}),
    map_to: (x, y) => {
      const k = map_scale(bounds);
      move_by_hand({ ...view, x: size.width / 2 - (bounds.left + x / k) * view.scale, y: size.height / 2 - (bounds.top + y / k) * view.scale });
    },
  });
  new ResizeObserver(() => {
    size = { width: stage.clientWidth, height: stage.clientHeight };
    painter?.resize(size.width, size.height);
    if (!size.width || !size.height || !painter) return; // not shown now
    wish ??= aim;
    look();
    if (aim && by_key.has(marks.picked)) bring_into_sight([by_key.get(marks.picked)]);
  }).observe(stage);
  /** The theme has changed. */
  function repaint() {
    for (const canvas of [map, painters.canvas?.el]) COLOURS.delete(canvas);
    painter?.redraw?.();
    place();
  }

  return {
    el, show, pick, fit, repaint, stage, field: search_field.field,
    light: (keys) => ((marks.lit = keys), painter?.mark(marks)),
    look_at: (key) => by_key.has(key) && (pick(key), bring_into_sight([by_key.get(key)])),
    drawing: () => drawing, view: () => view,
  };
}

const graph_tool = (text, title, act_on) =>
  h("button", { class: "wb-button", type: "button", title, "aria-label": title, onclick: act_on }, text);

const hover_text = (node) => (node ? `${node.label} ${node.sub || ""}${node.hint ? `\n${node.hint}` : ""}` : "");

/** A field that finds nodes: Enter goes to the next, Shift+Enter to the one before. */
function graph_search(label) {
  const field = h("input", { type: "search", class: "wb-input", placeholder: "/ find", "aria-label": `find in ${label}` });
  const count = h("span", { class: "wb-g-count", role: "status" });
  const made = { el: h("span", { class: "wb-g-search" }, field, count), field, on_find: () => [], on_go: () => {} };
  let found = [];
  let at = -1;
  const say_count = () => (count.textContent = !field.value ? "" : !found.length ? "nothing found" : at < 0 ? plural(found.length, "match") : `${at + 1} of ${found.length}`);
  made.search = () => {
    found = field.value ? made.on_find(field.value) : (made.on_find(""), []);
    at = -1;
    say_count();
  };
  const go = (step) => {
    if (!found.length) return;
    at = (at + step + found.length + (at < 0 && step < 0 ? 1 : 0)) % found.length;
    made.on_go(found[at]);
    say_count();
  };
  field.addEventListener("input", made.search);
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") go(event.shiftKey ? -1 : 1), event.preventDefault();
  });
  return made;
}

/** Return the nodes that a query finds: words of the label, type or shape in any order, or #number. */
function graph_find(drawing, query) {
  const wanted = query.trim().toLowerCase();
  if (!wanted) return [];
  if (/^#\d+$/.test(wanted)) return drawing.nodes.filter((node) => `#${node.n}` === wanted);
  return drawing.nodes.filter((node) => has_words(`${node.label} ${node.sub || ""} ${node.op || ""}`, wanted));
}

// pointer

/** Drag pans, a click picks, a double click opens; Ctrl or Cmd and the wheel zoom. */
function graph_pointer(stage, map, on) {
  let start = null;
  const at = (event) => {
    const box = stage.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  stage.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || event.target === map) return;
    start = { x: event.clientX, y: event.clientY, view: on.view(), moved: false };
  });
  stage.addEventListener("pointermove", (event) => {
    if (!start) return on.hover(...at(event));
    const [dx, dy] = [event.clientX - start.x, event.clientY - start.y];
    if (!start.moved && Math.hypot(dx, dy) < 4) return;
    if (!start.moved) stage.setPointerCapture(event.pointerId);
    start.moved = true;
    stage.classList.add("wb-g-dragged");
    on.move({ ...start.view, x: start.view.x + dx, y: start.view.y + dy });
  });
  const up = (event) => {
    if (start && !start.moved && event.type === "pointerup") on.click(...at(event));
    start = null;
    stage.classList.remove("wb-g-dragged");
  };
  stage.addEventListener("pointerleave", on.leave);
  stage.addEventListener("pointerup", up);
  stage.addEventListener("pointercancel", up);
  stage.addEventListener("dblclick", (event) => on.open(...at(event)));
  stage.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    on.zoom_at(Math.exp(-event.deltaY / 300), ...at(event));
  }, { passive: false });
  const to = (event) => event.buttons & 1 && on.map_to(event.offsetX, event.offsetY);
  map.addEventListener("pointerdown", to);
  map.addEventListener("pointermove", to);
}
