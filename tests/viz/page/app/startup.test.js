// A model that anywidget has given up: ipywidgets' own way from Python is taken again.

import assert from "node:assert/strict";
import { connectLate } from "../../../../workbench/viz/page/app/startup.js";

class OfIpywidgets {
  heard = [];
  _handle_comm_msg(message) {
    this.heard.push(message);
  }
}
class GivenUp extends OfIpywidgets {
  _handle_comm_msg() {
    throw new Error("given up");
  }
}

/** A model as Backbone has it, of some class: an equal value is no change. */
function modelOf(widget, view) {
  const listeners = new Set();
  widget.comm = { on_msg: (heard) => (widget.deliver = heard) };
  return {
    view,
    on: (_, listen) => listeners.add(listen),
    off: (_, listen) => listeners.delete(listen),
    set(_, value) {
      const isEqual = JSON.stringify(value) === JSON.stringify(this.view);
      this.view = value;
      if (!isEqual) [...listeners].forEach((listen) => listen(widget));
    },
  };
}

Deno.test("it hears Python, with a new view and with the one that it has", () => {
  for (const view of [{}, { mode: "plan" }]) {
    const widget = new GivenUp();
    const model = modelOf(widget, view);
    connectLate(model, { mode: "plan" });
    widget.deliver("a patch");
    assert.deepEqual([widget.heard, model.view], [["a patch"], { mode: "plan" }]);
  }
});
