// A model that begins late. anywidget gives one up whose script has not begun within two seconds (on
// a busy machine, with many cells at once): it then drops all that Python sends. The model of
// ipywidgets, of which anywidget's is one, does not.

/** @import { Model, View } from "../types.d.ts" */

/** What ipywidgets' models have: the way from Python, and what is called with each message.
 * @typedef {{comm?: {on_msg?(heard: (message: unknown) => unknown): void}}} WidgetModel */

const HEARD = "_handle_comm_msg"; // its name in ipywidgets

/** Let a model hear Python, however late it began; sets the view. The model itself is told by none of
 * anywidget's functions, but Backbone passes it to who listens to its changes; an equal view is none.
 * @param {Model} model
 * @param {View} view */
export function hearLate(model, view) {
  const listen = (/** @type {unknown} */ widget) => hearAll(/** @type {WidgetModel} */ (widget));
  model.on("change:view", listen);
  model.set("view", null);
  model.off("change:view", listen);
  model.set("view", view);
}

/** @param {WidgetModel} widget */
function hearAll(widget) {
  const heard = firstDefinition(widget, HEARD);
  if (typeof heard === "function") widget.comm?.on_msg?.((message) => heard.call(widget, message));
}

/** The property as the first of an object's classes defines it, below all that override it.
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
