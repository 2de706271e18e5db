// Run: where the milliseconds of a run of all kernels went. A timeline with its gaps and its memory,
// and below it the same as tables: by kernel, module, kind and phase. `ex.run(repeat=10)` and the
// button make a run; a page of a profile has one from the beginning.

import { act, canAsk } from "../../app/actions.js";
import { button, failure, hasAny, heading } from "../../app/pieces.js";
import { h, recordText, refill } from "../../base/elements.js";
import { coloursOf, groupingAtFirst, letterOf } from "./shares.js";
import { comparison, helpRows, icicle, percent, ROWS_AT_FIRST, sharesTable } from "./table.js";
import { RunTimeline } from "./timeline.js";
import { runWords, timeText } from "./words.js";

/** @import { App } from "../../app/store.js" */
/** @import { Kernel, Run } from "./run.d.ts" */
/** @import { Changes, PanelRow } from "../../types.d.ts" */
/** @import { Grouping } from "./shares.js" */

const NONE =
  "No run yet. A run times all kernels in their order, with the gaps between them and their memory.";
const ROUNDS = 10;
const SEARCH_S = 30;

/** @type {[Grouping, string][]} */
const GROUPINGS = [
  ["kernel", "each kernel, equal launches together"],
  ["module", "kernels of one module together"],
  ["kind", "kernels of one kind together, such as all matmuls"],
  ["phase", "kernels of one phase of training together"],
];

/** @satisfies {PanelRow} */
export const panel = {
  place: "pane",
  order: 26,
  title: "Run",
  make: (/** @type {App} */ app) => new RunPane(app),
};

class RunPane {
  /** The run that is shown.
   * @type {Run | null} */
  #run = null;
  /** @type {Grouping} */
  #by = "kernel";
  /** What the colours stand for.
   * @type {Grouping} */
  #colouredBy = "kind";
  #most = ROWS_AT_FIRST;
  /** What the last search of all kernels found, in lines. */
  #searched = "";
  head = h("div", {});
  legend = h("div", { class: "wb-run-legend" });
  tables = h("div", { class: "wb-run-tables" });

  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.timeline = new RunTimeline((kernel) => this.#open(kernel));
    this.el = h(
      "section",
      { class: "wb-run", "aria-label": "run" },
      this.head,
      this.legend,
      this.timeline.el,
      this.tables,
    );
  }

  get keys() {
    return this.#run ? this.timeline.keys : {};
  }

  focus() {
    this.timeline.stage.focus();
  }

