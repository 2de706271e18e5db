// What is out of sight costs nothing: a notebook may have many workbenches, and a browser computes the
// styles of all elements, and puts all that is painted into each frame. A page is drawn while it is in
// the window, or just outside of it; farther away changes are not drawn, nor does the browser show it;
// when it is well out of the window, its elements wait with their state, outside of the document.

import { focusedAround } from "../base/elements.js";

const CLOSE = 0.25; // heights of the window, above and below it
const NEAR = 1;

/** The contents of an element, which are drawn while it is close to the window, and in the document
 * while it is near. */
export class Sight {
  isDrawn = false;
  #isMounted = false;
  /** The contents that wait, and how far they were scrolled.
   * @type {{nodes: ChildNode[], scrolled: [Element, number, number][]}} */
  #waiting = { nodes: [], scrolled: [] };
  #observers = [
    observer(NEAR, (isNear, height) => isNear || this.#unmount(height)),
    observer(CLOSE, (isClose, height) => isClose ? this.draw() : this.#rest(height)),
  ];
  #print = () => this.draw();
  #observe = () =>
    this.#observers.forEach((each) => {
      each.unobserve(this.root);
      each.observe(this.root); // it is told where the element is now
    });

  /** `shown` is called each time the contents come close; the first time it makes them.
   * @param {HTMLElement} root
   * @param {() => void} shown */
  constructor(root, shown) {
    this.root = root;
    this.shown = shown;
  }

  /** Begin; the element is in its place by now. Close contents are there at once. */
  begin() {
    const { top, bottom, width } = this.root.getBoundingClientRect();
    const isClose = width > 0 && top < (1 + CLOSE) * innerHeight && bottom > -CLOSE * innerHeight;
    if (isClose) this.draw();
    this.#observe();
    addEventListener("beforeprint", this.#print);
  }

  /** End; contents that wait are dropped. */
  end() {
    this.#observers.forEach((each) => each.disconnect());
    removeEventListener("beforeprint", this.#print);
  }

  draw() {
    if (this.isDrawn) return;
    this.isDrawn = true;
    this.root.removeAttribute("data-rests");
    if (!this.#isMounted) this.#mount();
    this.shown();
  }

  #mount() {
    const { nodes, scrolled } = this.#waiting;
    this.#isMounted = true;
    this.root.append(...nodes);
    this.root.style.removeProperty("min-height");
    for (const [element, top, left] of scrolled) element.scrollTo(left, top);
    this.#waiting = { nodes: [], scrolled: [] };
  }

  /** Draw no more; what has the focus is drawn.
   * @param {number} height 0: in a tab that is hidden, where the browser draws nothing */
  #rest(height) {
    if (this.#isUsed()) return;
    this.isDrawn = false;
    this.root.toggleAttribute("data-rests", height > 0);
  }

  /** The root keeps its height, so that nothing else moves.
   * @param {number} height */
  #unmount(height) {
    const { root } = this;
    if (!this.#isMounted || !height || this.#isUsed()) return;
    /** @type {[Element, number, number][]} */
    const scrolled = [...root.querySelectorAll("*")]
      .filter(({ scrollTop, scrollLeft }) => scrollTop || scrollLeft)
      .map((element) => [element, element.scrollTop, element.scrollLeft]);
    this.#isMounted = this.isDrawn = false;
    this.#waiting = { nodes: [...root.childNodes], scrolled };
    root.style.minHeight = `${height}px`;
    root.replaceChildren();
  }

  /** Whether it has the focus, or the screen; once it has lost the focus, it is asked again. */
  #isUsed() {
    const { root } = this;
    const isUsed = root.contains(focusedAround(root)) || root.matches(":fullscreen");
    if (isUsed) root.addEventListener("focusout", this.#observe, { once: true });
    return isUsed;
  }
}

/** An observer of an element that comes nearer than some heights of the window, or goes away; the
 * element's height is 0 where it is hidden.
 * @param {number} heights
 * @param {(isNear: boolean, height: number) => unknown} moved */
function observer(heights, moved) {
  const margin = `${100 * heights}%`;
  return new IntersectionObserver(
    (entries) => {
      const { isIntersecting, boundingClientRect } = entries[entries.length - 1];
      moved(isIntersecting, boundingClientRect.height);
    },
    { rootMargin: margin, ...{ scrollMargin: margin } }, // of what scrolls inside the window
  );
}
