// The graph of a rewrite: removed and added nodes, or the whole state.

import { shownPairing } from "../../app/beside.js";
import { nodeMeaning } from "../../app/glossary.js";
import { litByLine } from "../../app/links.js";
import { nodeLink } from "../../app/store.js";
import { h, keepingFocus } from "../../base/elements.js";
import { plural } from "../../base/text.js";
import { litValues, planDrawing, planFirst, planLit } from "../../graph/plan_drawing.js";
import { GraphView } from "../../graph/view.js";
import { layoutGraph } from "../../layout/layout.js";
import { decidedIn } from "../../record/film.js";
import { stateLines } from "../../record/node_text.js";
import { ancestors, passesOf } from "../../record/passes.js";
import { textPair } from "./differences.js";
import { REACHES } from "./position.js";
import { changeScene, openingScene, pairedScene, wholeScene } from "./scene.js";

/** @import { App } from "../../app/store.js" */
/** @import { Drawing, GraphNode, Key } from "../../graph/graph.d.ts" */
/** @import { PageRecord } from "../../record.d.ts" */
/** @import { Timeline } from "../../record/states.js" */
/** @import { RewritesState } from "./position.js" */
/** @import { Scene, Side } from "./scene.js" */

/** The graph of each side of a comparison.
 * @type {WeakMap<App, GraphView>} */
const VIEWS = new WeakMap();

export class RewriteGraph {
  /** The last drawing: the next step of the same pass moves as little of it as possible.
   * @type {{timeline: Timeline | null, reach: number, boxes: Map<Key, GraphNode>}} */
  #last = { timeline: null, reach: 0, boxes: new Map() };

  /**
   * @param {App} app
   * @param {RewritesState} state */
  constructor(app, state) {
    this.app = app;
    this.state = state;
    const listener = {
      node: (/** @type {GraphNode} */ { n }) => app.select({ node: n }),
      hover: (/** @type {GraphNode | null} */ node) => app.light(node && nodeLink(node.n)),
      open: (/** @type {GraphNode} */ { key }) => state.toggleClosed(key),
    };
    this.view = new GraphView("graph of the rewrite", listener);
    VIEWS.set(app, this.view);
    this.before = new GraphView("graph before the rewrite", listener);
    this.before.tools.remove(); // a click on the other graph acts on both
    this.texts = h("div", { class: "wb-rw-states", role: "group", "aria-label": "both texts" });
    this.el = h("div", { class: "wb-rw-graphs" }, this.view.el);
  }

  fit() {
    for (const view of this.#views()) view.fit();
  }

  repaint() {
    for (const view of this.#views()) view.repaint();
  }

  #views() {
    return this.before.el.isConnected ? [this.before, this.view] : [this.view];
  }

  /** Whether the plan is drawn, since the pass is that of the scheduler's decisions. */
  #isPlan = false;

  /** Draw a step: around its change, or the whole state; of a decision the plan as it is after it.
   * Return whether there is something to draw.
   * @param {number} place
   * @param {boolean} isAnew */
  draw(place, isAnew) {
    const { state, view } = this;
    const { partner } = this.app;
    const pairing = shownPairing(this.app);
    view.pairWith(pairing && partner && VIEWS.get(partner) || null);
    this.#isPlan = state.isDecided(place) && !pairing;
    if (this.#isPlan) return this.#drawPlan(place);
    const { isWhole, form, reach } = state;
    const isStep = state.step(place) > 0 && !pairing;
    const texts = isStep && form === "texts" && this.#texts(place);
    this.texts.replaceChildren(texts || "");
    const old = isStep && form === "graphs" ? this.#scene(place, "old") : null;
    const scene = texts ? null : this.#scene(place, old ? "now" : "both");
    view.el.hidden = view.tools.hidden = !scene;
    this.el.hidden = !scene && !texts;
    this.#arrange(...(old ? [this.before.el] : []), texts ? this.texts : view.el);
    if (!scene) return Boolean(texts);
    const timeline = state.timeline(place);
    const isOther = this.#last.timeline !== timeline;
    const isNext = !isAnew && !isOther && this.#last.reach === reach;
    let known = isNext ? this.#last.boxes : new Map();
    if (old) {
      const drawing = placedDrawing(this.app.record, old, known);
      known = new Map(drawing.nodes.map((node) => [node.key, node]));
      this.before.show(drawing, wishOf(drawing, old, isOther));
    }
    const drawing = placedDrawing(this.app.record, scene, known);
    const boxes = new Map(drawing.nodes.map((node) => [node.key, node]));
    this.#last = { timeline, reach, boxes };
    view.el.classList.toggle("wb-g-tall", isWhole);
    view.show(
      drawing,
      view.isPaired ? "start" : wishOf(drawing, scene, isOther),
      scene.left ? `${plural(scene.left, "node")} more just as near` : "",
    );
    return true;
  }

  /** Draw the plan as far as it is decided at a step.
   * @param {number} place */
  #drawPlan(place) {
    const { app: { record }, state, view } = this;
    const timeline = state.timeline(place);
    const isNext = this.#last.timeline === timeline;
    this.#last = { timeline, reach: 0, boxes: new Map() };
    const isDrawn = record.plan.nodes.length > 0;
    this.el.hidden = view.el.hidden = view.tools.hidden = !isDrawn;
    this.texts.replaceChildren();
    this.#arrange(view.el);
    view.el.classList.add("wb-g-tall");
    const drawing = planDrawing(record, decidedIn(record, place, state.step(place)));
    if (isDrawn) view.show(drawing, isNext ? null : planFirst(record.plan));
    return isDrawn;
  }

  /** The drawn node about which a decision is, which is brought into sight; null: no step is shown.
   * @returns {number | null} */
  #decided() {
    const place = this.state.place();
    const step = place === null ? 0 : this.state.step(place);
    if (place === null || !step) return null;
    const [, about] = this.app.record.passes[place].rewrites[step - 1];
    const key = this.app.record.plan.nodes.findIndex(({ n }) => n === about);
    return key < 0 ? null : key;
  }

