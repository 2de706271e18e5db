// The header: the explored expression and its time, the device, the layouts; and the notices below
// the page: progress, a copied text.

import { h, keepingFocus, recordText, refill, setChildren, steady } from "../base/elements.js";
import { walkable } from "../base/lists.js";
import { bytesText, cut, plural, secondsText } from "../base/text.js";
import { faultText, isOfOtherDevice } from "../record/variants.js";
import {
  act,
  canAsk,
  goTo,
  isFull,
  listedVariants,
  NEEDS_PYTHON,
  notify,
  stop,
  toggleExport,
  toggleFull,
} from "./actions.js";
import { meaningOf } from "./glossary.js";
import { button, chooser, failure, hasAny, lineButton, tab, timeButton } from "./pieces.js";
import { firstLanguage } from "./store.js";
import {
  APART,
  briefTiming,
  inOneRun,
  isCertain,
  percent,
  real,
  spreadText,
  timingText,
} from "./timing.js";

/** @import { DeviceRow, MachineRow, ProgressRow, TimingRow } from "../record.d.ts" */
/** @import { Layout } from "../board/layouts.js" */
/** @import { Changes } from "../types.d.ts" */
/** @import { App } from "./store.js" */

/**
 * @param {App} app
 * @param {Layout[]} layouts */
export function header(app, layouts) {
  const el = h("div", { class: "wb-header" });
  const deviceField = steady(
    /** @type {(device: string, devices: DeviceRow[], machine: string, off: boolean) => HTMLElement} */
    (device, devices, machine, off) => deviceSelect(app, device, devices, machine, off),
  );
  const choices = shownChoices(app);
  const moreLayouts = steady(
    /** @type {(layouts: Layout[]) => HTMLSelectElement} */
    (all) => layoutSelect(app, all),
  );
  const tabs = h("div", { class: "wb-layouts" });
  const update = (/** @type {Changes} */ changes) => {
    if (!hasAny(changes, ...HEADER_CHANGES)) return;
    const { expr, device, devices, machine } = app.record;
    const more = moreLayouts(layouts);
    const isMore = layouts.some(({ name, isMore }) => isMore && name === app.view.mode);
    more.value = isMore ? app.view.mode : "";
    const parts = [
      h(
        "div",
        { class: "wb-title" },
        recordText(expr.text, "wb-expr"),
        expr.line !== null && lineButton(app, expr.line),
        h("bdi", {
          class: "wb-words wb-quiet",
          title: ["kernels", "copies"].map((word) => meaningOf(app.record, word)).join("\n"),
        }, app.record.headline),
      ),
      deviceField(device, devices, machineText(machine), !canAsk(app)),
      tabs,
      app.arrangements.shows("results") ? speedLine(app) : choices.el,
      arrangementButtons(app),
      pageTools(app),
    ];
    keepingFocus(el, () => {
      setChildren(tabs, [layoutTabs(app, layouts), more]);
      if (parts.includes(choices.el)) choices.update();
      setChildren(el, parts);
    });
  };
  return { el, update };
}

/** Buttons of the whole page.
 * @param {App} app */
const pageTools = (app) =>
  h(
    "div",
    { class: "wb-tools" },
    button(app, "Export", () => toggleExport(app), {
      key: "e",
      title: "the page, pictures, Markdown, Python, a link",
      name: "export",
    }),
    button(app, isFull() ? "leave full screen" : "full", () => toggleFull(app), {
      key: "F",
      title: isFull() ? "the page below its cell again" : "full screen",
      name: "full",
    }),
    button(app, "?", () => app.select({ help: !app.view.help, exporting: false }), {
      key: "?",
      title: "all words, letters and signs, and the keys",
      name: "help",
    }),
  );

const HEADER_CHANGES = [
  "record",
  "kernel",
  "variant",
  "mode",
  "live",
  "help",
  "line",
  "board",
  "columns",
  "pending",
  "full",
];

/** The selected kernel and variant, as selectors, and the button that times it, while Results are out
 * of sight.
 * @param {App} app */
