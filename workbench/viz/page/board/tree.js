// The arrangement of panes as a value: a tree of splits, whose leaves are panes. A pane stands in a
// tree once, so that its name says where it is. Every operation returns a new tree.
//
//   row                      {way: "row", sizes: [30, 70], parts: [
//   |- passes                  {pane: "passes"},
//   `- column                  {way: "column", sizes: [60, 40], parts: [
//      |- graph                  {pane: "graph"},
//      `- code                   {pane: "code", fits: true}]}]}

/** A split stands beside ("row") or above ("column") the other parts; sizes are shares in percent.
 * @typedef {"row" | "column"} Way */

/** A pane. `fits`: it is as high as its contents, and at most as its share; the others fill what it
 * leaves. `lends`: where it is higher than its contents, the fitting ones may be higher than their
 * shares.
 * @typedef {{pane: string, fits?: boolean, lends?: boolean} & Region} Leaf */

/** @typedef {{way: Way, sizes: number[], parts: Tree[]} & Region} Split */

/** What a button folds: a part with a name.
 * @typedef {{name?: string, isFolded?: boolean}} Region */

/** @typedef {Leaf | Split} Tree */

/** The indexes that lead from the root to a part.
 * @typedef {number[]} Path */

/** The end of the names of panes that show what stands beside the selected variant. */
export const BESIDE = "@";
const MOST_PANES = 16;
const MOST_DEPTH = 8;
const LEAST_SHARE = 5; // percent, of the two parts at a border

/** @param {Tree} tree
 * @returns {tree is Leaf} */
export const isLeaf = (tree) => "pane" in tree;

/** A pane, by name.
 * @param {string} pane
 * @param {Omit<Leaf, "pane">} [more]
 * @returns {Leaf} */
export const leaf = (pane, more = {}) => ({ pane, ...more });

/** Parts beside each other, each with its share; a name is a pane.
 * @param {number[]} sizes
 * @param {...(Tree | string)} parts
 * @returns {Split} */
export const row = (sizes, ...parts) => splitOf("row", sizes, parts);

/** Parts below each other.
 * @param {number[]} sizes
 * @param {...(Tree | string)} parts
 * @returns {Split} */
export const column = (sizes, ...parts) => splitOf("column", sizes, parts);

/** @type {(way: Way, sizes: number[], parts: (Tree | string)[]) => Split} */
const splitOf = (way, sizes, parts) => ({
  way,
  sizes,
  parts: parts.map((part) => typeof part === "string" ? leaf(part) : part),
});

/** The panes of a tree, in the order in which they are read.
 * @param {Tree} tree
 * @returns {string[]} */
export const panesOf = (tree) => isLeaf(tree) ? [tree.pane] : tree.parts.flatMap(panesOf);

/** The panes of a tree without those in folded parts.
 * @param {Tree} tree
 * @returns {string[]} */
export const unfoldedPanes = (tree) =>
  tree.isFolded ? [] : isLeaf(tree) ? [tree.pane] : tree.parts.flatMap(unfoldedPanes);

/** The way to a pane; null if the tree lacks it.
 * @param {Tree} tree
 * @param {string} pane
 * @returns {Path | null} */
export function pathOf(tree, pane) {
  if (isLeaf(tree)) return tree.pane === pane ? [] : null;
  for (const [i, part] of tree.parts.entries()) {
    const path = pathOf(part, pane);
    if (path) return [i, ...path];
  }
  return null;
}

/** The part at the end of a path.
 * @param {Tree} tree
 * @param {Path} path
 * @returns {Tree | null} */
export function partAt(tree, path) {
  const [first, ...rest] = path;
  if (first === undefined) return tree;
  const part = isLeaf(tree) ? undefined : tree.parts[first];
  return part ? partAt(part, rest) : null;
}

/** Replace the part at the end of a path.
 * @param {Tree} tree
 * @param {Path} path
 * @param {(part: Tree) => Tree} change
 * @returns {Tree} */
function changedAt(tree, path, change) {
  const [first, ...rest] = path;
  if (first === undefined) return change(tree);
  if (isLeaf(tree)) return tree;
  const parts = tree.parts.map((part, i) => i === first ? changedAt(part, rest, change) : part);
  return { ...tree, parts };
}

