// The top: what is explored and how fast it is, the device, the modes. And the words that come and
// go: progress, that Python does not answer, what was copied.

function header(app, root) {
  const el = h("header", { class: "wb-header" });
  const device_field = steady((...values) => device_select(app, ...values));
  app.toggle_full = () => {
    if (document.fullscreenElement) document.exitFullscreen();
    else
      root
        .requestFullscreen?.()
        .catch(() => say(app, "the browser does not allow full screen here"));
  };
  const update = (changes) => {
    if (!has_any(changes, "record", "kernel", "mode", "live", "help", "line")) return;
    const { expr, device, devices, machine } = app.record;
    const parts = [
      h(
        "div",
        { class: "wb-title" },
        words(expr.text, "wb-expr"),
        expr.line !== null && line_button(app, expr.line),
        words(app.record.headline, "wb-quiet"),
      ),
      device_field(device, devices, machine_text(machine), !can_ask(app)),
      speed_line(app),
      mode_tabs(app),
      h(
        "div",
        { class: "wb-tools" },
        button(app, "full", app.toggle_full, { key: "F", title: "full screen", name: "full" }),
        button(app, "?", () => app.select({ help: !app.view.help }), {
          key: "?",
          title: "keys",
          name: "help",
        }),
      ),
    ];
    keeping_focus(el, () => set_children(el, parts));
  };
  return { el, update };
}

const has_any = (changes, ...names) => names.some((name) => changes.has(name));

/** Buttons of the user's line that made a node, and of the lines in functions that it called. */
function node_lines(app, n) {
  const { line, inner } = app.record.nodes;
  const called = inner[n].flatMap((at) => [h("span", { class: "wb-quiet" }, "›"), line_button(app, at)]);
  return line[n] < 0 ? [] : [line_button(app, line[n]), ...called];
}

/** A notebook line: where it is; pressing it pins all that comes from it. */
function line_button(app, line) {
  const { where, text } = app.record.lines[line];
  const link = { by: "line", axes: [], nodes: [], lines: [line] };
  const pinned_now = app.view.line === line;
  return linked(
    h(
      "button",
      {
        class: "wb-where",
        type: "button",
        title: text.slice(0, 1000),
        "data-key": `line-${line}`,
        "aria-pressed": String(pinned_now),
        onclick: () => app.select({ line: app.view.line === line ? null : line }),
      },
      words(where),
    ),
    link,
  );
}

