// @ts-nocheck a writer is put together from closures
// The words of nodes. What a node reads as is a row of the record: text, and slots for the words
// of its sources (workbench/ir/text/phrases.py has them). Here slots are filled and what is shared
// is named, as workbench/ir/text/readable.py does it, for states that are replayed in the page.

import { readingOf } from "./readings.js";
import { stateOrder, stateOrderWithin } from "./states.js";

const SHORT = 24; // words this short are repeated rather than named
const LONG = 90; // what is this long gets a line of its own
const ATOM = 9; // how tightly words bind that are never in parentheses
const LOOSE = -1;

/** Return the lines of a state: the graph below `root`, or its statements, indented. */
export function wordLines(nodes, root, names = newNames(nodes)) {
  const { body, role } = readingOf(nodes, root);
  if (body === 0 && role !== "join") return statementLines(nodes, root, names);
  const order = stateOrder(nodes, [root]);
  nameLeaves(nodes, order, names);
  const writer = newWriter(nodes, names);
  writer.count(order);
  writer.isTyped = order.some((n) => readingOf(nodes, n).is_tensor);
  const roots = role === "join" ? nodes.src[root] : [root];
  return roots.flatMap((n) => [...writer.linesBefore(n), rootLine(nodes, writer, n)]);
}

/** Return what a rewrite made of what. What both sides share is an atom with a name, so that
 * only the change is spelled out; `where` says what the names stand for. */
export function wordChange(nodes, before, after) {
  const names = newNames(nodes);
  if (readingOf(nodes, before).body === 0) {
    return {
      before: wordLines(nodes, before, names),
      after: wordLines(nodes, after, names),
      where: [],
    };
  }
  const below = new Set(stateOrder(nodes, [before]));
  const shared = new Set(
    stateOrder(nodes, [after]).filter((n) => below.has(n) && n !== before && n !== after),
  );
  const writer = newWriter(nodes, names, shared);
  const side = (root) => {
    writer.count(stateOrder(nodes, [root], shared));
    return [...writer.linesBefore(root), writer.words(root)];
  };
  const sides = { before: side(before), after: side(after) };
  const where = writer.atoms().map(([n, name]) => `${name} = ${inline(nodes, n, 110)}`);
  return { ...sides, where };
}

/** Return one line about a node, cut to `most` characters and to what is `depth` below it; names
 * are those of leaves only. */
export function inline(nodes, root, most = 60, depth = 9) {
  return briefText(nodes, root, most, depth)[0];
}

/** Return a node's words where only those of `isInline` are spelled out, each cut to `most`; the
 * others are their names, or a dot. */
export function outline(nodes, n, isInline, most) {
  const words = (s, tight) =>
    isInline(s) ? bracketed(briefText(nodes, s, most), tight) : readingOf(nodes, s).name || "·";
  const isNamed = (s) => !isInline(s);
  const { box, parts } = readingOf(nodes, n);
  return filled(nodes, n, box || parts, { words, isNamed });
}

/** The line about a node, with how tightly its words bind. */
function briefText(nodes, root, most, depth = 9) {
  const texts = new Map();
  const writer = { words: (n, tight) => bracketed(texts.get(n) || ["…", ATOM], tight) };
  // what is far below a cut text is not seen: a few levels are enough for any line
  for (const n of stateOrderWithin(nodes, root, depth)) {
    const { parts, binds } = readingOf(nodes, n);
    const known = nodes.src[n].every((s) => texts.has(s));
    const text = known ? filled(nodes, n, parts, writer) : "…";
    const isCut = text.length > most;
    texts.set(n, [isCut ? `${text.slice(0, most - 1)}…` : text, known && !isCut ? binds : ATOM]);
  }
  return texts.get(root);
}

/** Names, each of one node: its own, or a letter and a number. */
function newNames(nodes) {
  const names = new Map();
  const texts = new Set();
  const nameOf = (n) => {
    if (names.has(n)) return names.get(n);
    let { name = "", letter = "v" } = readingOf(nodes, n);
    for (let count = names.size; !name || texts.has(name); count++) name = `${letter}${count}`;
    texts.add(name);
    names.set(n, name);
    return name;
  };
  return { nameOf, has: (n) => names.has(n) };
}

