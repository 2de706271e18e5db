// The drawing of the plan: kernels as regions, bytes on the cut lines; and the film of scheduling,
// in which it shows the decisions so far.

import { nodeMeaning } from "../../app/glossary.js";
import { reach } from "../../app/links.js";
import { hasAny } from "../../app/pieces.js";
import { NO_SELECTION, rowAt } from "../../app/store.js";
import { Player, tool } from "../../base/player.js";
import { bytesText, plural } from "../../base/text.js";
import { lineSpots, placedLabels, textWidth } from "../../graph/labels.js";
import { h, recordText, refill } from "../../base/elements.js";
import { filmAt, filmOf, groundPath, isDecided, withRewrites } from "../../record/film.js";
import { inline } from "../../record/node_text.js";
import { ruleName } from "../../record/rule_uses.js";
import { readingOf } from "../../record/states.js";

/** @import { App } from "../../app/store.js" */
/** @import { Child } from "../../base/elements.d.ts" */
/** @import { Steps } from "../../base/player.js" */
/** @import { FilmStep } from "../../record/film.js" */
/** @import { Drawing, GraphEdge, GraphNode, GraphRegion, WantedLabel, Wish } from "../../graph/graph.d.ts" */
/** @import { PageRecord, PlanEdge, PlanNode, PlanPicture } from "../../record.d.ts" */
/** @import { Changes, Keys } from "../../types.d.ts" */

/** Return the plan as a drawing, after a number of decisions; the number of a kernel stands at the
 * value that it stores.
 * @param {PageRecord} record
 * @param {number} [decided]
 * @returns {Drawing} */
export function planDrawing(record, decided = Infinity) {
  const { plan } = record;
  const drawn = plan.nodes.map((node, i) => planNode(record, node, i, decided));
  /** @type {(GraphEdge & {points: PlanEdge["route"]})[]} */
  const edges = plan.edges.map((edge) => ({
    a: edge.a,
    b: edge.b,
    slot: 0,
    slots: 1,
    points: edge.route,
    state: lineState(plan, edge, decided),
    values: edge.cut ? [plan.nodes[edge.a].n] : [],
    hint: edge.cut ? cutHint(record, edge) : "",
  }));
  /** @type {WantedLabel[]} */
  const bytes = edges.flatMap((edge, i) => {
    const text = bytesText(plan.edges[i].bytes);
    return edge.state === "cut"
      ? [{ kind: "bytes", text, spots: lineSpots(edge.points), edge }]
      : [];
  });
  const regions = plan.regions.map((region) => ({
    ...region,
    path: groundPath(plan, region.kernel, decided),
    hint: `kernel ${
      region.kernel + 1
    }: ${region.title}\nclick: why it begins and ends where it does`,
  }));
  const titles = drawn.flatMap((node) => {
    const region = node.stored && rowAt(regions, node.kernel);
    return region ? [planTitle(node, region)] : [];
  });
  return { nodes: drawn, edges, regions, labels: placedLabels(drawn, [...bytes, ...titles]) };
}

/** A line is cut once its source is stored; above an undecided reader it waits.
 * @param {PlanPicture} plan
 * @param {PlanEdge} edge
 * @param {number} decided
 * @returns {GraphEdge["state"]} */
function lineState({ nodes }, { a, b, cut }, decided) {
  if (!isDecided(nodes[b], decided)) return "waiting";
  return cut && isDecided(nodes[a], decided) ? "cut" : "kept";
}

/**
 * @param {PageRecord} record
 * @param {PlanNode} node
 * @param {number} i
 * @param {number} decided
 * @returns {GraphNode} */
export function planNode(record, node, i, decided) {
  const { op, shape, dtype } = record.nodes;
  const isKnown = isDecided(node, decided);
  const storedBy = isKnown ? node.stored_by : null;
  const { family } = readingOf(record.nodes, node.n);
  const small = node.role === "movement";
  return {
    key: i,
    n: node.n,
    label: node.label,
    sub: small
      ? ""
      : `${shape[node.n] || "scalar"}${node.role === "input" ? ` ${dtype[node.n]}` : ""}`,
    family,
    state: isKnown ? "kept" : "waiting",
    op: op[node.n],
    small,
    shape: record.families[family].shape,
    x: node.x + node.w / 2,
    y: node.y + node.h / 2,
    w: node.w,
    h: node.h,
    kernel: isKnown ? node.stored_by ?? node.kernels[0] ?? null : null,
    badge: storedBy === null ? "" : String(storedBy + 1),
    badgeTint: rowAt(record.plan.regions, storedBy)?.colour || "#fff",
    stored: storedBy !== null,
    hint: [
      nodeMeaning(record, op[node.n], family),
      isKnown ? planHint(record, node) : "not decided yet",
    ].join("\n"),
  };
}

