// The film of scheduling: the bar below the plan that steps through the scheduler's decisions.

import { hasAny } from "../../app/pieces.js";
import { NO_SELECTION } from "../../app/store.js";
import { h, recordText, refill } from "../../base/elements.js";
import { Player, tool } from "../../base/player.js";
import { plural } from "../../base/text.js";
import { filmAt, filmOf, withRewrites } from "../../record/film.js";
import { inline } from "../../record/node_text.js";
import { ruleName } from "../../record/rule_uses.js";

/** @import { App } from "../../app/store.js" */
/** @import { Child } from "../../base/elements.d.ts" */
/** @import { Steps } from "../../base/player.js" */
/** @import { FilmStep } from "../../record/film.js" */
/** @import { Changes, Keys } from "../../types.d.ts" */

const MOST_SIDE = 100; // letters of a side of a rewrite

export class Film {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.player = new Player(this.#steps(), {
      name: "film",
      label: "scheduling, decision by decision",
      step: "decision",
      slider: "the scheduler's decisions, from the results to the inputs: drag to one",
      play: "play: scheduling, decision by decision",
      term: "film",
      stepMs: 1200,
      list: ".wb-plan-list",
    });
    const title = "the whole plan: leave the film (s)";
    this.whole = tool("whole", title, () => this.player.goTo(0), "film-whole");
    const detail = "step through the rewrites of each value, too";
    this.detail = tool("rewrites", detail, () => this.setDetail(!this.isDetailed), "film-rewrites");
    this.caption = h("div", {
      class: "wb-film-caption",
      role: "status",
      title: "the rewrite or decision of this step",
    });
    this.player.el.append(this.detail, this.whole);
    this.el = h("div", {}, this.player.el, this.caption);
  }

  /** Whether each decision is followed by the rewrites of its value. */
  isDetailed = false;

  /** The decisions. */
  get decisions() {
    return filmOf(this.app.record);
  }

  /** The steps: the decisions, and the rewrites if they are wanted. */
  get film() {
    return this.isDetailed ? withRewrites(this.decisions) : this.decisions;
  }

  /** Show or leave out the rewrites; the decision that is shown stays.
   * @param {boolean} isDetailed */
  setDetail(isDetailed) {
    const shown = this.film[this.at - 1];
    this.isDetailed = isDetailed;
    if (shown) this.player.goTo(decisionAt(this.film, shown) + 1);
    this.app.changed("film");
  }

  /** The current step; 0: the whole plan. */
  get at() {
    return filmAt(this.app, this.film);
  }

  /** @returns {Steps} */
  #steps() {
    return {
      first: 1,
      last: () => this.film.length,
      at: () => this.at || null,
      isShown: () => this.app.arrangements.shows("plan"),
      go: (step) => this.go(step),
      changed: () => this.app.changed("film"),
    };
  }

  /** Show a step; 0: the whole plan.
   * @param {number} at */
  go(at) {
    const row = this.film[at - 1];
    const { decision, pass, step } = row ?? { decision: null, pass: null, step: 0 };
    this.app.select({ ...NO_SELECTION, ...(decision ? { node: decision.node } : {}), pass, step });
  }

  /** In the film, picking a value goes to the step that decides it. */
  follow() {
    const { node } = this.app.view;
    const { film, at } = this;
    if (!at || film[at - 1].decision.node === node) return;
    const other = film.findIndex(({ decision }) => decision.node === node) + 1;
    if (other) this.player.goTo(other);
  }

  /** @param {Changes} changes */
  update(changes) {
    if (changes.has("node")) this.follow();
    if (!hasAny(changes, "record", "pass", "step", "film")) return;
    const { at, film } = this;
    const count = this.decisions.length;
    this.el.hidden = !count;
    this.whole.hidden = !at;
    this.detail.setAttribute("aria-pressed", String(this.isDetailed));
    this.caption.hidden = !this.isDetailed;
    refill(this.caption, ...(this.isDetailed ? filmCaption(this.app, film[at - 1]) : []));
    const copies = this.app.record.plan.decisions.filter((d) => d.is_copy).length; // the list has all
    const all = [plural(count, "decision"), copies && plural(copies, "copy")].filter(Boolean);
    const { decision, rewrite } = film[at - 1] ?? { decision: null, rewrite: 0 };
    const outcome = decision && `${decision.stored ? "stored" : "fused"} ${decision.value}`;
    const number = film.slice(0, at).filter((step) => !step.rewrite).length;
    const more = rewrite && `, rewrite ${rewrite} of ${decision?.rewrites.length}`;
    const words = at ? `${number} of ${count}${more || ""}` : all.join(", ");
    this.player.show(words, outcome ?? "the whole plan");
  }

  /** @returns {Keys} */
  get keys() {
    return { ...this.player.keys, s: () => this.player.goTo(this.at ? 0 : 1) };
  }
}

/** The index of the step that decides about the value of a step.
 * @param {FilmStep[]} film
 * @param {FilmStep} shown */
const decisionAt = (film, shown) =>
  film.findIndex(({ decision, rewrite }) => decision === shown.decision && !rewrite);

/** The reason of a decision; of a rewrite its rule and both its sides.
 * @param {App} app
 * @param {FilmStep | undefined} step
 * @returns {Child[]} */
function filmCaption(app, step) {
  if (!step) {
    return [h("span", { class: "wb-quiet" }, "Each decision, then the rewrites of its value.")];
  }
  const { decision, pass, step: number, rewrite } = step;
  if (!rewrite) {
    return [
      h("b", {}, decision.stored ? "stored" : "fused"),
      recordText(`${decision.value}: ${decision.reason}`, "", 300),
    ];
  }
  const [rule, before, after, , about] = app.record.passes[pass].rewrites[number - 1];
  const open = () =>
    app.select({ pass, step: number, ...app.arrangements.toSee("graph", "rewrites") });
  const { nodes } = app.record;
  return [
    h("b", {}, recordText(ruleName(app, rule), "", 60)),
    about && recordText(about, "wb-quiet", 80),
    h(
      "code",
      {},
      recordText(
        `${inline(nodes, before, MOST_SIDE)} → ${inline(nodes, after, MOST_SIDE)}`,
        "",
        240,
      ),
    ),
    tool("open", "open it in Rewrites", open, "film-open"),
  ];
}
