// The other side of a comparison, beside the selected variant: an app with a selection of its own, on
// this record or on another one, for the panes of the board that show it. The two sides follow each
// other: a node, an axis, a pass or a step that is selected on one is selected on the other, where it
// has a partner.

import { lacksPasses, passesOf, passNames, shownPass } from "../record/passes.js";
import { decisionOf } from "../record/rule_uses.js";
import { timelineOf } from "../record/states.js";
import { App, NO_SELECTION, rowAt } from "./store.js";

/** @import { CompareReply, PageRecord, PairsReply, VariantRow } from "../record.d.ts" */
/** @import { Changes, Link, View } from "../types.d.ts" */

/** Nodes of the graph on one side: their partners on the other, and which of them differ. `about`
 * are the roots of both graphs.
 * @typedef {{
 *   about: string, partner: Map<number, number>, changed: Set<number>, alone: Set<number>
 * }} Pairing */

/** The parts of a view that the whole page has once.
 * @type {Set<string>} */
const OF_PAGE = new Set(["mode", "guess", "help", "exporting", "only", "heat", "cold", "diff"]);

/** Changes of the connection, which both sides have; and with those of the record, which a side of the
 * same record has, too. */
const CONNECTION = /^(live|answers)$/;
const SHARED = /^(live|answers|pending( .*)?|record .*)$/;

/** The other side: an app whose record and selection are its own, and whose page is the first's. */
export class OtherApp extends App {
  /** The part of a selection that came from the other side, by app: it is not sent back.
   * @type {Map<App, Partial<View>>} */
  #mirrored = new Map();
  /** The hovered link that came from the other side, by app.
   * @type {Map<App, Link | null>} */
  #lit = new Map();
  /** The graphs whose pairs are asked for, or known. */
  #asked = "";
  /** The names of the passes on both sides that were paired. */
  #paired = "";
  /** The variants for which compiling was requested.
   * @type {WeakSet<VariantRow>} */
  #compiling = new WeakSet();
  /** @type {(() => void)[]} */
  #ends = [];

  /**
   * @param {App} app
   * @param {CompareReply} comparison
   * @param {PageRecord | null} record null: the app's own
   * @param {{kernel: number | null, variant: number | null}} shown */
  constructor(app, comparison, record, { kernel, variant }) {
    const own = kernel === null || variant === null ? {} : { kernel, variant };
    const number = comparison.side?.number ?? null;
    const { channel, constants } = app;
    super(record ?? app.whole, {
      view: { mode: app.view.mode, ...own },
      send: (message) => channel.send?.({ ...message, record: number }),
      constants,
    });
    this.comparison = { ...comparison, column: 0 };
    this.main = app;
    this.number = record && number;
    this.live = app.live;
    this.arrangements = app.arrangements;
    this.root = app.root;
    this.partner = app;
    if (!record) this.channel = channel;
    if (app.partner instanceof OtherApp) app.partner.end();
    [this.values, app.values] = comparison.values ? pairings("", comparison.values) : [null, null];
    Object.assign(app, { partner: this, comparison: { ...comparison, column: 1 }, pairing: null });
    this.#ends = [
      app.on((changes) => this.#takeFrom(app, this, changes)),
      this.on((changes) => this.#takeFrom(this, app, changes)),
    ];
    app.changed("beside", "record");
  }

  /** End the comparison: nothing stands beside the selected variant any more. */
  end() {
    this.#ends.forEach((end) => end());
    if (this.main.partner !== this) return;
    const none = { partner: null, comparison: null, pairing: null, values: null };
    Object.assign(this.main, none);
    this.main.changed("beside", "record");
  }

  /** Change the selection; what the page has once changes there.
   * @override
   * @param {Partial<View>} partial */
  select(partial) {
    const fields = Object.entries(partial);
    const [ofPage, own] = [true, false].map((is) =>
      Object.fromEntries(fields.filter(([name]) => OF_PAGE.has(name) === is))
    );
    if (Object.keys(ofPage).length) this.main.select(ofPage);
    super.select(own);
  }

  /** Select on one side what was selected on the other.
   * @param {App} from
   * @param {App} to
   * @param {Changes} changes */
  #takeFrom(from, to, changes) {
    if (from === this.main) this.#follow(changes);
    if (this.number !== null && changes.has("record")) to.changed("beside"); // it is compared
    if (changes.has("hover") && from.hover !== this.#lit.get(from)) {
      const link = partnerLink(from, to);
      this.#lit.set(to, link);
      to.light(link);
    }
    const step = (changes.has("pass") || changes.has("step")) && stepIn(from, to);
    if (step) this.#mirror(from, to, step);
    for (const name of /** @type {const} */ (["axis", "node", "language"])) {
      if (changes.has(name)) this.#mirror(from, to, partnerOf(from, to, name));
    }
    this.#askForPasses();
    this.#pairPasses();
    this.#askForPairs();
  }

