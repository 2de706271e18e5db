// The shell: header, kernels and results, the middle in one of three modes, code, and the strip
// of passes. `render` is what anywidget calls; the exported page calls it with a shim.

import { header } from "./app/header.js";
import { helpPane } from "./app/help.js";
import { listenKeys } from "./app/keys.js";
import { lightAll, LINKS } from "./app/links.js";
import { paneTabs } from "./app/narrow.js";
import { notices } from "./app/notices.js";
import { createApp, unpacked } from "./app/store.js";
import { debounced, h, keepingFocus } from "./base/elements.js";
import { codePane } from "./code/panel.js";
import { kernelsPane } from "./kernels/panel.js";
import { linesPane } from "./lines/panel.js";
import { modePlan } from "./plan/panel.js";
import { resultsPane } from "./results/panel.js";
import { modeRewrites } from "./rewrites/panel.js";
import { strip } from "./strip/panel.js";
import { modeTune } from "./tune/panel.js";
import { withoutPane } from "./without/panel.js";

// A mode is a function (app) -> {el, update(changes), focus(), keys}: `update` is told what
// changed while it is shown (everything since it was last shown); `keys` maps a key to a
// function, before the keys of the whole page.
const MODES = {
  tune: { title: "Tune", make: (app) => modeTune(app) },
  rewrites: { title: "Rewrites", make: (app) => modeRewrites(app) },
  plan: { title: "Plan", make: (app) => modePlan(app) },
};

function start(app, el) {
  const root = h("div", { class: "wb", tabindex: 0, role: "region", "aria-label": "workbench" });
  const middle = modePane(app);
  const left = [kernelsPane(app), resultsPane(app), linesPane(app)];
  const code = codePane(app);
  const [head, without, tabs, history, messages, help] = [
    header(app, root, MODES),
    withoutPane(app),
    paneTabs(app, MODES),
    strip(app),
    notices(app),
    helpPane(app),
  ];
  const panes = [head, without, tabs, ...left, middle, code, history, messages, help];
  root.append(
    head.el,
    without.el,
    tabs.el,
    h(
      "div",
      { class: "wb-body" },
      h("div", { class: "wb-left" }, ...left.map((pane) => pane.el)),
      middle.el,
      code.el,
    ),
    h("div", { class: "wb-bottom" }, history.el, messages.el),
    help.el,
  );
  el.append(root);

  const everything = new Set([
    ...Object.keys(app.view),
    "record",
    "live",
    "status",
    "hover",
    "pending",
  ]);
  const show = (changes) => {
    root.dataset.pane = app.view.pane;
    root.dataset.only = app.view.only || "";
    root.dataset.mode = app.view.mode;
    panes.forEach((pane) => guarded(() => pane.update(changes)));
    lightAll(app, root);
    recoverFocus(root);
  };
  show(everything);
  const off = app.on(show);
  listenKeys(app, root, middle);
  const letGo = [listenPointer(app, root), listenTheme(app)];
  return () => {
    off();
    letGo.forEach((end) => end());
    app.stopWatching();
    root.remove();
  };
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

/** The middle: modes are made when first shown, and hear what they missed. */
function modePane(app) {
  const el = h("section", { class: "wb-middle", "aria-label": "workspace" });
  const made = {};
  const missed = {};
  const current = () => made[app.view.mode];
  const update = (changes) => {
    const name = app.view.mode in MODES ? app.view.mode : "tune";
    for (const other of Object.keys(made)) changes.forEach((change) => missed[other].add(change));
    if (!made[name]) {
      made[name] = MODES[name].make(app);
      missed[name] = new Set([...Object.keys(app.view), "record", "live", "hover"]);
    }
    const [hadFocus, isOther] = [
      el.contains(document.activeElement),
      el.firstChild !== made[name].el,
    ];
    if (isOther) keepingFocus(el, () => el.replaceChildren(made[name].el));
    made[name].update(missed[name]);
    missed[name] = new Set();
    if (isOther && hadFocus) made[name].focus();
  };
  return { el, update, current };
}

/** Pointing lights up what belongs together; nothing moves. Coming in asks whether Python is there.
 * What listens on the root goes with it; the rest is let go by the function returned. */
function listenPointer(app, root) {
  const over = (event) => {
    if (!event.buttons) app.hold(false);
    const element = event.target.closest?.(".wb-link");
    app.light(element && root.contains(element) ? LINKS.get(element) : null);
  };
  const out = () => app.light(null);
  const down = (event) => app.hold(!event.target.closest("select, input, textarea"));
  const up = () => setTimeout(() => app.hold(false)); // where no click follows
  const entered = ({ target, relatedTarget }) =>
    root.contains(relatedTarget) || target.closest("[data-refilled]") || app.ping();
  root.addEventListener("pointerover", over);
  root.addEventListener("pointerleave", out);
  root.addEventListener("focusin", entered);
  root.addEventListener("pointerdown", down);
  root.addEventListener("click", () => app.hold(false));
  window.addEventListener("pointerup", up);
  window.addEventListener("pointercancel", up);
  return () => {
    window.removeEventListener("pointerup", up);
    window.removeEventListener("pointercancel", up);
  };
}

/** Say when the theme changes: a canvas does not follow the style sheet by itself. Returns what
 * lets go. */
function listenTheme(app) {
  const changed = () => app.changed("theme");
  const observer = new MutationObserver(changed);
  const isDark = matchMedia("(prefers-color-scheme: dark)");
  observer.observe(document.body, {
    attributes: true,
    attributeFilter: ["data-jp-theme-light", "class"],
  });
  isDark.addEventListener("change", changed);
  return () => {
    observer.disconnect();
    isDark.removeEventListener("change", changed);
  };
}

/** Connect the app to a widget model (anywidget's, or the shim of an exported page). */
export async function render({ model, el }) {
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
  const end = start(app, el);
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
