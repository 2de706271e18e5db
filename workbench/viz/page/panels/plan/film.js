// The film of scheduling: the bar below the plan that steps through the scheduler's decisions.

import { NOTHING } from "../../app/store.js";
import { hasAny } from "../../app/pieces.js";
import { Player, tool } from "../../base/player.js";
import { plural } from "../../base/text.js";
import { filmAt, filmOf } from "../../record/film.js";

/** @import { App } from "../../app/store.js" */
/** @import { Steps } from "../../base/player.js" */
/** @import { Changes, Keys } from "../../types.d.ts" */

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
    this.el = this.player.el;
    this.el.append(this.whole);
  }

  get film() {
    return filmOf(this.app.record);
  }

  /** The step that is shown; 0: the whole plan. */
  get at() {
    return filmAt(this.app, this.film);
  }

  /** @returns {Steps} */
  #steps() {
    return {
      first: 1,
      last: () => this.film.length,
      at: () => this.at || null,
      isShown: () => this.app.view.mode === "plan",
      go: (step) => this.go(step),
      changed: () => this.app.changed("film"),
    };
  }

  /** Show a step; 0: the whole plan.
   * @param {number} at */
  go(at) {
    const row = this.film[at - 1];
    const { decision, pass, step } = row ?? { decision: null, pass: null, step: 0 };
    this.app.select({ ...NOTHING, ...(decision ? { node: decision.node } : {}), pass, step });
  }

  /** In the film, a value that the reader picks is the step that decides it. */
  follow() {
    const { node } = this.app.view;
    const at = this.film.findIndex(({ decision }) => decision.node === node) + 1;
    if (this.at && at && at !== this.at) this.player.goTo(at);
  }

  /** @param {Changes} changes */
  update(changes) {
    if (changes.has("node")) this.follow();
    if (!hasAny(changes, "record", "pass", "step", "film")) return;
    const { at, film } = this;
    const count = film.length;
    this.el.hidden = !count;
    this.whole.hidden = !at;
    const copies = this.app.record.plan.decisions.filter((d) => d.is_copy).length; // the list has them
    const all = [plural(count, "decision"), copies && plural(copies, "copy")].filter(Boolean);
    const { decision } = film[at - 1] ?? { decision: null };
    const outcome = decision && `${decision.stored ? "stored" : "fused"} ${decision.value}`;
    this.player.show(at ? `${at} of ${count}` : all.join(", "), outcome ?? "the whole plan");
  }

  /** @returns {Keys} */
  get keys() {
    return { ...this.player.keys, s: () => this.player.goTo(this.at ? 0 : 1) };
  }
}
