// The types of drawings, the contents of a graph pane.

import type { PlanRegion } from "../record.d.ts";
import type { FamilyRow } from "../record.d.ts";

export type Key = number | string;
export type Point = [number, number];
export interface Size {
  width: number;
  height: number;
}

/** The placement of a drawing in a pane: its scale, and its origin in pixels. */
export interface Placement {
  scale: number;
  x: number;
  y: number;
}

/** Edges of a rectangle, in the drawing. */
export interface Bounds {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

/** A box about (x, y); `n` is its node in the record. */
export interface GraphNode {
  key: Key;
  n: number;
  x: number;
  y: number;
  w: number;
  h: number;
  label: string;
  sub: string;
  /** A letter in the families of the record. */
  family: string;
  shape: FamilyRow["shape"];
  state: "kept" | "new" | "gone" | "changed" | "waiting";
  /** What its state says, where that is not about a step. */
  sign?: string;
  op: string;
  letter?: string;
  small?: boolean;
  tint?: string;
  kernel?: number | null;
  stored?: boolean;
  badge?: string;
  badgeTint?: string;
  hint?: string;
  /** The unit of the folded plan that it represents. */
  unit?: string;
  /** More text by which a search finds it. */
  found?: string;
}

/** A line from node `a` to node `b`, indexes into the list of nodes, whose source number `slot` it
 * is; `points` is null for a line that is too long to be drawn. */
export interface GraphEdge {
  a: number;
  b: number;
  slot: number;
  slots: number;
  state: "kept" | "new" | "gone" | "cut" | "waiting";
  points: Point[] | null;
  hint?: string;
  /** The nodes of the record that it reads. */
  values?: number[];
}

/** A label on a line or beside a box, with its possible positions. */
export interface WantedLabel {
  text: string;
  kind: "bytes" | "title";
  spots: Point[];
  edge?: GraphEdge;
  region?: GraphRegion;
  /** It is left out if none of the positions is free. */
  mayHide?: boolean;
}
export interface GraphLabel extends WantedLabel {
  x: number;
  y: number;
  w: number;
  h: number;
}
/** `path` is its ground, as an SVG path; a click on a region with `fold` folds that unit. */
export type GraphRegion = PlanRegion & { path: string; hint?: string; fold?: string };

export interface Drawing {
  nodes: GraphNode[];
  edges: GraphEdge[];
  regions?: GraphRegion[];
  labels?: GraphLabel[];
}

/** The marked parts: boxes by their keys, lines by the nodes of the record that they read. */
export interface Marks {
  picked: Key | null;
  found: Set<Key>;
  lit: Set<Key>;
  values: Set<number>;
}

/** The nodes to bring into sight, or all; "start": all if that is legible, else the upper end;
 * `first` are those that matter most if not all fit; `whole`: the whole drawing, if it is legible
 * then; `isAnew`: they are centred on even if they are in sight. */
export type Wish = "all" | "start" | {
  keys: Key[];
  first?: Key[];
  whole?: boolean;
  isAnew?: boolean;
};

/** The part of a drawing at a point. */
export interface Hit {
  node?: GraphNode;
  edge?: GraphEdge;
  region?: GraphRegion;
}

export interface Painter {
  el: HTMLElement | SVGElement;
  paint(drawing: Drawing): void;
  place(placement: Placement): void;
  mark(marks: Marks): void;
  resize(width: number, height: number): void;
  redraw?(): void;
}

/** A match of a search: the box that shows it, or in which it is folded, and the way there. Its `id`
 * stays the same in another drawing. */
export interface GraphMatch {
  id: Key;
  key: Key;
  isFolded: boolean;
  go(): void;
}

/** Listeners to clicks on a node, on a cut line, on the ground of a kernel, to double clicks on a
 * node, to the hovered node, and to another size of the pane; `find` searches also what is folded (null:
 * nothing is, and the drawn nodes are searched). */
export interface GraphListener {
  node?(node: GraphNode): void;
  edge?(edge: GraphEdge): void;
  region?(region: GraphRegion): void;
  open?(node: GraphNode): void;
  hover?(node: GraphNode | null): void;
  resize?(): void;
  find?(query: string): GraphMatch[] | null;
}
