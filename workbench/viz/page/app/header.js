// The top: what is explored and how fast it is, the device, the modes. And the words that come and
// go: progress, that Python does not answer, what was copied.

import { h, keepingFocus, setChildren, steady, words } from "../base/elements.js";
import { walkable } from "../base/lists.js";
import { bytesText, plural, secondsText } from "../base/text.js";
import { act, canAsk, NEEDS_PYTHON, toggleFull } from "./actions.js";
import { button, hasAny, lineButton, tab } from "./pieces.js";
import { inOneRun, peakName, percent, real, shareOf, spreadText } from "./timing.js";

/** @import { DeviceRow, MachineRow, TimingRow } from "../record.d.ts" */
/** @import { Changes, Mode } from "../types.d.ts" */
/** @import { App } from "./store.js" */

/**
 * @param {App} app
 * @param {Mode[]} modes */
export function header(app, modes) {
  const el = h("header", { class: "wb-header" });
  const deviceField = steady(
    /** @type {(device: string, devices: DeviceRow[], machine: string, off: boolean) => HTMLElement} */
    (device, devices, machine, off) => deviceSelect(app, device, devices, machine, off),
  );
  const update = (/** @type {Changes} */ changes) => {
    if (!hasAny(changes, "record", "kernel", "mode", "live", "help", "line")) return;
    const { expr, device, devices, machine } = app.record;
    const parts = [
      h(
        "div",
        { class: "wb-title" },
        words(expr.text, "wb-expr"),
        expr.line !== null && lineButton(app, expr.line),
        words(app.record.headline, "wb-quiet"),
      ),
      deviceField(device, devices, machineText(machine), !canAsk(app)),
      speedLine(app),
      modeTabs(app, modes),
      h(
        "div",
        { class: "wb-tools" },
        button(app, "full", () => toggleFull(app), {
          key: "F",
          title: "full screen",
          name: "full",
        }),
        button(app, "?", () => app.select({ help: !app.view.help }), {
          key: "?",
          title: "keys",
          name: "help",
        }),
      ),
    ];
    keepingFocus(el, () => setChildren(el, parts));
  };
  return { el, update };
}

/**
 * @param {App} app
 * @param {string} device
 * @param {DeviceRow[]} devices
 * @param {string} machine
 * @param {boolean} off */
function deviceSelect(app, device, devices, machine, off) {
  const options = devices.map((d) =>
    h(
      "option",
      { value: d.name, selected: d.name === device, disabled: !d.available, title: d.how_to_get },
      deviceName(d) + (d.available ? "" : " (missing)"),
    )
  );
  return h(
    "label",
    {
      class: "wb-field",
      title: `${machine}${off ? `\n${NEEDS_PYTHON}` : ""}`,
    },
    h(
      "select",
      {
        "aria-label": "device",
        "data-key": "device",
        disabled: off,
        onchange: async ({ target }) => {
          await act(app, "results", { do: "device", name: target.value });
          target.value = app.record.device; // as it was, where it cannot be
        },
      },
      ...options,
    ),
  );
}

/** AMD EPYC, 2 cores, L1 32 KiB, L2 1 MiB
 * @param {MachineRow} machine */
function machineText({ cpu, cores, caches }) {
  return [
    cpu,
    plural(cores, "core"),
    ...caches.map(([name, bytes]) => `${name} ${bytesText(bytes)}`),
  ].join(", ");
}

/** @param {DeviceRow} device */
const deviceName = (device) => (device.emulator ? `EMULATOR (${device.name})` : device.name);

/** plain 21.0 ms ± 2.0% 6% → auto 1.90 ms ± 1.1% 70% of peak · numpy 1.50 ms ± 3.0%: of the kernel
 * that is shown.
 * @param {App} app */
function speedLine(app) {
  const { machine } = app.record;
  const ofKernel = app.variantsOf(app.view.kernel).map((i) => app.record.variants[i]);
  const timed = ["plain", "auto"]
    .flatMap((name) => realTimes(ofKernel.filter((v) => v.name === name)).slice(0, 1));
  const shares = timed.map(({ timing }) => shareOf(machine, timing));
  const peaks = timed.map(({ timing }, i) => shares[i] !== null && peakName(machine, timing));
  const parts = timed.map(({ name, timing }, i) => {
    const [part, share] = [speed(name, timing), shares[i]];
    if (share === null) return part;
    part.append(` ${percent(share)}`);
    const isRepeated = peaks.slice(i + 1).includes(peaks[i]); // once, at the end
    if (!isRepeated) part.append(h("span", { class: "wb-quiet" }, ` of ${peaks[i]}`));
    return part;
  });
  const apart = timed.length === 2 && !inOneRun(timed[0].timing, timed[1].timing);
  const arrow = h("span", {
    class: "wb-quiet",
    title: apart ? "timed separately: the machine may have been slower or faster" : null,
  }, apart ? "~→" : "→");
  const others = realTimes(app.record.baselines).map(({ name, timing }) => speed(name, timing));
  const el = h("div", {
    class: "wb-speed",
    title:
      "median time of this kernel, and half the distance between the quartiles; share of the roofline's peak for as many threads",
  });
  parts.forEach((part, i) => el.append(i ? arrow : "", part));
  others.forEach((part) => el.append(h("span", { class: "wb-quiet" }, "·"), part));
  return el;
}

/** The names and times of what was timed on the machine itself.
 * @param {{name: string, timing: TimingRow | null}[]} rows */
const realTimes = (rows) =>
  rows.flatMap(({ name, timing }) => real(timing) ? [{ name, timing }] : []);

/**
 * @param {string} name
 * @param {TimingRow} timing */
function speed(name, timing) {
  return h(
    "span",
    {},
    words(name, "wb-quiet", 24),
    " ",
    h("b", {}, secondsText(timing.median_s)),
    h("span", { class: "wb-quiet" }, ` ${spreadText(timing)}`),
  );
}

/**
 * @param {App} app
 * @param {Mode[]} modes */
function modeTabs(app, modes) {
  const tabs = modes.map(({ name, title }, i) =>
    tab(
      title,
      app.view.mode === name,
      () => app.select({ mode: name, pane: "mode" }),
      `mode-${name}`,
      `key ${i + 1}`,
    )
  );
  return walkable(
    "tablist",
    "mode",
    { class: "wb-tabs wb-modes", "aria-orientation": "horizontal" },
    ...tabs,
  );
}
