// A rule in the page: its head (name, source line, uses), its code, its switch, the steps to its uses, and
// the banner of a variant without it.

import { countDiffering } from "../base/diff.js";
import { fold, h, recordText, refill } from "../base/elements.js";
import { plural } from "../base/text.js";
import { countUses, usesByRule } from "../record/rule_uses.js";
import { act, canAsk, copy, goTo } from "./actions.js";
import { button } from "./pieces.js";
import { NO_SELECTION, rowAt } from "./store.js";
import { inOneRun, medianText } from "./timing.js";

/** @import { CodePart, RuleCode, RuleRow, VariantRow } from "../record.d.ts" */
/** @import { Child } from "../base/elements.d.ts" */
/** @import { Use } from "../record/rule_uses.js" */
/** @import { App } from "./store.js" */

/** A step of the default opts has neither a file nor uses.
 * @param {App} app
 * @param {Pick<RuleRow, "name" | "set" | "file" | "line"> & {is_fixed?: boolean}} row */
export const ruleHead = (app, { name, set, file, line, is_fixed: isFixed }) =>
  h(
    "div",
    { class: "wb-rule-head" },
    h("b", { "data-term": "rule" }, recordText(name)),
    set &&
      h("span", { class: "wb-quiet", title: "the table of the rule" }, ` of ${set}`),
    file &&
      h("span", { class: "wb-quiet", title: "the file and line of the rule" }, `${file}:${line}`),
    file && useStepper(app, name),
    !isFixed && ruleOffButton(app, name),
  );

// The code of a rule: asked of Python when the reader unfolds it, and kept.

/** The code of rules, by name; a promise until Python has answered.
 * @type {WeakMap<App, Map<string, RuleCode | Promise<RuleCode | null>>>} */
const CODES = new WeakMap();

/** A fold with the row of a rule and its functions as source text; an opt has none.
 * @param {App} app
 * @param {Pick<RuleRow, "name" | "file">} row */
export const ruleCode = (app, { name, file }) =>
  file ? fold("code of a rule", "its code", () => codeOf(app, name)) : null;

/** @param {App} app
 * @param {string} name */
function codeOf(app, name) {
  const el = h("div", { class: "wb-rule-code", role: "status" });
  /** @type {Map<string, RuleCode | Promise<RuleCode | null>>} */
  const codes = CODES.get(app) ?? new Map();
  CODES.set(app, codes);
  // a pane is filled again while Python is asked, and asks no second time
  if (!codes.has(name) && canAsk(app)) codes.set(name, askForCode(app, name, codes));
  const code = codes.get(name);
  const show = (/** @type {RuleCode | null} */ code) => refill(el, ...codeLines(app, code));
  if (code instanceof Promise) code.then(show);
  show(code instanceof Promise ? null : code ?? null);
  return el;
}

/** @param {App} app
 * @param {string} name
 * @param {Map<string, RuleCode | Promise<RuleCode | null>>} codes */
async function askForCode(app, name, codes) {
  const reply = await act(app, "rewrites", { do: "rule_code", rule: name });
  const code = reply?.result ?? null;
  if (code) codes.set(name, code);
  else codes.delete(name);
  return code;
}

/**
 * @param {App} app
 * @param {RuleCode | null} code
 * @returns {Child[]} */
function codeLines(app, code) {
  const quiet = (/** @type {string} */ text) => [h("p", { class: "wb-quiet" }, text)];
  if (code?.parts.length) return code.parts.map((part) => codePart(app, part));
  if (code) return quiet("Its source text is not on this machine.");
  return quiet(
    canAsk(app)
      ? "Python reads it …"
      : "Its code is not in this page: a page with its Python session shows it.",
  );
}

/** Lines of code below their place, which can be copied, and opened in an editor.
 * @param {App} app
 * @param {CodePart} part */
function codePart(app, { title, file, path, line, text, more }) {
  const place = `${path}:${line}`;
  return h(
    "div",
    {},
    h(
      "div",
      { class: "wb-rule-head" },
      h("b", {}, recordText(title)),
      path &&
        h(
          "a",
          {
            href: `vscode://file/${encodeURI(place.replace(/^\//, ""))}`,
            title: `open ${place} in VS Code, on the machine where Python runs`,
            "data-key": `open-${title}`,
          },
          recordText(`${file}:${line}`),
        ),
      path &&
        button(app, "copy", () => copy(app, place, place), {
          name: `copy-${title}`,
          title: `copy ${place}`,
        }),
    ),
    h("pre", {}, text),
    more > 0 && h("p", { class: "wb-quiet" }, `and ${plural(more, "line")} more in the file`),
  );
}

