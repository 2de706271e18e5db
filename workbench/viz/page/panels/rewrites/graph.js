// The graph of a rewrite: what a step took away and put there, or the whole state.

import { nodeLink } from "../../app/store.js";
import { plural } from "../../base/text.js";
import { GraphView } from "../../graph/view.js";
import { layoutGraph } from "../../layout/layout.js";
import { ancestors } from "../../record/history.js";
import { passesOf } from "../../record/passes.js";
import { changeScene, wholeScene } from "./scene.js";

/** @import { PageRecord } from "../../record.d.ts" */
/** @import { App } from "../../app/store.js" */
/** @import { Drawing, GraphNode, Key } from "../../graph/graph.d.ts" */
/** @import { Timeline } from "../../record/states.js" */
/** @import { Scene } from "./scene.js" */
/** @import { RewritesState } from "./state.js" */

export class RewriteGraph {
  /** What was drawn last: a step of the same is drawn so that little moves.
   * @type {{timeline: Timeline | null, isWhole: boolean, boxes: Map<Key, GraphNode>}} */
  #last = { timeline: null, isWhole: false, boxes: new Map() };

  /**
   * @param {App} app
   * @param {RewritesState} state */
  constructor(app, state) {
    this.app = app;
    this.state = state;
    this.view = new GraphView("graph of the rewrite", {
      node: ({ n }) => app.select({ node: n }),
      hover: (node) => app.light(node && nodeLink(node.n)),
      open: ({ key }) => state.toggleClosed(key),
    });
  }

  /** Draw a step: around its change, or the whole state; return whether there is something to draw.
   * @param {number} place
   * @param {boolean} isAnew */
  draw(place, isAnew) {
    const { state, view } = this;
    const { isWhole } = state;
    const scene = this.#scene(place);
    view.el.hidden = !scene;
    if (!scene) return false;
    const timeline = state.timeline(place);
    const isNext = !isAnew && this.#last.timeline === timeline && this.#last.isWhole === isWhole;
    const drawing = placedDrawing(this.app.record, scene, isNext ? this.#last.boxes : new Map());
    const boxes = new Map(drawing.nodes.map((node) => [node.key, node]));
    this.#last = { timeline, isWhole, boxes };
    const keys = scene.focus.length
      ? scene.focus
      : drawing.nodes.slice(0, 1).map((node) => node.key);
    view.el.classList.toggle("wb-g-tall", isWhole);
    view.show(
      drawing,
      { keys, first: scene.first },
      scene.left ? `${plural(scene.left, "node")} more just as near` : "",
    );
    return true;
  }

  /** Mark the node that is picked, or the nearest drawn one that it came from. */
  pick() {
    const { record, view } = this.app;
    const drawn = new Map(this.view.drawing.nodes.map((node) => [node.n, node.key]));
    const before = view.node === null
      ? []
      : [...ancestors(record, passesOf(this.app), [view.node])];
    const nearest = before.find((n) => drawn.has(n));
    this.view.pick(drawn.get(nearest ?? -1) ?? null);
  }

  /** Light up what the pointer is on in another pane. */
  light() {
    const nodes = this.view.drawing.nodes.filter(({ n }) => this.app.hover?.nodes.includes(n));
    this.view.light(new Set(nodes.map((node) => node.key)));
  }

  /** What is drawn of a step; null where nothing is, or not before it is asked for.
   * @param {number} place */
  #scene(place) {
    const { state } = this;
    const timeline = state.timeline(place);
    const step = state.step(place);
    if (this.app.record.passes[place].unit === "decision") return null;
    if (state.isWhole && timeline.roots(step)?.length) {
      const scene = (/** @type {boolean} */ isFolded) =>
        wholeScene(timeline, step, isFolded, state.closed);
      const folded = scene(state.isFolded);
      const isAllIndex = state.isFolded && folded?.nodes.length === 1;
      return isAllIndex ? scene(false) : folded;
    }
    return step ? changeScene(timeline, step, state.isFolded) : null;
  }
}

/** Give a scene its places; what has one in `before` stays there.
 * @param {Pick<PageRecord, "families">} record
 * @param {Scene} scene
 * @param {Map<Key, GraphNode>} before
 * @returns {Drawing} */
export function placedDrawing({ families }, scene, before) {
  const { places, routes } = layoutGraph(scene, before);
  return {
    nodes: scene.nodes.map((node, i) => ({
      ...node,
      ...places[i],
      shape: families[node.family].shape,
    })),
    edges: scene.edges.map((edge, i) => ({ ...edge, points: routes[i] })),
  };
}
