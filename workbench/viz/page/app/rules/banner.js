// The banner of a variant with rules switched off: the changes of its program.

import { goTo } from "../actions.js";
import { button } from "../pieces.js";
import { rowAt } from "../store.js";
import { inOneRun, spreadText } from "../timing.js";
import { countDiffering } from "../../base/diff.js";
import { h, words } from "../../base/elements.js";
import { plural, secondsText } from "../../base/text.js";
import { switchRule } from "./switch.js";

/** @import { TimingRow, VariantRow } from "../../record.d.ts" */
/** @import { App } from "../store.js" */

/** Say of a variant with rules switched off, beyond those that are off for all, what that changed.
 * @param {App} app */
export function rulesOffBanner(app) {
  const variant = app.variant();
  const { variants, without } = app.record;
  const off = variant?.rules_off.filter((name) => !without.rules.includes(name)) ?? [];
  if (!variant || !off.length) return null;
  const measured = whereSwitched(variants, variant, off);
  const parent = rowAt(variants, measured.parent) ?? rowAt(variants, app.kernel()?.root);
  if (!parent) return null;
  const name = measured === variant ? "" : `${measured.name}: `;
  return h(
    "div",
    { class: "wb-banner", role: "status", "data-term": "without" },
    h("b", {}, "without ", words(off.join(", "))),
    h("span", {}, words(`${name}${whatDiffers(measured, parent)}`, "", 400)),
    ...off.map((name) =>
      button(app, off.length > 1 ? `${name} on` : "switch on", () => switchRule(app, name, true), {
        python: true,
        name: `on-${name}`,
      })
    ),
    button(app, "back", () => goTo(app, variants.indexOf(parent)), {
      name: "rules-on",
      title: "to the variant with all rules",
    }),
  );
}

/** The variant that the rules were switched off for, of which `variant` was made by edits and opts:
 * what those changed is not the rules' doing.
 * @param {VariantRow[]} variants
 * @param {VariantRow} variant
 * @param {string[]} off
 * @returns {VariantRow} */
function whereSwitched(variants, variant, off) {
  const parent = rowAt(variants, variant.parent);
  return parent && off.every((name) => parent.rules_off.includes(name))
    ? whereSwitched(variants, parent, off)
    : variant;
}

/** "12 lines of LLVM differ · 1.90 ms, was 1.85 ms · right: .."
 * @param {VariantRow} variant
 * @param {VariantRow} parent */
function whatDiffers(variant, parent) {
  const time = variant.timing && parent.timing
    ? `${timeText(variant.timing)}, was ${timeText(parent.timing)}${
      inOneRun(variant.timing, parent.timing) ? "" : ", timed separately"
    }`
    : "not timed";
  const answer = variant.error
    ? "it fails"
    : variant.check
    ? variant.check.text
    : "answer not checked";
  return `${sourceDiffers(variant, parent)} · ${time} · ${answer}`;
}

/** @param {TimingRow} timing */
const timeText = (timing) => `${secondsText(timing.median_s)} ${spreadText(timing)}`;

/**
 * @param {VariantRow} variant
 * @param {VariantRow} parent */
function sourceDiffers(variant, parent) {
  const counts = variant.code.flatMap(({ language, lines }) => {
    const was = parent.code.find((code) => code.language === language);
    return was ? [{ language, count: countDiffering(was.lines, lines) }] : [];
  });
  if (!counts.length) return "no source yet";
  const changed = counts.filter(({ count }) => count);
  return changed.length
    ? changed.map(({ language, count }) =>
      `${plural(count, "line")} of ${language} ${count === 1 ? "differs" : "differ"}`
    ).join(", ")
    : `the same ${counts.map(({ language }) => language).join(", ")}`;
}
