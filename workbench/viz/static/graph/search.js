// Finding nodes of a graph by their words.

import { h } from "../base/elements.js";
import { hasWords, plural } from "../base/text.js";

/** A field that finds nodes: Enter goes to the next, Shift+Enter to the one before. */
export function graphSearch(label) {
  const field = h("input", {
    type: "search",
    class: "wb-input",
    placeholder: "/ find",
    "aria-label": `find in ${label}`,
  });
  const count = h("span", { class: "wb-g-count", role: "status" });
  const made = {
    el: h("span", { class: "wb-g-search" }, field, count),
    field,
    /** @type {(query: string) => object[]} */
    onFind: () => [],
    /** @type {(node: object) => void} */
    onGo: () => {},
  };
  let found = [];
  let at = -1;
  const countText = () => {
    if (!field.value) return "";
    if (!found.length) return "nothing found";
    return at < 0 ? plural(found.length, "match") : `${at + 1} of ${found.length}`;
  };
  const sayCount = () => (count.textContent = countText());
  made.search = () => {
    found = field.value ? made.onFind(field.value) : (made.onFind(""), []);
    at = -1;
    sayCount();
  };
  const go = (step) => {
    if (!found.length) return;
    at = (at + step + found.length + (at < 0 && step < 0 ? 1 : 0)) % found.length;
    made.onGo(found[at]);
    sayCount();
  };
  field.addEventListener("input", made.search);
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") go(event.shiftKey ? -1 : 1), event.preventDefault();
  });
  return made;
}

/** Return the nodes that a query finds: words of the label, type or shape in any order, or #number. */
export function graphFind(drawing, query) {
  const wanted = query.trim().toLowerCase();
  if (!wanted) return [];
  if (/^#\d+$/.test(wanted)) return drawing.nodes.filter((node) => `#${node.n}` === wanted);
  return drawing.nodes.filter((node) =>
    hasWords(`${node.label} ${node.sub || ""} ${node.op || ""}`, wanted)
  );
}
