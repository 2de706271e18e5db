// Compare: variants of a kernel in columns. A row is one fact (a loop, a rule that fired, a count, an
// instruction), aligned by what it is about; those that differ are shown, the others on request. The
// first column may be of another device, plan or set of rules, or a variant of another exploration,
// of the notebook or of a file; other panes show it beside the selected variant.

import { act, canAsk, checkedText, listedVariants } from "../../app/actions.js";
import { OtherApp, showRow } from "../../app/beside.js";
import { unpacked } from "../../app/channel.js";
import { button, chooser, failure, hasAny, heading } from "../../app/pieces.js";
import { rowAt } from "../../app/store.js";
import { speedText, timingText } from "../../app/timing.js";
import { h, refill } from "../../base/elements.js";
import { BESIDE } from "../../board/tree.js";
import { plural, secondsText } from "../../base/text.js";
import { passesOf } from "../../record/passes.js";

/** @import { App } from "../../app/store.js" */
/** @import { Child } from "../../base/elements.d.ts" */
/** @import {
 *   ComparedRow, ComparedSection, CompareReply, OtherPlan, PageRecord, VariantRow
 * } from "../../record.d.ts" */
/** @import { Changes, PanelRow } from "../../types.d.ts" */

const WHOLE_PLAN = "whole plan"; // the section that stands above those of one kernel
const MOST_COLUMNS = 6;
const MOST_ROWS = 200; // of a section
const MOST_CHIPS = 24;
const NO_PYTHON = "Variants are compared by Python: run the cell again.";
const ONE_ALONE = "There is one variant: apply an opt, or choose another device, plan or rule set.";

/** @satisfies {PanelRow} */
export const panel = {
  place: "pane",
  order: 26,
  title: "Compare",
  make: (/** @type {App} */ app) => new Compare(app),
};

/** What the first column is, apart from its variant of this record: `own` is a variant of another
 * exploration.
 * @typedef {{device: string | null, without: string[], plan: string, own: number | null}} Beside */

/** The selected variant as it is.
 * @type {Beside} */
const AS_IT_IS = { device: null, without: [], plan: "", own: null };
const FILE = "file "; // the name of the plan of a file begins so

