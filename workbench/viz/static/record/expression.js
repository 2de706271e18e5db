// @ts-nocheck the printer of expressions
// Nodes as a person would write them: infix, indexes in brackets, shared values named. The
// same words as workbench/ir/text/readable.py, made from the columns of the record.

import { stateOrder, stateOrderWithin } from "./states.js";

export const EXPR_INFIX = {
  MUL: ["*", 7],
  FDIV: ["/", 7],
  IDIV: ["//", 7],
  MOD: ["%", 7],
  ADD: ["+", 6],
  SHL: ["<<", 5],
  SHR: [">>", 5],
  AND: ["&", 4],
  XOR: ["^", 3],
  OR: ["|", 2],
  CMPLT: ["<", 1],
  CMPLE: ["<=", 1],
  CMPEQ: ["==", 1],
  CMPNE: ["!=", 1],
};

const EXPR_UPDATE = { add: "+=", mul: "*=", max: "max=", min: "min=" };
const EXPR_LEAVES = new Set(["RANGE", "PARAM", "DEFINE", "REG", "VAR", "BUFFER"]);
const MOVEMENT = new Set(["RESHAPE", "PERMUTE", "EXPAND", "SHRINK", "PAD", "FLIP"]);
const EXPR_OWN_LINE = new Set([
  ...MOVEMENT,
  "REDUCE",
  "STAGE",
  "REDUCE_AXIS",
  "CONTIGUOUS",
  "COPY",
]);
const EXPR_INLINE = new Set([...EXPR_LEAVES, "CONST", "INVALID", "INDEX"]);
const EXPR_UPPER = new Set([
  ...EXPR_OWN_LINE,
  "STORE",
  "END",
  "AFTER",
  "SINK",
  "BLOCK",
  "LOOP",
  "SET",
]);
const EXPR_SHORT = 24; // a load or an index this short is repeated rather than named
const EXPR_LONG = 90; // what is this long gets a line of its own
const EXPR_ATOM = 9;
const EXPR_LOOSE = -1;

/** Return the lines of a state: the graph below `root`, a statement tree as indented loops. */
export function exprLines(nodes, root, names = exprNames(nodes)) {
  if (nodes.op[root] === "BLOCK") return exprTree(nodes, root, names);
  const writer = exprWriter(nodes, names);
  const order = stateOrder(nodes, [root]);
  writer.count(order);
  const roots = nodes.op[root] === "SINK" ? nodes.src[root] : [root];
  return roots.flatMap((r) => [...writer.linesBefore(r), exprRoot(nodes, writer, r)]);
}

/** Return what a rewrite made of what. What both sides share is an atom with a name, so that
 * only the change is spelled out; `where` says what the names stand for. */
export function exprChange(nodes, before, after) {
  const names = exprNames(nodes);
  if (nodes.op[before] === "SINK" || nodes.op[before] === "BLOCK") {
    return {
      before: exprLines(nodes, before, names),
      after: exprLines(nodes, after, names),
      where: [],
    };
  }
  const below = new Set(stateOrder(nodes, [before]));
  const shared = new Set(
    stateOrder(nodes, [after]).filter((n) => below.has(n) && n !== before && n !== after),
  );
  const writer = exprWriter(nodes, names, shared);
  const side = (root) => {
    writer.count(stateOrder(nodes, [root], shared));
    return [...writer.linesBefore(root), writer.words(root)];
  };
  const sides = { before: side(before), after: side(after) };
  const where = writer.atoms().map(([n, name]) => `${name} = ${exprInline(nodes, n, 110)}`);
  return { ...sides, where };
}

/** Return one line about a node, cut to `most` characters and to what is `depth` below it; names
 * are those of leaves only. */
export function exprInline(nodes, root, most = 60, depth = 9) {
  return exprBrief(nodes, root, most, depth)[0];
}

/** The same, with how tightly the words bind. */
function exprBrief(nodes, root, most, depth = 9) {
  const texts = new Map();
  const writer = { words: (n, tight = EXPR_LOOSE) => bracketed(texts.get(n), tight) };
  // what is far below a cut text is not seen: a few levels are enough for any line
  for (const n of stateOrderWithin(nodes, root, depth)) {
    const known = nodes.src[n].every((s) => texts.has(s));
    const [text, binds] = known ? exprText(nodes, writer, n) : ["…", EXPR_ATOM];
    texts.set(n, text.length > most ? [`${text.slice(0, most - 1)}…`, EXPR_ATOM] : [text, binds]);
  }
  return texts.get(root);
}

