// The types of the page itself: the view, links, panels. Those of Python's messages and of requests
// are in record.d.ts.

import type { App } from "./app/store.js";
import type { AnyRequest, Message, PageRecord, ReplyMessage, Results } from "./record.d.ts";

/** Things that belong together: axes by name, nodes and lines by their indexes; for code also a
 * statement: the variant, and a line of the language in which all kernels are written. */
export interface Link {
  by: "node" | "statement" | "loop" | "line" | "code" | "offer";
  /** The kernels that it represents: code and loops of others do not light it. */
  kernels?: number[];
  axes: string[];
  nodes: number[];
  lines: number[];
  statement?: string | null;
}

/** One of the programs side by side; variant null: the selected one; no device: the record's. */
export interface Column {
  variant: number | null;
  language: string;
  device?: string | null;
}

/** The selected and visible parts of the record, and the options of panels. */
export interface View {
  /** The layout, by name. */
  mode: string;
  kernel: number;
  variant: number | null;
  pass: number | null;
  step: number;
  /** The selected rule, by name. */
  rule: string | null;
  /** The reader's answer to the question of the record. */
  guess: string | null;
  node: number | null;
  axis: string | null;
  line: number | null;
  opt: string | null;
  /** The pinned link. */
  picked: Link | null;
  /** The pinned line of code, from 0. */
  code: { language: string; device: string; line: number } | null;
  language: string;
  /** The programs side by side. */
  columns: Column[];
  /** Whether machine code side by side has the share of each instruction in a run. */
  heat: boolean;
  cold: boolean;
  diff: boolean;
  /** Whether the help sheet is open; the name of a group: that group first. */
  help: boolean | string;
  exporting: boolean;
  /** The only visible pane, by name; null: all are. */
  only: string | null;
}

/** The names of changes: fields of the view, "record" (or only a part of it, "record offers"), "live"
 * (whether Python can be asked), "answers" (it does), "pending" and "pending TASK", "status",
 * "hover", and states of single panes. */
export type Changes = Set<string>;
export type Listener = (changes: Changes) => void;

/** The host of a page: the channel to Python, if there is one, and the storage of the view. */
export interface Host {
  send?: ((message: AnyRequest) => void) | null;
  view?: Partial<View>;
  keep?: (view: View) => void;
  file?: (() => Record<"shell" | "css" | "script", string>) | null;
  constants?: Constants | null;
}

/** The parts that are the same in all records of a notebook, which has them once: fields of the
 * record, and sections of panels. */
export interface Constants {
  fields: Partial<PageRecord>;
  sections: PageRecord["panels"];
}

/** The reply to a request, with its result; null for an error. */
export type ReplyTo<R extends AnyRequest> = Omit<ReplyMessage, "result"> & {
  result: Results[R["do"]] | null;
};

/** The element of a panel, and its update. */
export interface Pane {
  el: HTMLElement;
  update(changes: Changes): unknown;
}

/** A function for each key; it returns false for a key that is not for this pane. */
export type Keys = Record<string, (event: KeyboardEvent) => unknown>;

/** A pane of the board: `focus` gives the focus to its list, `keys` are its own. */
export interface BoardPane extends Pane {
  focus?(): unknown;
  keys?: Keys;
}

/** The export of a folder's `panel.js`: a bar over or below the board, a pane of the board, or
 * several; a pane in the "middle" has a layout of its own, with a tab; an optional one is hidden
 * while it has nothing to show. */
export type PanelRow =
  & { order: number }
  & (
    | { place: "top" | "bottom"; make: Make<Pane> }
    | { place: "pane" | "middle"; title: string; make: Make<BoardPane>; isOptional?: boolean }
    | { place: "pane"; panes: PaneRow[] }
  );

/** A pane of a folder that has several. */
export interface PaneRow {
  name: string;
  title: string;
  make: Make<BoardPane>;
}
/** `section()` returns the section of the record that the panel's `panel.py` builds; `update` is
 * called once it has arrived. */
// deno-lint-ignore no-explicit-any
export type Make<P extends Pane> = (app: App, section: () => any) => P;
/** With the name of the folder. */
export type Panel = PanelRow & { name: string };

/** The model of a host: anywidget's, or the shim of an exported page. */
export interface Model {
  get(name: "record"): string;
  get(name: "view"): Partial<View> & { boards?: unknown };
  get(name: "live"): boolean;
  get(name: "constants"): Constants | undefined;
  get(name: "shell" | "still" | "_css" | "_esm" | "parts_name"): string | undefined;
  set(name: "lacks_parts", value: boolean): void;
  set(name: "view", value: View | null): void;
  save_changes(): void;
  send(message: AnyRequest): void;
  /** Whether Python works on a cell, where the host knows. */
  isWorking?(): boolean;
  on(name: string, listener: (message: Message) => unknown): void;
  off(name: string, listener: (message: Message) => unknown): void;
}
