// Rules switched off: the button, and the words that say what that changed. One that only compiling
// uses makes a variant; one that scheduling uses changes all kernels, so Python sends a new record.

/** The button of a rule; where there is no Python, the words that do the same from there. */
function rule_off_button(app, rule) {
  const name = rule_name(app, rule);
  const is_off = app.variant()?.rules_off.includes(name);
  const title = is_off ? "with this rule again" : "plan and compile without this rule: did source, time or answer change?";
  const off = [...app.record.without.rules, name].map((n) => JSON.stringify(n));
  const from_python = `explore(y, without=(${off.join(", ")}${off.length > 1 ? "" : ","}))`;
  return h("span", { class: "wb-rw-switch" },
    button(app, is_off ? "switch on" : "switch off", () => switch_rule(app, rule, Boolean(is_off)), { python: true, name: "rule-off", title }),
    !can_ask(app) && !is_off && h("span", { class: "wb-quiet" }, "from Python: ", h("code", {}, words(from_python, "", 400))));
}

/** Do without a rule (its place in the record, or its name), or with it again; then check what that
 * made and time it beside what was. A node of the old passes is none of the new ones. */
async function switch_rule(app, rule, on) {
  const { kernel, variant: of, pass } = app.view;
  const was = app.record.passes[pass]?.name;
  const asked = app.record.kernels[kernel] ? kernel : null;
  const reply = await act(app, "rewrites", { do: "rule_off", kernel: asked, of, rule, on });
  const made = reply?.result?.variant;
  if (!reply) return;
  if (made === undefined) return look_anew(app, was);
  if (!app.record.variants[made]) return;
  app.select(NOTHING);
  if (on && !app.record.variants[made].rules_off.length) return; // known already
  await act(app, "rewrites", { do: "check", variant: made });
  await act(app, "rewrites", { do: "measure", variants: [made, of], cold: false });
}

/** Everything is another one: look at the same pass, check the answer, and time both plans. */
async function look_anew(app, pass_name) {
  const { passes, devices, device } = app.record;
  const variant = app.kernel()?.root ?? null;
  const pass = passes.findIndex(({ name }) => name === pass_name);
  app.select({ ...NOTHING, variant, pass: pass < 0 ? null : pass, step: 0 });
  if (variant === null) return;
  await act(app, "rewrites", { do: "check", variant });
  const is_timed = app.record.plan.compared?.seconds || devices.find(({ name }) => name === device)?.emulator;
  if (!is_timed) await act(app, "rewrites", { do: "plans" });
}

/** Over all modes: the rules that scheduling does without, what that changed, and the way back. */
function without_pane(app) {
  const el = h("div", { class: "wb-without", hidden: true });
  const update = (changes) => {
    if (!has_any(changes, "record", "kernel", "variant", "live", "pending")) return;
    const { rules, differs } = app.record.without;
    el.hidden = !rules.length;
    refill(el, ...(rules.length ? without_parts(app, rules, differs) : []));
  };
  return { el, update };
}

function without_parts(app, rules, differs) {
  const { compared } = app.record.plan;
  const row = app.variant();
  const time = compared?.told && `time: ${compared.told}`;
  const answer = row && (row.error ? "it fails" : row.check ? checked_text(row.check) : "answer not checked");
  const said = [differs && `${differs} from before`, time, answer].filter(Boolean).join(" · ");
  const waits = app.pending("rule_off");
  return [
    h("b", {}, "without ", words(rules.join(", "), "", 400)),
    h("span", { role: "status" }, waits ? "planning again …" : said),
    ...(waits ? [] : rules.map((name) => button(app, rules.length > 1 ? `switch ${name} on` : "switch on", () => switch_rule(app, name, true),
      { python: true, name: `rule-on-${name}`, title: "plan and compile with this rule again" }))),
  ];
}

/** Say of a variant with rules switched off, beyond those that are off for all, what that changed. */
function rules_off_banner(app) {
  const variant = app.variant();
  const off = (variant?.rules_off || []).filter((name) => !app.record.without.rules.includes(name));
  if (!off.length) return null;
  const parent = app.record.variants[variant.parent] || app.record.variants[app.kernel().root];
  return h("div", { class: "wb-rw-banner", role: "status" },
    h("b", {}, "without ", words(off.join(", "))), h("span", {}, what_differs(variant, parent)),
    ...off.map((name) => button(app, off.length > 1 ? `${name} on` : "switch on", () => switch_rule(app, name, true), { python: true, name: `on-${name}` })),
    button(app, "back", () => go_to(app, app.record.variants.indexOf(parent)), { name: "rules-on", title: "to the variant with all rules" }));
}

/** "12 lines of LLVM differ · 1.90 ms, was 1.85 ms · right: .." */
function what_differs(variant, parent) {
  const time = variant.timing && parent.timing ? `${time_text(variant.timing)}, was ${time_text(parent.timing)}${in_one_run(variant.timing, parent.timing) ? "" : ", timed apart"}` : "not timed";
  const answer = variant.error ? "it fails" : variant.check ? variant.check.text : "answer not checked";
  return `${source_differs(variant, parent)} · ${time} · ${answer}`;
}

const time_text = (timing) => `${seconds_text(timing.median_s)} ${spread_text(timing)}`;

function source_differs(variant, parent) {
  const pairs = variant.code.map((now) => [now, parent.code.find((was) => was.language === now.language)]).filter(([, was]) => was);
  if (!pairs.length) return "source not made yet";
  const counts = pairs.map(([now, was]) => [now.language, count_differing(was.lines, now.lines)]);
  const changed = counts.filter(([, count]) => count);
  return changed.length ? changed.map(([language, count]) => `${plural(count, "line")} of ${language} ${count === 1 ? "differs" : "differ"}`).join(", ") : `the same ${counts.map(([language]) => language).join(", ")}`;
}