/** Names, each given once: leaves keep their own, others are v1, v2, .. */
function exprNames(nodes) {
  const given = new Map();
  const taken = new Set();
  let count = 0;
  const nameOf = (n) => {
    if (given.has(n)) return given.get(n);
    let name = exprOwnName(nodes, n);
    while (!name || taken.has(name)) name = `${nodes.op[n] === "REDUCE" ? "s" : "v"}${++count}`;
    taken.add(name);
    given.set(n, name);
    return name;
  };
  return { nameOf, has: (n) => given.has(n), entries: () => [...given] };
}

export function exprOwnName(nodes, n) {
  if (nodes.op[n] === "PARAM" || nodes.op[n] === "BUFFER") {
    return nodes.label[n].replace(/[^\w]+/g, "_");
  }
  const named = ["RANGE", "VAR", "STAGE", "DEFINE", "REG"].includes(nodes.op[n]);
  return named ? nodes.arg[n].split(" ")[0] : "";
}

/** A writer makes the words of nodes, sources first; `atoms` are named and not spelled out. */
function exprWriter(nodes, names, atoms = new Set()) {
  const texts = new Map();
  const used = new Map(); // atom -> name, in the order in which they are met
  const uses = new Map();

  const words = (n, tight = EXPR_LOOSE) =>
    bracketed(texts.get(n) || [names.nameOf(n), EXPR_ATOM], tight);
  const atom = (n) => {
    const briefText = exprBrief(nodes, n, EXPR_LONG);
    if (EXPR_INLINE.has(nodes.op[n]) || briefText[0].length <= EXPR_SHORT) return briefText;
    used.set(n, names.nameOf(n));
    return [names.nameOf(n), EXPR_ATOM];
  };
  const hasLine = (n, text) => {
    if (EXPR_INLINE.has(nodes.op[n]) || nodes.dtype[n] === "void") return false;
    if (EXPR_OWN_LINE.has(nodes.op[n]) || text.length > EXPR_LONG) return true;
    const simple = ["index", "bool"].includes(nodes.dtype[n]) || nodes.op[n] === "LOAD";
    return uses.get(n) > 1 && !(simple && text.length <= EXPR_SHORT);
  };
  const writer = { words };
  writer.count = (order) => {
    texts.clear();
    uses.clear();
    for (const n of order) for (const s of nodes.src[n]) uses.set(s, (uses.get(s) || 0) + 1);
  };
  writer.linesBefore = (root) => {
    const lines = [];
    for (const n of stateOrder(nodes, [root], atoms, texts)) {
      if (texts.has(n)) continue;
      if (atoms.has(n)) {
        texts.set(n, atom(n));
        continue;
      }
      let text = exprText(nodes, writer, n);
      if (n !== root && hasLine(n, text[0])) {
        const shape = nodes.shape[n]
          ? `: ${nodes.dtype[n]}[${nodes.shape[n].replaceAll("x", ", ")}]`
          : "";
        lines.push(`${names.nameOf(n)}${shape} = ${text[0]}`);
        text = [names.nameOf(n), EXPR_ATOM];
      }
      texts.set(n, text);
    }
    return lines;
  };
  writer.atoms = () => [...used];
  return writer;
}

function bracketed([text, binds], tight) {
  return binds >= tight ? text : `(${text})`;
}

