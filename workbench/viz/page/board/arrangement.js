// The arrangement of a page's panes: that of its layout, until the reader changes it. The browser
// stores the reader's, for each notebook, layout and width; a link carries its own.

import { storedHere, storeHere } from "../base/notebook.js";
import { aloneTree, middleTrees, stacks, treeOf, widthOf } from "./layouts.js";
import { asTree, BESIDE, leaf, named, toggled, unfoldedPanes } from "./tree.js";

/** @import { App } from "../app/store.js" */
/** @import { CodeDraft } from "../listing/drafts.js" */
/** @import { Layout, Width } from "./layouts.js" */
/** @import { Tree } from "./tree.js" */

/** What the reader changed: the tree, the one pane that is large, whether panes have bars.
 * @typedef {{tree?: Tree, large?: string | null, bars?: boolean}} Change */

/** An editor whose pane is large: the side that it edits, the draft, and the layout.
 * @typedef {{side: App, draft: CodeDraft, mode: string}} Editor */

/** A tree, the one pane of it that is large, and those in sight.
 * @typedef {{tree: Tree, large: string | null, shown: Set<string>}} Arranged */

/** @type {Change} */
const UNCHANGED = {};
const STORED = "workbench-board";
const EDITED = "code";
/** What stays in sight below a pane that is large: an edited program runs there.
 * @type {Record<string, string>} */
const BELOW = { [EDITED]: "browser" };

/** The arrangements of a page. */
export class Arrangements {
  /** @type {Layout[]} */
  layouts = [];
  /** The known panes, by name.
   * @type {Set<string>} */
  panes = new Set();
  /** @type {Width} */
  width = "wide";
  /** By layout and width.
   * @type {Record<string, Change>} */
  #changes = {};
  /** Those of a link, in force until the reader changes them, by layout.
   * @type {Record<string, Change>} */
  #linked = {};

  /** The editor that was opened last, until the reader wants all panes.
   * @type {Editor | null} */
  #editor = null;

  /** @type {(Arranged & {of: unknown[]}) | null} */
  #last = null;

  /** @param {App} app */
  constructor(app) {
    this.app = app;
  }

  /** Know the layouts and the panes, and what is stored for this notebook or file; if nothing is,
   * what a file was written with.
   * @param {Layout[]} layouts
   * @param {string[]} panes
   * @param {unknown} [written] */
  open(layouts, panes, written) {
    this.layouts = layouts;
    this.panes = new Set(panes);
    this.#changes = this.#valid(storedHere(STORED) ?? written);
  }

  /** The layout of the view. */
  get layout() {
    const { layouts, app } = this;
    return layouts.find(({ name }) => name === app.view.mode) ?? layouts[0];
  }

  /** Whether one pane or group of panes is all of the page. */
  get isAlone() {
    return Boolean(this.app.view.only);
  }

  get tree() {
    return this.#now.tree;
  }

  /** The pane that has all of the room; null: none. */
  get large() {
    return this.#now.large;
  }

  /** The panes in sight: neither folded nor behind a large one. */
  get shown() {
    return this.#now.shown;
  }

