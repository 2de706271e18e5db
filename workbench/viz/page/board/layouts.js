// Layouts: named arrangements of panes, each for pages of several widths. Those that have one pane
// or two in the middle fold what stands beside them at first.

import { storedHere, storeHere } from "../base/notebook.js";
import { BESIDE, column, leaf, row } from "./tree.js";

/** @import { PageRecord } from "../record.d.ts" */
/** @import { Tree } from "./tree.js" */

/** The width of a page: `narrow` stands below each other, and scrolls.
 * @typedef {"wide" | "medium" | "small" | "narrow"} Width */

/** A layout. `trees` has an arrangement for wide pages, and for others where it differs: a missing
 * one is that of the next wider page. `stacksAt`: the widths at which panes stand below each other.
 * `main` are the panes that answer keys when none has the focus. `hasBars`: each pane has its bar at
 * first. `isMore`: it stands in the list of more layouts, not among the tabs. `aside`: what the
 * region of that name is called, and has.
 * @typedef {{
 *   name: string, title: string, about?: string, trees: Partial<Record<Width, Tree>> & {wide: Tree},
 *   stacksAt?: Width[], main: string[], hasBars?: boolean, isMore?: boolean,
 *   aside?: {title: string, has: string}
 * }} Layout */

/** @type {[Width, number][]} */
const LEAST_WIDTHS = [["wide", 1151], ["medium", 860], ["small", 680], ["narrow", 0]]; // pixels

/** The width of a page of so many pixels.
 * @param {number} pixels
 * @returns {Width} */
export const widthOf = (pixels) =>
  LEAST_WIDTHS.find(([, least]) => pixels >= least)?.[0] ?? "narrow";

/** The arrangement of a layout at a width.
 * @param {Layout} layout
 * @param {Width} width
 * @returns {Tree} */
export function treeOf({ trees }, width) {
  const widths = LEAST_WIDTHS.map(([name]) => name);
  const wider = widths.slice(0, widths.indexOf(width) + 1).reverse();
  return wider.map((name) => trees[name]).find(Boolean) ?? trees.wide;
}

/** Whether the panes of a layout stand below each other at a width.
 * @param {Layout} layout
 * @param {Width} width */
export const stacks = ({ stacksAt = [] }, width) => width === "narrow" || stacksAt.includes(width);

const FITS = { fits: true };
const LENDS = { lends: true };
const FOLDED = { isFolded: true };
const NARROWER = [28, 40, 32]; // shares of three columns where there is less room

/** Kernels, results and lines, at the left. A list of many kernels has about half: one of few takes
 * less than its share, and leaves the rest.
 * @param {{isFolded?: boolean}} [more] */
const left = (more) => ({
  ...column([48, 37, 15], leaf("kernels", FITS), leaf("results", LENDS), leaf("lines", FITS)),
  name: "left",
  ...more,
});

/** The program, at the right, and below it its run in the browser, where there is one.
 * @param {{isFolded?: boolean}} [more] */
const right = (more) => ({
  ...column([60, 40], "code", leaf("browser", FITS)),
  name: "right",
  ...more,
});

/** One part in the middle, as wide as the page: the columns beside it are folded.
 * @param {Tree} middle
 * @param {number[]} [sizes]
 * @returns {Tree} */
const between = (middle, sizes = [18, 51, 31]) => row(sizes, left(FOLDED), middle, right(FOLDED));

/** The trees of a layout that is one part in the middle.
 * @param {Tree} middle
 * @returns {Layout["trees"]} */
export const middleTrees = (middle) => ({
  wide: between(middle),
  medium: between(middle, NARROWER),
});

/** A list that a button folds, beside what it lists.
 * @param {Tree} tree
 * @returns {Tree} */
const aside = (tree) => ({ ...tree, name: "aside" });

const loopsAndOpts = column([50, 50], leaf("loops", FITS), "opts");
const loopsOver = column([50, 50], leaf("loops", FITS), row([50, 50], "opts", right()));
/** A pane, and beside it the same of what stands beside the selected variant.
 * @param {string} pane */
