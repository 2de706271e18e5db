// The variants of a kernel as a tree: each is derived from another by an opt, an edit or a search.

import {
  act,
  canAsk,
  copyVariant,
  deleteVariant,
  goTo,
  listedVariants,
  pinned,
} from "../../app/actions.js";
import { meaningOf } from "../../app/glossary.js";
import { button, failure } from "../../app/pieces.js";
import { notDeleted, rowAt } from "../../app/store.js";
import { isBusy, percent, real } from "../../app/timing.js";
import { elementsOf, fold, h, recordText } from "../../base/elements.js";
import { walkable } from "../../base/lists.js";
import { dateText, plural } from "../../base/text.js";
import { machineOfEdited } from "../../listing/programs.js";
import { faultText, isOfOtherDevice, isOther } from "../../record/variants.js";
import { compilerLines, predictedCells, timeCells } from "./times.js";

/** @import { App } from "../../app/store.js" */
/** @import { Child } from "../../base/elements.d.ts" */
/** @import { TimingRow, VariantRow } from "../../record.d.ts" */

const OTHER_DEVICES = "variants of other devices";
const PLUS = " + "; // before the opts that a variant adds to its parent, in its name

/** @param {App} app */
export function variantTree(app) {
  const { variants } = app.record;
  const listed = listedVariants(app);
  const ofKernel = listed.filter((i) => !isOfOtherDevice(app.record, variants[i]));
  const rows = inTreeOrder(app, ofKernel).map(([i, level]) => variantRow(app, i, level));
  const left = app.variantsOf(app.view.kernel).length - listed.length;
  const words = `${left.toLocaleString("en")} more are not listed: those above are the fastest.`;
  return h(
    "div",
    {},
    doubtLine(ofKernel.map((i) => variants[i].timing)),
    treeOf(app, "variants", rows),
    ...compilerLines(app, ofKernel),
    left > 0 && h("p", { class: "wb-quiet wb-small", role: "status" }, words),
  );
}

/** The facts of other devices, folded: their times of the variants, and the variants with their
 * default opts.
 * @param {App} app */
export function otherDevices(app) {
  const { variants } = app.record;
  const ofKernel = listedVariants(app);
  const others = ofKernel.filter((i) => isOfOtherDevice(app.record, variants[i]));
  const times = ofKernel.flatMap((i) => variants[i].elsewhere).filter(real).length;
  if (!others.length && !times) return null;
  const parts = [times && plural(times, "time"), others.length && plural(others.length, "variant")];
  const rows = () =>
    inTreeOrder(app, ofKernel).flatMap(([i]) => [
      others.includes(i) && variantRow(app, i, 1),
      ...elsewhereRows(app, i, others.includes(i)),
    ]);
  return fold(
    "other devices",
    `other devices: ${parts.filter(Boolean).join(", ")}`,
    // a tree needs an item: times alone are none
    () =>
      others.length ? treeOf(app, OTHER_DEVICES, rows()) : h(
        "div",
        { class: "wb-list", role: "group", "aria-label": OTHER_DEVICES },
        ...rows().filter(Boolean),
      ),
  );
}

/** A tree of rows, with the keys of a variant.
 * @param {App} app
 * @param {string} label
 * @param {Child[]} rows */
function treeOf(app, label, rows) {
  const tree = walkable("tree", label, { class: "wb-list" }, ...rows.filter(Boolean));
  tree.addEventListener("keydown", (event) => {
    const { key, target } = event;
    const place = Number(target instanceof HTMLElement && target.dataset.key?.split("-")[1]);
    const variant = app.record.variants[place];
    if (key === "y" && variant && !event.ctrlKey && !event.metaKey) {
      event.stopPropagation(); // otherwise a mode copies its contents
      copyVariant(app, variant);
    }
    if (key === "Delete") deleteVariant(app, place);
    if (key === "F2") nameVariant(app, place);
  });
  return tree;
}

/** Select a variant, and edit its name.
 * @param {App} app
 * @param {number} variant */
function nameVariant(app, variant) {
  goTo(app, variant);
  app.onceShown(() => {
    const field = elementsOf(app.root ?? document, '.wb-identity [data-key="name"]')[0];
    field?.focus();
  });
}

/** The deleted variants, to be restored.
 * @param {App} app */
export function deletedVariants(app) {
  const { variants } = app.record;
  const deleted = variants.map((_, i) => i)
    .filter((i) => variants[i].deleted && variants[i].kernel === app.view.kernel);
  if (!deleted.length) return null;
  const [last] = deleted.slice(-1);
  const back = () => act(app, "results", { do: "delete", variants: [last], back: true });
  return button(app, `${deleted.length} deleted: bring back`, back, {
    python: true,
    name: "bring-back",
    title: `brings back ${variants[last].name}`,
  });
}

/** The variants that other notebooks saved, on request.
 * @param {App} app */