// The switch of a rule. Switching off a rule of compilation makes a variant; a rule of scheduling
// changes all kernels, so Python sends a new record.

/** Whether a rule is off in the plan or in the selected variant.
 * @param {App} app
 * @param {string} name */
export const isRuleOff = (app, name) =>
  [...app.record.without.rules, ...app.variant()?.rules_off ?? []].includes(name);

/** The switch of a rule; in a page without Python, the text that does the same in a cell.
 * @param {App} app
 * @param {string} name */
function ruleOffButton(app, name) {
  const isOff = isRuleOff(app, name);
  const title = isOff
    ? "with this rule again"
    : "plan and compile without this rule: did source, time or answer change?";
  const fromPython = app.record.recipes.without.join(name);
  return h(
    "span",
    { class: "wb-rule-switch" },
    button(app, isOff ? "switch on" : "switch off", () => switchRule(app, name, isOff), {
      python: true,
      name: "rule-off",
      title,
    }),
    !canAsk(app) && !isOff &&
      h(
        "span",
        { class: "wb-quiet" },
        "from Python: ",
        h("code", {}, recordText(fromPython, "", 400)),
      ),
  );
}

/** Select a variant in which a rule fired, unless scheduling or the selected variant already used
 * it.
 * @param {App} app
 * @param {string} name */
function showUser(app, name) {
  const uses = usesByRule(app.record).get(name) ?? [];
  const user = uses[0]?.variant ?? null;
  const isUsed = uses.some(({ variant }) => variant === null || variant === app.view.variant);
  if (user !== null && !isUsed) goTo(app, user);
}

/** Switch a rule off where it fired, or on again; then check the new variant, and time it beside
 * the old one. Nodes of the old passes are none of the new ones.
 * @param {App} app
 * @param {string} rule
 * @param {boolean} on */
export async function switchRule(app, rule, on) {
  if (!on) showUser(app, rule);
  const { kernel, variant: of, pass } = app.view;
  const was = rowAt(app.record.passes, pass)?.name;
  const place = app.record.kernels[kernel] ? kernel : null;
  const reply = await act(app, "rewrites", { do: "rule_off", kernel: place, of, rule, on });
  if (!reply) return;
  const other = reply.result?.variant ?? null;
  if (other === null) return comparePlans(app, was);
  if (!app.record.variants[other]) return;
  app.select(NO_SELECTION);
  if (on && !app.record.variants[other].rules_off.length) return; // known already
  await act(app, "rewrites", { do: "check", variant: other });
  if (of === null) return;
  await act(app, "rewrites", { do: "measure", variants: [other, of], cold: false });
}

/** The new plan: select the same pass, check the answer, and time both plans.
 * @param {App} app
 * @param {string | undefined} passName */
async function comparePlans(app, passName) {
  const { passes, devices, device } = app.record;
  const variant = app.kernel()?.root ?? null;
  const pass = passes.findIndex(({ name }) => name === passName);
  app.select({ ...NO_SELECTION, variant, pass: pass < 0 ? null : pass, step: 0 });
  if (variant === null) return;
  await act(app, "rewrites", { do: "check", variant });
  const isTimed = app.record.plan.compared?.seconds ||
    devices.find(({ name }) => name === device)?.emulator;
  if (!isTimed) await act(app, "rewrites", { do: "plans" });
}

// Navigation from one use of a rule to the next, in all passes, kernels and variants.

/** Show a use of a rule in Rewrites, with the kernel and the variant that it belongs to.
 * @param {App} app
 * @param {Use} use
 * @param {number} [step] */
export function goToUse(app, { pass, variant, steps }, step = steps[0]) {
  const kernel = rowAt(app.record.variants, variant)?.kernel ?? app.record.passes[pass].kernel;
  const whose = { ...(kernel !== null && { kernel }), ...(variant !== null && { variant }) };
  app.select({ ...app.arrangements.toSee("graph", "rewrites"), ...whose, pass, step });
}

/** @param {App} app
 * @param {string} name */
const usesOf = (app, name) => usesByRule(app.record).get(name) ?? [];

