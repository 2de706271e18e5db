// Keys: they act only while the focus is inside the widget, and what is typed inside never
// reaches the page around it. Tab is left alone, so it leads on and out.

const KEYS = [
  ["j k, arrows", "walk in a list; Enter picks", null],
  ["h l", "previous, next pass", null],
  ["1 2 3", "Tune, Rewrites, Plan", null],
  ["/", "search", null],
  ["a", "apply the marked opt", (app) => apply_opt(app, app.view.opt)],
  ["u", "undo: to the variant this one came from", undo],
  ["U", "redo", redo],
  ["t", "time this variant and the pinned one, in turns", measure],
  ["c", "check against the reference interpreter", check],
  ["p", "pin: ratios and diffs refer to this variant", pin],
  ["d", "diff to the pinned variant", toggle_diff],
  ["y", "copy what is shown as Python", copy_python],
  ["f", "fit the graph", null],
  ["g", "Rewrites: the whole graph, or what is near the change", null],
  ["F", "full screen", (app) => app.toggle_full()],
  ["Esc", "unpin, out of full screen, then out of the widget", null],
  ["?", "this sheet", (app) => app.select({ help: !app.view.help })],
];
const ACT_OF = new Map(
  KEYS.filter(([, , act_on]) => act_on).map(([key, , act_on]) => [key, act_on]),
);
const MODE_KEYS = { 1: "tune", 2: "rewrites", 3: "plan" };
const STEPS = {
  j: 1,
  ArrowDown: 1,
  k: -1,
  ArrowUp: -1,
  Home: -Infinity,
  End: Infinity,
  PageDown: 10,
  PageUp: -10,
};
const LETTERS = ["j", "k"];
const ACROSS = { ArrowRight: 1, ArrowLeft: -1 };

function listen_keys(app, root, middle) {
  const pressed = (event) => {
    event.stopPropagation();
    if (event.ctrlKey || event.metaKey || event.altKey || event.key === "Tab") return;
    if (answer_key(app, root, middle, event)) event.preventDefault();
  };
  const quiet = (event) => event.stopPropagation();
  // JupyterLab asks the focused element itself whether its shortcuts are wanted
  const focused = (event) => event.target.setAttribute("data-lm-suppress-shortcuts", "true");
  root.setAttribute("data-lm-suppress-shortcuts", "true");
  root.addEventListener("keydown", pressed);
  for (const kind of ["keyup", "keypress"]) root.addEventListener(kind, quiet);
  root.addEventListener("focusin", focused);
}

/** Do what a key asks for; return whether it asked for anything. */
function answer_key(app, root, middle, event) {
  const { key, target } = event;
  if (key === "Escape") return escape_key(app, root, target);
  if (target.closest("input, textarea, select, [contenteditable]")) return false;
  const mode = middle.current();
  const own = mode?.keys?.[key];
  if (own && own(event) !== false) return true;
  if (walk(target, key)) return true;
  if (key in MODE_KEYS) return (go_to_mode(app, root, middle, MODE_KEYS[key], target), true);
  if (ACT_OF.has(key)) return (ACT_OF.get(key)(app), true);
  if (key === "h" || key === "l") return (step_pass(app, key === "l" ? 1 : -1), true);
  if (target === root && (key in STEPS || key in ACROSS)) return (mode?.focus(), true);
  if (LETTERS.includes(key) && is_across(target)) return (mode?.focus(), true);
  // letters do nothing elsewhere on the page; Enter and space work buttons by themselves
  return key === "/" || key === "f";
}

/** Show a mode; what walks a list walks its lists from now on. */
function go_to_mode(app, root, middle, mode, target) {
  app.select({ mode, pane: "mode" });
  if (target.closest("[data-walk]") && !middle.el.contains(target)) root.focus();
}

/** Whether an element is in a list that lies: tabs and passes. Letters walk those that stand. */
const is_across = (target) =>
  target.closest("[data-walk]")?.getAttribute("aria-orientation") === "horizontal";

/** Esc: out of a field, then the sheet away, then nothing pinned, then out of the widget. */
function escape_key(app, root, target) {
  if (target.closest("input, textarea, select")) root.focus();
  else if (app.view.help) app.select({ help: false });
  else if (app.view.picked || app.view.code || app.view.opt) app.select({ ...NOTHING, opt: null });
  else if (document.fullscreenElement === root) document.exitFullscreen();
  else if (target !== root) root.focus();
  else root.blur();
  return true;
}

/** Move the focus inside the list that has it. */
function walk(target, key) {
  const list = target.closest("[data-walk]");
  const item = target.closest("[data-item]");
  if (!list || !item) return false;
  if ((key === "Enter" || key === " ") && target === item) return (item.click(), true);
  const across = is_across(target);
  if (across && LETTERS.includes(key)) return false;
  const step = STEPS[key] ?? (across ? ACROSS[key] : undefined);
  if (step === undefined) return false;
  const items = [...list.querySelectorAll("[data-item]")].filter((i) => i.offsetParent);
  const place = Math.max(0, Math.min(items.length - 1, items.indexOf(item) + step));
  focus_item(list, items[place]);
  return true;
}

function focus_item(list, item) {
  if (!item) return;
  rove(list, item);
  item.focus({ preventScroll: true });
  item.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function help_pane(app) {
  const el = h("div", { class: "wb-help-place" });
  const update = (changes) => changes.has("help") && refill(el, app.view.help && help_sheet(app));
  return { el, update };
}

function help_sheet(app) {
  const rows = KEYS.map(([key, does]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, does)]);
  return h(
    "div",
    { class: "wb-help", role: "dialog", "aria-label": "keys" },
    heading(
      "KEYS",
      button(app, "close", () => app.select({ help: false }), { key: "Esc" }),
    ),
    h(
      "p",
      {},
      "They act while the workbench has its ring; JupyterLab's own (Ctrl+B, Ctrl+S, ..) wait until it is left: Esc or a click outside. Ctrl+wheel zooms a graph; a plain wheel scrolls the page.",
    ),
    h("dl", {}, ...rows.flat()),
  );
}
