// The pointer over the whole page, and the theme of the page around it.

import { LINKS } from "./links.js";

/** @import { App } from "./store.js" */

/** Pointing lights up what belongs together; nothing moves. Coming in asks whether Python is there.
 * What listens on the root goes with it; the rest is let go by the function returned.
 * @param {App} app
 * @param {HTMLElement} root */
export function listenPointer(app, root) {
  const over = (/** @type {PointerEvent} */ { buttons, target }) => {
    if (!buttons) app.hold(false);
    const element = closest(target, ".wb-link");
    app.light(element && root.contains(element) ? LINKS.get(element) : null);
  };
  const out = () => app.light(null);
  const down = (/** @type {Event} */ { target }) =>
    app.hold(!closest(target, "select, input, textarea"));
  const up = () => setTimeout(() => app.hold(false)); // where no click follows
  const entered = (/** @type {FocusEvent} */ { target, relatedTarget }) => {
    const isInside = relatedTarget instanceof Node && root.contains(relatedTarget);
    if (!isInside && !closest(target, "[data-refilled]")) app.channel.ping();
  };
  root.addEventListener("pointerover", over);
  root.addEventListener("pointerleave", out);
  root.addEventListener("focusin", entered);
  root.addEventListener("pointerdown", down);
  root.addEventListener("click", () => app.hold(false));
  window.addEventListener("pointerup", up);
  window.addEventListener("pointercancel", up);
  return () => {
    window.removeEventListener("pointerup", up);
    window.removeEventListener("pointercancel", up);
  };
}

/** The element around what an event is on, or itself, that a selector finds.
 * @param {EventTarget | null} target
 * @param {string} selector */
const closest = (target, selector) => target instanceof Element && target.closest(selector);

/** Say when the theme changes: a canvas does not follow the style sheet by itself. Returns what
 * lets go.
 * @param {App} app */
export function listenTheme(app) {
  const changed = () => app.changed("theme");
  const observer = new MutationObserver(changed);
  const isDark = matchMedia("(prefers-color-scheme: dark)");
  observer.observe(document.body, {
    attributes: true,
    attributeFilter: ["data-jp-theme-light", "class"],
  });
  isDark.addEventListener("change", changed);
  return () => {
    observer.disconnect();
    isDark.removeEventListener("change", changed);
  };
}
