// Times of variants and baselines: value, spread, ratio to the pinned variant, and whether they are
// stale.

import { act, canAsk, pinned, reference } from "../../app/actions.js";
import { meaningOf } from "../../app/glossary.js";
import { button } from "../../app/pieces.js";
import { rowAt } from "../../app/store.js";
import {
  APART,
  BUSY,
  coldSpread,
  inOneRun,
  isBusy,
  isCertain,
  ONE_RUN,
  overlap,
  real,
  spreadText,
  timingText,
} from "../../app/timing.js";
import { h, recordText } from "../../base/elements.js";
import { secondsText, three } from "../../base/text.js";
import { kernelWork, workTotal } from "../../record/kernels.js";

/** @import { App } from "../../app/store.js" */
/** @import { BaselineRow, TimingRow, VariantRow } from "../../record.d.ts" */

const NOT_IN_TURNS =
  "timed separately from the pinned variant: the machine may have been slower or faster; Time takes both in turns";

/** Time, spread and ratio to the pinned variant; nothing for a run on the emulator.
 * @param {App} app
 * @param {TimingRow | null} timing
 * @param {boolean} [hidden]
 * @param {VariantRow | null} [variant] whose time it is; where its answer is wrong, a ratio says
 *   nothing */
export function timeCells(app, timing, hidden = false, variant = null) {
  if (!timing || hidden) {
    return h("span", { class: "wb-quiet wb-said" }, hidden ? "emulated" : "not timed");
  }
  const other = reference(app)?.timing;
  const text = variant && unedited(app, variant);
  const ratio = variant?.check?.ok === false
    ? h("span")
    : text
    ? ratioCell(app, timing, text.timing, "its unedited text, by the same compiler")
    : ratioCell(app, timing, other);
  return cells(app, timing, isApart(timing, other), ratio);
}

/** A time and its spread, and a last cell.
 * @param {App} app
 * @param {TimingRow} timing
 * @param {boolean | null} isOld of another run than what it stands beside
 * @param {HTMLElement} last */
function cells(app, timing, isOld, last) {
  const s = app.view.cold ? timing.cold_s : timing.median_s;
  if (s === null) return h("span", { class: "wb-quiet wb-said" }, "not timed cold");
  return h(
    "span",
    { class: "wb-times" },
    h(
      "span",
      {
        class: `wb-figure ${isOld || isBusy(timing) ? "wb-stale" : ""}`,
        title: timingText(timing),
      },
      isOld && h("span", { "data-term": APART }, APART),
      secondsText(s),
    ),
    h(
      "span",
      isBusy(timing)
        ? { class: "wb-figure wb-quiet wb-spread wb-doubt-mark", title: busyTitle(app, timing) }
        : {
          class: "wb-figure wb-quiet wb-spread",
          "data-term": timing.samples.length < 2 ? ONE_RUN : "±",
        },
      app.view.cold ? coldSpread(timing) : spreadText(timing),
    ),
    last,
  );
}

/** The text that an edit was made from, and its time: by the compiler of the edit, where that of the
 * pinned variant is another, since the ratio to that one would compare the compilers.
 * @param {App} app
 * @param {VariantRow} variant */
function unedited(app, { edited, timing, parent }) {
  const other = reference(app);
  if (!edited || !real(timing) || !real(other?.timing)) return null;
  if (other.timing.device === timing.device) return null;
  let from = rowAt(app.record.variants, parent);
  while (from?.edited) from = rowAt(app.record.variants, from.parent);
  const own = from?.elsewhere.find(({ device }) => device === timing.device);
  return { other, timing: own ?? null };
}

/** What the ratios of edits are to, where another compiler made them than the pinned variant.
 * @param {App} app
 * @param {number[]} places */
export function compilerLines(app, places) {
  const rows = places.map((i) => app.record.variants[i]);
  return rows.flatMap((variant) => {
    const { check, name, timing } = variant;
    const text = unedited(app, variant);
    if (!text || !timing || check?.ok === false) return [];
    const { other, timing: own } = text;
    const [to, across] = [own, other.timing].map((each) => each && speedUp(app, timing, each));
    if (own && !to) return []; // busy, or of another run: so says the cell
    const words = to
      ? [
        `${name}: ${to}x of its unedited text (${timing.device} compiled both`,
        `${own && secondsText(own.median_s)})`,
        across && `${across}x of ${other.name}, which ${other.timing?.device} compiled`,
      ]
      : [
        `${name}: not compared, as ${timing.device} compiled it, ${other.timing?.device} ${other.name}`,
      ];
    const line = words.filter(Boolean).join(", ");
    return [h("div", { class: "wb-quiet wb-small wb-compilers" }, recordText(line, "", 300))];
  });
}

/** How busy the machine was, and what that means for a time.
 * @param {App} app
 * @param {TimingRow} timing */
const busyTitle = (app, { doubts = [] }) =>
  [...doubts, meaningOf(app.record, BUSY)].filter(Boolean).join(".\n\n");

