// The sizes of panes in each mode, and the folded ones. The browser stores them for all pages. A
// size is a share of the pane's container, so that it fits a page of another width.

/** @import { PaneSize } from "../types.d.ts" */
/** @import { App } from "./store.js" */

/** Panes that can be folded or made larger: the columns beside a mode, and parts of modes. */
const PANES = ["left", "right", "aside", "nest", "details"];
const SIDES = ["left", "right"];
const SHARES = { least: 8, most: 85 }; // percent
const STORED = "workbench-room";

/** The sizes of the panes. */
export class PaneSizes {
  /** The modes in which the columns beside them are folded at first.
   * @type {Set<string>} */
  wide = new Set();
  /** By mode and pane.
   * @type {Record<string, PaneSize>} */
  #sizes = storedSizes();
  /** The sizes of a link, in force until the reader changes one.
   * @type {Record<string, PaneSize>} */
  #linked = {};

  /** @param {App} app */
  constructor(app) {
    this.app = app;
  }

  /** Whether a pane is shown in this mode.
   * @param {string} pane */
  isOpen(pane) {
    const isSide = SIDES.includes(pane);
    return this.#sizeOf(pane).isOpen ?? !(isSide && this.wide.has(this.app.view.mode));
  }

  /** Fold a pane, or show it again.
   * @param {string} pane */
  toggle(pane) {
    this.#set(pane, { isOpen: !this.isOpen(pane) });
    this.store();
    this.app.changed("sizes");
  }

  /** Give a pane a share, in percent, of its container; null: the default.
   * @param {string} pane
   * @param {number | null} share */
  resize(pane, share) {
    const { least, most } = SHARES;
    this.#set(pane, { share: share === null ? 0 : Math.max(least, Math.min(most, share)) });
    if (this.app.root) this.apply(this.app.root);
  }

  /** The sizes of this mode that are not the default, by pane.
   * @returns {Record<string, PaneSize>} */
  get current() {
    const rows = PANES.map((pane) => /** @type {const} */ ([pane, this.#sizeOf(pane)]));
    return Object.fromEntries(rows.filter(([, size]) => Object.keys(size).length));
  }

  /** Set sizes for the panes of this mode without storing them.
   * @param {Record<string, PaneSize>} sizes */
  set current(sizes) {
    for (const pane of PANES) {
      const { isOpen, share } = sizes[pane] ?? {};
      const isKnown = typeof isOpen === "boolean";
      this.#linked[this.#key(pane)] = {
        ...(isKnown && { isOpen }),
        ...(Number.isFinite(share) && { share }),
      };
    }
    this.app.changed("sizes");
  }

  /** Store the sizes; if the browser refuses, they last as long as the page. */
  store() {
    try {
      localStorage.setItem(STORED, JSON.stringify(this.#sizes));
    } catch { /* not allowed here */ }
  }

  /** Set them for the style sheet: an attribute for each folded pane, a variable for each size.
   * @param {HTMLElement} root */
  apply(root) {
    for (const pane of PANES) {
      root.toggleAttribute(`data-no-${pane}`, !this.isOpen(pane));
      const share = Number(this.#sizeOf(pane).share);
      const unit = SIDES.includes(pane) ? "cqi" : "%"; // columns follow their panes
      if (share > 0) root.style.setProperty(`--wb-${pane}`, share.toFixed(1) + unit);
      else root.style.removeProperty(`--wb-${pane}`);
    }
  }

  /** @param {string} pane */
  #key(pane) {
    return `${this.app.view.mode} ${pane}`;
  }

  /** @param {string} pane */
  #sizeOf(pane) {
    const key = this.#key(pane);
    return this.#linked[key] ?? this.#sizes[key] ?? {};
  }

  /** @type {(pane: string, change: PaneSize) => void} */
  #set(pane, change) {
    const key = this.#key(pane);
    this.#sizes[key] = { ...this.#sizeOf(pane), ...change };
    delete this.#linked[key];
  }
}

/** @returns {Record<string, PaneSize>} */
function storedSizes() {
  try {
    return { ...JSON.parse(localStorage.getItem(STORED) ?? "{}") };
  } catch {
    return {};
  }
}