function shownChoices(app) {
  const el = h("div", { class: "wb-choices" });
  /** @typedef {(rows: [number, string][]) => HTMLSelectElement} Choice */
  const kernelChoice = steady(
    /** @type {Choice} */
    (rows) => chooser("kernel", rows, null, (kernel) => app.select({ kernel })),
  );
  const variantChoice = steady(
    /** @type {Choice} */
    (rows) => chooser("variant", rows, null, (variant) => goTo(app, variant)),
  );
  const update = () => {
    const { kernel, variant } = app.view;
    const variants = listedVariants(app);
    const kernels = kernelChoice(
      app.record.kernels.map((row, i) => [i, `${i + 1}  ${row.title}`]),
    );
    const ofKernel = variantChoice(variants.map((i) => [i, brief(app, i)]));
    const { columns, mode } = app.view; // two programs may follow no selection
    const isFollowed = mode !== "side_by_side" || columns.some((column) => column.variant === null);
    const mayTime = isFollowed && !app.arrangements.isAlone && !app.record.elsewhere;
    const choices = [kernels, ...isFollowed ? [ofKernel] : [], ...mayTime ? [timeButton(app)] : []];
    setChildren(el, app.record.kernels.length ? choices : []);
    kernels.value = String(kernel);
    ofKernel.value = String(variant);
    const row = app.variant();
    const { name, timing } = row ?? {};
    const fault = row && faultText(row);
    ofKernel.classList.toggle("wb-bad", Boolean(fault));
    ofKernel.title = [name, fault, timing && timingText(timing)].filter(Boolean).join("  ");
  };
  return { el, update };
}

/** The regions that buttons fold: name, title, contents, key.
 * @type {[string, string, string, string][]} */
const REGIONS = [
  ["left", "Results", "kernels, results and lines", "["],
  ["aside", "", "", "\\"],
  ["right", "Code", "the code", "]"],
];

/** Buttons that fold regions of the layout, show the bars of panes, and show the layout as it was at
 * first.
 * @param {App} app */
function arrangementButtons(app) {
  const { arrangements } = app;
  const { layout, hasBars, isChanged } = arrangements;
  const folds = REGIONS.map(([name, title, has, key]) => {
    const isOpen = arrangements.isOpen(name);
    if (isOpen === null) return null;
    const own = name === "aside" ? layout?.aside : { title, has };
    return own &&
      foldButton(app, name, own.title, isOpen, `${isOpen ? "fold" : "show"} ${own.has}`, key);
  });
  return h(
    "div",
    { class: "wb-folds", role: "group", "aria-label": "panes" },
    ...folds,
    button(app, "Arrange", () => arrangements.change({ bars: !hasBars }), {
      pressed: hasBars,
      name: "arrange",
      title: "a bar over each pane: choose another, split, enlarge or close it",
    }),
    isChanged && button(app, "Reset", () => arrangements.reset(), {
      name: "reset-layout",
      title: "this layout as it was at first",
    }),
  );
}

/**
 * @param {App} app
 * @param {string} name
 * @param {string} title
 * @param {boolean} isOpen
 * @param {string} hint
 * @param {string} key */
function foldButton(app, name, title, isOpen, hint, key) {
  const el = button(app, title, () => app.arrangements.toggle(name), {
    key,
    title: hint,
    name: `fold-${name}`,
  });
  el.setAttribute("aria-expanded", String(isOpen));
  return el;
}

/** A variant in a line, with its time, or its fault: a name that is cut leaves room for the words
 * after it.
 * @param {App} app
 * @param {number} i */
function brief(app, i) {
  const row = app.record.variants[i];
  const { name, timing } = row;
  const fault = faultText(row) && (row.error ? "failed" : "WRONG");
  const words = fault || timing && briefTiming(timing);
  return words ? `${cut(name, MOST_NAME)}  ${words}` : name;
}

const MOST_NAME = 24; // characters of the name of a variant before its time

/**
 * @param {App} app
 * @param {string} device
 * @param {DeviceRow[]} devices
 * @param {string} machine
 * @param {boolean} off */
