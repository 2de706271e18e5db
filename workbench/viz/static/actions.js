// What can be done, by button or key alike. An error is kept under the pane it belongs to.

const NEEDS_PYTHON = "needs the Python session";

/** Ask Python; go to the variant it made, unless the reader went to another one meanwhile; keep
 * what went wrong for the pane named `where`. */
async function act(app, where, request) {
  fail_at(app, where, null);
  if (where === "rewrites") app.found = null; // the answer to what was asked before
  const { variant } = app.view;
  try {
    const reply = await app.ask(request);
    const made = reply.result?.variant;
    if (app.record.variants[made] && app.view.variant === variant) go_to(app, made);
    return reply;
  } catch (error) {
    if (error === OFFLINE) say(app, NEEDS_PYTHON);
    else fail_at(app, where, error);
    return null;
  }
}

function fail_at(app, where, error) {
  app.failures ??= {};
  if (!error && !app.failures[where]) return;
  app.failures[where] = error;
  app.changed("failure");
}

const can_ask = (app) => app.live === "live" || app.live === "unknown";

/** Show a variant, with its kernel; remember the way back down. */
function go_to(app, variant) {
  const { kernel, parent } = app.record.variants[variant];
  if (parent !== null) app.redo.set(parent, variant);
  app.select({ kernel, variant });
}

function undo(app) {
  const parent = app.variant()?.parent;
  if (parent === null || parent === undefined) return;
  app.redo.set(parent, app.view.variant);
  go_to(app, parent);
}

function redo(app) {
  const here = app.view.variant;
  const children = app.record.variants
    .map((v, i) => i)
    .filter((i) => app.record.variants[i].parent === here);
  const known = app.redo.get(here); // in another plan it may be none of them
  const next = children.includes(known) ? known : children.at(-1);
  if (next !== undefined) go_to(app, next);
}

const apply_opt = (app, opt) =>
  opt && act(app, "offers", { do: "apply", variant: app.view.variant, opt });

const measure = (app) => {
  const { variant, cold } = app.view;
  const variants = [variant, pinned(app)].filter(is_new);
  return told(app, variant, { do: "measure", variants, cold }, ({ timing }) => timing && timing_text(app.record.machine, timing));
};
const is_new = (value, place, all) => all.indexOf(value) === place;

const check = (app) => {
  const { variant } = app.view;
  return told(app, variant, { do: "check", variant }, (row) => row.check && checked_text(row.check));
};

const checked_text = ({ ok, text }) => `${ok ? "✓" : "✗"} ${text}`;

/** Ask, and say at once what was found: the list of results may be out of sight. */
async function told(app, variant, request, outcome) {
  if (variant === null) return null; // nothing to compute
  const reply = await act(app, "results", request);
  const row = app.record.variants[variant];
  const found = reply && row && outcome(row);
  if (found) say(app, `${row.name.slice(0, 40)}: ${found}`, 6000);
  return reply;
}

const search = (app) =>
  act(app, "results", { do: "search", variant: app.view.variant, budget_s: 10 });

const stop = (app) => act(app, "results", { do: "stop" });

/** The variant that ratios and diffs refer to: the pinned one of this kernel, else the plain one. */
function pinned(app) {
  const chosen = app.record.variants[app.record.pinned];
  return chosen && chosen.kernel === app.view.kernel
    ? app.record.pinned
    : (app.kernel()?.root ?? null);
}

/** Pin what is shown. It works offline too: it is only a point of reference. */
function pin(app) {
  const { variant } = app.view;
  if (variant === null) return;
  app.patch({ set: [[["pinned"], variant]] });
  if (can_ask(app)) act(app, "results", { do: "pin", variant });
}

const toggle_diff = (app) => app.select({ diff: !app.view.diff });

/** Copy text; say in the notice line that it was copied, or why not. */
async function copy(app, text, what) {
  try {
    await navigator.clipboard.writeText(text);
    say(app, `copied ${what}`);
  } catch {
    say(app, copied_by_hand(text) ? `copied ${what}` : "the browser does not let the page copy");
  }
}

/** Pages from disk have no clipboard interface; selecting and copying works there. */
function copied_by_hand(text) {
  const area = h("textarea", { style: "position:fixed;opacity:0" });
  const before = document.activeElement;
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  before?.focus({ preventScroll: true });
  return done;
}

const copy_python = (app) =>
  app.variant() && copy(app, app.variant().python, "the kernel as Python");

function say(app, text, for_ms = 2500) {
  app.said = text;
  app.changed("said");
  clearTimeout(app.said_until);
  app.said_until = setTimeout(() => {
    app.said = "";
    app.changed("said");
  }, for_ms);
}

// parts of panes that several use

/** A button; one that needs Python is disabled, and says so, where there is none. */
function button(
  app,
  text,
  act_on,
  { python = false, key = "", pressed = null, title = "", name = "" } = {},
) {
  const off = python && !can_ask(app);
  const hint = [off ? NEEDS_PYTHON : title, key && !off ? `key ${key}` : ""]
    .filter(Boolean)
    .join(" · ");
  const pressed_as = pressed === null ? null : String(pressed);
  return h(
    "button",
    {
      class: "wb-button",
      type: "button",
      "aria-disabled": off ? "true" : null,
      title: hint,
      "aria-pressed": pressed_as,
      "data-key": name || text,
      onclick: () => (off ? say(app, NEEDS_PYTHON) : act_on()),
    },
    text,
  );
}

/** An error as what / because / try. */
function error_box(error, close = null) {
  if (!error) return null;
  return h(
    "div",
    { class: "wb-error", role: "alert" },
    h("b", {}, words(error.what || "it failed", "", 1000)),
    error.because && h("div", {}, h("i", {}, "because "), words(error.because, is_as_told(error.because) ? "wb-as-told" : "", 3000)),
    error.try && h("div", {}, h("i", {}, "try "), words(error.try, "", 1000)),
    close &&
      h(
        "button",
        { class: "wb-button", type: "button", "data-key": "close-error", onclick: close },
        "dismiss",
      ),
  );
}

const failure = (app, where) => error_box(app.failures?.[where], () => fail_at(app, where, null));

/** A compiler points with a caret at a column of the line above: every letter as wide as another. */
const is_as_told = (text) => /\n\s*[~^]+\s*$/m.test(text);

/** A heading of a pane, with what belongs to its right. */
const heading = (text, ...more) => h("div", { class: "wb-heading" }, h("h3", {}, text), ...more);