class Compare {
  /** @type {CompareReply | null} */
  reply = null;
  /** The compared variants, the first column first; null: the reference and the selected one.
   * @type {number[] | null} */
  #chosen = null;
  /** What the reader chose of the first column; null: nothing.
   * @type {Beside | null} */
  #ofReader = null;
  /** The plans that Python offered last.
   * @type {OtherPlan[]} */
  #plans = [];
  /** What the reply or the pending request compares. */
  #of = "";
  /** The plan of the request: in another one, variants have other numbers.
   * @type {object | null} */
  #plan = null;
  #hasAll = false;
  choices = h("div", { class: "wb-compare-bar" });
  /** The path of a file to compare with: an element that stays, with what is typed. */
  #path = h("input", {
    class: "wb-input wb-compare-path",
    type: "text",
    "aria-label": "file beside",
    "data-key": "file beside",
    placeholder: "path of a saved exploration",
    title: "Enter: the exploration of this file stands beside the selected variant",
    onkeydown: ({ key }) => key === "Enter" && this.#openFile(),
  });
  errors = h("div", {});
  tables = h("div", { class: "wb-compare-tables" });

  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.el = h(
      "section",
      { class: "wb-compare", "aria-label": "compare", tabindex: 0 },
      heading("Compare"),
      this.choices,
      this.errors,
      this.tables,
    );
  }

  focus() {
    this.el.focus();
  }

  /** What the first column is, apart from its variant; where plans stand beside each other the plan
   * before, if there is one and the reader chose nothing.
   * @returns {Beside} */
  get #beside() {
    const { arrangements, record } = this.app;
    const isOfPlans = arrangements.shows(`plan${BESIDE}`) && record.plan.compared !== null;
    return this.#ofReader ?? (isOfPlans ? { ...AS_IT_IS, plan: "before" } : AS_IT_IS);
  }

  /** Whether the first column is of another device, plan or set of rules. */
  get #isElsewhere() {
    const { device, without, plan } = this.#beside;
    const other = device !== null && device !== this.app.record.device;
    return other || without.length > 0 || plan !== "";
  }

  /** The variants in columns, the reference first.
   * @returns {number[]} */
  get variants() {
    const { app } = this;
    const own = app.variantsOf(app.view.kernel);
    const chosen = this.#chosen?.filter((variant) => own.includes(variant)) ?? [];
    const selected = app.view.variant ?? own[0];
    if (chosen.length > 1) return chosen;
    if (chosen.length === 1) return [chosen[0], selected];
    if (this.#isElsewhere) return [selected, selected];
    const parent = rowAt(app.record.variants, selected)?.parent ?? null;
    const other = parent !== null && own.includes(parent)
      ? parent
      : own.find((v) => v !== selected);
    return [other ?? selected, selected];
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
    const { device, without } = this.#ofReader ?? AS_IT_IS;
    const isOfOthers = device !== null || without.length > 0; // which another plan has, too
    if (app.record.plan !== this.#plan && !(isOfOthers && !this.#ofReader?.plan)) {
      this.#ofReader = null;
    }
    this.#path.disabled = !canAsk(app);
    refill(this.errors, failure(app, "compare"));
    this.#ask();
    refill(this.choices, ...this.#selectors(), ...this.#chips());
    refill(this.tables, ...this.#content());
  }

  async #ask() {
    const { app, variants } = this;
    if (variants[0] === undefined || !canAsk(app) || !app.arrangements.shows("compare")) return;
    const beside = this.#beside;
    const { plan, device } = app.record;
    const of = JSON.stringify([device, variants, beside]);
    if (of === this.#of && plan === this.#plan) return;
    this.#of = of;
    this.#plan = plan;
    this.reply = null;
    const request = /** @type {const} */ ({ do: "compare", variants, ...beside });
    const result = (await act(app, "compare", request))?.result ?? null;
    const record = result?.side ? await unpacked(result.side.record, app.constants) : null;
    if (this.#of !== of || this.#plan !== plan) return;
    this.reply = result;
    this.#plans = result?.plans ?? this.#plans;
    if (result) {
      const shown = result.side ?? { kernel: app.view.kernel, variant: variants[0] };
      new OtherApp(app, result, record, shown);
    } else if (app.partner instanceof OtherApp) app.partner.end();
    app.changed("compare");
  }

  /** What the first column is: its variant, device, plan and rules; and the selected variant. */
  #selectors() {
    const { app, variants: [first, ...rest] } = this;
    const { record, view } = app;
    /** @type {[number, string][]} */
    const own = listedVariants(app).map((place) => [place, record.variants[place].name]);
    const side = (/** @type {string} */ label, /** @type {Child[]} */ ...parts) =>
      h(
        "div",
        { class: "wb-compare-side", role: "group", "aria-label": label, title: label },
        ...parts,
      );
    return [
      side(
        "what stands beside",
        h("b", { "data-term": "beside" }, "beside"),
        this.#beside.own === null && labelled(
          "variant",
          chooser("variant beside", own, first ?? null, (place) => {
            this.#chosen = [...new Set([place, ...rest])];
            app.changed("compare");
          }),
        ),
        ...this.#elsewhere(),
        labelled("file", this.#path),
      ),
      side(
        "the selected variant",
        h("b", {}, "selected"),
        labelled(
          "variant",
          chooser("selected variant", own, view.variant, (variant) => app.select({ variant })),
        ),
        this.#timeButton(),
      ),
    ];
  }

  /** @param {Partial<Beside>} now */
  #set(now) {
    this.#ofReader = { ...this.#beside, ...now };
    this.app.changed("compare");
  }

  #openFile() {
    const path = this.#path.value.trim();
    if (!path) return;
    this.#of = ""; // it is asked again: the file may have changed
    this.#set({ plan: FILE + path, own: null, device: null });
  }

  /** The choices of another exploration or plan, a variant of it, a device, and a set of rules. */
  #elsewhere() {
    const { app } = this;
    const { device: current, devices: rows } = app.record;
    const { device, without, plan, own } = this.#beside;
    const shown = own === null ? current : app.partner?.record.device ?? current;
    const devices = rows.filter(({ available, name }) =>
      available || name === current || name === shown
    ).map(({ name }) => name);
    const [plans, rules] = [this.#plansWith(plan), rulesOf(app)];
    return [
      plans.length > 0 &&
      labelled(
        "plan",
        chooser(
          "plan beside",
          orNone("this plan", plans.map(([, title, kind]) => `${kind}: ${title}`)),
          plans.findIndex(([name]) => name === plan),
          (i) => {
            this.#path.value = "";
            this.#set({ plan: plans[i]?.[0] ?? "", own: null });
          },
        ),
      ),
      this.#ownVariants(),
      labelled(
        "device",
        chooser(
          "device beside",
          devices.map((name, i) => [i, `on ${name}`]),
          devices.indexOf(device ?? shown),
          (i) => this.#set({ device: own === null && devices[i] === current ? null : devices[i] }),
        ),
      ),
      rules.length > 0 &&
      labelled(
        "rules",
        chooser(
          "rules beside",
          orNone("all rules", rules.map((name) => `without ${name}`)),
          rules.indexOf(without[0]),
          (i) => this.#set({ without: rules[i] === undefined ? [] : [rules[i]] }),
        ),
      ),
    ];
  }

  /** The plans that are offered, and a chosen file that is not among them: it could not be loaded.
   * @param {string} plan
   * @returns {OtherPlan[]} */
  #plansWith(plan) {
    const isMissing = plan.startsWith(FILE) && this.#plans.every(([name]) => name !== plan);
    return isMissing ? [...this.#plans, [plan, plan.slice(FILE.length), "file"]] : this.#plans;
  }

  /** The variants of the other exploration, after the opts of one of this record; null: it has
   * none, or they are not known yet. */
  #ownVariants() {
    const own = this.reply?.own ?? [];
    if (!own.length) return null;
    return labelled(
      "its variant",
      chooser(
        "its variant",
        orNone("with the same opts", own.map(([, name]) => `its own: ${name}`)),
        own.findIndex(([place]) => place === this.#beside.own),
        (i) => this.#set({ own: own[i]?.[0] ?? null, device: null }),
      ),
    );
  }

  /** A button that times the variants in turns; of another record the one that is shown. */
  #timeButton() {
    const { app, variants } = this;
    const timed = [...new Set(variants)];
    const { partner, view: { cold, variant: now } } = app;
    const [side, before] = [partner?.number ?? null, partner?.view.variant ?? null];
    const isBeside = side !== null && before !== null && now !== null;
    if (this.#isElsewhere ? !isBeside : timed.length < 2) return null;
    return button(app, "time in turns", () => {
      act(
        app,
        "compare",
        isBeside
          ? { do: "measure_beside", side, before, now, cold }
          : { do: "measure", variants: timed, cold },
      );
    }, { python: true, name: "compare-time", title: "time these variants in turns, in one run" });
  }

  /** A button for each variant of the kernel, pressed if it has a column. */
  #chips() {
    const { app, variants } = this;
    const places = app.variantsOf(app.view.kernel);
    const chips = places.length < 3 ? [] : places.slice(0, MOST_CHIPS).map((place) => {
      const isIn = variants.includes(place);
      const { name } = app.record.variants[place];
      return button(app, brief(name), () => this.#toggle(place), {
        pressed: isIn,
        name: `compare-${place}`,
        title: `${name}: ${isIn ? "take it out" : "compare it, too"}`,
      });
    });
    const all = button(app, "equal rows too", () => {
      this.#hasAll = !this.#hasAll;
      app.changed("compare");
    }, {
      pressed: this.#hasAll,
      name: "compare-all",
      title: "rows that are the same in each column",
    });
    return [h("div", { class: "wb-compare-side" }, ...chips, all)];
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
    const isAlone = new Set(variants).size < 2 && !this.#isElsewhere;
    if (isAlone && this.#chosen === null) return [quiet(ONE_ALONE)];
    if (!reply && app.failures.compare) return [];
    if (!reply) return [quiet(canAsk(app) ? "comparing .." : NO_PYTHON)];
    const rows = variants.flatMap((place) => rowAt(app.record.variants, place) ?? []);
    const first = reply.side && app.partner ? app.partner.variant() : rows[0];
    const times = first ? [measured([first, ...rows.slice(1)], this.#places(reply))] : [];
    const [whole, others] = [true, false].map((is) =>
      reply.sections.filter(({ title }) => (title === WHOLE_PLAN) === is)
    );
    const sections = [...whole, ...times, ...others];
    return sections.map((section) => this.#section(section, reply.names));
  }

  /** Which kernel of its plan each column is: "kernel 2 of 2"; empty where each plan has one.
   * @param {CompareReply} reply
   * @returns {string[]} */
  #places({ side, names }) {
    const { partner, record, view } = this.app;
    const other = side && partner ? partner.record : record;
    const first = side ? side.kernel : view.kernel;
    if (first === null || other.kernels.length === 1 && record.kernels.length === 1) return [];
    const place = (/** @type {number} */ kernel, /** @type {PageRecord} */ { kernels }) =>
      `kernel ${kernel + 1} of ${kernels.length}`;
    return names.map((_, i) => i ? place(view.kernel, record) : place(first, other));
  }

  /**
   * @param {ComparedSection} section
   * @param {string[]} names */
  #section({ title, rows, text }, names) {
    const { app } = this;
    const differing = rows.filter(([, , differs]) => differs);
    const shown = (this.#hasAll ? rows : differing).slice(0, MOST_ROWS);
    const equal = rows.length - differing.length;
    const words = differing.length || text
      ? equal ? `${plural(equal, "row")} equal` : ""
      : "no difference";
    const more = (this.#hasAll ? rows : differing).length - shown.length;
    return h(
      "section",
      { "aria-label": title, title: `${title}: a fact in each row, a variant in each column` },
      h("h4", {}, title, " ", h("span", { class: "wb-quiet" }, words)),
      shown.length > 0 && table(app, names, shown),
      more > 0 && h("p", { class: "wb-quiet" }, `and ${plural(more, "row")} more`),
      text && diffBox(text),
    );
  }
}

/** A choice after its name.
 * @param {string} name
 * @param {HTMLElement} choice */
const labelled = (name, choice) =>
  h("label", { class: "wb-compare-choice" }, h("span", { class: "wb-quiet" }, name), choice);

/** Texts as choices, after one of none of them.
 * @param {string} none
 * @param {string[]} texts
 * @returns {[number, string][]} */
const orNone = (none, texts) => [
  [-1, none],
  .../** @type {[number, string][]} */ (texts.map((text, i) => [i, text])),
];

/** The names of the rules that fired on the way to the selected variant, and can be switched off.
 * @param {App} app
 * @returns {string[]} */
function rulesOf(app) {
  const { passes, rules } = app.record;
  const fired = new Set(passesOf(app).flatMap((n) => passes[n].rewrites.map(([rule]) => rule)));
  const rows = [...fired].flatMap((rule) => rowAt(rules, rule) ?? []);
  return [...new Set(rows.filter((row) => !row.is_fixed).map(({ name }) => name))].sort();
}

/** What was measured of variants: times, beside the first, and answers. Where one is only predicted,
 * the predictions of all stand there, since a measured time is not compared with a predicted one.
 * @param {VariantRow[]} rows
 * @param {string[]} places which kernel of its plan each is, where plans have several
 * @returns {ComparedSection} */
function measured(rows, places) {
  const isMixed = rows.some(({ timing }) => timing) && rows.some(({ timing }) => !timing);
  const times = rows.map(({ timing, cost }, i) => {
    const predicted = cost && `predicted ${secondsText(cost.predicted_s)}`;
    const own = timing && `${isMixed ? "measured " : ""}${timingText(timing)}`;
    const text = [own, (!own || isMixed) && predicted].filter(Boolean).join("; ") || "not timed";
    return places[i] ? `${places[i]}: ${text}` : text;
  });
  const ratios = rows.map((row, place) => (place ? speedText(row.timing, rows[0].timing) : ""));
  const checks = rows.map(({ check }) => (check ? checkedText(check) : "not checked"));
  const bounds = rows.map(({ bound }) => bound ?? "");
  /** @type {[string, string[]][]} */
  const listed = [["time", times], ["beside the first", ratios], ["answer", checks], [
    "bound by",
    bounds,
  ]];
  return {
    title: "time and answer",
    rows: listed.filter(([, cells]) => cells.some(Boolean))
      .map(([label, cells]) => [label, cells, new Set(cells).size > 1, []]),
    text: "",
  };
}

/** A name without its middle: a variant has the name of its parent, and the opts that it adds.
 * @param {string} name */
const brief = (name) => name.length > 40 ? `${name.slice(0, 12)}…${name.slice(-27)}` : name;

/**
 * @param {App} app
 * @param {string[]} names
 * @param {ComparedRow[]} rows */
const table = (app, names, rows) =>
  h(
    "div",
    { class: "wb-compare-scroll", tabindex: 0, role: "region", "aria-label": "rows" },
    h(
      "table",
      { style: `--columns: ${names.length}` },
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("td", {}),
          ...names.map((n) => h("th", { scope: "col", title: n }, h("span", {}, brief(n)))),
        ),
      ),
      h(
        "tbody",
        {},
        ...rows.map(([label, cells, differs, about]) =>
          h(
            "tr",
            { class: differs ? "wb-compare-differs" : "" },
            h(
              "th",
              { scope: "row" },
              about.length ? lookButton(app, label, about) : breakable(label),
            ),
            ...cells.map((cell) =>
              h("td", { class: cell ? "" : "wb-compare-lacks" }, breakable(cell || "–"))
            ),
          )
        ),
      ),
    ),
  );

/** A text that may be broken after each part of a kernel's name: "matmul+max+exp".
 * @param {string} text */
const breakable = (text) =>
  text.split(/(?<=\+)/).flatMap((part, i) => (i ? [h("wbr"), part] : [part]));

/** The label of a row, which shows on both sides what the row is about.
 * @param {App} app
 * @param {string} label
 * @param {string[]} about */
const lookButton = (app, label, about) =>
  h("button", {
    class: "wb-compare-look",
    type: "button",
    "data-key": `look-${label}`,
    title: about.length > 1 ? "show the first use of this rule" : "mark this loop everywhere",
    onclick: () => showRow(app, about),
  }, breakable(label));

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
