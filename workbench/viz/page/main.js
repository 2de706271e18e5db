// The shell: header, kernels and results, the middle in one of several modes, code, and the strip
// of passes. `page` makes of panels what anywidget calls; the exported page calls it with a shim.
//
// A panel is a folder whose `panel.js` exports `panel`: {place, order, make} and, in the middle, a
// title; its name is the folder's. Places are top, left, middle, right and bottom. `make(app)` gives
// {el, update(changes)}, of a mode also {focus(), keys}: `update` is told what changed while it is
// shown (everything since it was last shown); `keys` maps a key to a function, before the keys of
// the whole page. A panel that has a section of the record gets it as `make(app, section)`.

import { unpacked } from "./app/channel.js";
import { header } from "./app/header.js";
import { helpPane } from "./app/help.js";
import { listenKeys } from "./app/keys.js";
import { lightAll } from "./app/links.js";
import { modePane } from "./app/modes.js";
import { paneTabs } from "./app/narrow.js";
import { notices } from "./app/notices.js";
import { listenPointer, listenTheme } from "./app/pointer.js";
import { paneOf } from "./app/sections.js";
import { App } from "./app/store.js";
import { debounced, h } from "./base/elements.js";

/** @import { Message } from "./record.d.ts" */
/** @import { Changes, Middle, Mode, Model, Pane, Panel, View } from "./types.d.ts" */

/** Return what a host calls: `render({model, el})` shows the panels in an element.
 * @param {Panel[]} panels */
export function page(panels) {
  return { render: (/** @type {{model: Model, el: HTMLElement}} */ host) => render(panels, host) };
}

/** Show the panels in an element; return what ends that.
 * @param {App} app
 * @param {HTMLElement} el
 * @param {Panel[]} panels */
function start(app, el, panels) {
  const root = h("div", { class: "wb", tabindex: 0, role: "region", "aria-label": "workbench" });
  const modes = inOrder(panels).filter((panel) => panel.place === "middle");
  const middle = modePane(app, modes);
  const panes = shellOf(app, root, middle, modes, panels);
  app.root = root;
  el.append(root);
  const show = (/** @type {Changes} */ changes) => {
    root.dataset.pane = app.view.pane;
    root.dataset.only = app.view.only || "";
    root.dataset.alone = placeOf(panels, app.view.only);
    root.dataset.mode = app.view.mode;
    panes.forEach((pane) => guarded(() => pane.update(changes)));
    lightAll(app, root);
    recoverFocus(root);
  };
  show(new Set([...Object.keys(app.view), "record", "live", "status", "hover", "pending"]));
  const off = app.on(show);
  listenKeys(app, root, middle, modes);
  const letGo = [listenPointer(app, root), listenTheme(app)];
  return () => {
    off();
    letGo.forEach((end) => end());
    app.channel.stopWatching();
    root.remove();
  };
}

/** @type {(panels: Panel[]) => Panel[]} */
const inOrder = (panels) => [...panels].sort((a, b) => a.order - b.order);

/** Return the place of the one pane that is shown; "" where all are. What is a part of a mode
 * stands where that does.
 * @param {Panel[]} panels
 * @param {string | null} only */
const placeOf = (panels, only) =>
  only ? panels.find(({ name }) => name === only)?.place ?? "middle" : "";

/** Fill the root; return its panes, in the order in which they stand.
 * @param {App} app
 * @param {HTMLElement} root
 * @param {Middle} middle
 * @param {Mode[]} modes
 * @param {Panel[]} panels
 * @returns {Pane[]} */
function shellOf(app, root, middle, modes, panels) {
  const [head, tabs, messages, help] = [
    header(app, modes),
    paneTabs(app, modes),
    notices(app),
    helpPane(app, modes),
  ];
  const [top, left, right, bottom] = ["top", "left", "right", "bottom"].map((place) =>
    inOrder(panels).filter((panel) => panel.place === place).map((panel) => paneOf(app, panel))
  );
  const els = (/** @type {Pane[]} */ listed) => listed.map((pane) => pane.el);
  root.append(
    head.el,
    ...els(top),
    tabs.el,
    h(
      "div",
      { class: "wb-body" },
      h("div", { class: "wb-left" }, ...els(left)),
      middle.el,
      h("div", { class: "wb-right" }, ...els(right)),
    ),
    h("div", { class: "wb-bottom" }, ...els(bottom), messages.el),
    help.el,
  );
  return [head, ...top, tabs, ...left, middle, ...right, ...bottom, messages, help];
}

/** A fault in one pane must not take the others along.
 * @param {() => unknown} actOn */
function guarded(actOn) {
  try {
    actOn();
  } catch (error) {
    reportError(error);
  }
}

/** What had the focus may be hidden now: its keys must not end up on the page around.
 * @param {HTMLElement} root */
function recoverFocus(root) {
  const focused = document.activeElement;
  if (focused && root.contains(focused) && !focused.checkVisibility()) {
    root.focus({ preventScroll: true });
  }
}

/** Connect the app to a widget model.
 * @param {Panel[]} panels
 * @param {{model: Model, el: HTMLElement}} host */
async function render(panels, { model, el }) {
  const live = model.get("live") === true;
  let isOpen = true;
  const keep = debounced((/** @type {View} */ view) => {
    if (!isOpen) return; // the model may be gone, too
    model.set("view", view);
    model.save_changes();
  }, 300);
  const app = new App(await unpacked(model.get("record")), {
    view: model.get("view") || {},
    send: live ? (message) => model.send(message) : null,
    keep,
  });
  const { channel } = app;
  let heardBefore = Promise.resolve();
  /** @type {Record<string, (message: Message) => unknown>} */
  const heard = {
    "msg:custom": (message) =>
      heardBefore = heardBefore.then(() => channel.hear(message)).catch(reportError),
    "change:view": () => app.select(model.get("view") || {}), // Python may say what to show
    "comm:close": () => channel.closed(),
    "comm_live_update": () => channel.ping(), // the Python session was restarted
  };
  for (const [name, act] of Object.entries(heard)) model.on(name, act);
  const end = start(app, el, panels);
  channel.ping();
  return () => {
    isOpen = false;
    for (const [name, act] of Object.entries(heard)) model.off(name, act);
    end();
  };
}
