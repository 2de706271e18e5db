// The tour: six steps, each of which lights one pane and says in a sentence what it is for.

import { elementsOf, h, refill } from "../base/elements.js";
import { button } from "./pieces.js";

/** @import { Changes } from "../types.d.ts" */
/** @import { App } from "./store.js" */

/** A pane, the layout that has it where the board lacks it, and what the pane is for.
 * @type {[string, string, string][]} */
const STEPS = [
  [
    "passes",
    "rewrites",
    "Passes: what was done to your expression, one after the other, down to machine code; a click on one lists its rewrites.",
  ],
  [
    "graph",
    "rewrites",
    "Graph: the program at the step that is shown, and what the step changes in it; j and k go one step on and back.",
  ],
  [
    "loops",
    "tune",
    "Loops: the order in which the kernel computes, and how much memory each of its loops touches.",
  ],
  [
    "opts",
    "tune",
    "Opts: legal changes of these loops, the most promising first; apply makes a new variant, which computes the same.",
  ],
  [
    "code",
    "tune",
    "Source: the program of the variant; a click on a line lights its loop, its part of the graph and the line of yours that it comes from.",
  ],
  [
    "results",
    "tune",
    "Results: the variants, each with its time; Time measures one, Check compares its answer with a reference's.",
  ],
];

/** The bar of the tour, which is there while the tour goes on.
 * @param {App} app */
export function tourPane(app) {
  const el = h("div", {
    class: "wb-tour",
    hidden: true,
    role: "region",
    "aria-label": "tour",
    title: "keys: → next, ← back, Esc ends the tour",
  });
  /** @type {number | null} */
  let shown = null;
  const update = (/** @type {Changes} */ changes) => {
    if (!changes.has("tour") && shown === null) return;
    const { tour } = app;
    const isOther = tour !== shown;
    const begins = shown === null;
    shown = tour;
    el.hidden = tour === null;
    light(app, tour === null ? "" : STEPS[tour][0], isOther);
    if (!isOther) return;
    refill(el, ...tour === null ? [] : tourParts(app, tour));
    if (tour !== null && begins) elementsOf(el, "[data-key=tour-next]")[0]?.focus();
  };
  return { el, update };
}

/**
 * @param {App} app
 * @param {number} at */
function tourParts(app, at) {
  const isLast = at === STEPS.length - 1;
  return [
    h("b", {}, `Tour, ${at + 1} of ${STEPS.length}`),
    h("span", { role: "status" }, STEPS[at][2]),
    h(
      "span",
      { class: "wb-tour-ways" },
      at > 0 && button(app, "back", () => goTour(app, at - 1), { key: "←", name: "tour-back" }),
      button(app, isLast ? "done" : "next", () => goTour(app, at + 1), {
        key: "→",
        name: "tour-next",
      }),
      !isLast && button(app, "end", () => goTour(app, null), { key: "Esc", name: "tour-end" }),
    ),
  ];
}

/** Mark the cell of a pane, and bring it into sight.
 * @param {App} app
 * @param {string} pane "": none
 * @param {boolean} isOther whether the step has just been reached */
function light(app, pane, isOther) {
  app.root?.toggleAttribute("data-tour", pane !== "");
  for (const cell of elementsOf(app.root ?? document, ".wb-frame")) {
    const isOne = cell.dataset.pane === pane;
    cell.classList.toggle("wb-toured", isOne);
    if (!isOne || !isOther) continue;
    cell.scrollIntoView({ block: app.arrangements.isStacked ? "start" : "nearest" });
  }
}

/** The layout that was shown before the tour.
 * @type {WeakMap<App, string>} */
const BEFORE = new WeakMap();

/** Go to a step of the tour; null, and a step after the last one, end it in the layout in which it
 * began.
 * @param {App} app
 * @param {number | null} step */
export function goTour(app, step) {
  if (app.tour === null) BEFORE.set(app, app.view.mode);
  app.tour = step !== null && STEPS[step] ? step : null;
  const closed = { help: false, exporting: false };
  if (app.tour === null) {
    app.select({ ...closed, mode: BEFORE.get(app) ?? app.view.mode });
  } else {
    const [pane, layout] = STEPS[app.tour];
    app.select({ ...closed, mode: "board" });
    app.select(app.arrangements.toSee(pane, layout));
  }
  app.changed("tour");
}

/** Step through the tour by a key; return whether the key is one of the tour.
 * @param {App} app
 * @param {string} key */
export function tourKey(app, key) {
  const { tour } = app;
  if (tour === null) return false;
  if (key === "ArrowRight") goTour(app, tour + 1);
  else if (key === "ArrowLeft") goTour(app, Math.max(0, tour - 1));
  else if (key === "Escape") goTour(app, null);
  else return false;
  return true;
}