/** Leaves have their names before all others: memory, then axes. */
function nameLeaves(nodes, order, names) {
  const rank = (n) => [Number(readingOf(nodes, n).role === "axis"), readingOf(nodes, n).rank ?? 0];
  const leaves = order.filter((n) => readingOf(nodes, n).is_leaf).map((n) => [n, ...rank(n)]);
  leaves.sort(([, axis, a], [, otherAxis, b]) => axis - otherAxis || a - b);
  for (const [n] of leaves) names.nameOf(n);
}

/** A writer makes the words of nodes, sources first; `atoms` are named and not spelled out. */
function newWriter(nodes, names, atoms = new Set()) {
  const texts = new Map();
  const used = new Map(); // atom -> name, in the order in which they are met
  const uses = new Map();

  const words = (n, tight = LOOSE) => bracketed(texts.get(n) || [names.nameOf(n), ATOM], tight);
  const atom = (n) => {
    const brief = briefText(nodes, n, LONG);
    if (readingOf(nodes, n).line === "never" || brief[0].length <= SHORT) return brief;
    used.set(n, names.nameOf(n));
    return [names.nameOf(n), ATOM];
  };
  const hasLine = (n, { line }, text) => {
    if (line === "never") return false;
    if (line === "always" || text.length > LONG) return true;
    return uses.get(n) > 1 && !(line === "shared and long" && text.length <= SHORT);
  };
  const writer = { words, isNamed: names.has, isTyped: false };
  writer.count = (order) => {
    texts.clear();
    uses.clear();
    for (const n of order) for (const s of nodes.src[n]) uses.set(s, (uses.get(s) || 0) + 1);
  };
  writer.linesBefore = (root) => {
    const lines = [];
    for (const n of stateOrder(nodes, [root], atoms, texts)) {
      if (texts.has(n)) continue;
      const reading = readingOf(nodes, n);
      if (reading.is_leaf) texts.set(n, [names.nameOf(n), ATOM]);
      else if (atoms.has(n)) texts.set(n, atom(n));
      else {
        const text = filled(nodes, n, reading.parts, writer);
        const isNamed = hasLine(n, reading, text) && (n !== root || uses.get(n));
        if (isNamed) {
          const of = writer.isTyped ? `: ${reading.typed}` : "";
          lines.push(`${names.nameOf(n)}${of} = ${text}`);
        }
        texts.set(n, isNamed ? [names.nameOf(n), ATOM] : [text, reading.binds]);
      }
    }
    return lines;
  };
  writer.atoms = () => [...used];
  return writer;
}

function bracketed([text, binds], tight) {
  return binds >= tight ? text : `(${text})`;
}

/** Return parts of how a node reads with the words of its sources in their slots. */
function filled(nodes, n, parts, writer) {
  return parts.map((part) => {
    if (typeof part === "string") return part;
    const [source, tight, isSigned] = part;
    const s = nodes.src[n][source];
    return isSigned ? signed(nodes, s, tight, writer) : writer.words(s, tight);
  }).join("");
}

/** The sign and words of the right side of a sum: a + -b reads a - b. */
function signed(nodes, n, tight, writer) {
  const { negated } = readingOf(nodes, n);
  return negated && !writer.isNamed?.(n)
    ? `- ${filled(nodes, n, negated, writer)}`
    : `+ ${writer.words(n, tight)}`;
}

function rootLine(nodes, writer, root) {
  const { root: parts, typed } = readingOf(nodes, root);
  if (parts) return filled(nodes, root, parts, writer);
  const words = writer.words(root);
  return writer.isTyped && typed && !writer.isNamed(root) ? `${typed} = ${words}` : words;
}

/** Return the lines of statements: loops in braces, each statement with names of its own. */
function statementLines(nodes, block, names) {
  nameLeaves(nodes, stateOrder(nodes, [block]), names);
  const writer = newWriter(nodes, names);
  const lines = [];
  const stack = nodes.src[block].map((s) => [s, 0]).reverse();
  while (stack.length) {
    const [n, depth] = stack.pop();
    const pad = "  ".repeat(depth);
    if (n === null) {
      lines.push(`${pad}}`);
      continue;
    }
    const { statement, body: inner } = readingOf(nodes, n);
    if (inner !== undefined) {
      lines.push(pad + filled(nodes, n, statement, writer));
      stack.push(
        [null, depth],
        ...nodes.src[n].slice(inner).map((s) => [s, depth + 1]).reverse(),
      );
      continue;
    }
    writer.count(stateOrder(nodes, [n]));
    lines.push(
      ...writer.linesBefore(n).map((line) => pad + line),
      pad + (statement ? filled(nodes, n, statement, writer) : writer.words(n)),
    );
  }
  return lines;
}
