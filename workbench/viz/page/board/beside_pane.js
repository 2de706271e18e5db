// Panes of the other side of a comparison: any pane of the board, made for the variant beside.

import { h, refill } from "../base/elements.js";
import { BESIDE } from "./tree.js";

/** @import { App } from "../app/store.js" */
/** @import { BoardPane, Changes } from "../types.d.ts" */
/** @import { PaneKind } from "./board.js" */

/** A pane that can be made for either side.
 * @typedef {{name: string, title: string, makeFor: (app: App) => BoardPane}} SidedKind */

const NOTHING = "Nothing stands beside the selected variant yet: choose it in the pane Compare.";

const AS_RECORDED = "Its panes show what was recorded; compare again for more.";

/** The changes of the main side that concern the other one, too. */
const SHARED = ["board", "mode", "theme", "beside"];

/** The kind of pane that shows the other side in place of the selected variant.
 * @param {App} app
 * @param {SidedKind} kind
 * @returns {PaneKind} */
export const besideKind = (app, kind) => ({
  name: kind.name + BESIDE,
  title: `${kind.title}, beside`,
  make: () => new BesidePane(app, kind),
});

class BesidePane {
  el = h("div", { class: "wb-beside", "data-beside": "" });
  /** Why the other side does not answer, where its record is all that there is. */
  #silence = h("p", { class: "wb-quiet wb-pad", role: "status" });
  /** The side for which the pane was made, the pane, and the changes that it has not seen.
   * @type {{side: App, pane: BoardPane, missed: Changes, end: () => void} | null} */
  #made = null;

  /**
   * @param {App} app
   * @param {SidedKind} kind */
  constructor(app, kind) {
    this.app = app;
    this.kind = kind;
  }

  get keys() {
    return this.#made?.pane.keys ?? {};
  }

  focus() {
    return this.#made?.pane.focus?.();
  }

  /** @param {Changes} changes */
  update(changes) {
    const { partner } = this.app;
    if (!partner) this.#leave();
    else if (this.#made?.side !== partner) this.#make(partner);
    const made = this.#made;
    if (!partner || !made) return;
    const isSilent = partner.live === "silent" && this.app.live !== "silent";
    this.#silence.hidden = !isSilent;
    this.#silence.textContent = isSilent ? `${partner.channel.silence} ${AS_RECORDED}` : "";
    for (const name of SHARED) if (changes.has(name)) made.missed.add(name);
    const { missed } = made;
    made.missed = new Set();
    if (missed.size) made.pane.update(missed);
  }

  #leave() {
    this.#made?.end();
    this.#made = null;
    const words = this.app.pending("compare") ? "comparing …" : NOTHING;
    refill(this.el, h("p", { class: "wb-quiet wb-pad" }, words));
  }

  /** @param {App} side */
  #make(side) {
    this.#made?.end();
    const pane = this.kind.makeFor(side);
    const end = side.on((changes) => {
      changes.forEach((change) => made.missed.add(change));
      this.app.changed("side"); // the board shows the panes again
    });
    const all = [...Object.keys(side.view), "record", "live", "hover", "pairs"];
    const made = { side, pane, missed: new Set(all), end };
    this.#made = made;
    this.el.replaceChildren(this.#silence, pane.el);
  }
}
