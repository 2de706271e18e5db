// The lines between panes, by keys: before elements that only have boxes.

import assert from "node:assert/strict";

/** An element that has a box, attributes and listeners, and no more. */
class Plain {
  attributes = {};
  heard = {};
  style = {};
  constructor(box = [5, 400]) {
    [this.offsetWidth, this.offsetHeight] = box;
    this.box = { width: box[0], height: box[1] };
  }
  setAttribute(name, value) {
    this.attributes[name] = value;
  }
  addEventListener(name, act) {
    this.heard[name] = act;
  }
  append() {}
  getBoundingClientRect() {
    return this.box;
  }
}

Object.assign(globalThis, {
  document: { createElement: () => new Plain() },
  ResizeObserver: class {
    observe() {}
  },
  getComputedStyle: (el) => ({ display: el.display ?? "flex" }),
});

const { divider } = await import("../../../../workbench/viz/page/app/dividers.js");

/** A line beside a pane of 200 px in 1,000, what it asked for, and a way to press its keys. */
function lineBeside(side, outer = { display: "flex" }) {
  const asked = [];
  const sizes = {
    resize: (pane, share) => asked.push([pane, share]),
    store: () => asked.push("stored"),
  };
  const el = divider({ sizes }, "left", "kernels", side);
  const pane = new Plain([200, 400]);
  Object.assign(
    el,
    side === "before" ? { previousElementSibling: pane } : { nextElementSibling: pane },
  );
  const whole = Object.assign(new Plain([1000, 400]), { display: "grid" });
  el.parentElement = outer.display === "contents"
    ? Object.assign(outer, { parentElement: whole })
    : whole;
  const press = (key) => {
    const event = { key, preventDefault() {}, stopPropagation: () => asked.push("stopped") };
    el.heard.keydown(event);
  };
  return { el, asked, press };
}

Deno.test("arrows make the pane before or after a line larger, by a share of the room", () => {
  const before = lineBeside("before");
  before.press("ArrowRight");
  assert.deepEqual(before.asked, [["left", 22], "stored", "stopped"]);
  const after = lineBeside("after");
  after.press("ArrowRight");
  assert.deepEqual(after.asked[0], ["left", 18]);
  assert.equal(after.el.attributes["aria-valuenow"], "20");
  assert.equal(after.el.attributes["aria-orientation"], "vertical");
});

Deno.test("Home is as at first; other keys are the mode's", () => {
  const { asked, press } = lineBeside("before");
  press("j");
  assert.deepEqual(asked, []);
  press("Home");
  assert.deepEqual(asked, [["left", null], "stored", "stopped"]);
});

Deno.test("what has no box of its own is passed over", () => {
  const { asked, press } = lineBeside("before", { display: "contents" });
  press("ArrowLeft");
  assert.deepEqual(asked[0], ["left", 18]);
});
