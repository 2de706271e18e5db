// The shell of the page: header, the board of panes, and the strip of passes. `page` returns the
// object that anywidget calls; the exported page calls it with a shim.
//
// A panel is a folder whose `panel.js` exports `panel`: {place, order, make}; its name is the
// folder's. Places are top and bottom, for bars over and below the board, and pane, for a pane of
// the board, with a title; `panes` are several of them; one whose place is middle has a layout of
// its own, with a tab. `make(app)` gives {el, update(changes)}, of a pane also {focus(), keys}:
// `update` is told what changed while it is shown (everything since it was last shown); `keys` maps
// a key to a function, before the keys of the whole page. A panel that has a section of the record
// gets it as `make(app, section)`.

import { notify } from "./app/actions.js";
import { RESTARTED, unpacked } from "./app/channel.js";
import { explain, listenHeadings } from "./app/glossary.js";
import { header, notices } from "./app/header.js";
import { helpPane } from "./app/help.js";
import { listenTheme, measureHost } from "./app/host.js";
import { listenKeys } from "./app/keys.js";
import { lightAll, listenPointer } from "./app/links.js";
import { listenPrint } from "./app/print.js";
import { paneOf } from "./app/sections.js";
import { Sight } from "./app/sight.js";
import { connectLate, seekParts } from "./app/startup.js";
import { App } from "./app/store.js";
import { tourPane } from "./app/tour.js";
import { debounced, focusedAround, h } from "./base/elements.js";
import { layoutOf } from "./board/arrangement.js";
import { besideKind } from "./board/beside_pane.js";
import { Board } from "./board/board.js";
import { LAYOUTS, openingLayout, storeLayout } from "./board/layouts.js";
import { listenLink } from "./export/link.js";
import { exportPane } from "./export/sheet.js";
import { shownRecord } from "./record/asking.js";

/** @import { Message, PageRecord } from "./record.d.ts" */
/** @import { Layout } from "./board/layouts.js" */
/** @import { PaneKind } from "./board/board.js" */
/** @import { Changes, Model, Pane, Panel, View } from "./types.d.ts" */

/** Return the object that a host calls: `render({model, el})` shows the panels in an element.
 * @param {Panel[]} panels */
export function page(panels) {
  return { render: (/** @type {{model: Model, el: HTMLElement}} */ host) => render(panels, host) };
}

/** Show the panels in an element; return a function that removes them.
 * @param {App} app
 * @param {HTMLElement} el
 * @param {Panel[]} panels
 * @param {unknown} boards the arrangements that a file was written with */
function start(app, el, panels, boards) {
  const root = h("div", { class: "wb", tabindex: 0, role: "region", "aria-label": "workbench" });
  const kinds = paneKinds(app, panels);
  const layouts = layoutsOf(panels);
  app.arrangements.open(layouts, kinds.map(({ name }) => name), boards);
  const board = new Board(app, kinds);
  /** @type {Pane[] | null} */
  let panes = null;
  /** The changes that no pane has seen yet.
   * @type {Changes} */
  let missed = new Set([...Object.keys(app.view), "record", "live", "status", "hover", "pending"]);
  app.root = root;
  root.addEventListener("fullscreenchange", () => app.changed("full"));
  measureHost(root, el);
  el.append(root);
  app.arrangements.measure(root.clientWidth || innerWidth);
  const sized = new ResizeObserver(() => app.arrangements.measure(root.clientWidth));
  sized.observe(root);
  const sight = new Sight(root, () => {
    panes ??= shellOf(app, root, board, layouts, panels);
    show(new Set());
  });
  const show = (/** @type {Changes} */ more) => {
    more.forEach((change) => missed.add(change));
    if (!panes || more.has("record")) root.dataset.title = titleOf(app); // while nothing is drawn
    if (!sight.isDrawn) return;
    const changes = missed;
    missed = new Set();
    root.dataset.only = app.view.only || "";
    root.dataset.alone = placeOf(panels, app.view.only) || "";
    root.dataset.mode = app.view.mode;
    root.toggleAttribute("data-bars", app.arrangements.hasBars);
    panes?.forEach((pane) => guarded(() => pane.update(changes)));
    lightAll(app, root);
    recoverFocus(root);
  };
  const removers = [app.on(show), ...listenAll(app, root, board, layouts)];
  sight.begin(); // after a link was read: its view is the first that is shown
  return () => {
    removers.forEach((end) => end());
    sized.disconnect();
    sight.end();
    app.channel.stopWatching();
    root.remove();
  };
}

