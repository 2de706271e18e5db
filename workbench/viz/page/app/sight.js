// What is far out of sight is not in the document: a notebook may have many workbenches, and a browser
// computes the styles of all elements. Panes are made when a page first comes near the window; when
// it is well out of it, they wait with their state, outside of the document.

import { focusedAround } from "../base/elements.js";

const NEAR = 1; // heights of the window, above and below it
const MARGIN = `${100 * NEAR}%`;

/** The contents of an element, which are in the document while it is near the window. */
export class Sight {
  isMounted = false;
  /** The contents that wait, and how far they were scrolled.
   * @type {{nodes: ChildNode[], scrolled: [Element, number, number][]}} */
  #waiting = { nodes: [], scrolled: [] };
  #observer = new IntersectionObserver((entries) => this.#moved(entries), {
    rootMargin: MARGIN,
    ...{ scrollMargin: MARGIN }, // of what scrolls inside the window
  });
  #print = () => this.mount();

  /** `shown` is called each time the contents are in the document; the first time it makes them.
   * @param {HTMLElement} root
   * @param {() => void} shown */
  constructor(root, shown) {
    this.root = root;
    this.shown = shown;
  }

  /** Begin; the element is in its place by now. Near contents are there at once. */
  begin() {
    const { top, bottom, width } = this.root.getBoundingClientRect();
    const isNear = width > 0 && top < (1 + NEAR) * innerHeight && bottom > -NEAR * innerHeight;
    if (isNear) this.mount();
    this.#observer.observe(this.root);
    addEventListener("beforeprint", this.#print);
  }

  /** End; contents that wait are dropped. */
  end() {
    this.#observer.disconnect();
    removeEventListener("beforeprint", this.#print);
  }

  /** @param {IntersectionObserverEntry[]} entries */
  #moved(entries) {
    const { isIntersecting, boundingClientRect } = entries[entries.length - 1];
    if (isIntersecting) this.mount();
    else if (boundingClientRect.height > 0) this.#unmount(boundingClientRect.height); // not hidden
  }

  mount() {
    if (this.isMounted) return;
    const { nodes, scrolled } = this.#waiting;
    this.isMounted = true;
    this.root.append(...nodes);
    this.root.style.removeProperty("min-height");
    for (const [element, top, left] of scrolled) element.scrollTo(left, top);
    this.#waiting = { nodes: [], scrolled: [] };
    this.shown();
  }

  /** The root keeps its height, so that nothing else moves; what has the focus stays.
   * @param {number} height */
  #unmount(height) {
    const { root } = this;
    const isUsed = root.contains(focusedAround(root)) || root.matches(":fullscreen");
    if (!this.isMounted || isUsed) return;
    /** @type {[Element, number, number][]} */
    const scrolled = [...root.querySelectorAll("*")]
      .filter(({ scrollTop, scrollLeft }) => scrollTop || scrollLeft)
      .map((element) => [element, element.scrollTop, element.scrollLeft]);
    this.isMounted = false;
    this.#waiting = { nodes: [...root.childNodes], scrolled };
    root.style.minHeight = `${height}px`;
    root.replaceChildren();
  }
}
