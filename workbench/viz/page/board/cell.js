// A cell of the board: a pane, and over it a bar with the choice of the pane and what changes the
// arrangement. A heading that only names the pane is hidden below the bar, which names it, too.

import { meaningOf } from "../app/glossary.js";
import { elementsOf, h, refill } from "../base/elements.js";
import { BESIDE, hasRoom, panesOf, removed, replaced, split } from "./tree.js";

/** @import { App } from "../app/store.js" */
/** @import { Way } from "./tree.js" */

/** A pane that can stand in a cell: its name and its title.
 * @typedef {{name: string, title: string}} PaneTitle */

/** The panes that a split adds first.
 * @type {string[]} */
const ADDED = ["code", "graph", "loops", "opts", "passes", "rewrite", "plan", "results"];

export class Cell {
  bar = h("div", { class: "wb-frame-bar" });
  body = h("div", { class: "wb-frame-body" });
  #shown = "";
  #words = h("button", {
    class: "wb-frame-tool wb-frame-words",
    type: "button",
    hidden: true,
    "data-term": "",
  }, "?");

  /**
   * @param {App} app
   * @param {PaneTitle} pane
   * @param {PaneTitle[]} panes all that there are
   * @param {HTMLElement} content */
  constructor(app, pane, panes, content) {
    this.app = app;
    this.pane = pane;
    this.panes = panes;
    this.content = content;
    this.el = h("div", { class: "wb-frame", "data-pane": pane.name }, this.bar, this.body);
    this.#words.setAttribute("aria-label", `${pane.title}: its words`);
    this.#words.dataset.key = `words-${pane.name}`;
    this.body.append(content);
    new MutationObserver(() => this.#hideName()).observe(content, {
      childList: true,
      subtree: true,
    });
  }

  /** The headings that only name the pane. */
  #names() {
    const own = this.pane.name.endsWith(BESIDE) ? pairedWith(this.pane.name) : this.pane.name;
    const title = this.panes.find(({ name }) => name === own)?.title.toLowerCase();
    return elementsOf(this.content, ".wb-heading > h3")
      .filter(({ textContent }) => textContent?.trim().toLowerCase() === title);
  }

  /** Hide the headings that the bar repeats; the bar leads to the words of the pane then. */
  #hideName() {
    const names = this.#names();
    for (const name of names) name.hidden = !this.bar.hidden;
    const term = names[0]?.dataset.term ?? "";
    if (this.#words.dataset.term === term) return;
    this.#words.dataset.term = term;
    this.#words.hidden = !term;
    this.#words.title = meaningOf(this.app.record, term);
  }

  /** The name of what the pane shows, where the page shows two sides. */
  get #name() {
    const { app, pane: { name } } = this;
    const isPaired = app.partner && panesOf(app.arrangements.tree).includes(pairedWith(name));
    const [beside = "", own = ""] = isPaired ? app.comparison?.names ?? [] : [];
    return name.endsWith(BESIDE) ? beside : own;
  }

  /** Show the bar as it is now. */
  update() {
    const { tree, large, hasBars } = this.app.arrangements;
    const isLarge = large === this.pane.name;
    const isShown = hasBars || isLarge;
    const panes = panesOf(tree);
    const shown = JSON.stringify([isShown, isLarge, panes, this.#name]);
    if (shown === this.#shown) return;
    this.#shown = shown;
    this.bar.hidden = !isShown;
    refill(this.bar, ...isShown ? this.#parts(isLarge, panes.length > 1, hasRoom(tree)) : []);
    this.#hideName();
  }

  /**
   * @param {boolean} isLarge
   * @param {boolean} hasOthers
   * @param {boolean} mayAdd */
  #parts(isLarge, hasOthers, mayAdd) {
    const { app, pane } = this;
    return [
      this.#choice(),
      this.#words,
      h("span", { class: "wb-frame-name", title: `shown here: ${this.#name}` }, this.#name),
      h("span", { class: "wb-gap" }),
      !isLarge && mayAdd &&
      this.#tool(
        "◫",
        "split: another pane to the right",
        "right",
        "|",
        () => splitPane(app, pane.name, "row"),
      ),
      !isLarge && mayAdd &&
      this.#tool(
        "⊟",
        "split: another pane below",
        "below",
        "_",
        () => splitPane(app, pane.name, "column"),
      ),
      hasOthers && this.#tool(
        isLarge ? "❐ all panes" : "□",
        isLarge ? "all panes again" : "this pane alone",
        "large",
        "m",
        () => enlarge(app, pane.name),
      ),
      hasOthers && !isLarge &&
      this.#tool("✕", "close this pane", "close", "X", () => closePane(app, pane.name)),
    ];
  }

  #choice() {
    const { app, pane, panes } = this;
    const option = (/** @type {PaneTitle} */ { name, title }) =>
      h("option", { value: name, selected: name === pane.name }, title);
    return h(
      "select",
      {
        class: "wb-frame-choice",
        "aria-label": `pane ${pane.title}: show another`,
        title: "the pane: choose another; one that is on the board changes places with it",
        "data-key": `choose-${pane.name}`,
        onchange: ({ target: { value } }) => {
          app.arrangements.change({
            tree: replaced(app.arrangements.tree, pane.name, value),
            large: null,
          });
          app.onceShown(() => focusChoice(app, value));
        },
      },
      ...panes.filter(({ name }) => !name.endsWith(BESIDE)).map(option),
      h(
        "optgroup",
        { label: "of what stands beside" },
        ...panes.filter(({ name }) => name.endsWith(BESIDE)).map(option),
      ),
    );
  }

  /**
   * @param {string} text
   * @param {string} title
   * @param {string} what
   * @param {string} key
   * @param {() => void} actOn */
  #tool(text, title, what, key, actOn) {
    const { name, title: of } = this.pane;
    return h("button", {
      class: "wb-frame-tool",
      type: "button",
      title: `${title} · key ${key}`,
      "aria-label": `${of}: ${title}`,
      "data-key": `${what}-${name}`,
      onclick: actOn,
    }, text);
  }
}

/** Give the focus to the choice of a pane, which stands where the choice of the one before was.
 * @param {App} app
 * @param {string} name */
function focusChoice({ root }, name) {
  const [choice] = root ? elementsOf(root, `[data-key="choose-${name}"]`) : [];
  choice?.focus({ preventScroll: true });
}

/** The pane that shows the same of the other side.
 * @param {string} name */
const pairedWith = (name) => name.endsWith(BESIDE) ? name.slice(0, -BESIDE.length) : name + BESIDE;

/** Add a pane beside another one: the first of the usual ones that is not there.
 * @param {App} app
 * @param {string} pane
 * @param {Way} way */
export function splitPane({ arrangements }, pane, way) {
  const { tree, panes } = arrangements;
  const present = new Set(panesOf(tree));
  const added = [...ADDED, ...panes].find((name) => panes.has(name) && !present.has(name));
  if (added) arrangements.change({ tree: split(tree, pane, way, added), bars: true, large: null });
}

/** @param {App} app
 * @param {string} pane */
export const closePane = ({ arrangements }, pane) =>
  arrangements.change({ tree: removed(arrangements.tree, pane), large: null });

/** Give a pane all of the room, or show all panes again.
 * @param {App} app
 * @param {string} pane */
export const enlarge = ({ arrangements }, pane) =>
  arrangements.change({ large: arrangements.large === pane ? null : pane });
