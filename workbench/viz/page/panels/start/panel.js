// Start: a line over the board with three things to try, until the reader has tried them or dismisses
// it. Once one was tried, new explorations of the notebook open without the line.

import { act, applyOpt, canAsk, measure, notify } from "../../app/actions.js";
import { button, hasAny } from "../../app/pieces.js";
import { goTour } from "../../app/tour.js";
import { h, refill } from "../../base/elements.js";
import { storedHere, storeHere } from "../../base/notebook.js";
import { pickLine } from "../../listing/lines.js";
import { shownCode } from "../../listing/programs.js";
import { passesOf } from "../../record/passes.js";

/** @import { App } from "../../app/store.js" */
/** @import { Changes, PanelRow } from "../../types.d.ts" */

/** @satisfies {PanelRow} */
export const panel = { place: "top", order: 0, make: startPane };

const STORED = "workbench-started";

/** Something to try: what it is called, whether the reader has done it, and what does it.
 * @typedef {{
 *   name: string, text: (app: App) => string, isDone: (app: App) => boolean,
 *   actOn: (app: App) => unknown
 * }} Thing */

/** @type {Thing[]} */
const THINGS = [
  {
    name: "step",
    text: () => "step through scheduling",
    isDone: ({ view }) => view.pass !== null,
    actOn: firstRewrite,
  },
  {
    name: "opt",
    text: () => "apply an opt and time it",
    // times alone do not count: the page measures by itself, in the background
    isDone: ({ record }) => record.variants.some(({ when }) => when > 0),
    actOn: applyAndTime,
  },
  {
    name: "line",
    text: ({ view }) => `click a line of ${view.language}: see its origin`,
    isDone: ({ view }) => view.code !== null,
    actOn: pickInnermost,
  },
];

/** @param {App} app */
function startPane(app) {
  const title = "it goes away once you have tried them, or dismissed it";
  const el = h("div", { class: "wb-start", hidden: true, title });
  /** What is still to try; null: not known before the first update.
   * @type {Thing[] | null} */
  let left = null;
  let isStoredByThis = false;
  const store = () => {
    isStoredByThis = true;
    storeHere(STORED, true);
  };
  const dismiss = () => {
    left = [];
    store();
    app.changed("start");
  };
  const update = (/** @type {Changes} */ changes) => {
    if (!hasAny(changes, "record", "pass", "code", "mode", "live", "language", "start")) return;
    if (left?.length === 0) return void (el.hidden = true);
    const isStored = !isStoredByThis && storedHere(STORED) === true;
    const isTouched = left === null && THINGS.some(({ isDone }) => isDone(app));
    const before = left ?? THINGS;
    left = isStored || isTouched ? [] : before.filter(({ isDone }) => !isDone(app));
    if (left.length < THINGS.length && !isStored && !isTouched) store();
    el.hidden = !left.length || !isOpening(app);
    refill(el, ...(el.hidden ? [] : startParts(app, left, dismiss)));
  };
  return { el, update };
}

/** Whether the page is as it opens in a notebook, with something to compute.
 * @param {App} app */
const isOpening = (app) =>
  canAsk(app) && app.view.mode === "board" && !app.view.only && app.variant() !== null;

/**
 * @param {App} app
 * @param {Thing[]} left
 * @param {() => void} dismiss */
const startParts = (app, left, dismiss) => [
  h("b", {}, "New here? Try:"),
  ...left.map(({ name, text, actOn }) =>
    button(app, text(app), () => actOn(app), { name: `start-${name}` })
  ),
  h("span", { class: "wb-gap" }),
  button(app, "tour", () => goTour(app, 0), {
    name: "start-tour",
    title: "what each pane is for, in six steps; ? has it, too",
  }),
  button(app, "dismiss", dismiss, { name: "start-dismiss", title: "not again in this notebook" }),
];

/** Go to the first rewrite or decision of scheduling.
 * @param {App} app */
function firstRewrite(app) {
  const { passes } = app.record;
  const pass = passesOf(app).find((place) => passes[place].rewrites.length > 0);
  if (pass === undefined) return notify(app, "no pass changed anything here");
  app.select({ pass, step: 1 });
  app.root?.focus({ preventScroll: true }); // j and k go on
  notify(app, "j and k, or the arrows: one step on, one back", 6000);
}

/** Apply the most promising opt, and time the variant that it makes.
 * @param {App} app */
async function applyAndTime(app) {
  const { variant } = app.view;
  if (variant === null) return;
  if (!app.variant()?.offers.length) await act(app, "offers", { do: "offers", variant });
  const [best] = app.variant()?.offers ?? [];
  if (!best) return notify(app, "no opt is legal here");
  await applyOpt(app, best.opt);
  if (app.view.variant !== variant) measure(app);
}

/** Pick the first of the lines that stand in the most loops and compute the most there.
 * @param {App} app */
async function pickInnermost(app) {
  const { variant, language } = app.view;
  if (variant === null) return;
  if (!shownCode(app, app.variant())) await act(app, "code", { do: "code", variant, language });
  if (innermost(app) < 0) await act(app, "code", { do: "passes", variant }); // compiling links them
  const code = shownCode(app, app.variant());
  const line = innermost(app);
  if (!code || line < 0) return notify(app, "there is no program here yet");
  pickLine(app, code, variant, line);
}

/** The place of that line in the program that is shown; -1: no line is linked.
 * @param {App} app */
function innermost(app) {
  const links = shownCode(app, app.variant())?.links ?? [];
  const places = links.flatMap((link, i) => link?.nodes.length ? [{ i, ...link }] : []);
  const [first] = places.sort((a, b) =>
    b.axes.length - a.axes.length || b.nodes.length - a.nodes.length
  );
  return first?.i ?? -1;
}
