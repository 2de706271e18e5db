// The reader's position in the rewrites, and the view of them.

import { shownPairing } from "../../app/beside.js";
import { h } from "../../base/elements.js";
import { passBeside, passesOf, shownPass } from "../../record/passes.js";
import { readingOf, timelineOf } from "../../record/states.js";

/** @import { App } from "../../app/store.js" */
/** @import { Key } from "../../graph/graph.d.ts" */

/** @typedef {"graph" | "graphs" | "texts"} Form */

/** @type {Form[]} */
export const FORMS = ["graph", "graphs", "texts"];

/** The distance from the change to which nodes are drawn, in edges; null: all. */
export const REACHES = [2, 5, null];

export class RewritesState {
  /** The search in the list of passes. */
  filter = "";
  /** Whether the list has passes without changes. */
  showsIdle = false;
  /** The rule whose rewrites are listed.
   * @type {number | null} */
  rule = null;
  /** The drawn distance, an index into REACHES. */
  reach = 0;
  /** The form of a step: one graph of both states, a graph of each, or the text of each.
   * @type {Form} */
  form = "graph";
  /** Whether index arithmetic is text in the boxes of its users. */
  isFolded = true;
  /** The folded nodes, below which nothing is drawn.
   * @type {Set<Key>} */
  closed = new Set();
  /** Whether the step has a graph, which can be searched. */
  isDrawn = false;
  /** Whether the whole texts are shown. */
  showsTexts = false;
  /** The position on each axis at which values are shown.
   * @type {Record<string, number>} */
  at = {};
  /** The rule in the form of "why not".
   * @type {number | null} */
  asked = null;
  /** @type {{about: string, values: HTMLElement, whyNot: HTMLElement} | null} */
  #answers = null;
  /** The last pass that was shown.
   * @type {number | null} */
  #place = null;

  /** @param {App} app */
  constructor(app) {
    this.app = app;
  }

  /** Whether the whole graph is drawn. */
  get isWhole() {
    return REACHES[this.reach] === null;
  }

  /** The current pass. */
  place() {
    return shownPass(this.app);
  }

  /** Whether the steps of a pass are decisions, which change no graph.
   * @param {number} place */
  isDecided(place) {
    return this.app.record.passes[place].unit === "decision";
  }

  /** The states of a pass.
   * @param {number} place */
  timeline(place) {
    return timelineOf(this.app.record, this.app.record.passes[place]);
  }

  /** The number of steps of a pass.
   * @param {number | null} place */
  count(place) {
    return place === null ? 0 : this.timeline(place).steps.length;
  }

  /** The current step of a pass; 0: before all.
   * @param {number | null} place */
  step(place) {
    const { pass, step } = this.app.view;
    return Math.min(pass === place ? step : 0, this.count(place));
  }

  /** Show a step.
   * @param {number} step */
  go(step) {
    const place = this.place();
    this.app.select({ pass: place, step: Math.max(0, Math.min(this.count(place), step)) });
  }

  /** Move by `by` steps, over those of other rules if one is chosen.
   * @param {number} by */
  stepBy(by) {
    const place = this.place();
    if (place === null) return;
    let step = this.step(place) + by;
    const { rewrites } = this.app.record.passes[place];
    while (
      this.rule !== null && step > 0 && step <= rewrites.length &&
      rewrites[step - 1][0] !== this.rule
    ) step += by;
    if (step >= 0 && step <= this.count(place)) return this.go(step);
    const pass = passBeside(this.app, by, place); // on to its first step, or back to its last
    if (pass !== null) this.app.select({ pass, step: by > 0 ? 0 : this.count(pass) });
  }

  /** Show only the rewrites of a rule; null: all.
   * @param {number | null} rule */
  chooseRule(rule) {
    this.rule = rule;
    this.app.changed("filter");
  }

  /** Fold or unfold the nodes that only one node needs.
   * @param {Key} key */
  toggleClosed(key) {
    const place = this.place();
    if (place === null || this.isDecided(place)) return;
    if (!this.isWhole && !shownPairing(this.app)) return;
    if (!this.closed.delete(key)) this.closed.add(key);
    this.app.changed("closed");
  }

  /** Fold all loops, or unfold everything. */
  closeLoops() {
    const place = this.place();
    if (place === null) return;
    const timeline = this.timeline(place);
    const order = timeline.state(this.step(place))?.order ?? [];
    const loops = order.filter((n) => readingOf(timeline.nodes, n).role === "loop");
    this.closed = new Set(this.closed.size ? [] : loops.map(timeline.keyOf));
    this.app.changed("closed");
  }

  /** Draw the distance at an index of REACHES; null: the next one.
   * @param {number | null} reach */
  draw(reach) {
    this.reach = reach ?? (this.reach + 1) % REACHES.length;
    this.app.changed("drawn");
  }

  /** Show steps in another form; null: in the next one.
   * @param {Form | null} form */
  showAs(form) {
    this.form = form ?? FORMS[(FORMS.indexOf(this.form) + 1) % FORMS.length];
    this.app.changed("drawn");
  }

  toggleFold() {
    this.isFolded = !this.isFolded;
    this.app.changed("drawn");
  }

  /** The key of the answers about a node at a step: they outlive refills of the panel.
   * @param {number} n
   * @param {number} place
   * @param {number} step */
  answersAbout(n, place, step) {
    const about = `${n} ${place} ${step} ${this.app.view.variant}`;
    if (this.#answers?.about !== about) {
      this.#answers = {
        about,
        values: h("output", { class: "wb-rw-values" }),
        whyNot: h("div", { class: "wb-rw-answer", role: "status" }),
      };
    }
    return this.#answers;
  }

  /** Note the current pass: another one begins without a choice of rule.
   * @param {number | null} place */
  show(place) {
    if (place !== this.#place) this.rule = null;
    this.#place = place;
  }
}

/** What a pane has seen of the record. */
export class Growth {
  /** @type {unknown[]} */
  #seen = [];

  /** Whether the selected variant has other passes than at the last call, or the record is another
   * one; times, and passes of other variants, change nothing that is listed, drawn or answered in
   * these panes.
   * @param {App} app */
  hasGrown(app) {
    const now = [app.record.nodes, passesOf(app).join()];
    const before = this.#seen;
    this.#seen = now;
    return now.some((part, i) => part !== before[i]);
  }
}
