// The browser's storage, by notebook or file: it has values of the latest notebooks only.

const MOST_NOTEBOOKS = 40;

/** The value of this notebook that is stored under a name; undefined: none.
 * @param {string} name
 * @returns {unknown} */
export const storedHere = (name) => stored(name)[notebook()];

/** Store a value of this notebook under a name; undefined removes it.
 * @param {string} name
 * @param {unknown} value */
export function storeHere(name, value) {
  const { [notebook()]: _, ...others } = stored(name);
  const latest = Object.entries(others).slice(-MOST_NOTEBOOKS + 1);
  const own = value === undefined ? [] : [[notebook(), value]];
  try {
    localStorage.setItem(name, JSON.stringify(Object.fromEntries([...latest, ...own])));
  } catch { /* not allowed here */ }
}

/** The notebook, or the file: a path of JupyterLab ends with that of the notebook. */
function notebook() {
  try {
    const path = decodeURIComponent(location.pathname);
    return path.split("/tree/").at(-1) ?? path;
  } catch {
    return "";
  }
}

/** The values that are stored under a name, by notebook.
 * @param {string} name
 * @returns {Record<string, unknown>} */
function stored(name) {
  try {
    return { ...JSON.parse(localStorage.getItem(name) ?? "{}") };
  } catch {
    return {};
  }
}
