// Link highlighting: every element that belongs to the pinned or hovered thing is marked, in every
// pane, by one pass over the elements with links. The pointer over the page hovers.

import { lineKernels } from "../record/kernels.js";
import { passesOf } from "../record/passes.js";
import { stepLink } from "../record/stage.js";
import { readingOf, stateOrder } from "../record/states.js";

/** @import { NodeColumns, PageRecord, RecordedPass } from "../record.d.ts" */
/** @import { Link } from "../types.d.ts" */
/** @import { App } from "./store.js" */

/** The links of elements.
 * @type {WeakMap<Element, Link>} */
export const LINKS = new WeakMap();

/** A link as sets, its nodes with their origins; `innermost` is the last of its axes.
 * @typedef {{
 *   by: Link["by"], axes: Set<string>, innermost?: string, nodes: Set<number>, lines: Set<number>,
 *   statement?: string | null
 * }} Reach */

/** The nodes and lines of the selected kernel: a line that other kernels share does not light them.
 * @type {Link["by"][]} */
const OF_KERNEL = ["code", "loop", "statement", "offer"];

/** Put a link on an element: it lights up with others, and lights them on hover.
 * @template {Element} E
 * @param {E} element
 * @param {Link} link */
export function linked(element, link) {
  LINKS.set(element, link);
  element.classList.add("wb-link");
  return element;
}

/** Mark the elements under `root` that belong to the pinned link, else to the rewrite that is shown,
 * and to the hovered one; code further inside a loop, and loops further outside a line, are marked more faintly.
 * @param {App} app
 * @param {Element} root */
export function lightAll(app, root) {
  const [own, beside] = [app, app.partner].map((side) =>
    side && {
      side,
      pinned: withAxes(side, side.view.picked ?? stepLink(side)),
      hovered: withAxes(side, side.hover),
    }
  );
  for (const element of root.querySelectorAll(".wb-link")) {
    const lights = (isBeside(element) && beside) || own;
    if (!lights) continue;
    const { side, pinned, hovered } = lights;
    const link = LINKS.get(element);
    const tie = belongs(link, seenFrom(link, pinned, side));
    element.classList.toggle("wb-lit", tie === "lit");
    element.classList.toggle("wb-inside", tie === "inside");
    element.classList.toggle("wb-near", belongs(link, seenFrom(link, hovered, side)) === "lit");
  }
}

/** Whether an element shows what stands beside the selected variant.
 * @param {Element} element */
const isBeside = (element) => element.closest("[data-beside]") !== null;

/** The reach that lights a link: null where the link is of other kernels, and the reach of the
 * selected kernel alone.
 * @param {Link | undefined} link
 * @param {Reach | null} reached
 * @param {App} app */
function seenFrom(link, reached, { view: { kernel } }) {
  const isOther = link?.kernels && !link.kernels.includes(kernel);
  return isOther && reached && OF_KERNEL.includes(reached.by) ? null : reached;
}

/** Return "lit", "inside" or "". Nodes and axes tie things together; a shared notebook line only
 * from or to the line itself, or one line would light the whole kernel. Lines of code are
 * tied to each other by their statement, opts are not.
 * @param {Link | undefined} link
 * @param {Reach | null} reached */
export function belongs(link, reached) {
  if (!link || !reached) return "";
  const byLine = link.by === "line" || reached.by === "line";
  if (byLine && link.lines.some((line) => reached.lines.has(line))) return "lit";
  if (link.by === reached.by && link.by === "code") {
    return link.statement && link.statement === reached.statement ? "lit" : "";
  }
  if (link.by === reached.by && link.by === "offer") return "";
  if (link.nodes.some((n) => reached.nodes.has(n))) return "lit";
  if (!link.axes.some((axis) => reached.axes.has(axis))) return "";
  if (reached.by === "node" && link.by !== "loop") return ""; // its loops, not all in them
  const code = link.by === "code" || reached.by === "code"; // its axes: all the loops around it
  return !code || link.axes.at(-1) === reached.innermost ? "lit" : "inside";
}

/** Return a link as sets, its nodes with their origins. A node of a graph also lights the nodes
 * made from it; code and loops come last, and light nothing further.
 * @param {PageRecord} record
 * @param {Link | null} link
 * @returns {Reach | null} */
export function reach(record, link) {
  if (!link) return null;
  const { causes } = record.nodes;
  const nodes = closure(link.nodes, (n) => (causes[n] || []).map(([, , from]) => from));
  if (link.by === "node" || link.by === "statement") {
    for (const n of closure(link.nodes, (from) => derived(record).get(from) || [])) nodes.add(n);
  }
  return {
    by: link.by,
    axes: new Set(link.axes),
    innermost: link.axes.at(-1),
    nodes,
    lines: new Set(link.lines),
    statement: link.statement,
  };
}

/** The reach of a link; that of a node has its loops, too.
 * @param {App} app
 * @param {Link | null} link */
function withAxes(app, link) {
  const reached = reach(app.record, link);
  if (link && reached?.by === "node") {
    for (const axis of axesOf(app, link.nodes)) reached.axes.add(axis);
  }
  return reached;
}

/** The loops of the selected variant that some nodes depend on. A copy that expansion made depends
 * on those of what it was made from in the statement tree, a node of an earlier state on those of
 * what became of it there.
 * @param {App} app
 * @param {number[]} start
 * @returns {Set<string>} */
