// The text of nodes. A node reads as a row of the record: text, and slots for the texts of its
// sources (workbench/ir/text/phrases.py has them). Slots are filled and shared values are named as
// workbench/ir/text/program.py does it, for states that are replayed in the page.

import { readingOf, stateOrder, stateOrderWithin } from "./states.js";

/** @import { NodeColumns, Reading, SlotRow } from "../record.d.ts" */

/** A text, and how tightly it binds.
 * @typedef {[text: string, binds: number]} Text */
/** Names of nodes, each of one.
 * @typedef {{nameOf(n: number): string, has(n: number): boolean}} Names */
/** The filler of slots: the text of a source, and whether it has a name of its own.
 * @typedef {{words(n: number, tight?: number): string, isNamed?(n: number): boolean}} Filler */

const SHORT_TEXT = 24; // shorter texts are repeated rather than named
const LONG_TEXT = 90; // a longer one gets a line of its own
const ATOM = 9; // the binding of texts that are never in parentheses
const LOOSEST = -1;

/** A line of a state, and the nodes that it spells out.
 * @typedef {[text: string, nodes: number[]]} StateLine */

/** Return the lines of a state: the graph below `root`, or its statements, indented.
 * @param {NodeColumns} nodes
 * @param {number} root
 * @returns {string[]} */
export const stateLines = (nodes, root) => stateRows(nodes, root).map(([text]) => text);

/** Return the lines of a state, each with its node.
 * @param {NodeColumns} nodes
 * @param {number} root
 * @returns {StateLine[]} */
export function stateRows(nodes, root) {
  const { body, role } = readingOf(nodes, root);
  if (body === 0 && role !== "join") return statementRows(nodes, nodes.src[root]);
  const names = newNames(nodes);
  const order = stateOrder(nodes, [root]);
  nameLeaves(nodes, order, names);
  const writer = newWriter(nodes, names);
  writer.count(order);
  writer.isTyped = order.some((n) => readingOf(nodes, n).is_tensor);
  const roots = role === "join" ? nodes.src[root] : [root];
  return roots.flatMap((n) => {
    const rows = writer.rowsBefore(n);
    /** @type {StateLine} */
    const last = [rootLine(nodes, writer, n), [n, ...writer.rest()]];
    return [...rows, last];
  });
}

/** Whether a node is a statement, a loop of them, or the whole tree.
 * @param {NodeColumns} nodes
 * @param {number} n */
function isStatement(nodes, n) {
  const { statement, body } = readingOf(nodes, n);
  return typeof body === "number" || Boolean(statement?.length);
}

/** Return the two sides of a rewrite. A node that both sides share is an atom with a name, so that
 * only the change is spelled out; so are the sources of `due` nodes. `where` has the meaning of the
 * names.
 * @param {NodeColumns} nodes
 * @param {number} before
 * @param {number} after */
export function changeTexts(nodes, before, after) {
  if ([before, after].some((n) => isStatement(nodes, n))) {
    const linesOf = (/** @type {number} */ n) =>
      readingOf(nodes, n).body === 0
        ? stateLines(nodes, n)
        : statementRows(nodes, [n]).map(([text]) => text);
    return { before: linesOf(before), after: linesOf(after), where: [] };
  }
  const names = newNames(nodes);
  const below = new Set(stateOrder(nodes, [before]));
  const shared = new Set(
    stateOrder(nodes, [after]).filter((n) => below.has(n) && n !== before && n !== after),
  );
  if (readingOf(nodes, before).role === "due") {
    for (const n of nodes.src[before]) if (n !== after) shared.add(n);
  }
  const writer = newWriter(nodes, names, shared);
  const side = (/** @type {number} */ root) => {
    writer.count(stateOrder(nodes, [root], shared));
    return [...writer.linesBefore(root), writer.words(root)];
  };
  const sides = { before: side(before), after: side(after) };
  const where = writer.atoms().map(([n, name]) => `${name} = ${inline(nodes, n, 110)}`);
  return { ...sides, where };
}

/** Return one line about a node, cut to `most` characters and to the nodes `depth` below it; only
 * leaves have names.
 * @param {NodeColumns} nodes
 * @param {number} root */
export function inline(nodes, root, most = 60, depth = 9) {
  return briefText(nodes, root, most, depth)[0];
}

/** Return a node's text in which only the nodes of `isInline` are spelled out, each cut to `most`;
 * the others are their names, or a dot.
 * @param {NodeColumns} nodes
 * @param {number} n
 * @param {(n: number) => boolean} isInline
 * @param {number} most */
