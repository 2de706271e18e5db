// The sizes of panes: what is folded and how large, by mode, remembered for other pages.

import assert from "node:assert/strict";
import { PaneSizes } from "../../../../workbench/viz/page/app/pane_sizes.js";

/** @type {(value: object) => void} */
const remember = (value) =>
  Object.defineProperty(globalThis, "localStorage", { value, configurable: true });

/** What a browser remembers, from one page to the next. */
function storage() {
  const stored = new Map();
  remember({
    getItem: (key) => stored.get(key) ?? null,
    setItem: (key, text) => stored.set(key, text),
  });
  return stored;
}

/** A root that notes its attributes and its style. */
function rootOf() {
  const [attributes, style] = [new Set(), new Map()];
  return {
    attributes,
    sizes: style,
    toggleAttribute: (name, isOn) => isOn ? attributes.add(name) : attributes.delete(name),
    style: {
      setProperty: (name, value) => style.set(name, value),
      removeProperty: (name) => style.delete(name),
    },
  };
}

/** An app in a mode, and its sizes. */
function sizesIn(mode, root = rootOf()) {
  const news = [];
  const app = { view: { mode }, root, changed: (what) => news.push(what) };
  const sizes = new PaneSizes(app);
  sizes.wide = new Set(["plan", "rewrites"]);
  return { app, sizes, root, news };
}

Deno.test("where the picture is the main thing, the columns beside it are folded at first", () => {
  storage();
  const { app, sizes } = sizesIn("plan");
  const open = () => ["left", "right", "aside"].map((pane) => sizes.isOpen(pane));
  assert.deepEqual(open(), [false, false, true]);
  app.view.mode = "tune";
  assert.deepEqual(open(), [true, true, true]);
});

Deno.test("what is folded is so in its mode alone, and in the next page", () => {
  storage();
  const { app, sizes, root, news } = sizesIn("plan");
  sizes.toggle("left");
  sizes.toggle("aside");
  sizes.apply(root);
  assert.deepEqual([...root.attributes].sort(), ["data-no-aside", "data-no-right"]);
  assert.deepEqual(news, ["sizes", "sizes"]);
  app.view.mode = "rewrites";
  sizes.apply(root);
  assert.deepEqual([...root.attributes].sort(), ["data-no-left", "data-no-right"]);
  assert.deepEqual(["left", "aside"].map((pane) => sizesIn("plan").sizes.isOpen(pane)), [
    true,
    false,
  ]);
});

Deno.test("a size is a share within limits, and is given up again", () => {
  const stored = storage();
  const { sizes, root } = sizesIn("tune");
  sizes.resize("left", 30);
  sizes.resize("nest", 300);
  sizes.resize("details", -5);
  assert.deepEqual([...root.sizes], [
    ["--wb-left", "30.0cqi"],
    ["--wb-nest", "85.0%"],
    ["--wb-details", "8.0%"],
  ]);
  assert.equal(stored.size, 0, "a drag is not over yet");
  sizes.store();
  const next = sizesIn("tune");
  next.sizes.apply(next.root);
  assert.deepEqual([...next.root.sizes], [...root.sizes]);
  sizes.resize("left", null);
  assert.equal(root.sizes.has("--wb-left"), false);
});

Deno.test("a browser that keeps nothing, or something broken, is as at first", () => {
  const refused = () => {
    throw new Error("not allowed");
  };
  remember({ getItem: refused, setItem: refused });
  const { sizes } = sizesIn("plan");
  sizes.toggle("left");
  assert.equal(sizes.isOpen("left"), true, "it lasts as long as the page");
  const stored = storage();
  stored.set("workbench-room", "{broken");
  assert.equal(sizesIn("plan").sizes.isOpen("left"), false);
});

Deno.test("what a link says of the sizes is not remembered with what the reader changes", () => {
  storage();
  const mine = sizesIn("tune");
  mine.sizes.resize("left", 30);
  mine.sizes.store();
  const linked = sizesIn("tune");
  linked.sizes.current = { aside: { isOpen: false } };
  assert.deepEqual(linked.sizes.current, { aside: { isOpen: false } });
  linked.sizes.toggle("right");
  const next = sizesIn("tune");
  assert.deepEqual(next.sizes.current, { left: { share: 30 }, right: { isOpen: false } });
});