export function savedVariants(app) {
  const { saved } = app.record;
  if (!saved || !canAsk(app)) return null;
  const title = "stored on this machine by other notebooks with this expression";
  return h(
    "div",
    { class: "wb-buttons" },
    h("span", { class: "wb-quiet wb-small", title }, `${plural(saved, "saved variant")}:`),
    button(app, "show", () => act(app, "results", { do: "saved" }), {
      python: true,
      name: "show-saved",
      title: `shows them here; ${title}`,
    }),
    button(app, "forget", () => act(app, "results", { do: "forget" }), {
      python: true,
      name: "forget-saved",
      title: `deletes them; ${title}`,
    }),
  );
}

const SAVED_EDITS = "saved edits"; // where their errors stand

/** The saved edits that failed, or that other rules were off for, on request.
 * @param {App} app */
export function savedEdits(app) {
  const { saved_edits: groups } = app.record;
  if (!groups.length || !canAsk(app)) return null;
  const title = "shows them as variants, and runs nothing";
  const rows = groups.map((edits, i) =>
    h(
      "div",
      { class: "wb-buttons" },
      h("span", { class: "wb-quiet wb-small" }, `${edits}:`),
      button(app, "show", () => act(app, SAVED_EDITS, { do: "saved", edits }), {
        python: true,
        name: `show-edits-${i}`,
        title,
      }),
    )
  );
  return h("div", {}, ...rows, failure(app, SAVED_EDITS)); // an error stands where its button does
}

/** The plans by hand of earlier sessions, to be made again on request.
 * @param {App} app */
export function savedPlans(app) {
  const { saved_plans: plans } = app.record;
  if (!plans.length || !canAsk(app)) return null;
  const rows = plans.map(({ id, choices, when }, i) =>
    h(
      "div",
      { class: "wb-buttons" },
      h(
        "span",
        { class: "wb-quiet wb-small", "data-term": "by hand" },
        `your plan of before (${dateText(when)}): ${plural(choices, "choice")} by hand`,
      ),
      button(app, "apply again", () => act(app, "results", { do: "saved", plan: id }), {
        python: true,
        name: `apply-plan-${i}`,
        title: "plan again with these choices, and compare both plans",
      }),
      button(app, "forget", () => act(app, "results", { do: "forget", plan: id }), {
        python: true,
        name: `forget-plan-${i}`,
        title: "deletes the saved choices",
      }),
    )
  );
  return h("div", {}, ...rows);
}

/** What limits leave out of what is saved for the next session.
 * @param {App} app */
export function unsavedLines(app) {
  const { unsaved } = app.record;
  if (!unsaved.length || !canAsk(app)) return null;
  const lines = unsaved.map((text) => h("div", { class: "wb-quiet wb-small" }, text));
  return h("div", { role: "status" }, ...lines);
}

/** The name of a variant in the tree: below its parent only the opts that it adds.
 * @param {App} app
 * @param {VariantRow} variant */
function label(app, { name, parent }) {
  const above = rowAt(app.record.variants, notDeleted(app.record, parent))?.name;
  return above && name.startsWith(above + PLUS) ? name.slice(above.length + 1) : name;
}

/** Return [variant, level] with children under their parents. Whole lists of opts that were typed
 * are below the kernel without opts, unless they go on from those of the variant before.
 * @param {App} app
 * @param {number[]} ofKernel */
function inTreeOrder(app, ofKernel) {
  /** @type {Map<number, number[]>} */
  const children = new Map(ofKernel.map((i) => [i, []]));
  const { kernels, variants } = app.record;
  const parentOf = (/** @type {number} */ i) => {
    const { parent, opts, edited, searches, kernel } = variants[i];
    const above = notDeleted(app.record, parent) ?? -1;
    const goesOn = variants[above]?.opts.every((opt, at) => opt === opts[at]) ?? true;
    return goesOn || edited || searches.length ? above : kernels[kernel].root;
  };
  const tops = ofKernel.filter((i) => !children.get(parentOf(i))?.push(i));
  const rows = [];
  const waiting = tops.map((i) => [i, 1]).reverse();
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const [i, level] = next;
    rows.push(next);
    for (const child of (children.get(i) ?? []).reverse()) waiting.push([child, level + 1]);
  }
  return rows;
}

/**
 * @param {App} app
 * @param {number} i
 * @param {number} level */