export function outline(nodes, n, isInline, most) {
  const words = (/** @type {number} */ s, tight = LOOSEST) =>
    isInline(s) ? bracketed(briefText(nodes, s, most), tight) : readingOf(nodes, s).name || "·";
  const isNamed = (/** @type {number} */ s) => !isInline(s);
  const { box, parts } = readingOf(nodes, n);
  return filled(nodes, n, box || parts, { words, isNamed });
}

/** The line about a node.
 * @param {NodeColumns} nodes
 * @param {number} root
 * @param {number} most
 * @returns {Text} */
function briefText(nodes, root, most, depth = 9) {
  /** @type {Map<number, Text>} */
  const texts = new Map();
  /** @type {Filler} */
  const writer = { words: (n, tight = LOOSEST) => bracketed(texts.get(n) || ["…", ATOM], tight) };
  // nodes far below a cut text are not seen: a few levels suffice for any line
  for (const n of stateOrderWithin(nodes, root, depth)) {
    const { parts, binds } = readingOf(nodes, n);
    const known = nodes.src[n].every((s) => texts.has(s));
    const text = known ? filled(nodes, n, parts, writer) : "…";
    const isCut = text.length > most;
    texts.set(n, [isCut ? `${text.slice(0, most - 1)}…` : text, known && !isCut ? binds : ATOM]);
  }
  return texts.get(root) ?? ["…", ATOM];
}

/** Names, each of one node: its own, or a letter and a number.
 * @param {NodeColumns} nodes
 * @returns {Names} */
function newNames(nodes) {
  /** @type {Map<number, string>} */
  const names = new Map();
  const texts = new Set();
  const nameOf = (/** @type {number} */ n) => {
    const known = names.get(n);
    if (known !== undefined) return known;
    let { name = "", letter = "v" } = readingOf(nodes, n);
    for (let count = names.size; !name || texts.has(name); count++) name = `${letter}${count}`;
    texts.add(name);
    names.set(n, name);
    return name;
  };
  return { nameOf, has: (n) => names.has(n) };
}

/** Leaves have their names before all others: memory, then axes.
 * @param {NodeColumns} nodes
 * @param {number[]} order
 * @param {Names} names */
function nameLeaves(nodes, order, names) {
  const leaves = order.filter((n) => readingOf(nodes, n).is_leaf).map((n) => {
    const { role, rank = 0 } = readingOf(nodes, n);
    return { n, axis: Number(role === "axis"), rank };
  });
  leaves.sort((a, b) => a.axis - b.axis || a.rank - b.rank);
  for (const { n } of leaves) names.nameOf(n);
}

/** Return the text of an atom: its brief text, or its name if that is long; then it is added to
 * `used`.
 * @param {NodeColumns} nodes
 * @param {number} n
 * @param {Names} names
 * @param {Map<number, string>} used
 * @returns {Text} */
function atomText(nodes, n, names, used) {
  const brief = briefText(nodes, n, LONG_TEXT);
  if (readingOf(nodes, n).line === "never" || brief[0].length <= SHORT_TEXT) return brief;
  used.set(n, names.nameOf(n));
  return [names.nameOf(n), ATOM];
}

/** Whether a node with `uses` readers has a line of its own.
 * @param {Reading} reading
 * @param {string} text
 * @param {number} uses */
function hasLine({ line }, text, uses) {
  if (line === "never") return false;
  if (line === "always" || text.length > LONG_TEXT) return true;
  return uses > 1 && !(line === "shared and long" && text.length <= SHORT_TEXT);
}

/** How often each node is a source of others.
 * @param {NodeColumns} nodes
 * @param {number[]} order */
function usesIn(nodes, order) {
  /** @type {Map<number, number>} */
  const uses = new Map();
  for (const n of order) for (const s of nodes.src[n]) uses.set(s, (uses.get(s) || 0) + 1);
  return uses;
}

/** A writer of the text of nodes, sources first; `atoms` are named and not spelled out.
 * @param {NodeColumns} nodes
 * @param {Names} names
 * @param {Set<number>} atoms */
