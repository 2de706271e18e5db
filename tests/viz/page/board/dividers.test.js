// The borders between panes, by keys: before elements that only have attributes.

import assert from "node:assert/strict";

/** An element that has attributes and listeners, and no more. */
class Plain {
  attributes = {};
  heard = {};
  style = {};
  setAttribute(name, value) {
    this.attributes[name] = value;
  }
  addEventListener(name, act) {
    this.heard[name] = act;
  }
  append() {}
}

Object.assign(globalThis, {
  document: { createElement: () => new Plain() },
  ResizeObserver: class {
    observe() {}
  },
});

const { divider } = await import("../../../../workbench/viz/page/board/dividers.js");

/** A border between parts of 200 and 300 px, what it did, and a way to press its keys. */
function border(way) {
  const acts = [];
  const el = divider(way, "left", "border", {
    lengths: () => [200, 300],
    move: (by) => acts.push(by),
    even: () => acts.push("even"),
    end: () => acts.push("end"),
  });
  const press = (key) => {
    const event = { key, preventDefault() {}, stopPropagation: () => acts.push("stopped") };
    el.heard.keydown(event);
  };
  return { el, acts, press };
}

Deno.test("arrows move a border by a share of both parts", () => {
  const { el, acts, press } = border("row");
  press("ArrowRight");
  press("ArrowUp");
  assert.deepEqual(acts, [10, "end", "stopped", -10, "end", "stopped"]);
  assert.equal(el.attributes["aria-valuenow"], "40");
  assert.equal(el.attributes["aria-orientation"], "vertical");
  assert.equal(border("column").el.attributes["aria-orientation"], "horizontal");
});

Deno.test("Home and a double click give both the same room; other keys are the pane's", () => {
  const { el, acts, press } = border("row");
  press("j");
  assert.deepEqual(acts, []);
  press("Home");
  el.heard.dblclick();
  assert.deepEqual(acts, ["even", "end", "stopped", "even", "end"]);
});

Deno.test("a drag moves by what the pointer moved, and is stored at its end", () => {
  const { el, acts } = border("column");
  el.setPointerCapture = el.focus = () => {};
  const at = (clientY, button = 0) => ({ button, clientX: 0, clientY, preventDefault() {} });
  el.heard.pointermove(at(5));
  el.heard.pointerdown(at(10));
  for (const y of [14, 14, 8]) el.heard.pointermove(at(y));
  el.heard.pointerup();
  el.heard.pointermove(at(50));
  assert.deepEqual(acts, [4, -6, "end"]);
});
