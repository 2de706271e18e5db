// The board: the panes of the current arrangement, each in its cell, with a border between every
// two. A pane is made when it is first in sight, and then gets the changes that it missed.

import { elementsOf, focusedAround, h, keepingFocus, refill } from "../base/elements.js";
import { Cell, closePane, enlarge, splitPane } from "./cell.js";
import { divider } from "./dividers.js";
import { atBorder, evened, isLeaf, moved, panesOf, partAt } from "./tree.js";

/** @import { App } from "../app/store.js" */
/** @import { BoardPane, Changes, Keys } from "../types.d.ts" */
/** @import { Path, Split, Tree } from "./tree.js" */

/** A pane that was made: its cell, and the changes that it has missed since it was last in sight.
 * @typedef {{pane: BoardPane, cell: Cell, missed: Changes}} Made */

/** A pane that can be made.
 * @typedef {{name: string, title: string, make: () => BoardPane}} PaneKind */

/** The element of a part; of a split, its parts and borders.
 * @typedef {{
 *   el: HTMLElement, path: Path, parts: Built[], borders: HTMLElement[]
 * }} Built */

export class Board {
  el = h("section", { class: "wb-board", "aria-label": "board" });
  switcher = h("nav", { class: "wb-switcher", "aria-label": "panes" });
  /** @type {Map<string, Made>} */
  #made = new Map();
  /** The structure that is built: its text, and its elements.
   * @type {{text: string, root: Built} | null} */
  #built = null;

  /** The pane that was large last.
   * @type {string | null} */
  #large = null;

  /** The layout that was shown last.
   * @type {string | null} */
  #mode = null;

  /**
   * @param {App} app
   * @param {PaneKind[]} kinds */
  constructor(app, kinds) {
    this.app = app;
    this.kinds = kinds;
    this.keys = boardKeys(this);
  }

  /** @param {Changes} changes */
  update(changes) {
    const { arrangements } = this.app;
    for (const { missed } of this.#made.values()) changes.forEach((change) => missed.add(change));
    const { tree, large, isStacked, shown } = arrangements;
    const text = JSON.stringify(structure(tree));
    const isOther = text !== this.#built?.text;
    const isOtherMode = this.#mode !== null && this.#mode !== this.app.view.mode;
    const hadFocus = this.el.contains(focusedAround(this.el));
    this.#mode = this.app.view.mode;
    if (isOther) this.#build(tree, text);
    if (!this.#built) return;
    this.el.toggleAttribute("data-stacked", isStacked && !large);
    this.#fillSwitcher(isStacked && !large ? [...shown] : []);
    for (const name of panesOf(tree)) this.#made.get(name)?.cell.update();
    this.#arrange(tree, this.#built.root);
    for (const name of inOrder(shown)) this.#updatePane(name);
    this.#arrange(tree, this.#built.root); // a pane may be empty now
    if (isStacked && !large && this.#large) {
      this.#made.get(this.#large)?.cell.el.scrollIntoView({ block: "nearest" });
    }
    this.#large = large;
    if (isOtherMode && hadFocus) this.focus();
  }

  /** A pane of the board; null: it is not in sight.
   * @param {string} name */
  paneOf(name) {
    return this.app.arrangements.shows(name) ? this.#made.get(name)?.pane ?? null : null;
  }

  /** The name of the pane in which an element stands.
   * @param {Element | null} target */
  nameAt(target) {
    const cell = target?.closest(".wb-frame");
    return cell instanceof HTMLElement && this.el.contains(cell) ? cell.dataset.pane ?? null : null;
  }

  /** The panes that answer keys: that of the focus, then the main ones of the layout.
   * @param {Element | null} target
   * @returns {BoardPane[]} */
  answering(target) {
    const { layout, isAlone, shown } = this.app.arrangements;
    const main = isAlone ? [...shown] : layout?.main ?? [];
    const names = [...new Set([this.nameAt(target), ...main])];
    return names.flatMap((name) => (name && this.paneOf(name)) || []);
  }

  /** Give the focus to the first pane that takes it.
   * @returns {boolean} */
  focus() {
    const { layout, shown } = this.app.arrangements;
    const names = [...new Set([...layout?.main ?? [], ...shown])];
    return names.some((name) => {
      const before = focusedAround(this.el);
      this.paneOf(name)?.focus?.();
      return focusedAround(this.el) !== before;
    });
  }

  /** @param {string} name */
  #updatePane(name) {
    const made = this.#made.get(name);
    if (!made) return;
    const { missed } = made;
    made.missed = new Set();
    try {
      made.pane.update(missed);
    } catch (error) { // a fault in one pane does not stop the others
      reportError(error);
    }
  }

  /** The cell of a pane, made when it is first needed.
   * @param {string} name
   * @returns {Cell} */
  #cellOf(name) {
    const known = this.#made.get(name);
    if (known) return known.cell;
    const kind = this.kinds.find((each) => each.name === name) ?? this.kinds[0];
    const pane = kind.make();
    const cell = new Cell(this.app, kind, this.kinds, pane.el);
    const all = [...Object.keys(this.app.view), "record", "live", "hover"];
    this.#made.set(name, { pane, cell, missed: new Set(all) });
    return cell;
  }

