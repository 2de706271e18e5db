// The room of panes: what is folded and how large, by mode, remembered for other pages.

import assert from "node:assert/strict";
import { Room } from "../../../../workbench/viz/page/app/pane_sizes.js";

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

/** An app in a mode, and its room. */
function roomIn(mode, root = rootOf()) {
  const news = [];
  const app = { view: { mode }, root, changed: (what) => news.push(what) };
  const room = new Room(app);
  room.wide = new Set(["plan", "rewrites"]);
  return { app, room, root, news };
}

Deno.test("where the picture is the main thing, the columns beside it are folded at first", () => {
  storage();
  const { app, room } = roomIn("plan");
  const open = () => ["left", "right", "aside"].map((pane) => room.isOpen(pane));
  assert.deepEqual(open(), [false, false, true]);
  app.view.mode = "tune";
  assert.deepEqual(open(), [true, true, true]);
});

Deno.test("what is folded is so in its mode alone, and in the next page", () => {
  storage();
  const { app, room, root, news } = roomIn("plan");
  room.toggle("left");
  room.toggle("aside");
  room.place(root);
  assert.deepEqual([...root.attributes].sort(), ["data-no-aside", "data-no-right"]);
  assert.deepEqual(news, ["room", "room"]);
  app.view.mode = "rewrites";
  room.place(root);
  assert.deepEqual([...root.attributes].sort(), ["data-no-left", "data-no-right"]);
  assert.deepEqual(["left", "aside"].map((pane) => roomIn("plan").room.isOpen(pane)), [
    true,
    false,
  ]);
});

Deno.test("a size is a share within limits, and is given up again", () => {
  const stored = storage();
  const { room, root } = roomIn("tune");
  room.resize("left", 30);
  room.resize("nest", 300);
  room.resize("details", -5);
  assert.deepEqual([...root.sizes], [
    ["--wb-left", "30.0cqi"],
    ["--wb-nest", "85.0%"],
    ["--wb-details", "8.0%"],
  ]);
  assert.equal(stored.size, 0, "a drag is not over yet");
  room.store();
  const next = roomIn("tune");
  next.room.place(next.root);
  assert.deepEqual([...next.root.sizes], [...root.sizes]);
  room.resize("left", null);
  assert.equal(root.sizes.has("--wb-left"), false);
});

Deno.test("a browser that keeps nothing, or something broken, is as at first", () => {
  const refused = () => {
    throw new Error("not allowed");
  };
  remember({ getItem: refused, setItem: refused });
  const { room } = roomIn("plan");
  room.toggle("left");
  assert.equal(room.isOpen("left"), true, "it lasts as long as the page");
  const stored = storage();
  stored.set("workbench-room", "{broken");
  assert.equal(roomIn("plan").room.isOpen("left"), false);
});

Deno.test("what a link says of the room is not remembered with what the reader changes", () => {
  storage();
  const mine = roomIn("tune");
  mine.room.resize("left", 30);
  mine.room.store();
  const linked = roomIn("tune");
  linked.room.here = { aside: { isOpen: false } };
  assert.deepEqual(linked.room.here, { aside: { isOpen: false } });
  linked.room.toggle("right");
  const next = roomIn("tune");
  assert.deepEqual(next.room.here, { left: { share: 30 }, right: { isOpen: false } });
});
