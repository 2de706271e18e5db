// Where answers about a node stand: they outlive that the panel is filled anew.

import { h } from "../base/elements.js";

/** Where the answers about a node at a step stand: they outlive that the panel is made anew. */
export function answersAbout(app, state, n, place, step) {
  const about = `${n} ${place} ${step} ${app.view.variant}`;
  if (state.answers?.about !== about) {
    state.answers = {
      about,
      values: h("output", { class: "wb-rw-values" }),
      why_not: h("div", { class: "wb-rw-answer", role: "status" }),
    };
  }
  return state.answers;
}
