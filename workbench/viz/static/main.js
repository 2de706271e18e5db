// The shell: header, kernels and results, the middle in one of three modes, code, and the strip
// of passes. `render` is what anywidget calls; the exported page calls it with a shim.

// A mode is a function (app) -> {el, update(changes), focus(), keys}: `update` is told what
// changed while it is shown (everything since it was last shown); `keys` maps a key to a
// function, before the keys of the whole page.
const MODES = {
  tune: { title: "Tune", make: (app) => mode_tune(app) },
  rewrites: { title: "Rewrites", make: (app) => mode_rewrites(app) },
  plan: { title: "Plan", make: (app) => mode_plan(app) },
};

function start(app, el) {
  const root = h("div", { class: "wb", tabindex: 0, role: "region", "aria-label": "workbench" });
  const middle = mode_pane(app);
  const panes = [header(app, root), kernels_pane(app), results_pane(app), middle, code_pane(app), strip(app), notices(app), help_pane(app)];
  const [head, kernels, results, , code, history, messages, help] = panes.map((pane) => pane.el);
  const tabs = pane_tabs(app);
  panes.push(tabs);
  const left = h("div", { class: "wb-left" }, kernels, results);
  const body = h("div", { class: "wb-body" }, left, middle.el, code);
  root.append(head, tabs.el, body, h("div", { class: "wb-bottom" }, history, messages), help);
  el.append(root);

  const everything = new Set([...Object.keys(app.view), "record", "live", "status", "hover", "pending"]);
  const show = (changes) => {
    root.dataset.pane = app.view.pane;
    panes.forEach((pane) => pane.update(changes));
    light_all(app, root);
  };
  show(everything);
  const off = app.on(show);
  const loose = [listen_keys(app, root, middle), listen_pointer(app, root)];
  return () => {
    off();
    loose.forEach((end) => end());
    app.stop_watching();
    root.remove();
  };
}

/** The middle: modes are made when first shown, and hear what they missed. */
function mode_pane(app) {
  const el = h("section", { class: "wb-middle", "aria-label": "mode" });
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
    if (el.firstChild !== made[name].el) el.replaceChildren(made[name].el);
    made[name].update(missed[name]);
    missed[name] = new Set();
  };
  return { el, update, current };
}

/** Pointing lights up what belongs together; nothing moves. Coming in asks whether Python is there. */
function listen_pointer(app, root) {
  const over = (event) => {
    const element = event.target.closest?.(".wb-link");
    app.light(element && root.contains(element) ? LINKS.get(element) : null);
  };
  const out = () => app.light(null);
  const entered = (event) => root.contains(event.relatedTarget) || app.ping();
  root.addEventListener("pointerover", over);
  root.addEventListener("pointerleave", out);
  root.addEventListener("focusin", entered);
  return () => {
    root.removeEventListener("pointerover", over);
    root.removeEventListener("pointerleave", out);
    root.removeEventListener("focusin", entered);
  };
}

/** Connect the app to a widget model (anywidget's, or the shim of an exported page). */
async function render({ model, el }) {
  const live = model.get("live") === true;
  const keep = debounced((view) => {
    model.set("view", view);
    model.save_changes();
  }, 300);
  const app = create_app(await unpacked(model.get("record")), {
    view: model.get("view") || {},
    send: live ? (message) => model.send(message) : null,
    keep,
  });
  const heard = (message) => app.hear(message);
  const replaced = async () => app.replace(await unpacked(model.get("record")));
  const closed = () => app.closed();
  model.on("msg:custom", heard);
  model.on("change:record", replaced);
  model.on("comm:close", closed);
  const end = start(app, el);
  app.ping();
  return () => {
    model.off("msg:custom", heard);
    model.off("change:record", replaced);
    model.off("comm:close", closed);
    end();
  };
}
