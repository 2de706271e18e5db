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

const ANSWER_WITHIN_MS = 3000;

export const OFFLINE = {
  what: "this needs the Python session",
  because: "the page is looked at without one",
  try: "run the cell again",
};

/** Return the record from what Python sends: base64 of zlib-compressed JSON. */
export async function unpacked(packed) {
  const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(plain).text());
}

/** Return the app over a record. `send(message)` reaches Python, null where there is none; `keep`
 * hears of each view.
 * @param {any} record
 * @param {{send?: (message: object) => void, view?: object, keep?: (view: object) => void}} host */
export function createApp(record, { send = null, view = {}, keep = () => {} } = {}) {
  const listeners = new Set();
  const waiting = new Map(); // request id -> {request, settle, fail}
  let changes = new Set();
  let nextId = Math.floor(Math.random() * 2 ** 40); // other views of the same model ask too
  let timer = null;
  let held = false;

  const app = { record, view: sane(record, { ...START, ...view }), hover: null, status: null };
  app.live = send ? "unknown" : "offline"; // "live", "silent": asked and not answered
  app.redo = new Map(); // variant -> the child one came from

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

  app.ask = (request) => {
    if (!send || app.live === "offline") return Promise.reject(OFFLINE);
    const id = nextId++;
    return new Promise((settle, fail) => {
      waiting.set(id, { request, settle, fail });
      app.changed("pending");
      // long work answers late, a ping at once: it tells whether anybody is there
      request.do === "ping" ? watch() : app.ping();
      send({ id, ...request });
    });
  };

  /** Whether a request that fits is under way: app.pending("check", {variant: 3}); where it has a
   * list, that has the value: app.pending("measure", {variants: 3}). */
  app.pending = (task, fields = {}) =>
    [...waiting.values()].some(
      ({ request }) =>
        request.do === task &&
        Object.entries(fields).every(([name, value]) => [request[name]].flat().includes(value)),
    );

  app.hear = async (message) => {
    // what the background sends while a cell runs is no answer to what was asked
    const isAnswer = "id" in message;
    if (isAnswer) {
      clearTimeout(timer);
      timer = null;
    }
    if (isAnswer || app.live === "unknown") setLive("live");
    if (message.patch) take(message.patch);
    if (message.result?.record) {
      app.replace(await unpacked(message.result.record));
      if (!isAnswer) app.select({ ...NOTHING, opt: null }); // another plan has other numbers
    }
    if (message.status) {
      app.status = message.status.task ? message.status : null;
      app.changed("status");
    }
    const asked = waiting.get(message.id);
    waiting.delete(message.id);
    // patches were missed: a page is told so even if its question has been given up meanwhile
    if (message.result?.n > app.record.n) ping(app.record.n);
    if (app.pending("ping")) watch(); // that was an answer to something before it
    if (!asked) return;
    app.changed("pending");
    if (message.ok) asked.settle(message);
    else asked.fail(message.error || { what: "Python could not do it", because: "", try: "" });
  };

  /** The way to Python is closed: nothing asked will be answered. */
  app.closed = () => {
    setLive("silent");
    waiting.forEach(({ fail }) => fail(OFFLINE));
    waiting.clear();
    app.changed("pending");
  };

  /** Ask whether Python is there. The answer comes after all patches before it: where one was
   * missed, `hear` asks for the whole record. */
  app.ping = () => ping(null);

  function ping(have) {
    if (send && !app.pending("ping")) app.ask({ do: "ping", have }).catch(() => {});
  }

  /** Apply a numbered patch: not twice, and only if none before it is missing. */
  function take(patch) {
    const number = (patch.set || []).find(([path]) => path.length === 1 && path[0] === "n")?.[1];
    const next = (app.record.n ?? number - 1) + 1;
    if (number === undefined || number === next) app.patch(patch);
    else if (number > next) ping(app.record.n);
  }

  app.stopWatching = () => clearTimeout(timer);

  function watch() {
    if (timer === null) timer = setTimeout(unanswered, ANSWER_WITHIN_MS);
  }

  function unanswered() {
    for (const [id, { request }] of waiting) if (request.do === "ping") waiting.delete(id);
    timer = null;
    setLive("silent");
  }

  function setLive(state) {
    if (app.live === "offline" || app.live === state) return;
    app.live = state;
    app.changed("live");
  }

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
  return app;
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