/** Change the splits and leaves of a tree, from the leaves to the root.
 * @param {Tree} tree
 * @param {(part: Tree) => Tree} change
 * @returns {Tree} */
function everywhere(tree, change) {
  if (isLeaf(tree)) return change(tree);
  return change({ ...tree, parts: tree.parts.map((part) => everywhere(part, change)) });
}

/** Whether a pane can be added.
 * @param {Tree} tree */
export const hasRoom = (tree) => panesOf(tree).length < MOST_PANES;

/** Put a new pane beside another one (way "row") or below it; each has half of the room.
 * @param {Tree} tree
 * @param {string} pane
 * @param {Way} way
 * @param {string} added
 * @returns {Tree} */
export function split(tree, pane, way, added) {
  const path = pathOf(tree, pane);
  if (!path || !hasRoom(tree) || pathOf(tree, added)) return tree;
  const at = path.at(-1) ?? 0;
  const outer = path.length ? partAt(tree, path.slice(0, -1)) : null;
  if (outer && !isLeaf(outer) && outer.way === way) {
    const half = outer.sizes[at] / 2;
    return changedAt(tree, path.slice(0, -1), (part) =>
      isLeaf(part) ? part : {
        ...part,
        sizes: part.sizes.toSpliced(at, 1, half, half),
        parts: part.parts.toSpliced(at + 1, 0, leaf(added)),
      });
  }
  if (path.length + 2 > MOST_DEPTH) return tree;
  return changedAt(tree, path, ({ name, isFolded, ...own }) => ({
    ...splitOf(way, [50, 50], [/** @type {Leaf} */ (own), added]),
    ...(name !== undefined && { name, ...(isFolded && { isFolded }) }),
  }));
}

/** Remove a pane; its neighbours have its room. The last one stays.
 * @param {Tree} tree
 * @param {string} pane
 * @returns {Tree} */
export function removed(tree, pane) {
  const path = pathOf(tree, pane);
  const at = path?.at(-1);
  if (!path || at === undefined) return tree;
  return changedAt(tree, path.slice(0, -1), (part) => {
    if (isLeaf(part)) return part;
    const parts = part.parts.toSpliced(at, 1);
    const sizes = inPercent(part.sizes.toSpliced(at, 1));
    if (parts.length > 1) return { ...part, sizes, parts };
    const { name, isFolded } = part;
    return { ...parts[0], ...(name !== undefined && { name, ...(isFolded && { isFolded }) }) };
  });
}

/** Show another pane in the place of one; if the tree has both, they change places.
 * @param {Tree} tree
 * @param {string} pane
 * @param {string} other
 * @returns {Tree} */
export const replaced = (tree, pane, other) =>
  everywhere(tree, (part) => {
    if (!isLeaf(part) || ![pane, other].includes(part.pane)) return part;
    return { ...part, pane: part.pane === pane ? other : pane };
  });

/** The parts at the border after an index: the nearest that are seen, by their lengths.
 * @param {number[]} lengths
 * @param {number} at
 * @returns {[number, number]} -1: there is none */
export function atBorder(lengths, at) {
  const isSeen = (/** @type {number} */ length) => length > 0;
  const after = lengths.findIndex((length, i) => i > at && isSeen(length));
  return [lengths.slice(0, at + 1).findLastIndex(isSeen), after];
}

/** Move the border after a part of a split. `lengths` are those of all its parts before, in any
 * unit, 0 for one that is not seen; `by` is the movement in that unit.
 * @param {Tree} tree
 * @param {Path} path of the split
 * @param {number} at
 * @param {number[]} lengths
 * @param {number} by
 * @returns {Tree} */
export const moved = (tree, path, at, lengths, by) =>
  bordered(tree, path, at, lengths, (first) => first + by);

/** Give both parts at a border the same room.
 * @param {Tree} tree
 * @param {Path} path
 * @param {number} at
 * @param {number[]} lengths
 * @returns {Tree} */
export const evened = (tree, path, at, lengths) =>
  bordered(tree, path, at, lengths, (first, second) => (first + second) / 2);

