// The types of layouts, and of the graphs from which they are made.

/** A line from node `a` to node `b`, as source number `slot` of `slots`. */
export interface LayoutEdge {
  a: number;
  b: number;
  slot: number;
  slots: number;
  state?: string;
}

/** Boxes by their sizes; nodes of two graphs with one key are the same. */
export interface LayoutGraph {
  nodes: { key: number | string; w: number; h: number }[];
  edges: LayoutEdge[];
}

export interface Place {
  x: number;
  y: number;
}

/** The points of a line; null for a stub at its reader: it is too long, or finds no way. */
export type Route = [number, number][] | null;

/** The middle of each box, and the route of each line. */
export interface Layout {
  places: Place[];
  routes: Route[];
}

/** A vertex beside another, and the share of the width at which the line ends. */
export type Beside = [vertex: number, port: number];

/** A graph whose lines go from a layer to the next: the first `count` vertices are nodes, the others
 * are points at which a line passes a layer; those under each node are its `lines`. */
export interface ProperGraph {
  count: number;
  layer: number[];
  width: number[];
  up: Beside[][];
  down: Beside[][];
  lines: number[][];
  chains: (number | null)[];
}