  /** Whether panes have their bars: titles, and what changes the arrangement. */
  get hasBars() {
    return !this.isAlone && (this.#current.bars ?? this.layout?.hasBars ?? false);
  }

  /** Whether panes stand below each other. */
  get isStacked() {
    return this.isAlone ? this.width === "narrow" : stacks(this.layout, this.width);
  }

  /** Whether the reader has changed this arrangement. */
  get isChanged() {
    return Object.keys(this.#current).length > 0;
  }

  /** Whether a pane is in sight.
   * @param {string} pane */
  shows(pane) {
    return this.shown.has(pane);
  }

  /** Whether a pane in sight shows what stands beside the selected variant. */
  get showsBeside() {
    return [...this.shown].some((pane) => pane.endsWith(BESIDE));
  }

  /** Where a pane is seen: nothing to select if it is in sight, else the layout that shows it.
   * @param {string} pane
   * @param {string} mode
   * @returns {{mode?: string}} */
  toSee(pane, mode) {
    return this.shows(pane) ? {} : { mode };
  }

  /** Whether a region is open; null if there is none of the name.
   * @param {string} name */
  isOpen(name) {
    const part = named(this.tree, name);
    return part && !part.isFolded;
  }

  /** Fold a region, or show it again.
   * @param {string} name */
  toggle(name) {
    if (named(this.tree, name)) this.change({ tree: toggled(this.tree, name), large: null });
  }

  /** Change the arrangement; it is stored unless a drag goes on.
   * @param {Change} change
   * @param {boolean} [isKept] */
  change(change, isKept = true) {
    const key = this.#key;
    const { large, ...now } = { ...this.#current, ...change };
    this.#changes[key] = { ...now, ...(large && { large }) };
    if (change.large === null) this.#editor = null;
    delete this.#linked[this.app.view.mode];
    if (isKept) this.store();
    this.app.changed("board");
  }

  /** Give the pane in which a side's program is edited all of the room, until the edit ends or
   * another variant or layout is selected.
   * @param {App} side */
  makeRoom(side) {
    const { editing: draft } = side;
    this.#editor = draft && { side, draft, mode: this.app.view.mode };
    this.app.changed("board");
  }

  /** Show the layout as it was at first. */
  reset() {
    delete this.#changes[this.#key];
    delete this.#linked[this.app.view.mode];
    this.store();
    this.app.changed("board");
  }

  /** Note the width of the page.
   * @param {number} pixels */
  measure(pixels) {
    const width = widthOf(pixels);
    if (width === this.width) return;
    this.width = width;
    this.app.changed("board");
  }

  /** All arrangements of the reader, for a file.
   * @returns {Record<string, Change>} */
  get all() {
    return { ...this.#changes, ...this.isChanged && { [this.#key]: this.#current } };
  }

  /** The reader's arrangement, for a link.
   * @returns {Change} */
  get current() {
    return this.#current;
  }

  /** Use an arrangement without storing it; an invalid one is left out.
   * @param {unknown} change */
  set current(change) {
    this.#linked[this.app.view.mode] = this.#validChange(change);
    this.app.changed("board");
  }

  /** Store the arrangements; if the browser refuses, they last as long as the page. */
  store() {
    storeHere(STORED, Object.keys(this.#changes).length ? this.#changes : undefined);
  }

  get #key() {
    return `${this.app.view.mode} ${this.width}`;
  }

  /** @returns {Change} */
  get #current() {
    return this.#linked[this.app.view.mode] ?? this.#changes[this.#key] ?? UNCHANGED;
  }

  /** The pane of an editor that has all of the room.
   * @returns {string | null} */
  get #roomy() {
    if (!this.#editor) return null;
    const { app } = this;
    const { side, draft, mode } = this.#editor;
    const isOpen = side.editing === draft && side.view.variant === draft.variant;
    if (!isOpen || app.view.mode !== mode) return null;
    return side === app ? EDITED : EDITED + BESIDE;
  }

  /** The present arrangement, the same until the view or a change makes it another one.
   * @returns {Arranged} */
  get #now() {
    const { app: { view: { mode, only } }, width } = this;
    const current = this.#current;
    const roomy = this.#roomy;
    const of = [mode, only, width, current, this.layouts, roomy];
    if (!this.#last || of.some((part, i) => part !== this.#last?.of[i])) {
      this.#last = { of, ...this.#arranged(only, current, roomy) };
    }
    return this.#last;
  }

  /**
   * @param {string | null} only
   * @param {Change} current
   * @param {string | null} roomy
   * @returns {Arranged} */
  #arranged(only, { tree: changed, large: chosen }, roomy) {
    const { layout, width } = this;
    if (!layout) return { tree: leaf(""), large: null, shown: new Set() };
    const tree = only
      ? this.#known(aloneTree(only))
      : changed ?? this.#known(treeOf(layout, width));
    const wanted = roomy ?? chosen;
    const panes = unfoldedPanes(tree);
    const large = !only && wanted && panes.includes(wanted) ? wanted : null;
    const isSeen = (/** @type {string} */ pane) => !large || [large, BELOW[large]].includes(pane);
    return { tree, large, shown: new Set(panes.filter(isSeen)) };
  }

  /** The tree of a layout without the panes that this page lacks.
   * @param {Tree} tree
   * @returns {Tree} */
  #known(tree) {
    return asTree(tree, (pane) => this.panes.has(pane)) ?? leaf([...this.panes][0] ?? "");
  }

  /** @param {unknown} changes
   * @returns {Record<string, Change>} */
  #valid(changes) {
    if (typeof changes !== "object" || changes === null) return {};
    /** @type {[string, Change][]} */
    const rows = Object.entries(changes).map(([key, change]) => [key, this.#validChange(change)]);
    return Object.fromEntries(rows.filter(([, change]) => Object.keys(change).length));
  }

  /** @param {unknown} value
   * @returns {Change} */
  #validChange(value) {
    if (typeof value !== "object" || value === null) return {};
    const { tree, large, bars } = /** @type {Record<string, unknown>} */ (value);
    const valid = tree ? asTree(tree, (pane) => this.panes.has(pane)) : null;
    return {
      ...(valid && { tree: valid }),
      ...(typeof large === "string" && this.panes.has(large) && { large }),
      ...(typeof bars === "boolean" && { bars }),
    };
  }
}

/** The layout of a panel that is in none: alone in the middle.
 * @param {string} name
 * @param {string} title
 * @returns {Layout} */
export const layoutOf = (name, title) => ({
  name,
  title,
  trees: middleTrees(leaf(name)),
  main: [name],
});
