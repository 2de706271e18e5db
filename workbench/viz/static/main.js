// The shell: header, kernels and results, the middle in one of several modes, code, and the strip
// of passes. `page` makes of panels what anywidget calls; the exported page calls it with a shim.
//
// A panel is a folder whose `panel.js` exports `panel`: {place, order, make} and, in the middle, a
// title; its name is the folder's. Places are top, left, middle, right and bottom. `make(app)` gives
// {el, update(changes)}, of a mode also {focus(), keys}: `update` is told what changed while it is
// shown (everything since it was last shown); `keys` maps a key to a function, before the keys of
// the whole page.

import { unpacked } from "./app/channel.js";
import { header } from "./app/header.js";
import { helpPane } from "./app/help.js";
import { listenKeys } from "./app/keys.js";
import { lightAll } from "./app/links.js";
import { modePane } from "./app/modes.js";
import { paneTabs } from "./app/narrow.js";
import { notices } from "./app/notices.js";
import { listenPointer, listenTheme } from "./app/pointer.js";
import { createApp } from "./app/store.js";
import { debounced, h } from "./base/elements.js";

/** Return what a host calls: `render({model, el})` shows the panels in an element. */
export function page(panels) {
  return { render: (host) => render(panels, host) };
}

function start(app, el, panels) {
  const root = h("div", { class: "wb", tabindex: 0, role: "region", "aria-label": "workbench" });
  const at = (place) =>
    panels.filter((panel) => panel.place === place).sort((a, b) => a.order - b.order);
  const modes = at("middle");
  const middle = modePane(app, modes);
  const panes = shellOf(
    app,
    root,
    middle,
    modes,
    (place) => at(place).map(({ make }) => make(app)),
  );
  el.append(root);
  const show = (changes) => {
    root.dataset.pane = app.view.pane;
    root.dataset.only = app.view.only || "";
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
    app.stopWatching();
    root.remove();
  };
}

/** Fill the root; return its panes, in the order in which they stand. */
function shellOf(app, root, middle, modes, made) {
  const [head, tabs, messages, help] = [
    header(app, root, modes),
    paneTabs(app, modes),
    notices(app),
    helpPane(app, modes),
  ];
  const [top, left, right, bottom] = ["top", "left", "right", "bottom"].map(made);
  const els = (listed) => listed.map((pane) => pane.el);
  root.append(
    head.el,
    ...els(top),
    tabs.el,
    h(
      "div",
      { class: "wb-body" },
      h("div", { class: "wb-left" }, ...els(left)),
      middle.el,
      ...els(right),
    ),
    h("div", { class: "wb-bottom" }, ...els(bottom), messages.el),
    help.el,
  );
  return [head, ...top, tabs, ...left, middle, ...right, ...bottom, messages, help];
}

/** A fault in one pane must not take the others along. */
function guarded(actOn) {
  try {
    actOn();
  } catch (error) {
    reportError(error);
  }
}

/** What had the focus may be hidden now: its keys must not end up on the page around. */
function recoverFocus(root) {
  const focused = document.activeElement;
  if (root.contains(focused) && !focused.checkVisibility()) root.focus({ preventScroll: true });
}

/** Connect the app to a widget model (anywidget's, or the shim of an exported page). */
async function render(panels, { model, el }) {
  const live = model.get("live") === true;
  let isOpen = true;
  const keep = debounced((view) => {
    if (!isOpen) return; // the model may be gone, too
    model.set("view", view);
    model.save_changes();
  }, 300);
  const app = createApp(await unpacked(model.get("record")), {
    view: model.get("view") || {},
    send: live ? (message) => model.send(message) : null,
    keep,
  });
  let heardBefore = Promise.resolve();
  const heard = (
    message,
  ) => (heardBefore = heardBefore.then(() => app.hear(message)).catch(reportError));
  const viewed = () => app.select(model.get("view") || {}); // Python may say what to show
  const closed = () => app.closed();
  model.on("msg:custom", heard);
  model.on("change:view", viewed);
  model.on("comm:close", closed);
  model.on("comm_live_update", app.ping); // the Python session was restarted
  const end = start(app, el, panels);
  app.ping();
  return () => {
    isOpen = false;
    model.off("msg:custom", heard);
    model.off("change:view", viewed);
    model.off("comm:close", closed);
    model.off("comm_live_update", app.ping);
    end();
  };
}
