// The searches of a kernel, a fold each: the candidates as a tree, each under its parent. The way to
// the best one is open, the rest opens on a click, Enter or the right arrow.

import { goTo } from "../../app/actions.js";
import { button } from "../../app/pieces.js";
import { withinText } from "../../app/timing.js";
import { focusedAround, fold, h, recordText, refill } from "../../base/elements.js";
import { ACROSS, rove, walkable } from "../../base/lists.js";
import { dateText, secondsText, three } from "../../base/text.js";

/** @import { App } from "../../app/store.js" */
/** @import { SearchRow, VariantRow } from "../../record.d.ts" */

/** A search, its number among those of the kernel, and the variant that it found.
 * @typedef {{search: SearchRow, number: number, result: VariantRow, place: number}} Found */

/** @param {App} app */
export function triedPane(app) {
  const el = h("div", { class: "wb-pane wb-tried-pane", hidden: true });
  /** @type {unknown[]} */
  let shown = [];
  const update = () => {
    const searches = searchesOf(app);
    const facts = searches.flatMap(({ search, result }) => [search, result.name]);
    // opened branches stay open while times arrive
    if (facts.length === shown.length && facts.every((fact, i) => fact === shown[i])) return;
    shown = facts;
    el.hidden = !searches.length;
    refill(
      el,
      ...searches.map((found) =>
        fold(
          `tried ${app.view.kernel} ${found.number}`,
          triedTitle(found),
          () => searchBody(app, found),
          "tried",
        )
      ),
    );
  };
  return { el, update };
}

/** The searches of the kernel, the oldest first. One whose result was deleted is not shown, and the
 * others keep their numbers.
 * @param {App} app
 * @returns {Found[]} */
function searchesOf(app) {
  const found = app.record.variants.flatMap((result, place) =>
    result.kernel === app.view.kernel
      ? result.searches.map((search) => ({ search, result, place }))
      : []
  );
  found.sort((one, other) => (one.search.when ?? 0) - (other.search.when ?? 0));
  return found.map((each, i) => ({ ...each, number: i + 1 })).filter(({ result }) =>
    !result.deleted
  );
}

/** @param {Found} found */
function triedTitle({ search, number, result }) {
  const { tried, timed, seconds, speedup, device, predicted, ended, budget_s, when } = search;
  const ratio = speedup === null ? "" : `, ${three(speedup)} times as fast as its start`;
  const how = predicted ? "predicted, not run here," : "timed";
  const of = budget_s ? ` of ${secondsText(budget_s)}` : "";
  return h(
    "span",
    {},
    `search ${number} on ${device}: ${tried} tried, ${timed} ${how} in ${
      secondsText(seconds)
    }${of}, best `,
    recordText(result.name, "", 60),
    `${ratio}; ${when ? `${dateText(when)}; ` : ""}`,
    recordText(ended, "", 80),
  );
}

/** @param {App} app
 * @param {Found} found */
function searchBody(app, { search, number, place, result }) {
  return h(
    "div",
    {},
    button(app, "select the best", () => goTo(app, place), {
      name: `best-of-search-${number}`,
      title: result.name,
    }),
    triedTree(search, number),
  );
}

/** The tried candidates, by their numbers.
 * @typedef {{
 *   number: number, parent: number | null, how: string, seconds: number | null, note: string,
 *   spread: number | null
 * }} Candidate */

/**
 * @param {SearchRow} search
 * @param {number} ofSearch */
function triedTree(search, ofSearch) {
  const candidates = search.candidates.map((
    [number, parent, how, seconds, note, spread = null],
  ) => ({ number, parent, how, seconds, note, spread }));
  /** @type {Map<number | null, Candidate[]>} */
  const below = new Map(candidates.map((candidate) => [candidate.number, []]));
  for (const candidate of candidates) below.get(candidate.parent)?.push(candidate);
  const open = new Set(pathTo(candidates, search.best));
  const tree = walkable("tree", `candidates of search ${ofSearch}`, {
    class: "wb-list wb-tried",
    "data-term": "tried",
  });

  /** @type {(candidate: Candidate, level: number) => HTMLElement[]} */
  const rows = (candidate, level) => {
    const children = below.get(candidate.number) ?? [];
    const isOpen = open.has(candidate.number);
    const row = triedRow(
      `tried-${ofSearch}-${candidate.number}`,
      Boolean(search.predicted),
      candidate,
      level,
      children.length,
      isOpen,
      candidate.number === search.best,
    );
    row.addEventListener("click", () => turn(candidate.number, !isOpen));
    return [row, ...(isOpen ? children.flatMap((child) => rows(child, level + 1)) : [])];
  };
  const fill = () => {
    const first = candidates.filter(({ parent }) => parent === null);
    refill(tree, ...first.flatMap((candidate) => rows(candidate, 1)));
    const focused = focusedAround(tree);
    rove(tree, tree.contains(focused) ? focused : null);
  };
  /** @type {(number: number, wanted: boolean) => void} */
  const turn = (number, wanted) => {
    wanted ? open.add(number) : open.delete(number);
    fill();
  };
  tree.addEventListener("keydown", ({ key, target }) => {
    if (!(target instanceof HTMLElement)) return;
    const number = Number(target.dataset.key?.split("-")[2]);
    if (key in ACROSS && target.hasAttribute("aria-expanded")) turn(number, key === "ArrowRight");
  });
  fill();
  return tree;
}

/** The numbers of a candidate and of its ancestors.
 * @param {Candidate[]} candidates
 * @param {number} best */
function pathTo(candidates, best) {
  const parents = new Map(candidates.map((candidate) => [candidate.number, candidate.parent]));
  const way = [];
  for (let at = /** @type {number | null} */ (best); at !== null; at = parents.get(at) ?? null) {
    way.push(at);
  }
  return way;
}

/**
 * @param {string} key
 * @param {boolean} isPredicted
 * @param {Candidate} candidate
 * @param {number} level
 * @param {number} children
 * @param {boolean} isOpen
 * @param {boolean} isBest */
function triedRow(key, isPredicted, candidate, level, children, isOpen, isBest) {
  const { number, how, seconds, note, spread } = candidate;
  const mark = children ? (isOpen ? "▾" : "▸") : "";
  return h(
    "div",
    {
      class: "wb-row wb-trial",
      role: "treeitem",
      "aria-level": level,
      "aria-expanded": children ? String(isOpen) : null,
      "aria-selected": String(isBest),
      "data-item": "",
      "data-key": key,
      tabindex: -1,
    },
    h("span", { class: "wb-figure wb-quiet" }, String(number)),
    h("span", { class: "wb-figure" }, seconds === null ? "" : secondsText(seconds)),
    h("span", {
      class: "wb-figure wb-quiet",
      title: isPredicted
        ? "predicted by the model of the machine: it did not run"
        : spread === null
        ? "no spread is known: it ran once, or in an earlier session"
        : "the spread of its runs; the time is that of the quickest",
    }, seconds === null || isPredicted ? "" : spread === null ? "± ?" : withinText(spread)),
    h(
      "span",
      { class: "wb-name", style: `padding-left:${Math.min(level - 1, 12) * 10}px` },
      h("span", { class: "wb-pin", "aria-hidden": "true" }, mark),
      recordText(how, "wb-code wb-clip"),
      isBest && h("b", { class: "wb-mark" }, "best"),
      note && recordText(note, "wb-quiet wb-clip", 300),
    ),
  );
}