/** The title of a kernel, at the value that it stores.
 * @param {GraphNode} node
 * @param {GraphRegion} region
 * @returns {WantedLabel} */
function planTitle(node, region) {
  const text = region.title.length > 26 ? `${region.title.slice(0, 25)}…` : region.title;
  const away = node.w / 2 + 24 + 0.7 * textWidth(text, 11, "bold"); // it grows on zooming out
  return { kind: "title", text, region, spots: [[node.x + away, node.y], [node.x - away, node.y]] };
}

/**
 * @param {PageRecord} record
 * @param {PlanNode} node */
function planHint(record, node) {
  const kernels = node.kernels.map((k) => `${k + 1} ${record.kernels[k]?.title ?? ""}`).join(", ");
  return node.role === "input"
    ? `${bytesText(node.bytes)} of input`
    : `${kernels ? `in kernel ${kernels}` : "in no kernel"}${
      node.stored_by === null ? "" : `, stored: ${bytesText(node.bytes)}`
    }`;
}

/**
 * @param {PageRecord} record
 * @param {PlanEdge} edge */
function cutHint(record, { a, b, bytes }) {
  const [from, to] = [a, b].map((i) => record.plan.nodes[i]);
  const readers = to.kernels.map((k) => k + 1).join(", ");
  return `${bytesText(bytes)} go through memory: kernel ${(from.stored_by ?? 0) + 1} stores, ${
    readers ? `kernel ${readers} reads` : "the result is read"
  }\nclick: why`;
}

/** The first view: everything; of a plan too large for that, its first cut.
 * @param {PlanPicture} plan
 * @returns {Wish} */
export function planFirst({ nodes, edges }) {
  const cut = edges.filter((edge) => edge.cut).flatMap(({ a, b }) => [a, b]);
  const results = nodes.map((_, i) => i).filter((i) => nodes[i].output);
  return {
    keys: nodes.map((_, i) => i),
    first: [...cut.slice(0, 2), ...results, nodes.length - 1].slice(0, cut.length ? 2 : 1),
    whole: true,
  };
}

/** The drawn nodes that belong to the hovered link.
 * @param {App} app */
export function planLit(app) {
  const reached = reach(app.record, app.hover);
  const { nodes } = app.record.plan;
  return new Set(nodes.map((_, i) => i).filter((i) => reached?.nodes.has(nodes[i].n)));
}

/** The hovered values, by their nodes: lines that carry one are marked.
 * @param {App} app
 * @returns {Set<number>} */
export const litValues = ({ hover }) => new Set(hover?.by === "node" ? hover.nodes : []);

// The film of scheduling: the bar below the plan that steps through the scheduler's decisions.

const MOST_SIDE = 100; // letters of a side of a rewrite

