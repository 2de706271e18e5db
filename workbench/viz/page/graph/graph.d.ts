// The types of drawings: what is put into a graph pane.

import type { PlanRegion } from "../record.d.ts";
import type { FamilyRow } from "../record.d.ts";

export type Key = number | string;
export type Point = [number, number];
export interface Size {
  width: number;
  height: number;
}

/** Where a drawing stands in a pane: its scale, and where its origin is, in pixels. */
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
  op: string;
  letter?: string;
  small?: boolean;
  tint?: string;
  kernel?: number | null;
  stored?: boolean;
  badge?: string;
  badgeTint?: string;
  hint?: string;
  /** What it stands for, where that is more than a value. */
  unit?: string;
  /** What else it is found by. */
  found?: string;
}

/** A line from node `a` to node `b`, places in the list of nodes, whose source number `slot` it is;
 * `points` is null where the line is too long to be drawn. */
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

/** Words on a line or beside a box, and the places where they may stand. */
export interface WantedWord {
  text: string;
  kind: "bytes" | "title";
  spots: Point[];
  edge?: GraphEdge;
  region?: GraphRegion;
  /** Where there is no room it is left out. */
  mayHide?: boolean;
}
export interface GraphLabel extends WantedWord {
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

/** What is marked: boxes by their keys, lines by the nodes of the record that they read. */
export interface Marks {
  picked: Key | null;
  found: Set<Key>;
  lit: Set<Key>;
  values: Set<number>;
}

/** What to bring into sight: all, or some nodes; `first` are those of them that count if not all
 * fit; `whole`: the whole drawing, if it is legible then. */
export type Wish = "all" | { keys: Key[]; first?: Key[]; whole?: boolean };

/** What is at a point of a drawing. */
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

/** Who hears of clicks on a node, on a line that is cut, on the ground of a kernel, of double
 * clicks on a node, of the node that the pointer is on, and of another size of the pane. */
export interface GraphListener {
  node?(node: GraphNode): void;
  edge?(edge: GraphEdge): void;
  region?(region: GraphRegion): void;
  open?(node: GraphNode): void;
  hover?(node: GraphNode | null): void;
  resize?(): void;
}