  /** Build other elements for a tree; cells stay.
   * @param {Tree} tree
   * @param {string} text */
  #build(tree, text) {
    keepingFocus(this.el, () => {
      const root = this.#elementsOf(tree, []);
      this.#built = { text, root };
      this.el.replaceChildren(root.el);
    });
  }

  /**
   * @param {Tree} tree
   * @param {Path} path
   * @returns {Built} */
  #elementsOf(tree, path) {
    if (isLeaf(tree)) {
      const el = tree.isFolded ? h("div", {}) : this.#cellOf(tree.pane).el;
      return { el, path, parts: [], borders: [] };
    }
    const parts = tree.isFolded
      ? []
      : tree.parts.map((part, i) => this.#elementsOf(part, [...path, i]));
    const borders = parts.slice(1).map((_, i) => this.#border(tree, path, i));
    const children = parts.flatMap(({ el }, i) => i ? [borders[i - 1], el] : [el]);
    const el = h("div", { class: `wb-split wb-split-${tree.way}` }, ...children);
    return { el, path, parts, borders };
  }

  /** The border after a part of a split.
   * @param {Split} split
   * @param {Path} path
   * @param {number} at */
  #border({ way, parts }, path, at) {
    const { app } = this;
    const [before, after] = [parts[at], parts[at + 1]];
    const name = before.name ?? after.name ?? [panesOf(before)[0], panesOf(after)[0]].join("-");
    const titles = [before, after].map((part) => this.#titlesOf(part).join(", "));
    const tree = () => app.arrangements.tree;
    const lengths = () => this.#lengths(path);
    return divider(way, name, `border between ${titles.join(" and ")}`, {
      lengths: () => {
        const all = lengths();
        const [first, second] = atBorder(all, at);
        return [all[first] ?? 0, all[second] ?? 0];
      },
      move: (by) => {
        app.arrangements.change({ tree: moved(tree(), path, at, lengths(), by) }, false);
        this.#place();
      },
      even: () => {
        app.arrangements.change({ tree: evened(tree(), path, at, lengths()) }, false);
        this.#place();
      },
      end: () => app.arrangements.store(),
    });
  }

  /** @param {Tree} part */
  #titlesOf(part) {
    return panesOf(part).map((name) =>
      this.kinds.find((kind) => kind.name === name)?.title ?? name
    );
  }

  /** Arrange the elements at once: a drag does not wait for the panes. */
  #place() {
    if (this.#built) this.#arrange(this.app.arrangements.tree, this.#built.root);
  }

  /** The lengths in pixels of the parts of a split, 0 for those out of sight.
   * @param {Path} path */
  #lengths(path) {
    const part = partAt(this.app.arrangements.tree, path);
    let built = this.#built?.root;
    for (const i of path) built = built?.parts[i];
    if (!part || isLeaf(part) || !built) return [];
    return built.parts.map(({ el }) => part.way === "row" ? el.offsetWidth : el.offsetHeight);
  }

  /** Set the sizes of the elements, and hide what is folded, empty or behind a large pane; return
   * whether there is something to see.
   * @param {Tree} tree
   * @param {Built} built
   * @returns {boolean} */
  #arrange(tree, { el, parts, borders }) {
    const { large, shown } = this.app.arrangements;
    for (const name of ["left", "right", "aside"]) {
      el.classList.toggle(`wb-${name}`, tree.name === name);
    }
    if (tree.isFolded) return false;
    if (isLeaf(tree)) {
      const made = this.#made.get(tree.pane);
      const isEmpty = tree.fits && made?.pane.el.hidden && large !== tree.pane;
      return !isEmpty && shown.has(tree.pane);
    }
    const isSeen = tree.parts.map((part, i) => {
      const seen = parts[i] ? this.#arrange(part, parts[i]) : false;
      parts[i]?.el.toggleAttribute("hidden", !seen);
      return seen;
    });
    const fits = tree.parts.map((part) =>
      tree.way === "column" && isLeaf(part) && Boolean(part.fits)
    );
    const grows = isSeen.some((seen, i) => seen && !fits[i]);
    const lender = fits.includes(true)
      ? tree.parts.findIndex((part, i) => isSeen[i] && isLeaf(part) && Boolean(part.lends))
      : -1;
    tree.parts.forEach((_, i) => {
      if (!parts[i]) return;
      const isFit = fits[i] && grows;
      const share = tree.sizes[i].toFixed(3);
      const { style } = parts[i].el;
      // what fits, and what lends, grows up to its contents; else it is at most as high as its share
      const shares = lender >= 0 && (isFit || i === lender);
      style.flex = isFit && !shares ? "0 1 auto" : `${share} 1 0`;
      style.maxHeight = shares ? "max-content" : isFit ? `${share}%` : "";
      parts[i].el.toggleAttribute("data-fits", isFit);
    });
    borders.forEach((border, i) => {
      const isBetween = isSeen.slice(0, i + 1).some(Boolean) && isSeen[i + 1];
      border.hidden = !isBetween;
      border.style.marginTop = i === lender ? "auto" : ""; // what nobody needs is above it
    });
    return isSeen.some(Boolean);
  }

  /** Buttons that lead to each pane, where they stand below each other.
   * @param {string[]} names */
  #fillSwitcher(names) {
    const { switcher, kinds } = this;
    if (switcher.dataset.panes === names.join()) return;
    switcher.dataset.panes = names.join();
    switcher.hidden = names.length < 2;
    refill(
      switcher,
      ...names.map((name) =>
        h("button", {
          class: "wb-button",
          type: "button",
          "data-key": `go-${name}`,
          title: "to this pane, in the column below",
          onclick: () => {
            const [cell] = elementsOf(this.el, `[data-pane="${name}"]`);
            cell.scrollIntoView({ block: "start" });
          },
        }, kinds.find((kind) => kind.name === name)?.title ?? name)
      ),
    );
  }
}

