// The theme: light or dark. Each host has its own sign of it on <html> or <body>; without one the
// reader's system decides. Still pictures, which have no script, use the same signs (still/svg.py).

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

/** Show the page in the theme of the host, and report a change, since a canvas does not follow the
 * style sheet. Returns a function that ends that.
 * @param {App} app
 * @param {HTMLElement} root */
export function listenTheme(app, root) {
  root.dataset.theme = themeAround();
  const changed = () => {
    root.dataset.theme = themeAround();
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