function device_select(app, device, devices, machine, off) {
  const options = devices.map((d) =>
    h(
      "option",
      { value: d.name, selected: d.name === device, disabled: !d.available, title: d.how_to_get },
      device_name(d) + (d.available ? "" : " (missing)"),
    ),
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

/** AMD EPYC, 2 cores, L1 32 KiB, L2 1 MiB */
function machine_text({ cpu, cores, caches }) {
  return [
    cpu,
    plural(cores, "core"),
    ...caches.map(([name, bytes]) => `${name} ${bytes_text(bytes)}`),
  ].join(", ");
}

const device_name = (device) => (device.emulator ? `EMULATOR (${device.name})` : device.name);

/** plain 21.0 ms ± 2.0% 6% → auto 1.90 ms ± 1.1% 70% of peak · numpy 1.50 ms ± 3.0%: of the kernel
 * that is shown. */
function speed_line(app) {
  const { machine } = app.record;
  const of_kernel = app.variants_of(app.view.kernel).map((i) => app.record.variants[i]);
  const timed = ["plain", "auto"]
    .map((name) => of_kernel.find((v) => v.name === name && real(v.timing)))
    .filter(Boolean);
  const shares = timed.map(({ timing }) => share_of(machine, timing));
  const peaks = timed.map(({ timing }, i) => shares[i] !== null && peak_name(machine, timing));
  const parts = timed.map(({ name, timing }, i) => {
    const part = speed(name, timing);
    if (shares[i] === null) return part;
    part.append(` ${percent(shares[i])}`);
    const is_said = peaks.slice(i + 1).includes(peaks[i]); // once, at the end
    if (!is_said) part.append(h("span", { class: "wb-quiet" }, ` of ${peaks[i]}`));
    return part;
  });
  const apart = timed.length === 2 && !in_one_run(timed[0].timing, timed[1].timing);
  const arrow = h("span", { class: "wb-quiet", title: apart ? "timed apart: the machine may have been slower or faster" : null }, apart ? "~→" : "→");
  const others = app.record.baselines
    .filter((b) => real(b.timing))
    .map((b) => speed(b.name, b.timing));
  const el = h("div", {
    class: "wb-speed",
    title: "median time of this kernel, and half the distance between the quartiles; share of the roofline's peak for as many threads",
  });
  parts.forEach((part, i) => el.append(i ? arrow : "", part));
  others.forEach((part) => el.append(h("span", { class: "wb-quiet" }, "·"), part));
  return el;
}

function speed(name, timing) {
  return h(
    "span",
    {},
    words(name, "wb-quiet", 24),
    " ",
    h("b", {}, seconds_text(timing.median_s)),
    h("span", { class: "wb-quiet" }, ` ${spread_text(timing)}`),
  );
}

function mode_tabs(app) {
  const tabs = Object.entries(MODES).map(([name, { title }], i) =>
    tab(
      title,
      app.view.mode === name,
      () => app.select({ mode: name, pane: "mode" }),
      `mode-${name}`,
      `key ${i + 1}`,
    ),
  );
  return walkable(
    "tablist",
    "mode",
    { class: "wb-tabs wb-modes", "aria-orientation": "horizontal" },
    ...tabs,
  );
}

function tab(title, selected, act_on, key, hint = "") {
  return h(
    "button",
    {
      class: "wb-tab",
      type: "button",
      role: "tab",
      "aria-selected": String(selected),
      "data-item": "",
      "data-key": key,
      title: hint,
      onclick: act_on,
    },
    title,
  );
}

/** Where there is little room: kernel and variant as a line, and one pane at a time. */
function pane_tabs(app) {
  const el = h("nav", { class: "wb-narrow", "aria-label": "panes" });
  const kernel_choice = steady((rows, chosen) => chooser("kernel", rows, chosen, (kernel) => app.select({ kernel })));
  const variant_choice = steady((rows, chosen) => chooser("variant", rows, chosen, (variant) => go_to(app, variant)));
  const update = (changes) => {
    if (!has_any(changes, "record", "kernel", "variant", "mode", "pane")) return;
    const titles = { results: "Results", mode: MODES[app.view.mode].title, code: "Code" };
    const tabs = Object.entries(titles).map(([pane, title]) =>
      tab(title, app.view.pane === pane, () => app.select({ pane }), `pane-${pane}`),
    );
    const parts = [
      walkable("tablist", "pane", { class: "wb-tabs", "aria-orientation": "horizontal" }, ...tabs),
      kernel_choice(app.record.kernels.map((k, i) => [i, `${i + 1}  ${k.title}`]), app.view.kernel),
      variant_choice(app.variants_of(app.view.kernel).map((i) => [i, brief(app, i)]), app.view.variant),
    ];
    keeping_focus(el, () => set_children(el, parts));
  };
  return { el, update };
}

function brief(app, i) {
  const { name, timing } = app.record.variants[i];
  return timing
    ? `${name}  ${seconds_text(timing.median_s)} ${spread_text(timing)}${timing.emulator ? " EMULATOR" : ""}`
    : name;
}

function chooser(label, rows, chosen, act_on) {
  return h(
    "select",
    { "aria-label": label, "data-key": label, onchange: (e) => act_on(Number(e.target.value)) },
    ...rows.map(([value, text]) =>
      h("option", { value, selected: value === chosen }, text.slice(0, 80)),
    ),
  );
}

/** What comes and goes, in the free part of the strip's heading so that nothing shifts. */
function notices(app) {
  const el = h("div", { class: "wb-notices", "aria-live": "polite" });
  const update = (changes) => {
    if (!has_any(changes, "live", "status", "said")) return;
    refill(
      el,
      app.status && progress(app),
      app.live === "silent" &&
        h(
          "div",
          { class: "wb-notice wb-silent" },
          "Python does not answer (busy; if restarted, run the cell again): looking still works.",
          button(app, "ask again", () => ask_again(app)),
        ),
      app.said && h("div", { class: "wb-notice" }, app.said),
    );
  };
  return { el, update };
}

/** Ask whether Python is there. One that was restarted knows nothing of this page, and is silent. */
function ask_again(app) {
  app.ping();
  say(app, "asking … after a restart only running the cell again helps");
}

function progress(app) {
  const { task, done, total, text } = app.status;
  return h(
    "div",
    { class: "wb-notice" },
    h("b", {}, words(task)),
    h("progress", { max: total || 1, value: total ? done : null, "aria-label": task }),
    words(text || (total ? `${done} of ${total}` : "")),
    button(app, "Stop", () => stop(app), { python: true }),
  );
}
