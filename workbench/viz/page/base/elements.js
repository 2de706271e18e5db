// Elements: their maker, the refill of a pane that keeps the reader's place, and folds. Text of the
// record only ever becomes text nodes and attributes, never markup.

import { cut } from "./text.js";

/** @import { Attributes, Child, Part } from "./elements.d.ts" */

/** Make an element: h("b", {class: "x", onclick: f, title: "..."}, "text", child, null).
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Attributes<HTMLElementTagNameMap[Tag]>} [attributes]
 * @param {...Child} children */
export function h(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** Make an SVG element, likewise.
 * @template {keyof SVGElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Attributes<SVGElementTagNameMap[Tag]>} [attributes]
 * @param {...Child} children */
export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

/**
 * @template {HTMLElement | SVGElement} E
 * @param {E} element
 * @param {Attributes<E>} attributes
 * @param {Child[]} children */
function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) setAttribute(element, name, value);
  element.append(...children.flat().filter(isShown));
  return element;
}

/**
 * @param {Part} part
 * @returns {part is Node | string} */
const isShown = (part) => Boolean(part);

/**
 * @param {HTMLElement | SVGElement} element
 * @param {string} name
 * @param {Attributes[string]} value */
function setAttribute(element, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (typeof value === "function") element.addEventListener(name.slice(2), value);
  else if (name === "style") element.style.cssText = String(value);
  else element.setAttribute(name, value === true ? "" : String(value));
}

/** Return the colour of a CSS variable at an element, as a canvas takes it: the variable itself may
 * be a choice of two, `light-dark(..)`.
 * @param {Element} el
 * @param {string} name */
