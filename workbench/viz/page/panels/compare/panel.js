// Compare: variants of a kernel in columns. A row is one fact (a loop, a rule that fired, a count, an
// instruction), aligned by what it is about; those that differ are shown, the others on request.

import { act, canAsk, checkedText } from "../../app/actions.js";
import { button, failure, hasAny, heading } from "../../app/pieces.js";
import { rowAt } from "../../app/store.js";
import { speedText, timingText } from "../../app/timing.js";
import { h, refill } from "../../base/elements.js";
import { plural } from "../../base/text.js";

/** @import { App } from "../../app/store.js" */
/** @import { ComparedRow, ComparedSection, CompareReply, VariantRow } from "../../record.d.ts" */
/** @import { Changes, PanelRow } from "../../types.d.ts" */

const MOST_COLUMNS = 6;
const MOST_ROWS = 200; // of a section
const NO_PYTHON = "Variants are compared by Python: run the cell again.";
const ONE_ALONE = "There is one variant: apply an opt, and compare.";

/** @satisfies {PanelRow} */
export const panel = {
  place: "pane",
  order: 26,
  title: "Compare",
  make: (/** @type {App} */ app) => new Compare(app),
};

class Compare {
  /** @type {CompareReply | null} */
  reply = null;
  /** The compared variants; null: the reference and the selected one.
   * @type {number[] | null} */
  #chosen = null;
  /** The variants of the reply or of the pending request. */
  #of = "";
  /** Their plan: in another one, variants have other numbers.
   * @type {object | null} */
  #plan = null;
  #hasAll = false;
  choices = h("div", { class: "wb-compare-bar" });
  errors = h("div", {});
  tables = h("div", { class: "wb-compare-tables" });

  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.el = h(
      "section",
      { class: "wb-compare", "aria-label": "compare", tabindex: 0 },
      heading("Compare", this.choices),
      this.errors,
      this.tables,
    );
  }

  focus() {
    this.el.focus();
  }

  /** The variants in columns, the reference first.
   * @returns {number[]} */
  get variants() {
    const { app } = this;
    const own = app.variantsOf(app.view.kernel);
    const chosen = this.#chosen?.filter((variant) => own.includes(variant)) ?? [];
    if (chosen.length > 1) return chosen;
    const selected = app.view.variant ?? own[0];
    const parent = rowAt(app.record.variants, selected)?.parent ?? null;
    const other = parent !== null && own.includes(parent)
      ? parent
      : own.find((v) => v !== selected);
    return other === undefined ? [selected] : [other, selected];
  }

  /** @param {Changes} changes */
  update(changes) {
    const { app } = this;
    if (
      !hasAny(changes, "record", "board", "mode", "kernel", "variant", "live", "failure", "compare")
    ) {
      return;
    }
    if (changes.has("kernel")) this.#chosen = null;
    refill(this.errors, failure(app, "compare"));
    this.#ask();
    refill(this.choices, ...this.#chips());
    refill(this.tables, ...this.#content());
  }

  async #ask() {
    const { app, variants } = this;
    const names = `${app.record.device} ${variants}`;
    if (variants.length < 2 || !canAsk(app) || !app.arrangements.shows("compare")) return;
    if (names === this.#of && app.record.plan === this.#plan) return;
    this.#of = names;
    this.#plan = app.record.plan;
    this.reply = null;
    const { language } = app.view;
    app.select({ columns: variants.slice(0, 2).map((variant) => ({ variant, language })) });
    const reply = await act(app, "compare", { do: "compare", variants });
    if (this.#of !== names) return;
    this.reply = reply?.result ?? null;
    app.changed("compare");
  }

  /** A button for each variant of the kernel, pressed if it has a column. */
  #chips() {
    const { app, variants } = this;
    const chips = app.variantsOf(app.view.kernel).slice(0, 24).map((place) => {
      const isIn = variants.includes(place);
      const { name } = app.record.variants[place];
      return button(app, name.slice(0, 40), () => this.#toggle(place), {
        pressed: isIn,
        name: `compare-${place}`,
        title: isIn ? "take it out" : "compare it, too",
      });
    });
    const all = button(app, "equal rows too", () => {
      this.#hasAll = !this.#hasAll;
      app.changed("compare");
    }, { pressed: this.#hasAll, name: "compare-all" });
    return [...chips, all];
  }

  /** @param {number} place */
  #toggle(place) {
    const { variants } = this;
    const others = variants.filter((variant) => variant !== place);
    const now = others.length < variants.length ? others : [...variants, place];
    if (now.length < 2 || now.length > MOST_COLUMNS) return;
    this.#chosen = now;
    this.app.changed("compare");
  }

  #content() {
    const { app, reply, variants } = this;
    const quiet = (/** @type {string} */ words) => h("p", { class: "wb-quiet" }, words);
    if (variants.length < 2) return [quiet(ONE_ALONE)];
    if (!reply) return [quiet(canAsk(app) ? "comparing .." : NO_PYTHON)];
    const rows = variants.map((variant) => app.record.variants[variant]);
    const sections = [measured(rows), ...reply.sections];
    return sections.map((section) => this.#section(section, reply.names));
  }

  /**
   * @param {ComparedSection} section
   * @param {string[]} names */
  #section({ title, rows, text }, names) {
    const differing = rows.filter(([, , differs]) => differs);
    const shown = (this.#hasAll ? rows : differing).slice(0, MOST_ROWS);
    const equal = rows.length - differing.length;
    const words = differing.length || text
      ? equal ? `${plural(equal, "row")} equal` : ""
      : "no difference";
    const more = (this.#hasAll ? rows : differing).length - shown.length;
    return h(
      "section",
      { "aria-label": title },
      h("h4", {}, title, " ", h("span", { class: "wb-quiet" }, words)),
      shown.length > 0 && table(names, shown),
      more > 0 && h("p", { class: "wb-quiet" }, `and ${plural(more, "row")} more`),
      text && diffBox(text),
    );
  }
}

/** What was measured of variants: times, beside the first, and answers.
 * @param {VariantRow[]} rows
 * @returns {ComparedSection} */
function measured(rows) {
  const times = rows.map(({ timing }) => (timing ? timingText(timing) : "not timed"));
  const ratios = rows.map((row, place) => (place ? speedText(row.timing, rows[0].timing) : ""));
  const checks = rows.map(({ check }) => (check ? checkedText(check) : "not checked"));
  const bounds = rows.map(({ bound }) => bound ?? "");
  /** @type {[string, string[]][]} */
  const listed = [["time", times], ["beside the first", ratios], ["answer", checks], [
    "bound by",
    bounds,
  ]];
  return {
    title: "measured",
    rows: listed.filter(([, cells]) => cells.some(Boolean))
      .map(([label, cells]) => [label, cells, new Set(cells).size > 1, []]),
    text: "",
  };
}

/**
 * @param {string[]} names
 * @param {ComparedRow[]} rows */
const table = (names, rows) =>
  h(
    "div",
    { class: "wb-compare-scroll", tabindex: 0, role: "region", "aria-label": "rows" },
    h(
      "table",
      {},
      h("thead", {}, h("tr", {}, h("td", {}), ...names.map((n) => h("th", { scope: "col" }, n)))),
      h(
        "tbody",
        {},
        ...rows.map(([label, cells, differs]) =>
          h(
            "tr",
            { class: differs ? "wb-compare-differs" : "" },
            h("th", { scope: "row" }, label),
            ...cells.map((cell) => h("td", { class: cell ? "" : "wb-compare-lacks" }, cell || "–")),
          )
        ),
      ),
    ),
  );

/** @param {string} text */
function diffBox(text) {
  const lines = text.split("\n").map((line) => {
    const kind = line.startsWith("+")
      ? "wb-compare-added"
      : line.startsWith("-")
      ? "wb-compare-removed"
      : "";
    return h("span", { class: kind }, `${line}\n`);
  });
  return h(
    "details",
    {},
    h("summary", {}, "line by line"),
    h("pre", { class: "wb-compare-text", tabindex: 0 }, ...lines),
  );
}