const pair = (pane) => row([50, 50], pane + BESIDE, pane);

const kernelPairs = column([40, 28, 32], ...["graph", "loops", "code"].map(pair));
const planPairs = column([52, 22, 26], ...["plan", "memory", "decisions"].map(pair));

const passLists = aside(leaf("passes"));
const reasons = aside(column([52, 48], "reasons", "decisions"));
const planAside = row([74, 26], "plan", reasons);
const planBelow = column([60, 40], "plan", reasons);
/** @type {(plan: Tree) => Tree} */
const overMemory = (plan) => column([70, 30], plan, leaf("memory", FITS));

/** @type {Layout[]} */
export const LAYOUTS = [
  {
    name: "board",
    title: "Board",
    about: "the graph, the passes, the opts and the source together",
    trees: {
      wide: row(
        [23, 43, 34],
        column([58, 42], "passes", "results"),
        column([58, 42], "graph", "opts"),
        column([62, 38], "code", "loops"),
      ),
      medium: row([50, 50], column([60, 40], "graph", "passes"), column([55, 45], "code", "opts")),
    },
    stacksAt: ["small"],
    main: ["graph", "passes", "opts", "code"],
    hasBars: true,
  },
  {
    name: "tune",
    title: "Tune",
    trees: {
      wide: row([20.5, 46.5, 33], left(), loopsAndOpts, right()),
      medium: row([25, 75], left(), loopsOver),
      small: row([29, 71], left(), loopsOver),
    },
    main: ["opts", "loops"],
  },
  {
    name: "rewrites",
    title: "Rewrites",
    trees: {
      wide: between(row([17, 60, 23], passLists, "graph", "rewrite")),
      medium: between(
        row([27, 73], aside(column([58, 42], "passes", "rewrite")), "graph"),
        NARROWER,
      ),
      narrow: between(column([22, 52, 26], passLists, "graph", "rewrite")),
    },
    main: ["graph", "passes", "rewrite"],
    aside: { title: "Passes", has: "passes and rewrites" },
  },
  {
    name: "plan",
    title: "Plan",
    trees: {
      ...middleTrees(overMemory(planAside)),
      narrow: between(overMemory(planBelow), NARROWER),
    },
    main: ["plan", "reasons", "decisions"],
    aside: { title: "Reasons", has: "reasons and decisions" },
  },
  {
    name: "side_by_side",
    title: "Side by side",
    trees: middleTrees(leaf("side_by_side")),
    main: ["side_by_side"],
  },
  {
    name: "rules",
    title: "Rules",
    trees: middleTrees(leaf("rules")),
    main: ["rules"],
  },
  {
    name: "gpu",
    title: "GPU",
    trees: middleTrees(leaf("gpu")),
    main: ["gpu"],
  },
  {
    name: "run",
    title: "Run",
    trees: middleTrees(leaf("run")),
    main: ["run"],
  },
  {
    name: "schedule",
    title: "Schedule",
    about: "from tensors to kernels: the plan, its reasons, its passes, its memory",
    trees: {
      wide: row(
        [20, 52, 28],
        column([45, 55], "kernels", "passes"),
        column([74, 26], "plan", "memory"),
        column([55, 45], "reasons", "decisions"),
      ),
      medium: row(
        [62, 38],
        column([70, 30], "plan", "kernels"),
        column([50, 50], "reasons", "decisions"),
      ),
    },
    stacksAt: ["small"],
    main: ["plan", "decisions", "passes"],
    hasBars: true,
    isMore: true,
  },
  {
    name: "trace",
    title: "Trace a line",
    about: "a line of the notebook in the graph, the loops, the source and the rules that made it",
    trees: {
      wide: row(
        [22, 44, 34],
        column([40, 60], "lines", "rewrite"),
        column([56, 44], "graph", "loops"),
        "code",
      ),
      medium: row(
        [50, 50],
        column([25, 45, 30], "lines", "graph", "rewrite"),
        column([60, 40], "code", "loops"),
      ),
    },
    stacksAt: ["small"],
    main: ["lines", "graph", "loops"],
    hasBars: true,
    isMore: true,
  },
  {
    name: "compare",
    title: "Compare",
    about: "two of anything, pane by pane: variants, devices, plans, rule sets, other pages",
    trees: {
      wide: row([32, 68], "compare", kernelPairs),
      medium: row([36, 64], "compare", kernelPairs),
    },
    stacksAt: ["small"],
    main: ["compare", "graph", "code"],
    hasBars: true,
    isMore: true,
  },
  {
    name: "compare_plans",
    title: "Compare plans",
    about: "two plans, pane by pane: their graphs, their memory, their decisions",
    trees: {
      wide: row([32, 68], "compare", planPairs),
      medium: row([36, 64], "compare", planPairs),
    },
    stacksAt: ["small"],
    main: ["compare", "plan", "decisions"],
    hasBars: true,
    isMore: true,
  },
  {
    name: "accesses",
    title: "Accesses",
    about:
      "the elements that each step of a loop touches, beside the loops, the opts and the source",
    trees: {
      wide: row([34, 38, 28], column([58, 42], "loops", "opts"), "accesses", "code"),
      medium: row([46, 54], column([55, 45], "loops", "opts"), "accesses"),
    },
    stacksAt: ["small"],
    main: ["accesses", "loops", "opts"],
    hasBars: true,
    isMore: true,
  },
  {
    name: "values",
    title: "Values",
    about: "the values of the picked node on your data: numbers, a histogram and a picture",
    trees: {
      wide: row([40, 60], column([58, 42], "plan", "graph"), "values"),
      medium: row([46, 54], column([58, 42], "plan", "graph"), "values"),
      small: row([50, 50], "values", column([58, 42], "plan", "graph")),
    },
    stacksAt: ["small"],
    main: ["values", "plan", "graph"],
    hasBars: true,
    isMore: true,
  },
  {
    name: "teach",
    title: "Teach",
    about: "one rewrite after the other: the graph, the rule, and what it makes",
    trees: {
      wide: row(
        [19, 51, 30],
        "passes",
        column([68, 32], "graph", "loops"),
        column([60, 40], "rewrite", "code"),
      ),
      medium: row(
        [60, 40],
        column([68, 32], "graph", "passes"),
        column([60, 40], "rewrite", "code"),
      ),
    },
    stacksAt: ["small"],
    main: ["graph", "passes", "rewrite"],
    hasBars: true,
    isMore: true,
  },
];

