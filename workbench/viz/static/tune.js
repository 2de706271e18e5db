// Tune: the loop nest that opts act on, and what can be done next.

function mode_tune(app) {
  const state = { find: "", op: null, all: false, refused: false, pasted: "", asked: new WeakMap() };
  const find = search_field(app, state);
  const choice = h("span", { class: "wb-switch", role: "group", "aria-label": "opts" });
  const list = offers_pane(app, state);
  const top = h("div", { class: "wb-pane wb-nest-pane" });
  const next = h("div", { class: "wb-pane wb-next-pane" }, heading("NEXT", find, choice), list.el);
  const pasting = h("div", { class: "wb-foot" });
  const tried = tried_pane(app);
  const el = h("div", { class: "wb-tune" }, top, tried.el, next, pasting);

  const update = (changes) => {
    const variant = app.variant();
    const renewed = has_any(changes, "record", "kernel", "variant");
    if (renewed || has_any(changes, "axis", "node", "failure")) refill(top, ...nest_parts(app, variant));
    if (renewed || has_any(changes, "opt", "live", "pending", "offers", "failure")) {
      find.hidden = !variant || variant.offers.length + variant.refused.length === 0;
      refill(choice, ...next_choice(app, variant, state));
      list.update(variant);
    }
    if (renewed) tried.update();
    if (has_any(changes, "live", "variant", "pasted")) {
      pasting.hidden = !variant;
      refill(pasting, variant && paste_box(app, state));
    }
    if (renewed || changes.has("live")) ask_for_offers(app, variant, state);
  };
  const focus = () =>
    focus_item(
      top,
      top.querySelector('[data-item][aria-selected="true"]') || top.querySelector("[data-item]"),
    );
  return { el, update, focus, keys: { "/": () => find.focus() } };
}

function search_field(app, state) {
  const field = h("input", {
    class: "wb-input wb-find",
    type: "search",
    placeholder: "search opts",
    "aria-label": "search opts",
    title: "key /",
    oninput: () => ((state.find = field.value), app.changed("offers")),
  });
  return field;
}

function nest_parts(app, variant) {
  if (!variant) return [heading("LOOPS"), h("p", { class: "wb-quiet" }, app.record.nothing)];
  const legend = "stride | bytes one run of the loop touches, and the cache that holds them";
  return [
    heading("LOOPS", h("span", { class: "wb-quiet" }, legend)),
    verdict(app, variant),
    error_box(variant.error),
    axis_bars(app, variant),
    loop_table(app, variant),
  ];
}

/** What the results say of this variant, where there is no room for them beside the loops. */
function verdict(app, { name, timing, check }) {
  return h(
    "div",
    { class: "wb-verdict" },
    failure(app, "results"),
    (timing || check) &&
      h(
        "p",
        {},
        words(name, "", 40),
        timing && h("b", { title: timing_text(app.record.machine, timing) }, ` ${seconds_text(timing.median_s)} ${spread_text(timing)}${timing.emulator ? " EMULATOR" : ""}`),
        check && h("span", { class: check.ok ? "wb-good" : "wb-bad" }, " ", words(checked_text(check), "", 400)),
      ),
  );
}

/** How many opts are possible; what is not, and why, takes the place of the list. */
function next_choice(app, variant, state) {
  const choice = (refused, n, text) =>
    n > 0 &&
    button(app, `${n} ${text}`, () => ((state.refused = refused), app.changed("offers")), {
      pressed: state.refused === refused,
      name: `refused-${refused}`,
    });
  if (!variant) return [];
  return [
    choice(false, variant.offers.length, "possible"),
    choice(true, variant.refused.length, "not possible: why"),
  ];
}

/** Python is told which variant is looked at: it lists what can be done, and measures some. Again
 * where the device has changed, and nothing is known of it. */
function ask_for_offers(app, variant, state) {
  const { device } = app.record;
  const looked_at = `${device} ${app.view.variant}`;
  if (!variant || app.live !== "live") return;
  const is_known = variant.offers.length + variant.refused.length > 0;
  if (is_known ? state.looked_at === looked_at : state.asked.get(variant) === device) return;
  state.looked_at = looked_at;
  state.asked.set(variant, device);
  act(app, "offers", { do: "offers", variant: app.view.variant }).then(
    (reply) => reply || state.asked.delete(variant),
  );
}