export class Film {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.player = new Player(this.#steps(), {
      name: "film",
      label: "scheduling, decision by decision",
      step: "decision",
      slider: "the scheduler's decisions, from the results to the inputs: drag to one",
      play: "play: scheduling, decision by decision",
      term: "film",
      stepMs: 1200,
      list: ".wb-plan-list",
    });
    const title = "the whole plan: leave the film (s)";
    this.whole = tool("whole", title, () => this.player.goTo(0), "film-whole");
    const detail = "step through the rewrites of each value, too";
    this.detail = tool("rewrites", detail, () => this.setDetail(!this.isDetailed), "film-rewrites");
    this.caption = h("div", {
      class: "wb-film-caption",
      role: "status",
      title: "the rewrite or decision of this step",
    });
    this.player.el.append(this.detail, this.whole);
    this.el = h("div", {}, this.player.el, this.caption);
  }

  /** Whether each decision is followed by the rewrites of its value. */
  isDetailed = false;

  /** The decisions. */
  get decisions() {
    return filmOf(this.app.record);
  }

  /** The steps: the decisions, and the rewrites if they are wanted. */
  get film() {
    return this.isDetailed ? withRewrites(this.decisions) : this.decisions;
  }

  /** Show or leave out the rewrites; the decision that is shown stays.
   * @param {boolean} isDetailed */
  setDetail(isDetailed) {
    const shown = this.film[this.at - 1];
    this.isDetailed = isDetailed;
    if (shown) this.player.goTo(decisionAt(this.film, shown) + 1);
    this.app.changed("film");
  }

  /** The current step; 0: the whole plan. */
  get at() {
    return filmAt(this.app, this.film);
  }

  /** @returns {Steps} */
  #steps() {
    return {
      first: 1,
      last: () => this.film.length,
      at: () => this.at || null,
      isShown: () => this.app.arrangements.shows("plan"),
      go: (step) => this.go(step),
      changed: () => this.app.changed("film"),
    };
  }

  /** Show a step; 0: the whole plan.
   * @param {number} at */
  go(at) {
    const row = this.film[at - 1];
    const { decision, pass, step } = row ?? { decision: null, pass: null, step: 0 };
    this.app.select({ ...NO_SELECTION, ...(decision ? { node: decision.node } : {}), pass, step });
  }

  /** In the film, picking a value goes to the step that decides it. */
  follow() {
    const { node } = this.app.view;
    const { film, at } = this;
    if (!at || film[at - 1].decision.node === node) return;
    const other = film.findIndex(({ decision }) => decision.node === node) + 1;
    if (other) this.player.goTo(other);
  }

  /** @param {Changes} changes */
  update(changes) {
    if (changes.has("node")) this.follow();
    if (!hasAny(changes, "record", "pass", "step", "film")) return;
    const { at, film } = this;
    const count = this.decisions.length;
    this.el.hidden = !count;
    this.whole.hidden = !at;
    this.detail.setAttribute("aria-pressed", String(this.isDetailed));
    this.caption.hidden = !this.isDetailed;
    refill(this.caption, ...(this.isDetailed ? filmCaption(this.app, film[at - 1]) : []));
    const copies = this.app.record.plan.decisions.filter((d) => d.is_copy).length; // the list has all
    const all = [plural(count, "decision"), copies && plural(copies, "copy")].filter(Boolean);
    const { decision, rewrite } = film[at - 1] ?? { decision: null, rewrite: 0 };
    const outcome = decision && `${decision.stored ? "stored" : "fused"} ${decision.value}`;
    const number = film.slice(0, at).filter((step) => !step.rewrite).length;
    const more = rewrite && `, rewrite ${rewrite} of ${decision?.rewrites.length}`;
    const words = at ? `${number} of ${count}${more || ""}` : all.join(", ");
    this.player.show(words, outcome ?? "the whole plan");
  }

  /** @returns {Keys} */
  get keys() {
    return { ...this.player.keys, s: () => this.player.goTo(this.at ? 0 : 1) };
  }
}

/** The index of the step that decides about the value of a step.
 * @param {FilmStep[]} film
 * @param {FilmStep} shown */
const decisionAt = (film, shown) =>
  film.findIndex(({ decision, rewrite }) => decision === shown.decision && !rewrite);

/** The reason of a decision; of a rewrite its rule and both its sides.
 * @param {App} app
 * @param {FilmStep | undefined} step
 * @returns {Child[]} */
function filmCaption(app, step) {
  if (!step) {
    return [h("span", { class: "wb-quiet" }, "Each decision, then the rewrites of its value.")];
  }
  const { decision, pass, step: number, rewrite } = step;
  if (!rewrite) {
    return [
      h("b", {}, decision.stored ? "stored" : "fused"),
      recordText(`${decision.value}: ${decision.reason}`, "", 300),
    ];
  }
  const [rule, before, after, , about] = app.record.passes[pass].rewrites[number - 1];
  const open = () =>
    app.select({ pass, step: number, ...app.arrangements.toSee("graph", "rewrites") });
  const { nodes } = app.record;
  return [
    h("b", {}, recordText(ruleName(app, rule), "", 60)),
    about && recordText(about, "wb-quiet", 80),
    h(
      "code",
      {},
      recordText(
        `${inline(nodes, before, MOST_SIDE)} → ${inline(nodes, after, MOST_SIDE)}`,
        "",
        240,
      ),
    ),
    tool("open", "open it in Rewrites", open, "film-open"),
  ];
}
