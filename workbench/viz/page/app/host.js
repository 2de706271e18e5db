// The host around the page: its theme, and the height of the page in it. Each host has its own sign of
// its theme on <html> or <body>; without one the reader's system decides. Still pictures, which have no
// script, use the same signs (still/svg.py).

/** @import { App } from "./store.js" */

/** JupyterLab and Notebook, VS Code, Colab, marimo; in this order. */
export const DARK =
  '[data-jp-theme-light="false"], .vscode-dark, .vscode-high-contrast:not(.vscode-high-contrast-light), [theme="dark"], .dark';
export const LIGHT =
  '[data-jp-theme-light="true"], .vscode-light, .vscode-high-contrast-light, [theme="light"], .light';

/** @returns {"light" | "dark"} */
function themeAround() {
  const has = (/** @type {string} */ signs) =>
    [document.documentElement, document.body].some((element) => element.matches(signs));
  if (has(DARK)) return "dark";
  if (has(LIGHT)) return "light";
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

const GROWING = '[class*="vscode-"], [data-vscode-theme-kind]';

/** Give the page a height where the window is no measure of it: VS Code and Colab show outputs in a
 * frame that is as high as its contents, marimo in a box that scrolls.
 * @param {HTMLElement} root
 * @param {HTMLElement} el where it is shown */
export function measureHost(root, el) {
  const most = mostHeight(el);
  if (most) root.style.setProperty("--wb-height", `${Math.max(most - 30, 420)}px`);
  if (!document.body.matches(GROWING) && !Reflect.get(globalThis, "google")?.colab) return;
  const height = Math.min(Math.max(480, screen.availHeight - 320), 900);
  root.style.setProperty("--wb-height", `${height}px`);
}

/** The height of the box around an element that scrolls what is higher; 0: there is none. An element
 * in a shadow tree has its host around it.
 * @param {Element} el */
function mostHeight(el) {
  for (let at = /** @type {Node | null} */ (el); at; at = at.parentNode) {
    if (at instanceof ShadowRoot) at = at.host;
    if (!(at instanceof Element)) continue;
    const { maxHeight, overflowY } = getComputedStyle(at);
    if (maxHeight.endsWith("px") && ["auto", "scroll"].includes(overflowY)) {
      return parseFloat(maxHeight);
    }
  }
  return 0;
}

/** Show the page in the theme of the host, and report a change, since a canvas does not follow the
 * style sheet. Returns a function that ends that.
 * @param {App} app
 * @param {HTMLElement} root */
export function listenTheme(app, root) {
  root.dataset.theme = themeAround();
  const changed = () => {
    const theme = themeAround();
    if (theme === root.dataset.theme) return; // another class or style of the host
    root.dataset.theme = theme;
    app.changed("theme");
  };
  const observer = new MutationObserver(changed);
  const isDark = matchMedia("(prefers-color-scheme: dark)");
  const attributeFilter = ["class", "style", "theme", "data-jp-theme-light"];
  for (const element of [document.documentElement, document.body]) {
    observer.observe(element, { attributes: true, attributeFilter });
  }
  isDark.addEventListener("change", changed);
  return () => {
    observer.disconnect();
    isDark.removeEventListener("change", changed);
  };
}
