// What a variant with rules switched off changed.

import { goTo } from "../app/actions.js";
import { button } from "../app/pieces.js";
import { inOneRun, spreadText } from "../app/timing.js";
import { countDiffering } from "../base/diff.js";
import { h, words } from "../base/elements.js";
import { plural, secondsText } from "../base/text.js";
import { switchRule } from "./switch.js";

/** Say of a variant with rules switched off, beyond those that are off for all, what that changed. */
export function rulesOffBanner(app) {
  const variant = app.variant();
  const off = (variant?.rules_off || []).filter((name) => !app.record.without.rules.includes(name));
  if (!off.length) return null;
  const parent = app.record.variants[variant.parent] || app.record.variants[app.kernel().root];
  return h(
    "div",
    { class: "wb-rw-banner", role: "status" },
    h("b", {}, "without ", words(off.join(", "))),
    h("span", {}, whatDiffers(variant, parent)),
    ...off.map((name) =>
      button(app, off.length > 1 ? `${name} on` : "switch on", () => switchRule(app, name, true), {
        python: true,
        name: `on-${name}`,
      })
    ),
    button(app, "back", () => goTo(app, app.record.variants.indexOf(parent)), {
      name: "rules-on",
      title: "to the variant with all rules",
    }),
  );
}

/** "12 lines of LLVM differ · 1.90 ms, was 1.85 ms · right: .." */
function whatDiffers(variant, parent) {
  const time = variant.timing && parent.timing
    ? `${timeText(variant.timing)}, was ${timeText(parent.timing)}${
      inOneRun(variant.timing, parent.timing) ? "" : ", timed apart"
    }`
    : "not timed";
  const answer = variant.error
    ? "it fails"
    : variant.check
    ? variant.check.text
    : "answer not checked";
  return `${sourceDiffers(variant, parent)} · ${time} · ${answer}`;
}

const timeText = (timing) => `${secondsText(timing.median_s)} ${spreadText(timing)}`;

function sourceDiffers(variant, parent) {
  const pairs = variant.code.map((
    now,
  ) => [now, parent.code.find((was) => was.language === now.language)]).filter(([, was]) => was);
  if (!pairs.length) return "source not made yet";
  const counts = pairs.map(([now, was]) => [now.language, countDiffering(was.lines, now.lines)]);
  const changed = counts.filter(([, count]) => count);
  return changed.length
    ? changed.map(([language, count]) =>
      `${plural(count, "line")} of ${language} ${count === 1 ? "differs" : "differ"}`
    ).join(", ")
    : `the same ${counts.map(([language]) => language).join(", ")}`;
}