function variantRow(app, i, level) {
  const variant = app.record.variants[i];
  const isPinned = i === pinned(app);
  const busy = app.pending("measure", { variants: i });
  return h(
    "div",
    {
      class: "wb-row wb-variant",
      role: "treeitem",
      "aria-level": level,
      "aria-selected": String(i === app.view.variant),
      "data-item": "",
      "data-key": `variant-${i}`,
      title: [
        [variant.name, meaningOf(app.record, variant.name.split(" ")[0])].filter(Boolean).join(
          ": ",
        ),
        variant.opts.join("\n") || "no opts",
        variant.when && `made ${dateText(variant.when)}`,
        variant.note,
      ].filter(Boolean).join("\n\n"),
      onclick: () => goTo(app, i),
    },
    h(
      "span",
      { class: "wb-name", style: `padding-left:${Math.min(level - 1, 6) * 8}px` },
      h(
        "span",
        { class: "wb-pin", title: isPinned ? "pinned: ratios refer to it" : null },
        isPinned ? "◆" : "",
      ),
      recordText(label(app, variant), "wb-clip", 80),
      variant.edited && !variant.name.startsWith("edited") &&
        h("i", { class: "wb-quiet wb-mark", "data-term": "edited" }, "edited"),
      variant.edited && isOther(app.record, variant.code[0]?.device) &&
        h("i", { class: "wb-quiet wb-mark" }, variant.code[0]?.device),
      machineOfEdited(app.record, variant) && h("i", { class: "wb-quiet wb-mark" }, "not run"),
      failureMark(variant),
      doubtMark(app, variant),
      h("span", { class: "wb-copy-place" }, copyButton(app, variant, i)),
    ),
    busy
      ? h("span", { class: "wb-quiet wb-said" }, "timing…")
      : app.record.elsewhere
      ? predictedCells(app, variant)
      : timeCells(app, variant.timing, variant.timing?.emulator, variant),
  );
}

/** Buttons beside a name, while the pointer or the focus is on its row.
 * @param {App} app
 * @param {VariantRow} variant
 * @param {number} place */
function copyButton(app, variant, place) {
  const el = button(app, "copy", () => copyVariant(app, variant), {
    key: "y",
    name: `copy-variant-${place}`,
    title: "this variant as Python, on seeded data",
  });
  el.classList.add("wb-copy-variant");
  el.tabIndex = -1; // the key does the same
  el.addEventListener("click", (event) => event.stopPropagation()); // the row stays unselected
  return el;
}

/** The reasons why a time is uncertain: the machine was busy, the samples differ much, or a later
 * time differs.
 * @param {TimingRow | null} timing */
const doubtsOf = (timing) =>
  real(timing) ? [...(timing.doubts ?? []), timing.later ?? ""].filter(Boolean) : [];

/** What makes times uncertain, once for all rows: each row has the figure in its sign.
 * @param {(TimingRow | null)[]} timings */
function doubtLine(timings) {
  const rows = timings.filter(real).filter((timing) => doubtsOf(timing).length);
  if (!rows.length) return null;
  const shares = rows.flatMap(({ had = null }) => (had === null ? [] : [had]));
  const [least, most] = [Math.min(...shares), Math.max(...shares)].map(percent);
  const range = least === most ? least : `${least} to ${most}`;
  const why = rows.length === 1
    ? doubtsOf(rows[0]).join("; ")
    : shares.length === rows.length
    ? `the machine was busy: their kernels had ${range} of a core`
    : "the machine was busy, or their samples lie far apart";
  const which = rows.length > 1 && `${rows.length} of ${timings.length} times are not certain: `;
  return h("div", { class: "wb-quiet wb-small wb-doubt", "data-term": "uncertain" }, which, why);
}

/** The sign of an uncertain time, which has the reason and its figure; where the machine was busy,
 * that word is the sign.
 * @param {App} app
 * @param {VariantRow} variant */
function doubtMark(app, { timing }) {
  const lines = app.record.elsewhere ? [] : doubtsOf(timing);
  if (!timing || !lines.length || isBusy(timing)) return null;
  return h("b", { class: "wb-quiet wb-mark wb-doubt-mark", title: lines.join("; ") }, "?");
}

/** The times of a variant on other devices of this machine.
 * @param {App} app
 * @param {number} i
 * @param {boolean} isBelow whether its own row is above them */
function elsewhereRows(app, i, isBelow) {
  const { name, elsewhere } = app.record.variants[i];
  return elsewhere.filter(real).map((timing) =>
    h(
      "div",
      {
        class: "wb-variant wb-quiet",
        role: "presentation",
        "data-device": timing.device,
        "data-term": "on a device",
      },
      h(
        "span",
        { class: "wb-name", style: isBelow ? "padding-left:21px" : null },
        `${isBelow ? "" : `${name} `}on ${timing.device}`,
      ),
      timeCells(app, timing),
    )
  );
}

/** A wrong answer must be as visible as a missing one: its time would be compared.
 * @param {VariantRow} variant */
function failureMark(variant) {
  const { check, error } = variant;
  const fault = faultText(variant);
  const sign = error ? "!" : "\u2717";
  if (fault) return h("b", { class: "wb-bad wb-mark", title: fault }, sign);
  return check?.ok === null && h("i", { class: "wb-quiet wb-mark", title: check.text }, "in part");
}