/** Set the length of the part before a border; what fitted its contents there has a share from then
 * on.
 * @param {Tree} tree
 * @param {Path} path
 * @param {number} at
 * @param {number[]} lengths
 * @param {(first: number, second: number) => number} lengthOf
 * @returns {Tree} */
function bordered(tree, path, at, lengths, lengthOf) {
  const [before, after] = atBorder(lengths, at);
  if (before < 0 || after < 0) return tree;
  const both = lengths[before] + lengths[after];
  const least = both * LEAST_SHARE / 100;
  const wanted = lengthOf(lengths[before], lengths[after]);
  const first = Math.max(least, Math.min(both - least, wanted));
  const now = lengths.with(before, first).with(after, both - first);
  const whole = now.reduce((sum, each) => sum + each, 0);
  return changedAt(tree, path, (split) => {
    if (isLeaf(split)) return split;
    const isHere = (/** @type {number} */ i) => i === before || i === after;
    const parts = split.parts.map((part, i) => {
      if (!isHere(i) || !isLeaf(part)) return part;
      const { fits: _, lends: __, ...rest } = part;
      return rest;
    });
    const keeps = (/** @type {number} */ i) => !now[i] || "fits" in parts[i];
    const sizes = split.sizes.map((size, i) => keeps(i) ? size : 100 * now[i] / whole);
    return { ...split, sizes, parts };
  });
}

/** @param {number[]} sizes */
function inPercent(sizes) {
  const whole = sizes.reduce((sum, size) => sum + size, 0);
  return sizes.map((size) => 100 * size / whole);
}

/** The part of a name; null if the tree has none.
 * @param {Tree} tree
 * @param {string} name
 * @returns {Tree | null} */
export function named(tree, name) {
  if (tree.name === name) return tree;
  if (isLeaf(tree)) return null;
  return tree.parts.map((part) => named(part, name)).find(Boolean) ?? null;
}

/** Fold the part of a name, or unfold it.
 * @param {Tree} tree
 * @param {string} name
 * @returns {Tree} */
export const toggled = (tree, name) =>
  everywhere(tree, (part) => {
    if (part.name !== name) return part;
    const { isFolded, ...rest } = part;
    return isFolded ? rest : { ...rest, isFolded: true };
  });

// Trees as text: stored, in links, and therefore from anywhere.

/** Return a value as a tree of known panes, each once; null if it is none.
 * @param {unknown} value
 * @param {(pane: string) => boolean} isKnown
 * @returns {Tree | null} */
export function asTree(value, isKnown) {
  const tree = partOf(value, isKnown, 1);
  if (!tree) return null;
  const panes = panesOf(tree);
  return new Set(panes).size === panes.length && panes.length <= MOST_PANES ? tree : null;
}

/** @param {object} value */
const recordOf = (value) => /** @type {Record<string, unknown>} */ (value);

/** @type {(value: unknown, isKnown: (pane: string) => boolean, depth: number) => Tree | null} */
function partOf(value, isKnown, depth) {
  if (typeof value !== "object" || value === null || depth > MOST_DEPTH) return null;
  const { pane, fits, lends, way, sizes, parts, name, isFolded } = recordOf(value);
  const region = {
    ...(typeof name === "string" && name.length < 20 && { name }),
    ...(isFolded === true && { isFolded }),
  };
  if (typeof pane === "string") {
    const own = { ...(fits === true && { fits }), ...(lends === true && { lends }) };
    return isKnown(pane) ? { pane, ...own, ...region } : null;
  }
  if (way !== "row" && way !== "column") return null;
  if (!Array.isArray(parts) || !Array.isArray(sizes)) return null;
  const isShare = (/** @type {unknown} */ size) => Number.isFinite(size) && Number(size) > 0;
  if (parts.length < 2 || parts.length !== sizes.length || !sizes.every(isShare)) return null;
  const inner = parts.map((part) => partOf(part, isKnown, depth + 1));
  if (inner.includes(null)) return null;
  return { way, sizes: inPercent(sizes), parts: /** @type {Tree[]} */ (inner), ...region };
}