function deviceSelect(app, device, devices, machine, off) {
  const option = (/** @type {DeviceRow} */ d) =>
    h(
      "option",
      { value: d.name, selected: d.name === device, disabled: !d.available, title: d.how_to_get },
      deviceName(d),
    );
  /** @param {string} label @param {DeviceRow[]} rows */
  const group = (label, rows) => rows.length ? h("optgroup", { label }, ...rows.map(option)) : null;
  const isLocal = (/** @type {DeviceRow} */ d) => d.available && !d.elsewhere;
  const [local, others] = [true, false].map((here) => devices.filter((d) => isLocal(d) === here));
  const shown = others.find((d) => d.name === device);
  const more = others.length > (shown ? 1 : 0) &&
    h(
      "option",
      { value: MORE, title: "machines that are predicted, and what is missing here" },
      MORE,
    );
  const all = () => [
    ...local.map(option),
    group("not here: predicted", others.filter((d) => d.elsewhere)),
    group("missing here", others.filter((d) => !d.elsewhere)),
  ];
  const field = h(
    "select",
    {
      "aria-label": "device",
      "data-key": "device",
      disabled: off,
      onchange: ({ target }) => {
        if (target.value !== MORE) return chooseDevice(app, target);
        refill(target, ...all());
        openList(target);
      },
    },
    ...local.map(option),
    shown && group("not here: predicted", [shown]),
    more,
  );
  return h(
    "label",
    { class: "wb-field", title: `${machine}${off ? `\n${NEEDS_PYTHON}` : ""}` },
    field,
  );
}

const MORE = "more machines…";

/** Open the list of a selector, where the browser can.
 * @param {HTMLSelectElement} field */
function openList(field) {
  try {
    field.showPicker();
  } catch { /* only in answer to a click or a key */ }
}

/** Choose the device that a selector has.
 * @param {App} app
 * @param {HTMLSelectElement} field */
async function chooseDevice(app, field) {
  const { language } = app.view;
  const isFirst = language === firstLanguage(app.record);
  if (await act(app, "results", { do: "device", name: field.value })) {
    notify(app, `on ${app.record.device}`); // the notice was about the previous variant
    if (isFirst && app.view.language === language) app.select({ language: "" });
    if (isOfOtherDevice(app.record, app.variant())) app.select({ variant: null });
  }
  field.value = app.record.device; // the old value, if Python refuses the new one
}

/** AMD EPYC, 2 cores, L1 32 KiB, L2 1 MiB
 * @param {MachineRow} machine */
function machineText({ cpu, cores, kind = "core", caches }) {
  return [
    cpu,
    plural(cores, kind),
    ...caches.map(([name, bytes]) => `${name} ${bytesText(bytes)}`),
  ].join(", ");
}

/** @param {DeviceRow} device */
const deviceName = (
  device,
) => (device.emulator && !device.elsewhere ? `EMULATOR (${device.name})` : device.name);

/** plain 21.0 ms ± 2.0% 6% → auto 1.90 ms ± 1.1% 70% of peak · numpy 1.50 ms ± 3.0%: of the
 * selected kernel.
 * @param {App} app */
function speedLine(app) {
  const ofKernel = app.variantsOf(app.view.kernel).map((i) => app.record.variants[i]);
  const timed = ["plain", "auto"]
    .flatMap((name) => realTimes(ofKernel.filter((v) => v.name === name)).slice(0, 1));
  const peaks = timed.map(({ timing }) => timing.share?.of);
  const parts = timed.map(({ name, timing }, i) => {
    const part = speed(name, timing);
    if (!timing.share) return part;
    part.append(` ${percent(timing.share.fraction)}`);
    const isRepeated = peaks.slice(i + 1).includes(peaks[i]); // once, at the end
    if (!isRepeated) part.append(h("span", { class: "wb-quiet wb-peak" }, ` of ${peaks[i]}`));
    return part;
  });
  const apart = timed.length === 2 && !inOneRun(timed[0].timing, timed[1].timing);
  const arrow = h("span", {
    class: "wb-quiet",
    title: apart ? "timed separately: the machine may have been slower or faster" : null,
  }, apart ? `${APART}→` : "→");
  const count = app.record.kernels.length; // a baseline computes what all of them do
  const others = count > 1
    ? []
    : realTimes(app.record.baselines).map(({ name, timing }) => speed(name, timing));
  const el = h("div", { class: "wb-speed" });
  parts.forEach((part, i) => el.append(i ? arrow : "", part));
  others.forEach((part) => el.append(h("span", { class: "wb-quiet" }, "·"), part));
  el.title = `${[...el.childNodes].map((part) => part.textContent).join(" ")}\n${SPEED}`;
  return el;
}

const SPEED =
  "median time of this kernel, and half the distance between the quartiles; share of the roofline's peak for as many threads";

/** The names and times of the variants that were timed on the device itself.
 * @param {{name: string, timing: TimingRow | null}[]} rows */