  /** Show two drawings beside each other.
   * @param {...HTMLElement} shown */
  #arrange(...shown) {
    const now = [...this.el.children];
    if (now.length === shown.length && now.every((el, i) => el === shown[i])) return;
    keepingFocus(this.el, () => this.el.replaceChildren(...shown));
    for (const view of this.#views()) view.measure();
  }

  /** The texts of the states before and after a step; null if they were not recorded.
   * @param {number} place */
  #texts(place) {
    const { state } = this;
    const timeline = state.timeline(place);
    const step = state.step(place);
    const [before, after] = [step - 1, step].map((k) => timeline.roots(k));
    if (!before || !after) return null;
    const lines = [before, after].map((roots) =>
      roots.flatMap((root) => stateLines(timeline.nodes, root))
    );
    const isLong = Math.max(...lines.map(({ length }) => length)) > 400;
    return textPair(lines[0], lines[1], isLong ? 8 : Infinity);
  }

  /** Mark the picked node, or the nearest drawn one from which it came; at a decision that it is
   * about, if it is another step than at the last call, the value of that.
   * @param {boolean} isOther */
  pick(isOther) {
    const { record, view } = this.app;
    const decided = this.#isPlan && isOther ? this.#decided() : null;
    if (decided !== null) return this.view.lookAt(decided);
    const drawn = new Map(this.view.drawing.nodes.map((node) => [node.n, node.key]));
    const before = view.node === null
      ? []
      : [...ancestors(record, passesOf(this.app), [view.node])];
    const nearest = before.find((n) => drawn.has(n));
    for (const each of this.#views()) each.pick(drawn.get(nearest ?? -1) ?? null);
  }

  /** Light up the nodes that are hovered in another pane, or made by the notebook line that is
   * pinned. */
  light() {
    const { app } = this;
    if (this.#isPlan) return this.view.light(planLit(app), litValues(app));
    const place = this.state.place();
    const isLit = litByLine(app, place === null ? null : app.record.passes[place].kernel);
    for (const view of this.#views()) {
      const nodes = view.drawing.nodes.filter(({ n }) => app.hover?.nodes.includes(n) || isLit(n));
      view.light(new Set(nodes.map((node) => node.key)));
    }
  }

  /** The drawing of a step; null if there is none, or none before it is requested.
   * @param {number} place
   * @param {Side} side */
  #scene(place, side) {
    const { state } = this;
    const timeline = state.timeline(place);
    const step = state.step(place);
    const pairing = shownPairing(this.app);
    if (pairing) {
      const lone = this.app.comparison?.column ? "new" : "gone";
      return pairedScene(timeline, step, pairing, lone, state.isFolded, state.closed);
    }
    if (state.isWhole && timeline.roots(step)?.length) {
      const scene = (/** @type {boolean} */ isFolded) =>
        wholeScene(timeline, step, isFolded, state.closed, side);
      const folded = scene(state.isFolded);
      const isAllIndex = state.isFolded && folded?.nodes.length === 1;
      return isAllIndex ? scene(false) : folded;
    }
    return step
      ? changeScene(timeline, step, state.isFolded, side, REACHES[state.reach] ?? undefined)
      : openingScene(timeline, state.isFolded);
  }
}

/** The nodes to bring into sight: those of the step, else the start of the drawing. If those are
 * too many: the rewritten ones, or the new operands if only operands changed; of a step of the root
 * the uppermost. Another pass is centred on them even where they are in sight.
 * @param {Drawing} drawing
 * @param {Scene} scene
 * @param {boolean} isOther */
function wishOf({ nodes }, { focus, first, isOfRoot }, isOther) {
  const drawn = new Set(nodes.map(({ key }) => key));
  const keys = focus.filter((key) => drawn.has(key));
  const rewritten = nodes.filter(({ key }) => first.some((other) => other === key));
  const fresh = nodes.filter(({ state }) => state === "new");
  const isOperand = fresh.length > 0 && rewritten.every(({ state }) => state === "changed");
  const ofRoot = nodes.filter(({ key }) => keys.includes(Number(key)))
    .sort((a, b) => a.y - b.y).slice(0, 1);
  const subject = isOfRoot ? ofRoot : isOperand ? fresh : rewritten;
  return {
    keys: keys.length ? keys : nodes.slice(0, 1).map(({ key }) => key),
    first: subject.map(({ key }) => key),
    isAnew: isOther,
  };
}

/** Lay out a scene; nodes with positions in `before` keep them.
 * @param {Pick<PageRecord, "families" | "glossary">} record
 * @param {Scene} scene
 * @param {Map<Key, GraphNode>} before
 * @returns {Drawing} */
export function placedDrawing(record, scene, before) {
  const { places, routes } = layoutGraph(scene, before);
  return {
    nodes: scene.nodes.map((node, i) => ({
      ...node,
      ...places[i],
      shape: record.families[node.family].shape,
      hint: nodeMeaning(record, node.op, node.family),
    })),
    edges: scene.edges.map((edge, i) => ({ ...edge, points: routes[i] })),
  };
}
