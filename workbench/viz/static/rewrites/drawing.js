// What is drawn of a step, with its places.

import { FAMILIES } from "../graph/families.js";
import { layoutGraph } from "../layout/layout.js";
import { timelineOf } from "../record/states.js";
import { changeScene, wholeScene } from "./scene.js";

/** What is drawn of a step; null where nothing is, or not before it is asked for. */
export function rewritesScene(app, state, place, step) {
  const pass = app.record.passes[place];
  const timeline = timelineOf(app.record, pass);
  if (pass.unit === "decision") return null;
  if (state.whole && timeline.roots(step)?.length) {
    const scene = (fold) => wholeScene(timeline, step, fold, state.closed);
    const folded = scene(state.fold);
    return state.fold && folded?.nodes.length === 1 ? scene(false) : folded; // all is index arithmetic
  }
  return step ? changeScene(timeline, step, state.fold) : null;
}

/** Give a scene its places; what has one in `before` stays there. */
export function placedDrawing(scene, before) {
  const { places, routes } = layoutGraph(scene, before);
  return {
    nodes: scene.nodes.map((node, i) => ({
      ...node,
      ...places[i],
      shape: FAMILIES[node.family].shape,
    })),
    edges: scene.edges.map((edge, i) => ({ ...edge, points: routes[i] })),
  };
}