/** Listen to the reader and to the page around; return what ends that.
 * @param {App} app
 * @param {HTMLElement} root
 * @param {Board} board
 * @param {Layout[]} layouts */
function listenAll(app, root, board, layouts) {
  listenKeys(app, root, board, layouts);
  listenHeadings(app, root);
  return [
    listenPointer(app, root),
    listenTheme(app, root),
    listenPrint(app, root),
    listenLink(app),
    explain(app, root),
  ];
}

/** @type {(panels: Panel[]) => Panel[]} */
const inOrder = (panels) => [...panels].sort((a, b) => a.order - b.order);

/** The panes of the board, in the order in which they are listed; then those of the other side.
 * @param {App} app
 * @param {Panel[]} panels
 * @returns {PaneKind[]} */
function paneKinds(app, panels) {
  const kinds = inOrder(panels).flatMap((panel) => {
    if (panel.place !== "pane" && panel.place !== "middle") return [];
    if ("panes" in panel) {
      return panel.panes.map(({ name, title, make }) => ({
        name,
        title,
        makeFor: (/** @type {App} */ side) =>
          make(side, () => side.record.panels[panel.name]?.data),
      }));
    }
    const { name, title } = panel;
    return [{ name, title, makeFor: (/** @type {App} */ side) => paneOf(side, panel) }];
  });
  return [
    ...kinds.map(({ name, title, makeFor }) => ({ name, title, make: () => makeFor(app) })),
    ...kinds.filter(({ name }) => !OF_BOTH.has(name)).map((kind) => besideKind(app, kind)),
  ];
}

/** The panes that show both sides, or what all variants have in common. */
const OF_BOTH = new Set(["compare", "side_by_side", "rules", "lines"]);

/** The layouts: those of the page, and one for each panel in the middle.
 * @param {Panel[]} panels
 * @returns {Layout[]} */
const layoutsOf = (panels) => [
  ...LAYOUTS,
  ...inOrder(panels).flatMap((panel) =>
    panel.place === "middle" && "title" in panel ? [layoutOf(panel.name, panel.title)] : []
  ),
];

/** Where the only visible pane stands, "board" or "bottom"; "" if all are visible.
 * @param {Panel[]} panels
 * @param {string | null} only */
const placeOf = (panels, only) =>
  only && (panels.find(({ name }) => name === only)?.place === "bottom" ? "bottom" : "board");

/** Fill the root; return its panes, in the order in which they stand.
 * @param {App} app
 * @param {HTMLElement} root
 * @param {Board} board
 * @param {Layout[]} layouts
 * @param {Panel[]} panels
 * @returns {Pane[]} */
function shellOf(app, root, board, layouts, panels) {
  const [head, messages, help, exports, tour] = [
    header(app, layouts),
    notices(app),
    helpPane(app, layouts),
    exportPane(app, board),
    tourPane(app),
  ];
  const [top, bottom] = ["top", "bottom"].map((place) =>
    inOrder(panels).flatMap((panel) =>
      panel.place === place && "make" in panel ? [paneOf(app, panel)] : []
    )
  );
  const els = (/** @type {Pane[]} */ listed) => listed.map((pane) => pane.el);
  root.append(
    head.el,
    ...els(top),
    tour.el,
    board.switcher,
    board.el,
    h("div", { class: "wb-bottom" }, ...els(bottom), messages.el),
    help.el,
    exports.el,
  );
  return [head, ...top, board, ...bottom, messages, help, exports, tour]; // it lights the board's
}

