// The start of a page in a notebook: script and style of a saved one, and a model that begins late.

/** @import { Model, View } from "../types.d.ts" */

const LOOKS_AFTER_MS = 4000; // frames of outputs that load with this one have started by then
const WAITS_MS = 4000;

/** Look for script and style; return a function that ends the search.
 * @param {Model} model */
export function seekParts(model) {
  const name = model.get("parts_name");
  if (!name || !model.get("still")) return () => {};
  let isFound = false;
  const onMessage = (/** @type {MessageEvent} */ { data }) => {
    isFound = isFound || data?.name === name;
  };
  const report = () => {
    if (isFound) return;
    model.set("lacks_parts", true);
    model.save_changes();
  };
  const ask = () => {
    [...framesOf(top ?? window)].forEach((frame) => frame.postMessage(`${name}?`, "*"));
    timer = setTimeout(report, WAITS_MS);
  };
  let timer = setTimeout(ask, LOOKS_AFTER_MS);
  addEventListener("message", onMessage);
  return () => {
    clearTimeout(timer);
    removeEventListener("message", onMessage);
  };
}

/** The frames in a window, and the frames in those.
 * @param {Window} around
 * @returns {Generator<Window>} */
function* framesOf(around) {
  for (let i = 0; i < around.length; i++) {
    yield around[i];
    yield* framesOf(around[i]);
  }
}

// A model that begins late. anywidget gives one up whose script has not begun within two seconds (on
// a busy machine, with many cells at once): it then drops all that Python sends. The model of
// ipywidgets, of which anywidget's is one, does not.

/** A model of ipywidgets: its channel from Python, and its handler of each message.
 * @typedef {{comm?: {on_msg?(handler: (message: unknown) => unknown): void}}} WidgetModel */

const HANDLER = "_handle_comm_msg"; // the name in ipywidgets

/** Connect a model to Python's messages, however late it began; this sets the view. None of
 * anywidget's functions sees a message, but Backbone passes it to listeners of the model; an equal
 * view is no change.
 * @param {Model} model
 * @param {View} view */
export function connectLate(model, view) {
  const listen = (/** @type {unknown} */ widget) =>
    listenToComm(/** @type {WidgetModel} */ (widget));
  model.on("change:view", listen);
  model.set("view", null);
  model.off("change:view", listen);
  model.set("view", view);
}

/** @param {WidgetModel} widget */
function listenToComm(widget) {
  const handler = firstDefinition(widget, HANDLER);
  if (typeof handler === "function") {
    widget.comm?.on_msg?.((message) => handler.call(widget, message));
  }
}

/** The property as the first of an object's classes defines it, below all overrides.
 * @param {object} object
 * @param {string} name
 * @returns {unknown} */
function firstDefinition(object, name) {
  let first;
  for (let at = object; at && at !== Object.prototype; at = Object.getPrototypeOf(at)) {
    first = Object.getOwnPropertyDescriptor(at, name)?.value ?? first;
  }
  return first;
}
