// The middle: one of several modes, which are the panels that stand there.

import { h, keepingFocus } from "../base/elements.js";

/** The middle: modes are made when first shown, and hear what they missed. */
export function modePane(app, modes) {
  const el = h("section", { class: "wb-middle", "aria-label": "workspace" });
  const made = {};
  const missed = {};
  const current = () => made[app.view.mode];
  const update = (changes) => {
    const { name, make } = modes.find((mode) => mode.name === app.view.mode) || modes[0];
    for (const other of Object.keys(made)) changes.forEach((change) => missed[other].add(change));
    if (!made[name]) {
      made[name] = make(app);
      missed[name] = new Set([...Object.keys(app.view), "record", "live", "hover"]);
    }
    const [hadFocus, isOther] = [
      el.contains(document.activeElement),
      el.firstChild !== made[name].el,
    ];
    if (isOther) keepingFocus(el, () => el.replaceChildren(made[name].el));
    made[name].update(missed[name]);
    missed[name] = new Set();
    if (isOther && hadFocus) made[name].focus();
  };
  return { el, update, current };
}