  /** Request the passes of a side that was not compiled yet: without them the sides could only show
   * those before. */
  #askForPasses() {
    const { main } = this;
    if (main.live !== "live" || !main.arrangements.showsBeside) return;
    for (const side of [this, main]) {
      const row = side.variant();
      const { variant } = side.view;
      if (!row || variant === null || !lacksPasses(row) || this.#compiling.has(row)) continue;
      this.#compiling.add(row);
      side.ask({ do: "passes", variant }).catch(() => {}); // its error stands in its row
    }
  }

  /** Pair the passes of both sides anew, if either has got others. */
  #pairPasses() {
    const { main } = this;
    const names = JSON.stringify([this, main].map(passNames));
    if (names === this.#paired) return;
    this.#paired = names;
    const [from, to] = main.view.pass === null ? [this, main] : [main, this];
    const step = stepIn(from, to);
    if (step) this.#mirror(from, to, step);
    for (const side of [this, main]) side.changed("pass");
  }

  /** What the main side changed that this one has, too.
   * @param {Changes} changes */
  #follow(changes) {
    const { main } = this;
    const isOwn = this.number !== null; // Python may have forgotten it alone
    if (!isOwn || [...changes].some((name) => CONNECTION.test(name))) this.live = main.live;
    const followed = isOwn ? CONNECTION : SHARED;
    const shared = [...changes].filter((name) => followed.test(name));
    if (shared.length) this.changed(...shared);
    if (isOwn || !changes.has("record")) return;
    if (this.whole === main.whole) this.patch({ append: {}, set: [] });
    else this.end(); // another plan: its variants have other numbers
  }

  /**
   * @param {App} from
   * @param {App} to
   * @param {Partial<View>} now */
  #mirror(from, to, now) {
    const came = { ...this.#mirrored.get(from) };
    const names = /** @type {(keyof View)[]} */ (Object.keys(now));
    if (!names.length || names.every((name) => name in came && came[name] === from.view[name])) {
      return;
    }
    for (const name of names) delete came[name];
    this.#mirrored.set(from, came);
    to.select(now);
    this.#mirrored.set(to, {
      ...this.#mirrored.get(to),
      ...Object.fromEntries(names.map((name) => [name, to.view[name]])),
    });
  }

  /** Ask for the pairs of the graphs that are shown, unless they are known. */
  async #askForPairs() {
    const { main } = this;
    const roots = [this, main].map(shownRoots);
    const about = JSON.stringify(roots);
    if (about === this.#asked || !roots[0] || !roots[1]) return;
    if (!main.arrangements.showsBeside) return;
    if (main.live === "offline" || main.live === "silent") return;
    this.#asked = about;
    const [before, now] = roots;
    try {
      const { result } = await main.ask({ do: "pairs", side: this.number, before, now });
      if (result && this.#asked === about) this.#pair(about, result);
    } catch { /* the graphs stand beside each other without marks */ }
  }

  /**
   * @param {string} about
   * @param {PairsReply} reply */
  #pair(about, reply) {
    [this.pairing, this.main.pairing] = pairings(about, reply);
    for (const app of [this, this.main]) app.changed("pairs");
  }
}

