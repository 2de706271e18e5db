// Elements as text: the part of a document that painters use, for V8 without a browser.

const SIGNS = /[&<>"]/g;
/** @type {Record<string, string>} */
const ESCAPES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const LETTER = 0.56; // the width of a letter, as a share of its font's size

/** @param {unknown} text */
const escaped = (text) => String(text).replace(SIGNS, (sign) => ESCAPES[sign]);

/** An element that is written, never shown. */
class Markup {
  /** @type {Map<string, string>} */
  #attributes = new Map();
  /** @type {(Markup | string)[]} */
  children = [];
  /** @type {Set<string>} */
  #classes = new Set();
  style = { cssText: "" };
  /** @type {Markup | null} */
  parentNode = null;

  /** @param {string} tag */
  constructor(tag) {
    this.tag = tag;
  }

  classList = {
    /** @param {string} name */
    add: (name) => this.#classes.add(name),
    /** @type {(name: string, isOn: boolean) => unknown} */
    toggle: (name, isOn) => isOn ? this.#classes.add(name) : this.#classes.delete(name),
  };

  /** @type {(name: string, value: string) => void} */
  setAttribute(name, value) {
    if (name === "class") this.#classes = new Set(value.split(" ").filter(Boolean));
    else this.#attributes.set(name, value);
  }

  /** @param {...(Markup | string)} children */
  append(...children) {
    for (const child of children) if (child instanceof Markup) child.parentNode = this;
    this.children.push(...children);
  }

  /** @param {...(Markup | string)} children */
  replaceChildren(...children) {
    this.children = [];
    this.append(...children);
  }

  /** @returns {string} */
  toString() {
    const attributes = [...this.#attributes];
    if (this.#classes.size) attributes.unshift(["class", [...this.#classes].join(" ")]);
    if (this.style.cssText) attributes.push(["style", this.style.cssText]);
    const head = [this.tag, ...attributes.map(([name, value]) => `${name}="${escaped(value)}"`)];
    if (!this.children.length) return `<${head.join(" ")}/>`;
    const inside = this.children.map((child) =>
      child instanceof Markup ? String(child) : escaped(child)
    );
    return `<${head.join(" ")}>${inside.join("")}</${this.tag}>`;
  }
}

/** Make elements possible without a document; texts have the width of average letters. */
export function writeElements() {
  const measure = {
    font: "",
    /** @param {string} text */
    measureText(text) {
      const size = parseFloat(this.font.replace(/^\D*/, ""));
      return { width: LETTER * size * text.length };
    },
  };
  Object.assign(globalThis, {
    document: {
      createElementNS: (/** @type {string} */ _, /** @type {string} */ tag) => new Markup(tag),
      createElement: () => ({ getContext: () => ({ ...measure }) }),
    },
  });
}
