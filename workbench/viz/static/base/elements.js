// Elements and words: one function that makes elements, one that refills a pane without losing
// the reader's place, and how figures are written. Text of the record only ever becomes text
// nodes and attributes, never markup.

/** Make an element: h("b", {class: "x", onclick: f, title: "..."}, "text", child, null). */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) setAttribute(element, name, value);
  element.append(
    ...children.flat().filter((child) => child !== null && child !== undefined && child !== false),
  );
  return element;
}

function setAttribute(element, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
  else if (name === "style") element.style.cssText = value;
  else element.setAttribute(name, value === true ? "" : value);
}

/** Make an SVG element, likewise. */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) setAttribute(element, name, value);
  element.append(
    ...children.flat().filter((child) => child !== null && child !== undefined && child !== false),
  );
  return element;
}

/** Text of the record: isolated from its surroundings' direction, whole text on hover. */
export function words(text, kind = "", most = 200) {
  const shown = text.length > most ? text.slice(0, most - 1) + "…" : text;
  return h(
    "bdi",
    { class: `wb-words ${kind}`, title: text.length > 20 ? text.slice(0, 2000) : null },
    shown,
  );
}

/** Replace what is in `container`, keeping the scroll place and the focus (by data-key). */
export function refill(container, ...children) {
  const { scrollTop, scrollLeft } = container;
  keepingFocus(container, () => container.replaceChildren(...children.flat().filter(Boolean)));
  Object.assign(container, { scrollTop, scrollLeft });
}

/** Change what is in `container`; what has the same data-key as what had the focus gets it, else,
 * or where that is disabled now, the whole workbench: its keys must not end up on the page around. */
export function keepingFocus(container, change) {
  const focused = /** @type {any} */ (document.activeElement);
  const hadFocus = container.contains(focused);
  const isText = hadFocus && focused.matches('input[type="text"], textarea');
  const place = isText ? [focused.selectionStart, focused.selectionEnd] : null;
  change();
  if (!hadFocus || focused === document.activeElement) return;
  const next = focused.dataset.key ? findKey(container, focused.dataset.key) : null;
  container.dataset.refilled = ""; // the focus does not come in from outside: main.js asks
  next?.focus({ preventScroll: true });
  if (!next || next !== document.activeElement) {
    container.closest(".wb")?.focus({ preventScroll: true });
  }
  if (place !== null && next?.value === focused.value) next.setSelectionRange(...place);
  delete container.dataset.refilled;
}

/** Make `elements` the children of `container`, leaving alone those that are in place. */
export function setChildren(container, elements) {
  const wanted = new Set(elements);
  for (const child of [...container.children]) if (!wanted.has(child)) child.remove();
  elements.forEach((element, i) => {
    const there = container.children[i];
    if (there !== element) container.insertBefore(element, there || null);
  });
}

/** Return a maker of an element that makes another only where it is given other values: what is
 * chosen from, and open, is not closed by figures that arrive. For `setChildren`. */
export function steady(make) {
  let [made, of] = [null, null];
  return (...values) => {
    const now = JSON.stringify(values);
    if (now !== of) [made, of] = [make(...values), now];
    return made;
  };
}

function findKey(container, key) {
  return [...container.querySelectorAll("[data-key]")].find((found) => found.dataset.key === key);
}

export function debounced(act, waitMs) {
  let timer = null;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => act(...values), waitMs);
  };
}