/** The pairs of two graphs, as either side sees them.
 * @param {string} about
 * @param {PairsReply} reply
 * @returns {[Pairing, Pairing]} */
function pairings(about, { same, changed, removed, added }) {
  const pairs = [...same, ...changed];
  return [
    {
      about,
      partner: new Map(pairs),
      changed: new Set(changed.map(([n]) => n)),
      alone: new Set(removed),
    },
    {
      about,
      partner: new Map(pairs.map(([n, m]) => [m, n])),
      changed: new Set(changed.map(([, m]) => m)),
      alone: new Set(added),
    },
  ];
}

/** The pairs of the graph that an app shows at a step, while both sides are in sight; null: none.
 * @param {App} app
 * @returns {Pairing | null} */
export function shownPairing(app) {
  const { partner, pairing } = app;
  if (!partner || !pairing || !app.arrangements.showsBeside) return null;
  const roots = app instanceof OtherApp ? [app, partner] : [partner, app];
  return JSON.stringify(roots.map(shownRoots)) === pairing.about ? pairing : null;
}

/** The roots of the graph that is shown; null if the record lacks its nodes.
 * @param {App} app
 * @returns {number[] | null} */
function shownRoots(app) {
  const place = shownPass(app);
  if (place === null) return null;
  const { record, view } = app;
  const timeline = timelineOf(record, record.passes[place]);
  const step = view.pass === place ? Math.min(view.step, timeline.steps.length) : 0;
  const roots = timeline.roots(step);
  return roots?.length && roots.every((n) => n < record.nodes.op.length) ? roots : null;
}

/** The step on the other side: in the pass of the same name, the first or the last one, or the same
 * use of the same rule; null: that side lacks the pass.
 * @param {App} from
 * @param {App} to
 * @returns {{pass: number, step: number} | null} */
function stepIn(from, to) {
  const place = from.view.pass;
  if (place === null) return null;
  const { name, rewrites } = from.record.passes[place];
  const named = (/** @type {App} */ app) =>
    passesOf(app).filter((i) => app.record.passes[i].name === name);
  const pass = named(to)[named(from).indexOf(place)];
  if (pass === undefined) return null;
  const { step } = from.view;
  const others = to.record.passes[pass].rewrites;
  if (step === 0) return { pass, step };
  if (step >= rewrites.length) return { pass, step: Math.max(others.length, Math.min(step, 1)) };
  const ruleOf = (/** @type {App} */ app, /** @type {number} */ rule) =>
    app.record.rules[rule]?.name;
  const rule = ruleOf(from, rewrites[step - 1][0]);
  const use = rewrites.slice(0, step).filter(([n]) => ruleOf(from, n) === rule).length;
  const uses = others.flatMap(([n], i) => ruleOf(to, n) === rule ? [i + 1] : []);
  return uses[use - 1] ? { pass, step: uses[use - 1] } : null;
}

/** What a selection is on the other side; nothing where its partner is not known.
 * @param {App} from
 * @param {App} to
 * @param {"axis" | "node" | "language"} name
 * @returns {Partial<View>} */
function partnerOf(from, to, name) {
  const { axis, node, language } = from.view;
  if (name === "language") {
    return to.variant()?.code.some((code) => code.language === language) ? { language } : {};
  }
  if (name === "axis") {
    const isThere = to.variant()?.axes.some((row) => row.name === axis);
    return axis !== null && isThere ? { axis } : axis === null && to.view.axis ? NO_SELECTION : {};
  }
  if (node === null) return to.view.node === null ? {} : NO_SELECTION;
  const partner = from.pairing?.partner.get(node);
  if (partner !== undefined) return { node: partner };
  return from.pairing?.alone.has(node) && to.view.node !== null ? NO_SELECTION : {};
}

