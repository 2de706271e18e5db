// The app: the record, the selection, and the channel to Python. Panes read the app and subscribe
// to its changes; they never call each other.
//
// A link is {by, axes: [name], nodes: [N], lines: [L]}: what belongs together. Panes put one on
// an element with `linked(element, link)` (links.js); lighting is the same for all of them.

import { Arrangements } from "../board/arrangement.js";
import { shownRecord } from "../record/asking.js";
import { isOfOtherDevice, viewInPlan } from "../record/variants.js";
import { Channel } from "./channel.js";

/** @import { CodeDraft } from "../listing/drafts.js" */
/** @import { Draft } from "../panels/results/about.js" */
/** @import { Pairing } from "./beside.js" */
/** @import { AnyRequest, CompareReply, ErrorWords, KernelRow, NodeColumns, PageRecord, ProgressRow, RecordPatch } from "../record.d.ts" */
/** @import { Changes, Column, Constants, Host, Link, Listener, ReplyTo, View } from "../types.d.ts" */

/** The view of a page that opens.
 * @type {View} */
export const START = {
  mode: "", // main.js chooses it by the record
  kernel: -1, // validView() chooses it by the record
  variant: null,
  pass: null,
  step: 0,
  rule: null,
  guess: null,
  node: null,
  axis: null,
  line: null,
  opt: null,
  picked: null,
  code: null,
  language: "",
  columns: [],
  heat: false,
  cold: false,
  diff: false,
  help: false,
  exporting: false,
  only: null,
};

/** The state of one page. */
export class App {
  /** The shown record: the whole one, or, while a question waits for a guess, the one without the
   * hidden parts.
   * @type {PageRecord} */
  record;
  /** @type {PageRecord} */
  whole;
  /** The selection.
   * @type {View} */
  view;
  /** The hovered link.
   * @type {Link | null} */
  hover = null;
  /** The progress of Python's work.
   * @type {ProgressRow | null} */
  status = null;
  /** The state of the connection; silent: Python has not answered a ping.
   * @type {"offline" | "unknown" | "live" | "busy" | "silent"} */
  live = "offline";
  /** The last error of each pane, by its name.
   * @type {Record<string, ErrorWords | null>} */
  failures = {};
  /** A notice for a while, such as of copied text.
   * @type {string} */
  notice = "";
  /** The step of the tour; null: there is none.
   * @type {number | null} */
  tour = null;
  /** The timer that removes the notice.
   * @type {number} */
  noticeTimer = 0;
  /** For each variant, the child from which the reader came.
   * @type {Map<number, number>} */
  redo = new Map();
  /** The text of the last bisection, with its variant and record.
   * @type {{variant: number | null, text: string, of: PageRecord} | null} */
  bisected = null;
  /** Unsent texts, by the name of their field.
   * @type {Map<string, Draft>} */
  drafts = new Map();
  /** Code edits that were not run, by variant and language.
   * @type {Map<string, CodeDraft>} */
  codeDrafts = new Map();
  /** What stands beside the selected variant; on that side, the main one.
   * @type {App | null} */
  partner = null;
  /** The number of the record in messages, where it stands beside the page's own.
   * @type {number | null} */
  number = null;
  /** The differences of the two sides; `column` is that of this one.
   * @type {(CompareReply & {column: number}) | null} */
  comparison = null;
  /** The pairs of the graphs that both sides show.
   * @type {Pairing | null} */
  pairing = null;
  /** The pairs of the values of both plans; null: they are one plan.
   * @type {Pairing | null} */
  values = null;
  /** Code in an editor.
   * @type {CodeDraft | null} */
  editing = null;
  /** The arrangements of panes. */
  arrangements = new Arrangements(this);
  /** The root element of the page, once it is shown.
   * @type {HTMLElement | null} */
  root = null;
  /** The parts that are the same in all records, where they are not sent with each.
   * @type {Constants | null} */
  constants;
  /** The parts of the page as a file; null if it lacks them.
   * @type {(() => Record<"shell" | "css" | "script", string>) | null} */
  file;
  /** @type {Channel} */
  channel;
  /** @type {(view: View) => void} */
  #keep;
  /** @type {Set<Listener>} */
  #listeners = new Set();
  /** @type {Changes} */
  #changes = new Set();
  #isHeld = false;
  /** What waits until all changes are shown.
   * @type {(() => void)[]} */
  #afterwards = [];

