// The types of the page itself: the view, links, panels, drawings. Those of what Python sends and
// is asked stand in record.d.ts.

import type { App } from "./app/store.js";
import type { AnyRequest, Message, PageRecord, ReplyMessage, Results } from "./record.d.ts";

/** What belongs together: axes by name, nodes and lines by their places; of code also a statement:
 * the variant, and a line of the language that all kernels are read in. */
export interface Link {
  by: "node" | "statement" | "loop" | "line" | "code" | "offer";
  /** The kernels that it stands for: of others, code and loops do not light it. */
  kernels?: number[];
  axes: string[];
  nodes: number[];
  lines: number[];
  statement?: string | null;
}

/** One of the programs that stand side by side; variant null: the one that is shown; no device: the
 * record's. */
export interface Column {
  variant: number | null;
  language: string;
  device?: string | null;
}

/** What of the record is shown, and how. */
export interface View {
  /** The panel in the middle, by name. */
  mode: string;
  kernel: number;
  variant: number | null;
  pass: number | null;
  step: number;
  /** The rule that Rules shows, by name. */
  rule: string | null;
  /** What somebody answered to the question of the record. */
  guess: string | null;
  node: number | null;
  axis: string | null;
  line: number | null;
  opt: string | null;
  /** What is pinned. */
  picked: Link | null;
  /** The line of code that is pinned, from 0. */
  code: { language: string; device: string; line: number } | null;
  language: string;
  /** What stands side by side. */
  columns: Column[];
  /** Whether machine code there says how much of a run each instruction is. */
  heat: boolean;
  cold: boolean;
  diff: boolean;
  /** Whether words and keys are explained; a group of words: that group first. */
  help: boolean | string;
  exporting: boolean;
  /** The one pane that is shown, by name; null: all. */
  only: string | null;
}

/** The names of what changed: fields of the view, "record", "live", "status", "hover", and what
 * panes tell themselves. */
export type Changes = Set<string>;
export type Listener = (changes: Changes) => void;

/** What a page is opened by: a way to Python, if there is one, and a place to keep the view. */
export interface Host {
  send?: ((message: AnyRequest) => void) | null;
  view?: Partial<View>;
  keep?: (view: View) => void;
  file?: (() => Record<"shell" | "css" | "script", string>) | null;
}

/** The reply to a request: what Python says of it, null where there is an error. */
export type ReplyTo<R extends AnyRequest> = Omit<ReplyMessage, "result"> & {
  result: Results[R["do"]] | null;
};

/** What a panel shows. */
export interface Pane {
  el: HTMLElement;
  update(changes: Changes): unknown;
}

/** A function for each key; false: it was not for this pane. */
export type Keys = Record<string, (event: KeyboardEvent) => unknown>;

/** A pane in the middle. */
export interface ModePane extends Pane {
  focus(): unknown;
  keys: Keys;
}

/** What the `panel.js` of a folder exports. */
export type PanelRow =
  & { order: number }
  & (
    | { place: "top" | "left" | "right" | "bottom"; make: Make<Pane> }
    | ModeRow
  );

/** A mode: `needsWidth`, where the columns beside it are folded at first; `aside`, what the part of it
 * that can be folded is called, and has; `opens`, of which records it is what one sees first. */
export interface ModeRow {
  place: "middle";
  title: string;
  make: Make<ModePane>;
  needsWidth?: boolean;
  aside?: { title: string; has: string };
  opens?: (record: PageRecord) => boolean;
}

/** Whether a pane is shown, and its share in percent of what it stands in; 0 or nothing: as at first. */
export interface PaneSize {
  isOpen?: boolean;
  share?: number;
}
/** `section()` returns the section of the record that the panel's `panel.py` builds; `update` is
 * called once that is there. */
// deno-lint-ignore no-explicit-any
export type Make<P extends Pane> = (app: App, section: () => any) => P;
/** With the name of the folder. */
export type Panel = PanelRow & { name: string };
export type Mode = Extract<Panel, { place: "middle" }>;

/** What a host hands over: anywidget's model, or the shim of an exported page. */
export interface Model {
  get(name: "record"): string;
  get(name: "view"): Partial<View>;
  get(name: "live"): boolean;
  get(name: "shell" | "still" | "_css" | "_esm" | "parts_name"): string | undefined;
  set(name: "lacks_parts", value: boolean): void;
  set(name: "view", value: View | null): void;
  save_changes(): void;
  send(message: AnyRequest): void;
  on(name: string, listener: (message: Message) => unknown): void;
  off(name: string, listener: (message: Message) => unknown): void;
}

/** The middle, of which one mode is shown. */
export interface Middle extends Pane {
  current(): ModePane | undefined;
}