function axesOf(app, start) {
  const { record } = app;
  const { passes, nodes } = record;
  const own = app.variant()?.passes ?? [];
  const tree = own.map((place) => passes[place]).findLast(({ after }) => after.length === 1);
  if (!tree) return new Set();
  const axes = treeAxes(nodes, tree);
  const inTree = (/** @type {Iterable<number>} */ found) => [...found].filter((n) => axes.has(n));
  const ways = [
    () => start,
    () => closure(start, (n) => (nodes.causes[n] || []).map(([, , from]) => from)),
    () => closure(start, (from) => derived(record).get(from) || []),
  ];
  for (const way of ways) {
    const found = inTree(way());
    if (found.length) return new Set(found.flatMap((n) => [...axes.get(n) ?? []]));
  }
  return new Set();
}

/** By the pass that ends with the tree.
 * @type {WeakMap<RecordedPass, Map<number, Set<string>>>} */
const TREE_AXES = new WeakMap();

/** The names of the axes that each node of a statement tree depends on; a loop has its own alone.
 * @param {NodeColumns} nodes
 * @param {RecordedPass} pass */
function treeAxes(nodes, pass) {
  const known = TREE_AXES.get(pass);
  if (known) return known;
  /** @type {Map<number, Set<string>>} */
  const axes = new Map();
  for (const n of stateOrder(nodes, pass.after)) {
    const { role, name, body } = readingOf(nodes, n);
    const src = nodes.src[n];
    const isAxis = (/** @type {number} */ s) => readingOf(nodes, s).role === "axis";
    const listed = role === "loop"
      ? src.filter(isAxis).map((s) => readingOf(nodes, s).name ?? "")
      : [];
    const all = new Set(src.flatMap((s) => [...axes.get(s) ?? []]));
    for (const axis of listed) all.delete(axis); // it closes them
    const isLoop = role === "loop" && typeof body === "number";
    axes.set(n, role === "axis" ? new Set([name ?? ""]) : isLoop ? new Set(listed) : all);
  }
  TREE_AXES.set(pass, axes);
  return axes;
}

/** Return whether a node stands for what the notebook line made that is hovered, else pinned: the
 * nearest of its origins that have lines, on the way to the selected variant, have that one.
 * Kernels share nodes, such as indexes: in the graph of a kernel a line of others lights nothing.
 * @param {App} app
 * @param {number | null} kernel null: the graph is that of all kernels
 * @returns {(n: number) => boolean} */
export function litByLine(app, kernel) {
  const { record, hover, view: { picked } } = app;
  const { nodes } = record;
  const link = [hover, picked].find((each) => each?.by === "line");
  const lines =
    link?.lines.filter((line) => kernel === null || lineKernels(record, line).includes(kernel)) ??
      [];
  if (!lines.length) return () => false;
  const passes = new Set(passesOf(app));
  return (n) => {
    const seen = new Set([n]);
    for (const at of seen) { // a Set grows on the way
      const rows = nodes.lines[at] ?? []; // a box for several kernels is of no node
      if (rows.some((row) => row.some((line) => lines.includes(line)))) return true;
      const causes = rows.length ? [] : nodes.causes[at] ?? [];
      for (const [pass, , from] of causes) if (passes.has(pass)) seen.add(from);
    }
    return false;
  };
}

/** Some nodes, and all that were made from them.
 * @param {number[]} start
 * @param {(n: number) => number[]} next */
function closure(start, next) {
  const reached = new Set(start);
  for (const n of reached) for (const m of next(n)) reached.add(m); // a Set grows on the way
  return reached;
}

/** By the causes of a record: it has patches, and more nodes.
 * @type {WeakMap<object, {size: number, n?: number, index: Map<number, number[]>}>} */
const DERIVED = new WeakMap();

/** Return the nodes made from each node, rebuilt only after a patch of the record.
 * @param {PageRecord} record */
function derived({ nodes: { causes }, n }) {
  const known = DERIVED.get(causes);
  if (known && known.size === causes.length && known.n === n) return known.index;
  /** @type {Map<number, number[]>} */
  const index = new Map();
  causes.forEach((rows, node) => {
    for (const [, , from] of rows) {
      index.get(from)?.push(node) ?? index.set(from, [node]);
    }
  });
  DERIVED.set(causes, { size: causes.length, n, index });
  return index;
}

// Pointer events of the whole page.

/** Hovering lights up linked elements; nothing moves. Entering the page pings Python. Listeners of
 * the root end with it; the returned function removes the others.
 * @param {App} app
 * @param {HTMLElement} root */
export function listenPointer(app, root) {
  const over = (/** @type {PointerEvent} */ { buttons, target }) => {
    if (!buttons) app.hold(false);
    const element = closest(target, ".wb-link");
    const link = element && root.contains(element) ? LINKS.get(element) : null;
    (element && app.partner && isBeside(element) ? app.partner : app).light(link);
  };
  const out = () => app.light(null);
  const down = (/** @type {Event} */ { target }) =>
    app.hold(!closest(target, "select, input, textarea"));
  const up = () => setTimeout(() => app.hold(false)); // where no click follows
  const entered = (/** @type {FocusEvent} */ { target, relatedTarget }) => {
    const isInside = relatedTarget instanceof Node && root.contains(relatedTarget);
    if (!isInside && !closest(target, "[data-refilled]")) app.channel.ping();
  };
  root.addEventListener("pointerover", over);
  root.addEventListener("pointerleave", out);
  root.addEventListener("focusin", entered);
  root.addEventListener("pointerdown", down);
  root.addEventListener("click", () => app.hold(false));
  window.addEventListener("pointerup", up);
  window.addEventListener("pointercancel", up);
  return () => {
    window.removeEventListener("pointerup", up);
    window.removeEventListener("pointercancel", up);
  };
}

/** The closest element to the target of an event that matches a selector.
 * @param {EventTarget | null} target
 * @param {string} selector */
const closest = (target, selector) => target instanceof Element && target.closest(selector);