/** The index of the current rewrite among all uses of a rule; -1: it is none.
 * @param {App} app
 * @param {Use[]} uses */
function placeShown({ arrangements, view: { pass, step } }, uses) {
  const isSeen = ["graph", "rewrite", "passes"].some((pane) => arrangements.shows(pane));
  const at = isSeen ? uses.findIndex((use) => use.pass === pass) : -1;
  const own = at < 0 ? -1 : uses[at].steps.indexOf(step);
  return own < 0 ? -1 : countUses(uses.slice(0, at)) + own;
}

/** Go to the next use of a rule, or to the previous one; after the last comes the first.
 * @param {App} app
 * @param {string | null} name
 * @param {number} by */
export function stepUse(app, name, by) {
  const uses = name === null ? [] : usesOf(app, name);
  const count = countUses(uses);
  if (!count) return;
  const shown = placeShown(app, uses);
  let place = ((shown < 0 && by < 0 ? 0 : shown) + by + count) % count;
  for (const use of uses) {
    if (place < use.steps.length) return goToUse(app, use, use.steps[place]);
    place -= use.steps.length;
  }
}

/** The rule of the step in Rewrites, else the one in Rules.
 * @param {App} app
 * @returns {string | null} */
export function shownRule({ arrangements, record, view }) {
  const isStepped = ["graph", "rewrite", "passes"].some((pane) => arrangements.shows(pane));
  if (arrangements.shows("rules") && !isStepped) return view.rule;
  const [rule] = rowAt(record.passes, view.pass)?.rewrites[view.step - 1] ?? [];
  return rowAt(record.rules, rule)?.name ?? view.rule;
}

/** The buttons that lead from one use of a rule to the next.
 * @param {App} app
 * @param {string} name */
function useStepper(app, name) {
  const uses = usesOf(app, name);
  const count = countUses(uses);
  if (!count) return null;
  const at = placeShown(app, uses);
  /** @type {(text: string, word: string, by: number, key: string) => HTMLElement} */
  const step = (text, word, by, key) =>
    button(app, text, () => stepUse(app, name, by), {
      key,
      title: `${word} use of ${name}, in all passes, kernels and variants`,
      name: `use-${word}`,
    });
  return h(
    "span",
    { class: "wb-uses" },
    step("‹", "previous", -1, "N"),
    h(
      "span",
      { "data-term": "use" },
      at < 0 ? plural(count, "use") : `use ${at + 1} of ${count}`,
    ),
    step("›", "next", 1, "n"),
  );
}

// The banner of a variant with rules switched off: the changes of its program.

/** The banner of a variant with rules switched off, beyond those that scheduling runs without.
 * @param {App} app */
export function rulesOffBanner(app) {
  const variant = app.variant();
  const { variants, without } = app.record;
  const off = variant?.rules_off.filter((name) => !without.rules.includes(name)) ?? [];
  if (!variant || !off.length) return null;
  const [typed, removed] = [true, false].map((is) => off.filter((n) => isTyped(n) === is));
  const measured = whereSwitched(variants, variant, off);
  const parent = rowAt(variants, measured.parent) ?? rowAt(variants, app.kernel()?.root);
  if (!parent) return null;
  const name = measured === variant ? "" : `${measured.name}: `;
  return h(
    "div",
    { class: "wb-banner", role: "status", "data-term": "without" },
    removed.length > 0 && h("b", {}, "without ", recordText(removed.join(", "))),
    typed.length > 0 && h("b", {}, "with the rule ", recordText(typed.join(", "))),
    h("span", {}, recordText(`${name}${whatDiffers(measured, parent)}`, "", 400)),
    ...off.map((name) =>
      button(app, switchText(name, off.length > 1), () => switchRule(app, name, true), {
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

/** Whether a rule was typed by a reader: its name is its text.
 * @param {string} name */
const isTyped = (name) => name.includes("->");

/** What the button says that takes a change of the rules back.
 * @param {string} name
 * @param {boolean} isOneOfMany */
const switchText = (name, isOneOfMany) =>
  isTyped(name)
    ? (isOneOfMany ? `remove ${name}` : "remove the rule")
    : (isOneOfMany ? `${name} on` : "switch on");

/** The variant for which the rules were switched off, from which edits and opts made `variant`:
 * their changes are not due to the rules.
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
    ? `${medianText(variant.timing)}, was ${medianText(parent.timing)}${
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