  /** `send(message)` reaches Python, null in a page without it; `keep` gets each view, and `file`
   * returns the parts of the page as a file; records from Python lack the `constants`.
   * @param {PageRecord} record
   * @param {Host} [host] */
  constructor(record, { send, view = {}, keep = () => {}, file, constants } = {}) {
    this.file = file ?? null;
    this.constants = constants ?? null;
    this.whole = record;
    this.record = shownRecord(record, view.guess ?? null);
    this.view = validView(this.record, { ...START, ...view });
    this.#keep = keep;
    this.channel = new Channel(this, send ?? null);
  }

  // listeners to changes

  /** Call a listener with each set of changes; return a function that ends that.
   * @param {Listener} listener */
  on(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Report changes; each listener is called once.
   * @param {...string} names */
  changed(...names) {
    if (!this.#changes.size) queueMicrotask(() => this.#notify());
    names.forEach((name) => this.#changes.add(name));
  }

  /** Do something once all changes are shown, which a pressed pointer delays.
   * @param {() => void} actOn */
  onceShown(actOn) {
    if (this.#changes.size) this.#afterwards.push(actOn);
    else actOn();
  }

  /** While the pointer is pressed nothing is redrawn, or the click would miss its target.
   * @param {boolean} isPressed */
  hold(isPressed) {
    this.#isHeld = isPressed;
    if (!isPressed && this.#changes.size) this.#notify();
  }

  #notify() {
    if (this.#isHeld) return;
    const changes = this.#changes;
    this.#changes = new Set();
    this.#listeners.forEach((listener) => listener(changes));
    this.#afterwards.splice(0).forEach((actOn) => actOn());
  }

  // the selection

  /** Change the view.
   * @param {Partial<View>} partial */
  select(partial) {
    const wanted = { ...this.view, ...partial };
    if (!("picked" in partial)) Object.assign(wanted, pickedBy(this, partial));
    const now = validView(this.record, wanted);
    if (now.variant !== this.view.variant) Object.assign(now, leftBehind(now, partial));
    const fields = /** @type {(keyof View)[]} */ (Object.keys(now));
    const names = fields.filter((name) => now[name] !== this.view[name]);
    if (!names.length) return;
    const isGuess = now.guess !== this.view.guess;
    this.view = now;
    if (isGuess) this.#show();
    this.#keep(this.view);
    this.changed(...names);
  }

  /** Set the hovered link.
   * @param {Link | null | undefined} link */
  light(link = null) {
    if (link === this.hover) return;
    this.hover = link;
    this.changed("hover");
  }

  /** Unpick everything. */
  unpick() {
    this.select({ ...NO_SELECTION, opt: null });
  }

  // the record

  /** Apply a patch.
   * @param {RecordPatch} patch */
  patch({ append, set }) {
    const { nodes, ...tables } = append;
    if (nodes) appendRows(this.whole.nodes, nodes);
    appendRows(this.whole, tables);
    for (const [path, value] of set) setAt(this.whole, path, value);
    this.#show(...changesOf(Object.keys(append), set.map(([path]) => path)));
  }

  /** Replace the record.
   * @param {PageRecord} record */
  replace(record) {
    this.view = viewInPlan(this.whole, record, this.view);
    this.whole = record;
    this.#show();
  }

  /** Show the visible parts of the record, and report what changed in it.
   * @param {...string} changes */
  #show(...changes) {
    this.record = shownRecord(this.whole, this.view.guess);
    this.view = validView(this.record, this.view);
    this.changed(...changes.length ? changes : ["record"]);
  }

  /** The selected variant. */
  variant() {
    return rowAt(this.record.variants, this.view.variant);
  }

  /** The selected kernel. */
  kernel() {
    return rowAt(this.record.kernels, this.view.kernel);
  }

  /** The indexes of the variants of a kernel that are not deleted.
   * @param {number} kernel */
  variantsOf(kernel) {
    const { variants } = this.record;
    return variants.map((_, i) => i)
      .filter((i) => variants[i].kernel === kernel && !variants[i].deleted);
  }

  // Python

  /** Send a request; rejects with ErrorWords.
   * @template {AnyRequest} R
   * @param {R} request
   * @returns {Promise<ReplyTo<R>>} */
  ask(request) {
    return this.channel.ask(request);
  }

  /** Whether a matching request is pending: pending("check", {variant: 3}); a list matches by one
   * value: pending("measure", {variants: 3}).
   * @param {AnyRequest["do"]} task
   * @param {Record<string, unknown>} [fields] */
  pending(task, fields = {}) {
    return this.channel.pending(task, fields);
  }
}

/** The row at an index, null if there is none.
 * @template Row
 * @param {Row[]} table
 * @param {number | null | undefined} place
 * @returns {Row | null} */
export const rowAt = (table, place) => table[place ?? -1] ?? null;

/** The parts of the record that one pane shows, and the change that redraws it alone: measured offers
 * arrive one after the other, and all panes took 50 ms for each.
 * @type {Record<string, string>} */
const PARTS = {
  "variants.offers": "record offers",
  "variants.refused": "record offers",
  "passes.text_before": "record texts",
  "passes.text_after": "record texts",
  texts: "record texts",
};

/** The changes that a patch makes: those of the parts, if it has nothing else.
 * @param {string[]} tables that grow
 * @param {(string | number)[][]} paths
 * @returns {string[]} none: the whole record */
function changesOf(tables, paths) {
  const fields = paths.filter(([field]) => field !== "n")
    .map(([field, , name]) => name === undefined ? field : `${field}.${name}`);
  const changes = [...tables, ...fields].map((field) => PARTS[field] ?? "record");
  return changes.includes("record") ? [] : changes;
}

/** Add the rows of each table, or of each column.
 * @param {object} tables
 * @param {Record<string, unknown[] | undefined> | NodeColumns} added */
function appendRows(tables, added) {
  for (const [name, rows] of Object.entries(added)) {
    const table = Reflect.get(tables, name);
    for (const row of rows ?? []) table.push(row); // too many to be arguments of one call
  }
}

/** Set the value at a path.
 * @param {object} target
 * @param {(string | number)[]} path
 * @param {unknown} value */
function setAt(target, path, value) {
  const holder = path.slice(0, -1).reduce((at, step) => Reflect.get(at, step), target);
  Reflect.set(holder, path[path.length - 1], value);
}

/** The index of a variant; of a deleted one, that of its nearest ancestor.
 * @param {PageRecord} record
 * @param {number | null} variant
 * @returns {number | null} */
export function notDeleted(record, variant) {
  let place = variant;
  for (let row = rowAt(record.variants, place); row?.deleted; row = rowAt(record.variants, place)) {
    place = row.parent;
  }
  return place;
}

/** The language that a page opens with: the one in which all kernels are written, or that of a GPU.
 * @param {PageRecord} record */
export function firstLanguage({ languages, devices, device, elsewhere }) {
  const own = devices.find(({ name }) => name === device);
  return ((elsewhere || own?.groups) && own?.languages?.[0]) || languages[0].name;
}

/** Return a view that refers only to rows of the record.
 * @param {PageRecord} record
 * @param {View} view */
function validView(record, view) {
  const now = { ...view };
  now.language ||= firstLanguage(record);
  now.variant = notDeleted(record, now.variant);
  now.columns = sideBySide(record, now.columns);
  const chosen = rowAt(record.variants, now.variant);
  if (!record.kernels[now.kernel]) now.kernel = chosen?.kernel ?? firstKernel(record);
  const kernel = rowAt(record.kernels, now.kernel);
  if (chosen?.kernel !== now.kernel) now.variant = opening(record, kernel);
  if (now.node !== null && now.node >= record.nodes.op.length) now.node = null;
  if (!rowAt(record.lines, now.line)) now.line = null;
  if (!rowAt(record.passes, now.pass)) now.pass = null;
  return now;
}

/** The kernel that a page opens with: a question is about the first one; otherwise the first that
 * does more than draw the weights of a model.
 * @param {PageRecord} record */
const firstKernel = ({ ask, kernels }) =>
  ask ? 0 : Math.max(0, kernels.findIndex(({ draws_numbers }) => !draws_numbers));

/** The variant of a kernel that a page opens with.
 * @param {PageRecord} record
 * @param {KernelRow | null} kernel */
function opening(record, kernel) {
  if (!kernel) return null;
  const { opens = null, root } = kernel;
  const row = rowAt(record.variants, opens);
  return row && !isOfOtherDevice(record, row) ? opens : root;
}

/** The view that a record's page opens with.
 * @param {PageRecord} record */
export const openingView = (record) => validView(record, START);

/** The two programs side by side: at first the common language of all kernels, and machine code, or
 * on a device without it the text that it compiles.
 * @param {PageRecord} record
 * @param {Column[]} columns */
function sideBySide(record, columns) {
  const { languages, variants, devices } = record;
  const own = devices.find(({ name }) => name === record.device);
  const machine = languages.find(({ role }) => role === "machine")?.name;
  const readable = own?.languages?.[0] ?? languages.at(-1)?.name ?? languages[0].name;
  const last = machine && own?.machine_code ? machine : readable;
  if (!columns.length) {
    return [languages[0].name, last].map((language) => ({ variant: null, language }));
  }
  const isThere = (/** @type {Column} */ { variant, device }) =>
    (variant === null || Boolean(rowAt(variants, variant) && !variants[variant].deleted)) &&
    (!device || devices.some(({ name }) => name === device));
  const isMade = (/** @type {Column} */ { device, language }) =>
    device || language !== machine || language === last;
  return columns.every((column) => isThere(column) && isMade(column))
    ? columns
    : columns.map((column) => ({
      ...column,
      ...(isThere(column) ? {} : { variant: null, device: null }),
      ...(isMade(column) ? {} : { language: last }),
    }));
}

/** Marks in the offers and the code of another variant do not concern the selected one.
 * @param {View} view
 * @param {Partial<View>} partial
 * @returns {Partial<View>} */
function leftBehind({ code, picked }, partial) {
  const opt = partial.opt ?? null;
  if ("picked" in partial) return { opt };
  if (code) return { ...NO_SELECTION, opt };
  return picked?.by === "offer" ? { picked: null, opt } : { opt };
}

/** Selecting a node, an axis or a line pins its link.
 * @param {App} app
 * @param {Partial<View>} partial
 * @returns {Partial<View>} */
function pickedBy(app, { node, axis, line }) {
  if (node !== undefined) return node === null ? NO_SELECTION : ofNode(app, node);
  if (axis !== undefined) return axis === null ? NO_SELECTION : ofAxis(app, axis);
  if (line !== undefined) return line === null ? NO_SELECTION : ofLine(line);
  return {};
}

export const NO_SELECTION = { picked: null, code: null, node: null, axis: null, line: null };

/** The link of a node, for panes that show nodes.
 * @param {number} node
 * @param {number[]} [lines]
 * @returns {Link} */
export const nodeLink = (node, lines = []) => ({ by: "node", axes: [], nodes: [node], lines });

/** The link of a notebook line, and of the lines in functions that it called.
 * @param {number[]} lines
 * @returns {Link} */
export const lineLink = (lines) => ({ by: "line", axes: [], nodes: [], lines });

/** The link from an axis to all that belongs to it.
 * @param {App} app
 * @param {string} axis
 * @returns {Link} */
export function axisLink(app, axis) {
  const rows = app.variant()?.loops?.rows.filter((row) => row.axis === axis) ?? [];
  const nodes = [...new Set(rows.flatMap((row) => row.nodes))];
  const lines = [...new Set(rows.flatMap((row) => row.lines))];
  return { by: "loop", axes: [axis], nodes, lines };
}

/** @type {(app: App, node: number) => Partial<View>} */
function ofNode(app, node) {
  const lines = new Set(app.record.nodes.lines[node].flat());
  return { ...NO_SELECTION, node, picked: nodeLink(node, [...lines]) };
}

/** @type {(app: App, axis: string) => Partial<View>} */
const ofAxis = (app, axis) => ({ ...NO_SELECTION, axis, picked: axisLink(app, axis) });

/** @type {(line: number) => Partial<View>} */
const ofLine = (line) => ({ ...NO_SELECTION, line, picked: lineLink([line]) });