/** Graphs measure the room that they have: they come last, when that is known.
 * @param {Set<string>} panes */
const inOrder = (panes) =>
  [...panes].sort((a, b) => Number(MEASURES.test(a)) - Number(MEASURES.test(b)));

const MEASURES = /^(graph|plan)\b/;

/** What the elements depend on: all but sizes.
 * @param {Tree} tree
 * @returns {unknown} */
function structure(tree) {
  const folded = tree.isFolded ? "-" : "";
  if (isLeaf(tree)) return `${folded}${tree.pane}`;
  return [folded + tree.way, tree.name ?? "", ...tree.parts.map(structure)];
}

/** The keys of the board, for the pane that has the focus.
 * @param {Board} board
 * @returns {Keys} */
function boardKeys(board) {
  const { app } = board;
  /** @type {(act: (name: string) => void) => (event: KeyboardEvent) => unknown} */
  const onPane = (act) => ({ target }) => {
    const name = board.nameAt(target instanceof Element ? target : null);
    return name ? act(name) : false;
  };
  return {
    "|": onPane((name) => splitPane(app, name, "row")),
    "_": onPane((name) => splitPane(app, name, "column")),
    m: onPane((name) => enlarge(app, name)),
    X: onPane((name) => closePane(app, name)),
  };
}