/** What a hovered link is on the other side.
 * @param {App} from
 * @param {App} to
 * @returns {Link | null} */
function partnerLink(from, to) {
  const link = from.hover;
  if (!link) return null;
  const nodes = link.nodes.flatMap((n) => from.pairing?.partner.get(n) ?? []);
  const lines = from.whole === to.whole ? link.lines : [];
  return { by: link.by, axes: link.axes, nodes, lines };
}

// Where the compared sides differ, by the rows of their comparison.

/** The rules of a pass that fired on this side alone, on the other alone, or not as often.
 * @typedef {{here: string[], there: string[], counts: string[]}} PassDifference */

/** The differences of a pass; null: none, or nothing stands beside it.
 * @param {App} app
 * @param {string} name
 * @returns {PassDifference | null} */
export function passDifference({ comparison, partner }, name) {
  if (!comparison || !partner) return null;
  const { column, sections } = comparison;
  /** @type {PassDifference} */
  const found = { here: [], there: [], counts: [] };
  for (const [, cells, differs, about] of sections.flatMap(({ rows }) => rows)) {
    if (!differs || about.length !== 2 || about[0] !== name) continue;
    const [own, other] = [cells[column], cells[1 - column]];
    if (own !== other) (own ? other ? found.counts : found.here : found.there).push(about[1]);
  }
  return found.here.length + found.there.length + found.counts.length ? found : null;
}

/** Whether the loop of an axis differs between the sides.
 * @param {App} app
 * @param {string} axis */
export const loopDiffers = ({ comparison, partner }, axis) =>
  Boolean(partner) &&
  comparison?.sections.some(({ rows }) =>
    rows.some(([, cells, , about]) =>
      about.length === 1 && about[0] === axis && cells[0] !== cells[1]
    )
  );

/** How a value of the plan differs from the plan beside it, in words; "": it does not.
 * @param {App} app
 * @param {number} node */
export function valueDifference(app, node) {
  const { values, partner } = app;
  if (!values || !partner) return "";
  if (values.alone.has(node)) return "only in this plan";
  const other = values.partner.get(node);
  if (other === undefined) return "";
  const isStored = (/** @type {App} */ side, /** @type {number} */ n) =>
    Boolean(decisionOf(side, n)?.stored);
  const here = isStored(app, node);
  if (here === isStored(partner, other)) return "";
  return here ? "stored here, not in the other plan" : "stored in the other plan, not here";
}

/** Why an opt that is possible here is not offered on the other side, in words; "": it is, or the
 * opts of that side are not known.
 * @param {App} app
 * @param {string} opt */
export function offerDifference({ partner }, opt) {
  const other = partner?.variant();
  if (!other || !other.offers.length && !other.refused.length) return "";
  if (other.offers.some((offer) => offer.opt === opt)) return "";
  const why = other.refused.find((row) => row.opt === opt)?.why;
  return `not possible on the other side${why ? `: ${why}` : ""}`;
}

/** Look at what a row of a comparison is about, on both sides: an axis, or the first use of a rule
 * in a pass.
 * @param {App} app
 * @param {string[]} about */
export function showRow(app, about) {
  const sides = app.partner ? [app.partner, app] : [app];
  for (const side of sides) {
    const [name, rule] = about;
    if (rule === undefined) {
      if (side.variant()?.axes.some((row) => row.name === name)) side.select({ axis: name });
      continue;
    }
    const { passes, rules } = side.record;
    const uses = passesOf(side).filter((place) => passes[place].name === name).map((pass) => ({
      pass,
      step: 1 + passes[pass].rewrites.findIndex(([n]) => rowAt(rules, n)?.name === rule),
    }));
    const use = uses.find(({ step }) => step > 0) ?? uses[0];
    if (use) side.select(use);
  }
}
