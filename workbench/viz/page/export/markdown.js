// A comparison of two variants as Markdown: opts, times, checks, counts, and a diff of their code.

import { checkedText } from "../app/actions.js";
import { SAME, speedText, timingText } from "../app/timing.js";
import { diffLines } from "../base/diff.js";

/** @import { PageRecord, VariantRow } from "../record.d.ts" */

const AROUND = 3; // lines of code before and after a difference

/** Return two variants of a kernel as Markdown; of one variant alone, its facts.
 * @param {PageRecord} record
 * @param {VariantRow} variant
 * @param {VariantRow} other the reference */
export function comparison(record, variant, other) {
  const both = other === variant ? [variant] : [other, variant];
  const { title } = record.kernels[variant.kernel];
  const { expr, device, machine, lines } = record;
  const where = expr.line === null ? "" : ` (${lines[expr.line].where})`;
  const names = both.map(({ name }) => name).reverse();
  return [
    `## ${plain(title)}: ${names.map(plain).join(" beside ")}`,
    `${code(expr.text)}${plain(where)}, kernel ${
      variant.kernel + 1
    } of ${record.kernels.length}, ` +
    `${device}, ${plain(machine.cpu)}, ${machine.cores} cores`,
    table([["", ...both.map(({ name }) => plain(name))], ...figures(both)]),
    speed(variant, other),
    ...differences(variant, other),
    ...both.map(({ name, recipe }) =>
      `${plain(name)} as Python:\n\n${fenced("python", expr.python + recipe)}`
    ),
  ].filter(Boolean).join("\n\n") + "\n";
}

/** @param {VariantRow[]} both */
function figures(both) {
  const counts = [...new Set(both.flatMap((row) => Object.keys(row.counts ?? {})))];
  /** @type {[string, (row: VariantRow) => string][]} */
  const rows = [
    ["opts", ({ opts }) => opts.map(code).join(", ") || "none"],
    ["without rules", ({ rules_off }) => plain(rules_off.join(", "))],
    ["edited by hand", ({ edited }) => edited ? "yes" : ""],
    ["time", ({ timing }) => timing ? plain(timingText(timing)) : "not timed"],
    ["answer", ({ check }) => check ? plain(checkedText(check)) : "not checked"],
    ["bound by", ({ bound }) => plain(bound ?? "")],
    ["note", ({ note }) => plain(note)],
    ...counts.map((name) => /** @type {[string, (row: VariantRow) => string]} */ ([
      plain(name.replaceAll("_", " ")),
      ({ counts }) => counts?.[name]?.toLocaleString("en") ?? "",
    ])),
  ];
  return rows.map(([name, text]) => [name, ...both.map(text)])
    .filter(([, ...texts]) => texts.some(Boolean));
}

/** Which variant is faster, and by how much; "" without times of this machine.
 * @param {VariantRow} variant
 * @param {VariantRow} other */
function speed({ name, timing }, { name: otherName, timing: before }) {
  const text = speedText(timing, before, plain(otherName));
  if (text === SAME) return "No measurable difference in time.";
  return text && `${plain(name)} is ${text}.`;
}

/** The differing lines of code, of the languages that both have.
 * @param {VariantRow} variant
 * @param {VariantRow} other */
function differences(variant, other) {
  return variant.code.flatMap(({ language, lines }) => {
    const was = other.code.find((row) => row.language === language);
    if (!was || other === variant || !lines.length || !was.lines.length) return [];
    const rows = diffLines(was.lines, lines);
    const isNear = rows.map((_, i) =>
      rows.slice(Math.max(0, i - AROUND), i + AROUND + 1).some(([sign]) => sign !== " ")
    );
    if (!isNear.includes(true)) return [`The ${language} is the same.`];
    const shown = rows.flatMap(([sign, i, j], at) => {
      if (isNear[at]) return [sign + (i === null ? lines[j ?? 0] : was.lines[i])];
      return isNear[at - 1] || !at ? ["@@ .. @@"] : [];
    });
    return [`${language}:\n\n${fenced("diff", shown.join("\n"))}`];
  });
}

/** @param {string[][]} rows */
const table = ([head, ...rows]) =>
  [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");

/** Text with Markdown's signs escaped.
 * @param {string} text */
const plain = (text) =>
  text.replace(/\s+/g, " ").replace(/[\\`*_{}[\]<>#|~]/g, (sign) => `\\${sign}`);

/** @param {string} text */
const code = (text) => {
  const line = text.replace(/\s+/g, " ").replaceAll("|", "\\|");
  const ticks = line.includes("`") ? "``" : "`";
  return ticks === "`" ? `\`${line}\`` : `\`\` ${line} \`\``;
};

/** @param {string} language
 * @param {string} text */
function fenced(language, text) {
  const longest = Math.max(2, ...(text.match(/`+/g) ?? []).map((ticks) => ticks.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}${language}\n${text.replace(/\n+$/, "")}\n${fence}`;
}
