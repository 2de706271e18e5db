// Script and style in a saved notebook: once, in a frame of one of its outputs
// (viz/page/document.py). If that output was cleared, the page reports it to Python, which puts
// them into the output of this page.

/** @import { Model } from "../types.d.ts" */

const LOOKS_AFTER_MS = 4000; // frames of outputs that come with this one have begun by then
const WAITS_MS = 4000;

/** Look for script and style; return what ends that.
 * @param {Model} model */
export function seekParts(model) {
  const name = model.get("parts_name");
  if (!name || !model.get("still")) return () => {};
  let isFound = false;
  const hear = (/** @type {MessageEvent} */ { data }) => {
    isFound = isFound || data?.name === name;
  };
  const say = () => {
    if (isFound) return;
    model.set("lacks_parts", true);
    model.save_changes();
  };
  const ask = () => {
    [...framesOf(top ?? window)].forEach((frame) => frame.postMessage(name, "*"));
    timer = setTimeout(say, WAITS_MS);
  };
  let timer = setTimeout(ask, LOOKS_AFTER_MS);
  addEventListener("message", hear);
  return () => {
    clearTimeout(timer);
    removeEventListener("message", hear);
  };
}

/** The frames in a window, and those in them.
 * @param {Window} around
 * @returns {Generator<Window>} */
function* framesOf(around) {
  for (let i = 0; i < around.length; i++) {
    yield around[i];
    yield* framesOf(around[i]);
  }
}