  /** Show a kernel in Tune, if it is of this exploration.
   * @param {Kernel} kernel */
  #open({ place, title }) {
    const isHere = place !== null && this.app.record.kernels[place]?.title === title; // of this plan
    if (isHere) this.app.select({ kernel: place, mode: "tune", only: null });
  }

  /** @param {Changes} changes */
  update(changes) {
    const run = runsOf(this.app).at(-1) ?? null;
    if (hasAny(changes, "record", "live", "pending", "failure")) this.#fillHead(run);
    if (changes.has("theme")) this.timeline.repaint();
    if (run === this.#run) return;
    this.#run = run;
    this.#most = ROWS_AT_FIRST;
    if (run) {
      this.#colouredBy = groupingAtFirst(run);
      this.timeline.show(run);
    }
    this.#fill();
  }

  /** @param {Run | null} run */
  #fillHead(run) {
    const { app } = this;
    const makes = canAsk(app) && app.record.kernels.length > 0;
    refill(
      this.head,
      heading(
        "RUN",
        h(
          "span",
          { class: "wb-quiet", title: run ? runWords(run) : NONE },
          run ? runWords(run) : "",
        ),
        makes && button(
          app,
          app.pending("run") ? "running …" : `run ${ROUNDS} times`,
          () => act(app, "run", { do: "run", repeat: ROUNDS }),
          {
            python: true,
            name: "run",
            title: "run all kernels in their order, warm, with the opts that were chosen",
          },
        ),
        makes && button(
          app,
          app.pending("search_all") ? "searching …" : `search all, ${SEARCH_S} s`,
          () => this.#search(run),
          {
            python: true,
            name: "search-all",
            title:
              "try opts for the kernels that take most; what is faster goes to the tuning file, which runs use from then on",
          },
        ),
      ),
      failure(app, "run"),
      this.#searched && h("pre", { class: "wb-run-searched" }, recordText(this.#searched)),
      !run && h("p", { class: "wb-quiet" }, NONE),
      ...(run ? noticesOf(run) : []),
    );
  }

  /** Search all kernels, and say what was found.
   * @param {Run | null} run */
  async #search(run) {
    const reply = await act(this.app, "run", { do: "search_all", budget_s: SEARCH_S });
    this.#searched = reply?.result?.said ?? this.#searched;
    this.#fillHead(run);
  }

  /** Fill all that shows the run. */
  #fill() {
    const run = this.#run;
    this.timeline.el.hidden = !run;
    if (!run) return refill(this.legend), refill(this.tables);
    const colours = coloursOf(run, this.#colouredBy);
    this.timeline.colour(colours.of);
    this.timeline.stage.setAttribute(
      "aria-label",
      `timeline: ${runWords(run)}. The tables below say the same.`,
    );
    refill(this.legend, ...this.#legendParts(colours.names));
    this.#fillTables(colours.of);
  }

  /** Buttons that zoom, what the colours are, and their names.
   * @param {string[]} names */
  #legendParts(names) {
    const { app, timeline } = this;
    const of = (/** @type {string} */ name) =>
      this.#colouredBy === "kernel" ? this.#run?.kernels[Number(name)]?.title ?? name : name;
    return [
      button(app, "+", () => timeline.zoom(1 / 2), { name: "run-in", key: "w", title: "zoom in" }),
      button(app, "−", () => timeline.zoom(2), { name: "run-out", key: "s", title: "zoom out" }),
      button(app, "all", () => timeline.whole(), {
        name: "run-all",
        key: "f",
        title: "the whole run",
      }),
      h(
        "span",
        { class: "wb-quiet", title: "kernels of one group have one colour" },
        "colours by ",
      ),
      this.#choices("colour", this.#colouredBy, (by) => {
        this.#colouredBy = by;
        this.#fill();
      }),
      ...names.map((name, colour) =>
        h(
          "span",
          { class: "wb-run-key", title: `kernels of this colour and letter: ${of(name)}` },
          h(
            "i",
            { class: "wb-run-letter", style: `background:var(--wb-run-${colour})` },
            letterOf(colour),
          ),
          recordText(of(name), "wb-clip", 30),
        )
      ),
    ];
  }

  /** A choice of how kernels are grouped.
   * @param {string} what
   * @param {Grouping} chosen
   * @param {(by: Grouping) => void} choose */
  #choices(what, chosen, choose) {
    return h(
      "span",
      { class: "wb-run-choice", role: "group", "aria-label": `${what} by` },
      ...GROUPINGS.map(([by, title]) =>
        button(this.app, by, () => choose(by), {
          pressed: by === chosen,
          title,
          name: `run-${what}-${by}`,
        })
      ),
    );
  }

  /** @param {number[]} colours */
  #fillTables(colours) {
    const { app } = this;
    const run = this.#run;
    if (!run) return;
    const open = (/** @type {Kernel} */ kernel) => this.#open(kernel);
    const before = runsOf(app).at(-2);
    const again = () => this.#fillTables(colours);
    const rest = this.#by === "kernel" ? run.kernels.length - this.#most : 0;
    refill(
      this.tables,
      phaseRows(run),
      helpRows(app, run, open),
      before ? comparison(before, run) : null,
      h(
        "div",
        { class: "wb-run-tools" },
        h("span", { class: "wb-quiet", title: "what a row of the table is" }, "time by "),
        this.#choices("table", this.#by, (by) => ((this.#by = by), again())),
      ),
      this.#by === "module" ? icicle(run) : null,
      sharesTable(app, run, { by: this.#by, most: this.#most, colours, open }),
      rest > 0 && button(app, `${rest.toLocaleString("en")} more`, () => {
        this.#most += 500;
        again();
      }, { name: "run-more", title: "the kernels of smaller shares" }),
    );
  }
}

/** The last runs, the latest last.
 * @param {App} app */
const runsOf = ({ record }) => /** @type {Run[]} */ (record.runs ?? []);

/** What is missing or strange in a run, and what ended it.
 * @param {Run} run */
const noticesOf = ({ error, notices }) => [
  error && h("p", { class: "wb-bad" }, recordText(`ended by ${error}; what ran before is here`)),
  ...notices.map((notice) => h("p", { class: "wb-quiet" }, recordText(notice, "", 400))),
];

/** Where the time of the threads that launch kernels went.
 * @param {Run} run */
const phaseRows = ({ phases }) =>
  phases.length > 0 && h(
    "div",
    { class: "wb-run-phases" },
    h("b", { "data-term": "where the time went" }, "where the time went"),
    ...phases.map(({ name, ns, share, count }) =>
      h(
        "span",
        { title: `${name}: ${timeText(ns)} in ${count.toLocaleString("en")} parts` },
        `${name} ${percent(share)}`,
      )
    ),
  );
