// The height of the loop nest: that of the kernel's longest variant, so that no pane moves when
// another variant is selected.

/** @import { App } from "../../app/store.js" */

const ROW = 21; // pixels of a loop or a statement, as tune.css has it
const BARS = 31; // pixels of a line of axis bars

export class NestHeight {
  /** What it was worked out for: the kernel, and the width of the pane.
   * @type {string} */
  #about = "";
  /** In pixels, of all that was shown of it. */
  #height = 0;

  /**
   * @param {App} app
   * @param {HTMLElement} pane */
  constructor(app, pane) {
    this.app = app;
    this.pane = pane;
  }

  /** Work it out before the next frame, when the loops have their places: nobody sees them without
   * it. */
  update() {
    requestAnimationFrame(() => this.#reserve());
  }

  #reserve() {
    const { app, pane } = this;
    const last = pane.lastElementChild;
    if (!last || !pane.clientWidth) return; // another mode is shown
    const about = `${app.view.kernel} ${pane.clientWidth}`;
    if (about !== this.#about) this.#height = 0;
    this.#about = about;
    const top = pane.getBoundingClientRect().top - pane.scrollTop;
    const [below, margin] = [
      getComputedStyle(pane).paddingBottom,
      getComputedStyle(last).marginBottom,
    ]
      .map(parseFloat);
    const shown = last.getBoundingClientRect().bottom - top + margin + below;
    this.#height = Math.max(this.#height, Math.ceil(shown) + this.#missing());
    app.root?.style.setProperty("--wb-nest-height", `${this.#height}px`);
  }

  /** How much higher the longest of the variants is than that which is shown, as far as its rows
   * tell. */
  #missing() {
    const { app } = this;
    const places = app.variantsOf(app.view.kernel);
    if (!places.length) return 0; // nothing to compute, or it is asked about
    const most = (/** @type {typeof rowsOf} */ count) =>
      Math.max(...places.map((place) => count(app, place))) - count(app, app.view.variant);
    return most(rowsOf) * ROW + (most(axesOf) > 0 ? BARS : 0);
  }
}

/** How many loops and statements a variant has.
 * @param {App} app
 * @param {number | null} place */
const rowsOf = (app, place) =>
  place === null ? 0 : app.record.variants[place].loops?.rows.length ?? 0;

/** How many axes a variant has: their bars stand in lines.
 * @type {typeof rowsOf} */
const axesOf = (app, place) => place === null ? 0 : app.record.variants[place].axes.length;