export function colourAt(el, name) {
  const probe = h("i", { hidden: true, style: `color: var(${name})` });
  el.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

/** Return the focused element of the tree that `el` is in: some hosts put the page in a shadow tree,
 * and the document then names the host's element.
 * @param {Element} el */
export function focusedAround(el) {
  const tree = el.getRootNode();
  return tree instanceof Document || tree instanceof ShadowRoot ? tree.activeElement : null;
}

/** Text of the record: isolated from its surroundings' direction, whole text on hover.
 * @param {string} text */
export function recordText(text, kind = "", most = 200) {
  return h(
    "bdi",
    { class: `wb-words ${kind}`, title: text.length > 20 ? text.slice(0, 2000) : null },
    cut(text, most),
  );
}

/** How far the containers that `refill` fills are scrolled, from their scroll events: reading it
 * while others change would force a layout of the whole page for each.
 * @type {WeakMap<Element, {scrollTop: number, scrollLeft: number}>} */
const SCROLLED = new WeakMap();

/** Replace the children of `container`, keeping its scroll position and the focus (by data-key).
 * @param {HTMLElement} container
 * @param {...Child} children */
export function refill(container, ...children) {
  const place = SCROLLED.get(container);
  if (!place) {
    SCROLLED.set(container, { scrollTop: 0, scrollLeft: 0 });
    container.addEventListener("scroll", () => noteScroll(container), { passive: true });
  }
  const parts = children.flat().filter(isShown);
  keepingFocus(container, () => container.replaceChildren(...parts));
  // setting an unchanged value would force another layout
  if (place?.scrollTop || place?.scrollLeft) Object.assign(container, place);
}

/** Remember the scroll positions of an element and its ancestors: after scrolling by script, since
 * the event comes with the next frame.
 * @param {Element | null} element */
export function noteScroll(element) {
  for (let at = element; at; at = at.parentElement) {
    const { scrollTop, scrollLeft } = at;
    if (SCROLLED.has(at)) SCROLLED.set(at, { scrollTop, scrollLeft });
  }
}

/** Scroll a container back to its beginning.
 * @param {Element} container */
export function scrollBack(container) {
  const { scrollTop, scrollLeft } = SCROLLED.get(container) ?? container;
  if (!scrollTop && !scrollLeft) return;
  Object.assign(container, { scrollTop: 0, scrollLeft: 0 });
  noteScroll(container);
}

/** Change the children of `container`. The element with the data-key of the focused one gets the
 * focus; if it is missing or disabled now, the whole workbench does: its keys must not reach the
 * page around it.
 * @param {HTMLElement} container
 * @param {() => void} change */
export function keepingFocus(container, change) {
  const focused = focusedAround(container);
  const hadFocus = focused instanceof HTMLElement && container.contains(focused);
  const place = hadFocus && isText(focused) ? [focused.selectionStart, focused.selectionEnd] : null;
  change();
  if (!hadFocus || focused === focusedAround(container)) return;
  const next = focused.dataset.key ? findKey(container, focused.dataset.key) : null;
  container.dataset.refilled = ""; // a focus outside does not move in: main.js checks
  next?.focus({ preventScroll: true });
  if (!next || next !== focusedAround(container)) {
    /** @type {HTMLElement | null} */
    const root = container.closest(".wb");
    root?.focus({ preventScroll: true });
  }
  if (place && next && isText(next) && isText(focused) && next.value === focused.value) {
    next.setSelectionRange(place[0], place[1]);
  }
  delete container.dataset.refilled;
}

/** Whether an element is a text field.
 * @param {Element} element
 * @returns {element is HTMLInputElement | HTMLTextAreaElement} */
const isText = (element) => element.matches('input[type="text"], input[type="search"], textarea');

/** Make `elements` the children of `container`, without touching those that are in place.
 * @param {HTMLElement} container
 * @param {Element[]} elements */
export function setChildren(container, elements) {
  const wanted = new Set(elements);
  for (const child of [...container.children]) if (!wanted.has(child)) child.remove();
  elements.forEach((element, i) => {
    const present = container.children[i];
    if (present !== element) container.insertBefore(element, present || null);
  });
}

/** Return a maker of an element that makes a new one only for other values, so that arriving times
 * do not close an open selector. For `setChildren`.
 * @template {unknown[]} Values
 * @template {HTMLElement} E
 * @param {(...values: Values) => E} make */
export function steady(make) {
  /** @type {{element: E, of: string} | null} */
  let last = null;
  return (/** @type {Values} */ ...values) => {
    const of = JSON.stringify(values);
    if (last?.of !== of) last = { element: make(...values), of };
    return last.element;
  };
}

/**
 * @param {HTMLElement} container
 * @param {string} key */
function findKey(container, key) {
  return elementsOf(container, "[data-key]").find((found) => found.dataset.key === key);
}

/** The HTML elements below another that match a selector.
 * @param {ParentNode} parent
 * @param {string} selector
 * @returns {HTMLElement[]} */
export function elementsOf(parent, selector) {
  /** @type {NodeListOf<HTMLElement>} */
  const elements = parent.querySelectorAll(selector);
  return [...elements];
}

/** Return a function that calls `act` once it has not been called for a time.
 * @template {unknown[]} Values
 * @param {(...values: Values) => void} act
 * @param {number} waitMs */
export function debounced(act, waitMs) {
  let timer = 0;
  return (/** @type {Values} */ ...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => act(...values), waitMs);
  };
}

// A fold: a `details` element that stays open when its pane is refilled.

/** The keys of open folds.
 * @type {Set<string>} */
export const OPENED = new Set();

/** A fold that stays open when its pane is refilled; its body is made when it is opened. The
 * glossary has the `term`.
 * @param {string} key
 * @param {Child} title
 * @param {() => Node} body
 * @param {string} term */
export function fold(key, title, body, term = key) {
  const el = h(
    "details",
    { class: "wb-fold", open: OPENED.has(key) },
    h("summary", { "data-key": `fold-${key}`, "data-term": term }, title),
  );
  const fill = () => el.open && el.childElementCount === 1 && el.append(body());
  el.addEventListener("toggle", () => {
    el.open ? OPENED.add(key) : OPENED.delete(key);
    fill();
  });
  fill();
  return el;
}