/** Return a node's words and how tightly they bind, from the words of its sources. */
function exprText(nodes, writer, n) {
  const op = nodes.op[n];
  const src = nodes.src[n];
  const all = (from = 0) => src.slice(from).map((s) => writer.words(s)).join(", ");
  if (EXPR_LEAVES.has(op)) return [exprOwnName(nodes, n), EXPR_ATOM];
  if (op in EXPR_INFIX && src.length === 2) return exprInfix(nodes, writer, n);
  if (op === "CONST") return [nodes.label[n], nodes.label[n].startsWith("-") ? 8 : EXPR_ATOM];
  if (op === "NEG" || op === "NOT") {
    return [(op === "NEG" ? "-" : "~") + writer.words(src[0], 9), 8];
  }
  if (op === "CAST") return [`${nodes.dtype[n]}(${all()})`, EXPR_ATOM];
  if (op === "BITCAST") return [`bitcast(${all()}, ${nodes.dtype[n]})`, EXPR_ATOM];
  if (op === "INDEX" && src.length === 1) return [writer.words(src[0], EXPR_ATOM), EXPR_ATOM];
  if (op === "INDEX") return [`${writer.words(src[0], EXPR_ATOM)}[${all(1)}]`, EXPR_ATOM];
  if (op === "LOAD" && src.length === 1) return [writer.words(src[0]), EXPR_ATOM];
  if (op === "LOAD") {
    return [`LOAD(${writer.words(src[0])} where ${writer.words(src[1])})`, EXPR_ATOM];
  }
  if (op === "WHERE" && nodes.op[src[2]] === "INVALID") {
    return [`${writer.words(src[1])} where ${writer.words(src[0])}`, EXPR_LOOSE];
  }
  if (op === "REDUCE") return [`REDUCE(${nodes.arg[n]}, ${all()})`, EXPR_ATOM];
  if (op === "STAGE") return [`STAGE(${all()})`, EXPR_ATOM];
  const name = EXPR_UPPER.has(op) ? op : op.toLowerCase();
  const parts = [all(), nodes.arg[n]].filter(Boolean).join(", ");
  return [`${name}(${parts})`, EXPR_ATOM];
}

function exprInfix(nodes, writer, n) {
  const [sign, binds] = EXPR_INFIX[nodes.op[n]];
  const [left, right] = nodes.src[n];
  const first = writer.words(left, binds + Number(binds === 1));
  const space = sign === "*" && nodes.dtype[n] === "index" ? "" : " ";
  const second = writer.words(right, binds + 1);
  if (sign === "+" && second.startsWith("-")) { // a + -b reads a - b
    const less = nodes.op[right] === "NEG"
      ? writer.words(nodes.src[right][0], binds + 1)
      : second.slice(1);
    return [`${first} - ${less}`, binds];
  }
  return [`${first}${space}${sign}${space}${second}`, binds];
}

function exprRoot(nodes, writer, root) {
  if (nodes.op[root] !== "END") return writer.words(root);
  const [what, ...ranges] = nodes.src[root].map((s) => writer.words(s));
  return `${what}  END ${ranges.join(" ")}`;
}

/** Return the lines of a statement tree: loops in braces, each statement with its own names. */
function exprTree(nodes, block, names) {
  const writer = exprWriter(nodes, names);
  const lines = [];
  const stack = nodes.src[block].map((s) => [s, 0]).reverse();
  while (stack.length) {
    const [n, depth] = stack.pop();
    const pad = "  ".repeat(depth);
    if (n === null) lines.push(`${pad}}`);
    else if (nodes.op[n] === "LOOP") {
      const [axis, ...body] = nodes.src[n];
      const [name, kind] = nodes.arg[axis].split(" ");
      lines.push(
        `${pad}for ${name} in ${exprExtent(nodes, axis)} (${String(kind).toLowerCase()}) {`,
      );
      stack.push([null, depth], ...body.map((s) => [s, depth + 1]).reverse());
    } else {
      writer.count(stateOrder(nodes, [n]));
      lines.push(
        ...writer.linesBefore(n).map((line) => pad + line),
        pad + exprStatement(nodes, writer, n),
      );
    }
  }
  return lines;
}

function exprStatement(nodes, writer, n) {
  if (nodes.op[n] !== "STORE" && nodes.op[n] !== "ACCUMULATE") return writer.words(n);
  const sign = nodes.op[n] === "STORE" ? "=" : EXPR_UPDATE[nodes.arg[n].split(" ")[0]] || "=";
  return `${writer.words(nodes.src[n][0])} ${sign} ${writer.words(nodes.src[n][1])}`;
}

/** Return how often an axis runs, as text. */
export function exprExtent(nodes, axis) {
  return nodes.src[axis].length ? exprInline(nodes, nodes.src[axis][0]) : "?";
}