/** What a page of one pane shows, where that is more than the pane.
 * @type {Record<string, Tree>} */
const ALONE = {
  plan: planAside,
  rewrites: row([20, 55, 25], "passes", "graph", "rewrite"),
  results: left(),
  kernels: left(),
  lines: left(),
  code: right(),
};

/** The tree of a page that shows one thing alone.
 * @param {string} only
 * @returns {Tree} */
export const aloneTree = (only) => ALONE[only] ?? leaf(only);

const CHOSEN = "workbench-layouts";
const MOST_CHOSEN = 60;

/** The layouts that the reader chose last in this notebook, by the keys of their expressions.
 * @returns {Record<string, string>} */
const chosen = () => ({ .../** @type {{}} */ (storedHere(CHOSEN)) });

/** The layout that a page opens with: that of the last time, also after a restart of Python; a
 * question is asked beside the one table that it hides.
 * @param {PageRecord} record */
export const openingLayout = ({ ask, kernels, key }) =>
  ask ? (kernels.length > 1 ? "plan" : "tune") : chosen()[key] ?? "board";

/** Store the layout that the reader chose for an expression.
 * @param {string} key
 * @param {string} layout */
export function storeLayout(key, layout) {
  const { [key]: _, ...others } = chosen();
  const latest = Object.entries(others).slice(-MOST_CHOSEN + 1);
  storeHere(CHOSEN, Object.fromEntries([...latest, [key, layout]]));
}
