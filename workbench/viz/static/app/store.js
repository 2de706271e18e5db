// The app: the record, what is selected, and the way to Python. Panes read it and are told what
// changed; they never talk to each other.
//
//   app.record          the record (see viz/record); app.patch(patch) adds to it
//   app.view            what is shown: mode, kernel, variant, pass, step, node, axis, line, opt,
//                       picked (the pinned link), code (its line), language, pane, cold
//   app.select(partial) change the view; every pane hears of it once
//   app.light(link)     what the pointer is on; null: nothing
//   app.ask(request)    -> Promise(reply); rejects with {what, because, try}
//   app.on(listener)    listener(changes: Set of view fields, "record", "live", "status", "hover")
//
// A link is {by, axes: [name], nodes: [N], lines: [L]}: what belongs together. Panes put one on
// an element with `linked(element, link)` (links.js); lighting is the same for all of them.

import { addChannel } from "./channel.js";

const START = {
  mode: "tune",
  kernel: 0,
  variant: null,
  pass: null,
  step: 0,
  node: null,
  axis: null,
  line: null,
  opt: null,
  picked: null,
  code: null,
  language: null,
  pane: "mode",
  cold: false,
  diff: false,
  help: false,
  only: null, // only: the one pane that is shown, by name
};

/** Return the app over a record. `send(message)` reaches Python, null where there is none; `keep`
 * hears of each view.
 * @param {any} record
 * @param {{send?: (message: object) => void, view?: object, keep?: (view: object) => void}} host */
export function createApp(record, { send = null, view = {}, keep = () => {} } = {}) {
  const app = { record, view: sane(record, { ...START, ...view }), hover: null, status: null };
  app.redo = new Map(); // variant -> the child one came from
  addListening(app);
  addView(app, keep);
  addRecord(app);
  addChannel(app, send);
  return app;
}

function addListening(app) {
  const listeners = new Set();
  let changes = new Set();
  let held = false;

  app.on = (listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  };

  app.changed = (...names) => {
    if (!changes.size) queueMicrotask(tell);
    names.forEach((name) => changes.add(name));
  };

  /** While the pointer is pressed nothing is drawn anew, or the click would miss its target. */
  app.hold = (pressed) => {
    held = pressed;
    if (!held && changes.size) tell();
  };

  function tell() {
    if (held) return;
    const told = changes;
    changes = new Set();
    listeners.forEach((listener) => listener(told));
  }
}

function addView(app, keep) {
  app.select = (partial) => {
    const wanted = { ...app.view, ...partial };
    if (!("picked" in partial)) Object.assign(wanted, pickedBy(app, partial));
    const now = sane(app.record, wanted);
    if (now.variant !== app.view.variant) Object.assign(now, leftBehind(now, partial));
    const names = Object.keys(now).filter((name) => now[name] !== app.view[name]);
    if (!names.length) return;
    app.view = now;
    keep(now);
    app.changed(...names);
  };

  app.light = (link) => {
    if (link === app.hover) return;
    app.hover = link;
    app.changed("hover");
  };

  /** Let nothing be picked. */
  app.unpick = () => app.select({ ...NOTHING, opt: null });
}

function addRecord(app) {
  app.patch = (patch) => {
    for (const [name, added] of Object.entries(patch.append || {})) {
      if (name === "nodes") appendColumns(app.record.nodes, added);
      else app.record[name].push(...added);
    }
    for (const [path, value] of patch.set || []) put(app.record, path, value);
    app.view = sane(app.record, app.view);
    app.changed("record");
  };

  app.replace = (fresh) => {
    app.record = fresh;
    app.view = sane(fresh, app.view);
    app.changed("record");
  };

  // what is often read

  app.variant = () => app.record.variants[app.view.variant] || null;
  app.kernel = () => app.record.kernels[app.view.kernel] || null;
  app.variantsOf = (kernel) =>
    app.record.variants.map((_, i) => i).filter((i) => app.record.variants[i].kernel === kernel);
}

function appendColumns(table, added) {
  for (const [column, values] of Object.entries(added)) table[column].push(...values);
}

function put(target, path, value) {
  const last = path[path.length - 1];
  const holder = path.slice(0, -1).reduce((at, step) => at[step], target);
  holder[last] = value;
}

/** Return a view that points at things that exist. */
function sane(record, view) {
  const now = { ...view };
  if (!record.kernels[now.kernel]) now.kernel = 0;
  now.language ??= record.languages[0].name; // the one that all kernels are read in
  const chosen = record.variants[now.variant];
  const kernel = record.kernels[now.kernel];
  if (!chosen || chosen.kernel !== now.kernel) now.variant = kernel ? kernel.root : null;
  if (now.node !== null && now.node >= record.nodes.op.length) now.node = null;
  if (now.line !== null && !record.lines[now.line]) now.line = null;
  if (now.pass !== null && !record.passes[now.pass]) now.pass = null;
  return now;
}

/** What was marked in the offers and the code of another variant is not of the one that is shown. */
function leftBehind({ code, picked }, partial) {
  const opt = partial.opt ?? null;
  if ("picked" in partial) return { opt };
  if (code) return { ...NOTHING, opt };
  return picked?.by === "offer" ? { picked: null, opt } : { opt };
}

/** Selecting a node, an axis or a line pins what belongs to it. */
function pickedBy(app, partial) {
  if (partial.node !== undefined) {
    return partial.node === null ? NOTHING : ofNode(app, partial.node);
  }
  if (partial.axis !== undefined) {
    return partial.axis === null ? NOTHING : ofAxis(app, partial.axis);
  }
  if (partial.line !== undefined) return partial.line === null ? NOTHING : ofLine(partial.line);
  return {};
}

export const NOTHING = { picked: null, code: null, node: null, axis: null, line: null };

function ofNode(app, node) {
  const { line, inner } = app.record.nodes;
  const lines = line[node] >= 0 ? [line[node], ...inner[node]] : [];
  const picked = { by: "node", axes: [], nodes: [node], lines };
  return { picked, code: null, node, axis: null, line: null };
}

export function ofAxis(app, axis) {
  const loops = app.variant()?.loops;
  const rows = loops ? loops.rows.filter((row) => row.axis === axis) : [];
  const [nodes, lines] = ["nodes", "lines"].map((
    name,
  ) => [...new Set(rows.flatMap((row) => row[name]))]);
  return {
    picked: { by: "loop", axes: [axis], nodes, lines },
    code: null,
    node: null,
    axis,
    line: null,
  };
}

function ofLine(line) {
  return {
    picked: { by: "line", axes: [], nodes: [], lines: [line] },
    code: null,
    node: null,
    axis: null,
    line,
  };
}
