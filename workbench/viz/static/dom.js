// Elements and words: one function that makes elements, one that refills a pane without losing
// the reader's place, and how figures are written. Text of the record only ever becomes text
// nodes and attributes, never markup.

/** Make an element: h("b", {class: "x", onclick: f, title: "..."}, "text", child, null). */
function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) set_attribute(element, name, value);
  element.append(
    ...children.flat().filter((child) => child !== null && child !== undefined && child !== false),
  );
  return element;
}

function set_attribute(element, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
  else if (name === "style") element.style.cssText = value;
  else element.setAttribute(name, value === true ? "" : value);
}

/** Make an SVG element, likewise. */
function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) set_attribute(element, name, value);
  element.append(
    ...children.flat().filter((child) => child !== null && child !== undefined && child !== false),
  );
  return element;
}

/** Text of the record: isolated from its surroundings' direction, whole text on hover. */
function words(text, kind = "", most = 200) {
  const shown = text.length > most ? text.slice(0, most - 1) + "…" : text;
  return h(
    "bdi",
    { class: `wb-words ${kind}`, title: text.length > 20 ? text.slice(0, 2000) : null },
    shown,
  );
}

/** Replace what is in `container`, keeping the scroll place and the focus (by data-key). */
function refill(container, ...children) {
  const { scrollTop, scrollLeft } = container;
  keeping_focus(container, () => container.replaceChildren(...children.flat().filter(Boolean)));
  Object.assign(container, { scrollTop, scrollLeft });
}

/** Change what is in `container`; what has the same data-key as what had the focus gets it, else,
 * or where that is disabled now, the whole workbench: its keys must not end up on the page around. */
function keeping_focus(container, change) {
  const focused = container.contains(document.activeElement) && document.activeElement;
  const is_text = focused && focused.matches('input[type="text"], textarea');
  const place = is_text ? [focused.selectionStart, focused.selectionEnd] : null;
  change();
  if (!focused || focused === document.activeElement) return;
  const next = focused.dataset.key ? find_key(container, focused.dataset.key) : null;
  container.dataset.refilled = ""; // the focus does not come in from outside: main.js asks
  next?.focus({ preventScroll: true });
  if (!next || next !== document.activeElement) container.closest(".wb")?.focus({ preventScroll: true });
  if (place !== null && next?.value === focused.value) next.setSelectionRange(...place);
  delete container.dataset.refilled;
}

/** Make `elements` the children of `container`, leaving alone those that are in place. */
function set_children(container, elements) {
  const wanted = new Set(elements);
  for (const child of [...container.children]) if (!wanted.has(child)) child.remove();
  elements.forEach((element, i) => {
    const there = container.children[i];
    if (there !== element) container.insertBefore(element, there || null);
  });
}

/** Return a maker of an element that makes another only where it is given other values: what is
 * chosen from, and open, is not closed by figures that arrive. For `set_children`. */
function steady(make) {
  let [made, of] = [null, null];
  return (...values) => {
    const now = JSON.stringify(values);
    if (now !== of) [made, of] = [make(...values), now];
    return made;
  };
}

function find_key(container, key) {
  return [...container.querySelectorAll("[data-key]")].find((found) => found.dataset.key === key);
}

/** A list whose items are walked with arrows or j/k and picked with Enter; one tab stop. Items
 * carry data-item. keys.js moves the focus; `role` is listbox, tree or tablist. */
function walkable(role, label, attributes = {}, ...items) {
  const list = h("div", { role, "aria-label": label, "data-walk": "", ...attributes }, ...items);
  rove(list);
  return list;
}

/** Let one item of a list take the tab stop: the selected one, else the first. */
function rove(list, item = null) {
  const items = [...list.querySelectorAll("[data-item]")];
  const stop = item || items.find((i) => i.getAttribute("aria-selected") === "true") || items[0];
  items.forEach((i) => (i.tabIndex = i === stop ? 0 : -1));
}

function debounced(act, wait_ms) {
  let timer = null;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => act(...values), wait_ms);
  };
}

/** Whether a text has all words of a query, in any order; signs count where there is nothing else. */
function has_words(text, query) {
  const [here, wanted] = [text, query.trim()].map((words) => words.toLowerCase());
  const parts = wanted.match(/[\p{L}\p{N}_]+/gu) || [wanted];
  return parts.every((part) => here.includes(part));
}

// figures

/** 0.0213 -> "21.3 ms" */
function seconds_text(s) {
  const [scale, unit] = s >= 1 ? [1, "s"] : s >= 1e-3 ? [1e3, "ms"] : [1e6, "µs"];
  return `${three(s * scale)} ${unit}`;
}

/** Three digits that count: 213, 21.3, 2.13; below one two of them: 0.21, 0.021. */
function three(x) {
  if (!Number.isFinite(x)) return "-";
  if (x >= 99.95) return Math.round(x).toLocaleString("en");
  if (x > 0 && x < 0.1) return x.toPrecision(2);
  return x.toFixed(x >= 9.995 ? 1 : 2);
}

function bytes_text(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  for (; n >= 1024 && i < units.length - 1; i++) n /= 1024;
  return `${i ? three(n).replace(/\.0+$/, "") : n} ${units[i]}`;
}

function count_text(n) {
  const [scale, unit] =
    n >= 1e9 ? [1e9, " G"] : n >= 1e6 ? [1e6, " M"] : n >= 1e4 ? [1e3, " k"] : [1, ""];
  return scale === 1 ? String(n) : three(n / scale) + unit;
}

/** plural(2, "pass") -> "2 passes" */
function plural(n, word) {
  const ending = n === 1 ? "" : /(s|x|ch|sh)$/.test(word) ? "es" : "s";
  return `${n.toLocaleString("en")} ${word}${ending}`;
}
