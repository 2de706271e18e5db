// The drawing of the plan: kernels as regions, bytes on the cut lines. After some of the scheduler's
// decisions it shows those alone.

import { nodeMeaning } from "../app/glossary.js";
import { litByLine, reach } from "../app/links.js";
import { rowAt } from "../app/store.js";
import { bytesText } from "../base/text.js";
import { groundPath, isDecided } from "../record/film.js";
import { readingOf } from "../record/states.js";
import { lineSpots, placedLabels, textWidth } from "./labels.js";

/** @import { App } from "../app/store.js" */
/** @import { PageRecord, PlanEdge, PlanNode, PlanPicture } from "../record.d.ts" */
/** @import { Drawing, GraphEdge, GraphNode, GraphRegion, WantedLabel, Wish } from "./graph.d.ts" */

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

/** The drawn nodes that belong to the hovered link, or to the notebook line that is pinned.
 * @param {App} app */
export function planLit(app) {
  const [reached, isLit] = [reach(app.record, app.hover), litByLine(app, null)];
  const { nodes } = app.record.plan;
  const places = nodes.map((_, i) => i);
  return new Set(places.filter((i) => reached?.nodes.has(nodes[i].n) || isLit(nodes[i].n)));
}

/** The hovered values, by their nodes: lines that carry one are marked.
 * @param {App} app
 * @returns {Set<number>} */
export const litValues = ({ hover }) => new Set(hover?.by === "node" ? hover.nodes : []);
