// Link highlighting: every element that belongs to the pinned or hovered thing is marked, in every
// pane, by one pass over the elements with links. The pointer over the page hovers.

/** @import { PageRecord } from "../record.d.ts" */
/** @import { Link } from "../types.d.ts" */
/** @import { App } from "./store.js" */

/** The links of elements.
 * @type {WeakMap<Element, Link>} */
export const LINKS = new WeakMap();

/** A link as sets, its nodes with what they came from; `innermost` is the last of its axes.
 * @typedef {{
 *   by: Link["by"], axes: Set<string>, innermost?: string, nodes: Set<number>, lines: Set<number>,
 *   statement?: string | null
 * }} Reach */

/** What belongs to the kernel that is shown: a line that other kernels have, too, does not light them.
 * @type {Link["by"][]} */
const OF_KERNEL = ["code", "loop", "statement", "offer"];

/** Put a link on an element: it lights up with others, and lights them when pointed at.
 * @template {Element} E
 * @param {E} element
 * @param {Link} link */
export function linked(element, link) {
  LINKS.set(element, link);
  element.classList.add("wb-link");
  return element;
}

/** Mark the elements under `root` that belong to the pinned link and to the one pointed at; code
 * further inside a loop, and loops further outside a line, are marked more faintly.
 * @param {App} app
 * @param {Element} root */
export function lightAll(app, root) {
  const pinned = reach(app.record, app.view.picked);
  const hovered = reach(app.record, app.hover);
  for (const element of root.querySelectorAll(".wb-link")) {
    const link = LINKS.get(element);
    const tie = belongs(link, seenFrom(link, pinned, app));
    element.classList.toggle("wb-lit", tie === "lit");
    element.classList.toggle("wb-inside", tie === "inside");
    element.classList.toggle("wb-near", belongs(link, seenFrom(link, hovered, app)) === "lit");
  }
}

/** What is reached as a link sees it: nothing, where it stands for other kernels than the one that is
 * shown, and that is of this kernel alone.
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
  const code = link.by === "code" || reached.by === "code"; // its axes: all the loops around it
  return !code || link.axes.at(-1) === reached.innermost ? "lit" : "inside";
}

/** Return a link as sets, its nodes with what they came from. A node of a graph lights what came
 * of it too; code and loops are the last that there is.
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

/** What some nodes lead to, and they.
 * @param {number[]} start
 * @param {(n: number) => number[]} next */
function closure(start, next) {
  const reached = new Set(start);
  for (const n of reached) for (const m of next(n)) reached.add(m); // a Set goes on to what is added
  return reached;
}

/** @type {{of: unknown, size: number, n?: number, index: Map<number, number[]>}} */
const DERIVED = { of: null, size: 0, n: 0, index: new Map() };

/** Return what came of each node, built anew only when the record has had another patch.
 * @param {PageRecord} record */
function derived({ nodes: { causes }, n }) {
  if (DERIVED.of === causes && DERIVED.size === causes.length && DERIVED.n === n) {
    return DERIVED.index;
  }
  /** @type {typeof DERIVED.index} */
  const index = new Map();
  causes.forEach((rows, node) => {
    for (const [, , from] of rows) {
      index.get(from)?.push(node) ?? index.set(from, [node]);
    }
  });
  Object.assign(DERIVED, { of: causes, size: causes.length, n, index });
  return index;
}

// The pointer over the whole page, and the theme of the page around it.

/** Pointing lights up what belongs together; nothing moves. Coming in asks whether Python is there.
 * What listens on the root goes with it; the rest is let go by the function returned.
 * @param {App} app
 * @param {HTMLElement} root */
export function listenPointer(app, root) {
  const over = (/** @type {PointerEvent} */ { buttons, target }) => {
    if (!buttons) app.hold(false);
    const element = closest(target, ".wb-link");
    app.light(element && root.contains(element) ? LINKS.get(element) : null);
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

/** The element around what an event is on, or itself, that a selector finds.
 * @param {EventTarget | null} target
 * @param {string} selector */
const closest = (target, selector) => target instanceof Element && target.closest(selector);

/** Say when the theme changes: a canvas does not follow the style sheet by itself. Returns what
 * lets go.
 * @param {App} app */
export function listenTheme(app) {
  const changed = () => app.changed("theme");
  const observer = new MutationObserver(changed);
  const isDark = matchMedia("(prefers-color-scheme: dark)");
  observer.observe(document.body, {
    attributes: true,
    attributeFilter: ["data-jp-theme-light", "class"],
  });
  isDark.addEventListener("change", changed);
  return () => {
    observer.disconnect();
    isDark.removeEventListener("change", changed);
  };
}