/** Whether a time is of another run than the pinned variant's, or of an earlier session.
 * @param {TimingRow | null} timing
 * @param {TimingRow | null | undefined} other */
const isApart = (timing, other) =>
  timing !== null && (timing.earlier || (real(other) && !inOneRun(timing, other)));

/** The predicted time of a variant, and the ratio of the pinned one's to it.
 * @param {App} app
 * @param {VariantRow} variant */
export function predictedCells(app, { cost, edited }) {
  if (!cost) {
    const isOther = !edited && app.record.variants.some((variant) => variant.cost);
    const title = isOther && "a variant is predicted once it is selected";
    const not = edited ? "an edit is not predicted" : "not predicted";
    const words = isOther ? "not predicted yet" : not;
    return h("span", { class: "wb-quiet wb-said", title: title || null }, words);
  }
  const other = reference(app)?.cost;
  return h(
    "span",
    { class: "wb-times wb-times-predicted" },
    h(
      "span",
      { class: "wb-figure wb-stale", "data-term": "predicted", title: "predicted, not run here" },
      `~${secondsText(cost.predicted_s)}`,
    ),
    other
      ? h(
        "b",
        { class: "wb-figure", title: "predicted: times as fast as the pinned variant" },
        `~${three(other.predicted_s / cost.predicted_s).replace(/\.00$/, "")}x`,
      )
      : h("span"),
  );
}

/** The ratio of the two shown times; none unless they were taken in turns, in one run: the machine
 * may have been slower in one of them.
 * @param {App} app
 * @param {TimingRow} timing
 * @param {TimingRow | null | undefined} other
 * @param {string} [whose] whose time the other one is */
function ratioCell(app, timing, other, whose = "the pinned variant") {
  if (!real(other)) return h("span");
  const [a, b] = app.view.cold ? [other.cold_s, timing.cold_s] : [other.median_s, timing.median_s];
  if (a === null || b === null) return h("span");
  if (isBusy(timing) || isBusy(other)) {
    const title = `not compared: the time of ${whose} is busy`; // this one may have no fault
    return h("span", { class: "wb-quiet", title }, isBusy(timing) ? "" : "–");
  }
  if (!inOneRun(timing, other)) {
    return h("span", { class: "wb-quiet", title: NOT_IN_TURNS }, "apart");
  }
  const same = other !== timing && overlap(other, timing, app.view.cold);
  const sure = isCertain(timing) && isCertain(other);
  const title = same ? "no measurable difference" : `times as fast as ${whose}`;
  return h(
    sure ? "b" : "i",
    { class: "wb-figure", title: sure ? title : `${title}; one of the two times is not certain` },
    same ? "≈" : `${ratioText(a / b)}x`,
  );
}

/** @param {number} ratio */
const ratioText = (ratio) => three(ratio).replace(/\.00$/, "");

/** How many times as fast as another a time is; null unless both were taken in turns, undisturbed.
 * @param {App} app
 * @param {TimingRow} timing
 * @param {TimingRow} other */
function speedUp(app, timing, other) {
  const [a, b] = app.view.cold ? [other.cold_s, timing.cold_s] : [other.median_s, timing.median_s];
  const isKnown = a !== null && b !== null && !isBusy(timing) && !isBusy(other);
  return isKnown && inOneRun(timing, other) ? ratioText(a / b) : null;
}

// Baselines: the user's own functions among the results, timed in turns with the pinned variant.

/** Whether a baseline computes what several kernels do together: none of them compares with it.
 * @param {App} app */
const isOfAll = ({ record }) => record.kernels.length > 1;

/** The time of a baseline beside all kernels: the ratio to their run if it was timed in turns, and no
 * ratio to one of them.
 * @param {App} app
 * @param {BaselineRow} row
 * @param {TimingRow} timing */
function togetherCells(app, row, timing) {
  const ours = app.record.baselines.find(({ is_ours }) => is_ours);
  if (ours?.timing && ours !== row) {
    return cells(app, timing, false, ratioCell(app, timing, ours.timing, ours.name));
  }
  const title = `ours together: ${workTotal(kernelWork(app.record))}`;
  const words = `all ${app.record.kernels.length} kernels`;
  return cells(app, timing, false, h("span", { class: "wb-quiet wb-clip", title }, words));
}

/** @param {App} app */
export function baselineRows(app) {
  const rows = app.record.baselines.map((b) => [
    h(
      "div",
      {
        class: "wb-row wb-variant wb-baseline",
        title: b.error ? String(b.error) : b.about || "a function of your own",
      },
      h(
        "span",
        { class: "wb-name" },
        h("span", { class: "wb-pin" }),
        recordText(b.name, "wb-clip", 40),
      ),
      b.error
        ? recordText(String(b.error), "wb-bad wb-said wb-clip")
        : b.timing && isOfAll(app)
        ? togetherCells(app, b, b.timing)
        : timeCells(app, b.timing, b.timing?.emulator),
    ),
    moduleLine(app, b),
  ]);
  return rows.length ? h("div", { class: "wb-list" }, ...rows.flat()) : null;
}