/** Run a function so that a fault in one pane does not stop the others.
 * @param {() => unknown} actOn */
function guarded(actOn) {
  try {
    actOn();
  } catch (error) {
    reportError(error);
  }
}

/** The focused element may be hidden now: its keys must not reach the page around.
 * @param {HTMLElement} root */
function recoverFocus(root) {
  const focused = focusedAround(root);
  if (focused && focused !== root && root.contains(focused) && !focused.checkVisibility()) {
    root.focus({ preventScroll: true });
  }
}

/** What stands in place of a page without elements.
 * @param {App} app */
const titleOf = ({ record: { expr, headline } }) => `${expr.text}\n${headline}`;

/** The style that hides the saved still picture while the page is shown.
 * @param {string} key */
function hidingStill(key) {
  const still = `[data-still="${CSS.escape(key)}"]`;
  const place = `.jp-OutputArea-child:has(> .jp-OutputArea-output > ${still})`;
  return h("style", {}, key && `${still} { display: none; } ${place} { display: none; }`);
}

/** Return a function that gives the parts of the page as a file: the host's document, style and
 * script.
 * @param {Model} model */
function fileOf(model) {
  const [shell, css = "", script = ""] = [model.get("shell"), model.get("_css"), model.get("_esm")];
  return shell ? () => ({ shell, css, script }) : null;
}

/** Keeps the view in a model, and the layout that the reader chooses, once the page has begun with
 * one, in the browser.
 * @param {Model} model
 * @param {string} key */
function keeperOf(model, key) {
  let isOpen = true;
  /** @type {string | null} */
  let mode = null;
  const save = debounced((/** @type {View} */ view) => {
    if (!isOpen) return; // the model may be closed, too
    model.set("view", view);
    model.save_changes();
  }, 300);
  return {
    begin: (/** @type {string} */ first) => (mode = first),
    end: () => (isOpen = false),
    keep(/** @type {View} */ view) {
      if (mode !== null) {
        if (view.mode !== mode && !view.only) storeLayout(key, view.mode);
        mode = view.mode;
      }
      save(view);
    },
  };
}

/** Connect the app to a widget model.
 * @param {Panel[]} panels
 * @param {{model: Model, el: HTMLElement}} host */
async function render(panels, { model, el }) {
  const live = model.get("live") === true;
  const { boards, ...opens } = model.get("view") ?? {};
  const constants = model.get("constants") ?? null;
  const record = await unpacked(model.get("record"), constants);
  const keeper = keeperOf(model, record.key);
  const app = new App(record, {
    view: { mode: openingLayout(shownRecord(record, null)), ...opens },
    send: live ? (message) => model.send(message) : null,
    keep: keeper.keep,
    file: fileOf(model),
    constants,
  });
  if (live) connectLate(model, app.view);
  const { channel } = app;
  if (model.isWorking) channel.isWorking = model.isWorking;
  channel.tell = (text) => notify(app, text, 8000);
  let received = Promise.resolve();
  /** @type {Record<string, (message: Message) => unknown>} */
  const handlers = {
    "msg:custom": (message) =>
      received = received.then(() => channel.receive(message)).catch(reportError),
    "change:view": () => app.select(model.get("view") || {}), // Python may set the view
    "comm:close": () => channel.closed(),
    "comm_live_update": () => { // the Python session was restarted
      channel.silence = RESTARTED;
      channel.ping();
    },
  };
  for (const [name, act] of Object.entries(handlers)) model.on(name, act);
  const end = start(app, el, panels, boards);
  keeper.begin(app.view.mode); // also that of a link, which is not the reader's choice
  el.append(hidingStill(model.get("still") ?? ""));
  channel.ping(app.record.n); // patches that came before the page began are missing
  const seekNoMore = live ? seekParts(model) : () => {};
  return () => {
    keeper.end();
    seekNoMore();
    for (const [name, act] of Object.entries(handlers)) model.off(name, act);
    end();
  };
}
