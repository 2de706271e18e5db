// The compiler's passes of machine code, each with the lines that it changed.

import { failAt } from "../app/actions.js";
import { OFFLINE } from "../app/channel.js";
import { diffLines } from "../base/diff.js";
import { h } from "../base/elements.js";
import { walkable } from "../base/lists.js";
import { plural } from "../base/text.js";
import { aroundChanges } from "./lines.js";

/** @import { App } from "../app/store.js" */
/** @import { CodeRow, CompilerPasses, ErrorWords } from "../record.d.ts" */

/** The changes of each pass: the lines of the program after it, the removed and the added ones, by
 * their text; all lines of the first are new.
 * @param {CompilerPasses} madeBy */
export function changesOf({ lines, passes }) {
  const states = passes.map((pass) => pass.lines.map((place) => lines[place]));
  return passes.map(({ name, title }, i) => {
    const rows = i ? diffLines(states[i - 1], states[i]) : [];
    const [gone, fresh] = ["-", "+"].map((sign) => rows.filter((row) => row[0] === sign).length);
    return { name, title, rows, gone, fresh, before: states[i - 1] ?? [], lines: states[i] };
  });
}

/** The passes of a program, and the changes of the chosen one.
 * @param {CompilerPasses} madeBy
 * @param {number} chosen
 * @param {(pass: number) => void} choose */
export function passesView(madeBy, chosen, choose) {
  const changes = changesOf(madeBy);
  const rows = changes.map(({ name, title, gone, fresh }, i) =>
    h(
      "div",
      {
        class: "wb-row wb-made-row",
        role: "option",
        "data-item": "",
        "data-key": `made-${i}`,
        "aria-selected": String(i === chosen),
        title: i ? `${plural(gone, "line")} removed, ${plural(fresh, "line")} added` : "the first",
        onclick: () => choose(i),
      },
      h("b", {}, name),
      h("span", { class: "wb-quiet wb-clip" }, title),
      h("span", { class: "wb-figure" }, i ? `−${gone} +${fresh}` : ""),
    )
  );
  const change = changes[chosen];
  return h(
    "div",
    { class: "wb-made" },
    walkable("listbox", "passes of the compiler", { class: "wb-made-list" }, ...rows),
    h(
      "div",
      { class: "wb-made-diff" },
      change && h("div", { class: "wb-lines" }, ...lineRows(change)),
    ),
  );
}

/** The program after the first pass, or the changes of another.
 * @param {ReturnType<typeof changesOf>[number]} change */
function lineRows({ rows, before, lines }) {
  if (!rows.length) return lines.map((text) => lineRow("", text));
  return aroundChanges(rows).map((row) => {
    if (row === null) return h("div", { class: "wb-skip" }, "⋯");
    const [sign, a, b] = row;
    return lineRow(sign.trim(), b === null ? before[a] : lines[b]);
  });
}

/**
 * @param {string} sign
 * @param {string} text */
function lineRow(sign, text) {
  const kind = { "+": "wb-added", "-": "wb-removed" }[sign] ?? "";
  return h(
    "div",
    { class: `wb-line ${kind}` },
    h("span", { class: "wb-sign" }, sign === "-" ? "−" : sign),
    h("code", {}, text),
  );
}

/** Request, once, the compiler's passes of a piece of machine code.
 * @param {App} app
 * @param {string} where
 * @param {number | null} place
 * @param {CodeRow | null} code
 * @param {{made: unknown}} state */
export function askForPasses(app, where, place, code, state) {
  if (place === null || !code || code.made_by || app.live !== "live") return;
  if (state.made === code.lines) return;
  state.made = code.lines;
  failAt(app, where, null);
  app.ask({ do: "compiler_passes", variant: place }).catch((/** @type {ErrorWords} */ error) =>
    error !== OFFLINE && failAt(app, where, error)
  );
}