/** What a baseline takes in the modules of the selected kernel, and how it runs.
 * @param {App} app
 * @param {BaselineRow} row */
function moduleLine(app, { about, modules = [] }) {
  const calls = app.record.kernels[app.view.kernel]?.modules ?? [];
  const own = modules.filter(({ path }) =>
    calls.some((call) => call === path || call.startsWith(`${path}: `))
  );
  const total = secondsText(own.reduce((sum, { seconds }) => sum + seconds, 0));
  const inside = own.length && `${total} in ${own.map(({ path }) => path).join(", ")}`;
  const words = [inside, about].filter(Boolean).join("; ");
  return words &&
    h("div", { class: "wb-quiet wb-small wb-clip", title: words }, recordText(words, "", 200));
}

/** The hint how a cell adds a variant to the list.
 * @param {App} app */
export function addHint(app) {
  const hint = `to show a kernel of a cell: ${app.record.recipes.add}`;
  return canAsk(app) ? h("div", { class: "wb-quiet wb-small wb-hint" }, hint) : null;
}

/** Baselines come from cells; once given they can be timed again.
 * @param {App} app */
export function baselineButton(app) {
  if (app.record.baselines.length) {
    return [
      button(app, "Time baselines", () => timeBaselines(app, [pinned(app) ?? []].flat()), {
        python: true,
        name: "baselines",
        title: "in turns with the pinned variant",
      }),
    ];
  }
  return [];
}

/** Time the baselines in turns with variants.
 * @param {App} app
 * @param {number[]} variants */
const timeBaselines = (app, variants) => act(app, "results", { do: "baseline", variants });

/** The hint how a cell gives a baseline, until there is one.
 * @param {App} app */
export function baselineHint(app) {
  const hint = `to compare: ${app.record.recipes.baseline}`;
  const isOpen = app.variant() && canAsk(app) && !app.record.elsewhere &&
    !app.record.baselines.length;
  return isOpen ? h("div", { class: "wb-quiet wb-small wb-hint" }, hint) : null;
}

// Stale times: those of another run than the reference of the ratios. They are marked, and timed
// again on request.

const MOST_AT_ONCE = 16; // variants of one request

/** The times of a variant that can be taken again: on a device that is not here they stay.
 * @param {App} app
 * @param {number} variant */
function timesHere(app, variant) {
  const { devices, variants } = app.record;
  const { timing, elsewhere } = variants[variant];
  const isHere = (/** @type {TimingRow} */ row) =>
    devices.some(({ name, available }) => available && name === row.device);
  return [timing, ...elsewhere.filter(isHere)].filter(real);
}

/** What the mark of stale times says, and their remedy.
 * @param {App} app */
export function staleLine(app) {
  const { elsewhere, variants } = app.record;
  if (elsewhere) return null; // nothing is run there
  const reference = variants[pinned(app) ?? -1]?.timing;
  const ofKernel = app.variantsOf(app.view.kernel);
  const apart = ofKernel.filter((i) => timesHere(app, i).some((row) => isApart(row, reference)));
  const busy = ofKernel.filter((i) => timesHere(app, i).some(isBusy));
  const stale = ofKernel.filter((i) => apart.includes(i) || busy.includes(i));
  // edited code, other devices and cold caches are left to a process that has no baselines
  const hasBaselines = !app.view.cold && app.record.baselines.length > 0 && !isOfAll(app) &&
    ofKernel.every((i) =>
      !variants[i].edited && timesHere(app, i).every((row) => row === variants[i].timing)
    );
  const isAnyApart = apart.length || hasBaselines &&
      app.record.baselines.some(({ timing }) => isApart(timing, reference));
  if (!stale.length && !isAnyApart) return null;
  const reasons = [
    isAnyApart && "in another run, or earlier",
    busy.length && "while the machine was busy",
  ];
  const others = ofKernel.filter((i) => timesHere(app, i).length); // else these would be apart
  const every = [pinned(app) ?? [], ...stale, ...others].flat();
  const all = [...new Set(every)].slice(0, MOST_AT_ONCE);
  const again = () =>
    hasBaselines
      ? timeBaselines(app, all)
      : act(app, "results", { do: "measure", variants: all, cold: app.view.cold });
  return h(
    "div",
    { class: "wb-stale-line" },
    h(
      "span",
      { class: "wb-quiet wb-small", "data-term": isAnyApart ? APART : BUSY },
      `${isAnyApart ? `${APART} ` : ""}timed ${reasons.filter(Boolean).join(", or ")}`,
    ),
    button(
      app,
      app.pending("measure") || app.pending("baseline") ? "Timing…" : "Time these again",
      again,
      {
        python: true,
        name: "time-stale",
        title: `in turns with the pinned variant${
          hasBaselines ? " and the baselines" : ""
        }: then they can be compared`,
      },
    ),
  );
}
