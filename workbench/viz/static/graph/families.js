// Families of ops: each has a letter and a shape, and graph.css a colour.

/** A letter.
 * @typedef {string} Family */
/** @typedef {"cut" | "slant" | "six" | "pill" | "box" | "round"} Shape */

/** @type {Record<Family, {name: string, shape: Shape, ops: string}>} */
export const FAMILIES = {
  M: {
    name: "memory",
    shape: "cut",
    ops: "BUFFER COPY CONTIGUOUS PARAM DEFINE REG INDEX LOAD STORE STAGE SET",
  },
  V: { name: "movement", shape: "slant", ops: "RESHAPE PERMUTE EXPAND SHRINK PAD FLIP" },
  R: { name: "reduction", shape: "six", ops: "REDUCE REDUCE_AXIS ACCUMULATE HREDUCE" },
  L: { name: "loops and order", shape: "pill", ops: "RANGE VAR LOOP ENDLOOP END AFTER BLOCK SINK" },
  C: { name: "constant", shape: "box", ops: "CONST INVALID IOTA LANES" },
  A: { name: "arithmetic", shape: "round", ops: "" },
};

const LETTERS = Object.keys(FAMILIES);

/** The family of an op.
 * @param {string} op */
export const familyOf = (op) =>
  LETTERS.find((letter) => FAMILIES[letter].ops.split(" ").includes(op)) ?? "A";