const realTimes = (rows) =>
  rows.flatMap(({ name, timing }) => real(timing) ? [{ name, timing }] : []);

/**
 * @param {string} name
 * @param {TimingRow} timing */
function speed(name, timing) {
  return h(
    "span",
    { title: (timing.doubts ?? []).join("; ") || null },
    recordText(name, "wb-quiet", 24),
    " ",
    h(isCertain(timing) ? "b" : "i", {}, secondsText(timing.median_s)),
    h("span", { class: "wb-quiet" }, ` ${spreadText(timing)}`),
  );
}

/** The layouts that have a tab; the key of each is its number.
 * @param {Layout[]} layouts */
export const tabbed = (layouts) => layouts.filter(({ isMore }) => !isMore);

/**
 * @param {App} app
 * @param {Layout[]} layouts */
function layoutTabs(app, layouts) {
  const tabs = tabbed(layouts).map(({ name, title, about }, i) =>
    tab(
      title,
      app.view.mode === name,
      () => app.select({ mode: name }),
      `mode-${name}`,
      [
        meaningOf(app.record, title) || meaningOf(app.record, title.toLowerCase()) || about,
        `key ${i}`,
      ].filter(Boolean).join(" · "),
    )
  );
  return walkable(
    "tablist",
    "layout",
    { class: "wb-tabs wb-modes", "aria-orientation": "horizontal" },
    ...tabs,
  );
}

/** The layouts without a tab.
 * @param {App} app
 * @param {Layout[]} layouts */
function layoutSelect(app, layouts) {
  const more = layouts.filter(({ isMore }) => isMore);
  return h(
    "select",
    {
      class: "wb-more-layouts",
      "aria-label": "more layouts",
      "data-key": "more-layouts",
      title: more.map(({ title, about }) => `${title}: ${about}`).join("\n"),
      onchange: ({ target }) => target.value && app.select({ mode: target.value }),
    },
    h("option", { value: "" }, "more…"),
    ...more.map(({ name, title, about }) => h("option", { value: name, title: about }, title)),
  );
}

// Notices: progress, and a copied text.

const CHANGES = ["status", "notice", "failure", "board", "mode"];

/** Notices, beside the passes: they cover nothing.
 * @param {App} app */
export function notices(app) {
  const el = h("div", { class: "wb-notices", "aria-live": "polite" });
  let shown = app.record.restoring;
  const update = (/** @type {Changes} */ changes) => {
    const isRead = app.record.restoring !== shown;
    if (!hasAny(changes, ...CHANGES) && !isRead) return;
    shown = app.record.restoring;
    refill(
      el,
      app.status ? progress(app, app.status) : restoring(app),
      app.notice &&
        h("div", { class: "wb-notice" }, h("span", { title: app.notice }, app.notice)),
      // an error must be seen even if its pane is folded
      ...["results", "kernels"].filter((where) => !app.arrangements.shows(where))
        .map((where) => failure(app, where)),
    );
  };
  return { el, update };
}

/** How many saved variants are listed again, until all are.
 * @param {App} app */
function restoring(app) {
  const { restoring: row } = app.record;
  if (!row || !canAsk(app)) return null;
  const are = row.total === 1 ? "is" : "are";
  return h(
    "div",
    { class: "wb-notice", "data-term": "saved variants" },
    h(
      "span",
      {},
      `${plural(row.total, "saved variant")} ${are} read again: ${row.done} of ${row.total}`,
    ),
    h("progress", { max: row.total, value: row.done, "aria-label": "saved variants" }),
  );
}

/** The task that goes on after a stop: the page shows another device already. */
const CHOSEN = "device";

/**
 * @param {App} app
 * @param {ProgressRow} status */
function progress(app, { task, done, total, text }) {
  return h(
    "div",
    { class: "wb-notice wb-progress", "data-term": "progress" },
    h("b", {}, recordText((task ?? "").replaceAll("_", " "))),
    // it stands before elements that change its width, so that it stays in place
    task !== CHOSEN && button(app, "Stop", () => stop(app), { python: true }),
    h("progress", { max: total || 1, value: total ? done : null, "aria-label": task }),
    recordText(
      [task === CHOSEN && `${done + 1} of ${total}:`, text || (total ? `${done} of ${total}` : "")]
        .filter(Boolean).join(" "),
    ),
  );
}
