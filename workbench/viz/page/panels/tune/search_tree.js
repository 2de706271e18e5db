// The candidates of a search, below its best variant: a tree, each candidate under its parent. The
// way to the best one is open, the rest opens on a click, Enter or the right arrow.

import { withinText } from "../../app/timing.js";
import { focusedAround, fold, h, recordText, refill } from "../../base/elements.js";
import { ACROSS, rove, walkable } from "../../base/lists.js";
import { secondsText, three } from "../../base/text.js";

/** @import { App } from "../../app/store.js" */
/** @import { SearchRow } from "../../record.d.ts" */

/** @param {App} app */
export function triedPane(app) {
  const el = h("div", { class: "wb-pane wb-tried-pane", hidden: true });
  /** @type {SearchRow | null} */
  let shown = null;
  const update = () => {
    const search = app.variant()?.search || null;
    if (search === shown) return; // opened branches stay open while times arrive
    shown = search;
    el.hidden = !search;
    refill(el, search && fold("tried", triedTitle(search), () => triedTree(search)));
  };
  return { el, update };
}

/** @param {SearchRow} search */
function triedTitle({ tried, timed, seconds, speedup, device, predicted, ended }) {
  const ratio = speedup === null ? "" : `, ${three(speedup)} times as fast as its start`;
  const how = predicted ? "predicted, not run here," : "timed";
  return `SEARCH on ${device}: ${tried} tried, ${timed} ${how} in ${
    secondsText(seconds)
  }${ratio}; ${ended}`;
}

/** The tried candidates, by their numbers.
 * @typedef {{
 *   number: number, parent: number | null, how: string, seconds: number | null, note: string,
 *   spread: number | null
 * }} Candidate */

/** @param {SearchRow} search */
function triedTree(search) {
  const candidates = search.candidates.map((
    [number, parent, how, seconds, note, spread = null],
  ) => ({ number, parent, how, seconds, note, spread }));
  /** @type {Map<number | null, Candidate[]>} */
  const below = new Map(candidates.map((candidate) => [candidate.number, []]));
  for (const candidate of candidates) below.get(candidate.parent)?.push(candidate);
  const open = new Set(pathTo(candidates, search.best));
  const tree = walkable("tree", "candidates of the search", {
    class: "wb-list wb-tried",
    "data-term": "tried",
  });

  /** @type {(candidate: Candidate, level: number) => HTMLElement[]} */
  const rows = (candidate, level) => {
    const children = below.get(candidate.number) ?? [];
    const isOpen = open.has(candidate.number);
    const row = triedRow(
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
    const number = Number(target.dataset.key?.replace("tried-", ""));
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
 * @param {boolean} isPredicted
 * @param {Candidate} candidate
 * @param {number} level
 * @param {number} children
 * @param {boolean} isOpen
 * @param {boolean} isBest */
function triedRow(isPredicted, candidate, level, children, isOpen, isBest) {
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
      "data-key": `tried-${number}`,
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