function newWriter(nodes, names, atoms = new Set()) {
  /** @type {Map<number, Text>} */
  const texts = new Map();
  /** @type {Map<number, string>} Atoms with their names, in the order in which they are found. */
  const used = new Map();
  let uses = usesIn(nodes, []);

  const words = (/** @type {number} */ n, tight = LOOSEST) =>
    bracketed(texts.get(n) || [names.nameOf(n), ATOM], tight);
  const count = (/** @type {number[]} */ order) => {
    texts.clear();
    uses = usesIn(nodes, order);
  };
  /** @type {number[]} The nodes that no line has spelled out yet. */
  let own = [];
  const rowsBefore = (/** @type {number} */ root) => {
    /** @type {StateLine[]} */
    const lines = [];
    own = [];
    for (const n of stateOrder(nodes, [root], atoms, texts)) {
      if (texts.has(n)) continue;
      const reading = readingOf(nodes, n);
      if (reading.is_leaf) texts.set(n, [names.nameOf(n), ATOM]);
      else if (atoms.has(n)) texts.set(n, atomText(nodes, n, names, used));
      else {
        own.push(n);
        const text = filled(nodes, n, reading.parts, writer);
        const isNamed = hasLine(reading, text, uses.get(n) ?? 0) && (n !== root || uses.get(n));
        if (isNamed) {
          const of = writer.isTyped ? `: ${reading.typed}` : "";
          lines.push([`${names.nameOf(n)}${of} = ${text}`, own]);
          own = [];
        }
        texts.set(n, isNamed ? [names.nameOf(n), ATOM] : [text, reading.binds]);
      }
    }
    return lines;
  };
  const writer = {
    words,
    isNamed: names.has,
    isTyped: false,
    count,
    rowsBefore,
    rest: () => own,
    linesBefore: (/** @type {number} */ root) => rowsBefore(root).map(([text]) => text),
    atoms: () => [...used],
  };
  return writer;
}

/** @typedef {ReturnType<typeof newWriter>} Writer */

/**
 * @param {Text} text
 * @param {number} tight */
function bracketed([text, binds], tight) {
  return binds >= tight ? text : `(${text})`;
}

/** Return the parts of a node's reading with the texts of its sources in their slots.
 * @param {NodeColumns} nodes
 * @param {number} n
 * @param {Array<string | SlotRow>} parts
 * @param {Filler} writer
 * @returns {string} */
function filled(nodes, n, parts, writer) {
  return parts.map((part) => {
    if (typeof part === "string") return part;
    const [source, tight, isSigned] = part;
    const s = nodes.src[n][source];
    return isSigned ? signed(nodes, s, tight, writer) : writer.words(s, tight);
  }).join("");
}

/** The sign and the text of the right side of a sum: a + -b reads a - b.
 * @param {NodeColumns} nodes
 * @param {number} n
 * @param {number} tight
 * @param {Filler} writer
 * @returns {string} */
function signed(nodes, n, tight, writer) {
  const { negated } = readingOf(nodes, n);
  return negated && !writer.isNamed?.(n)
    ? `- ${filled(nodes, n, negated, writer)}`
    : `+ ${writer.words(n, tight)}`;
}

/**
 * @param {NodeColumns} nodes
 * @param {Writer} writer
 * @param {number} root */
function rootLine(nodes, writer, root) {
  const { root: parts, typed } = readingOf(nodes, root);
  if (parts) return filled(nodes, root, parts, writer);
  const words = writer.words(root);
  return writer.isTyped && typed && !writer.isNamed(root) ? `${typed} = ${words}` : words;
}

/** Return the lines of statements: loops in braces, each statement with names of its own.
 * @param {NodeColumns} nodes
 * @param {number[]} statements
 * @returns {StateLine[]} */
function statementRows(nodes, statements) {
  const names = newNames(nodes);
  nameLeaves(nodes, stateOrder(nodes, statements), names);
  const writer = newWriter(nodes, names);
  /** @type {StateLine[]} */
  const lines = [];
  /** Statements in order, each with its depth; null: the brace that ends a loop.
   * @type {[n: number | null, depth: number][]} */
  const stack = [];
  const come = (/** @type {number[]} */ statements, /** @type {number} */ depth) => {
    for (const n of statements.toReversed()) stack.push([n, depth]);
  };
  come(statements, 0);
  for (let top = stack.pop(); top; top = stack.pop()) {
    const [n, depth] = top;
    const pad = "  ".repeat(depth);
    if (n === null) {
      lines.push([`${pad}}`, []]);
      continue;
    }
    const { statement, body: inner } = readingOf(nodes, n);
    if (typeof inner === "number") {
      lines.push([pad + filled(nodes, n, statement ?? [], writer), [n]]);
      stack.push([null, depth]);
      come(nodes.src[n].slice(inner), depth + 1);
      continue;
    }
    writer.count(stateOrder(nodes, [n]));
    const before = writer.rowsBefore(n); // it names what the statement then reads by name
    const own = statement ? filled(nodes, n, statement, writer) : writer.words(n);
    for (const [text, of] of before) lines.push([pad + text, of]);
    lines.push([pad + own, [n, ...writer.rest()]]);
  }
  return lines;
}
