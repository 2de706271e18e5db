// Glossary terms on hover: an element names its term in `data-term`, and shows its meaning. The
// glossary is Python's (viz/glossary).

import { svg } from "../base/elements.js";

/** @import { PageRecord, TermGroup } from "../record.d.ts" */
/** @import { App } from "./store.js" */

/** The group and the meaning of each word.
 * @type {WeakMap<TermGroup[], Map<string, {group: string, meaning: string}>>} */
const TERMS = new WeakMap();

/** The meaning of a term in the glossary.
 * @param {Pick<PageRecord, "glossary">} record
 * @param {string} word */
function termOf({ glossary }, word) {
  const terms = TERMS.get(glossary) ?? new Map(
    glossary.flatMap(({ name, terms }) =>
      terms.map(([word, meaning]) => [word, { group: name, meaning }])
    ),
  );
  TERMS.set(glossary, terms);
  return terms.get(word) ?? null;
}

/** The meaning of a term; "" for one that the glossary lacks.
 * @param {Pick<PageRecord, "glossary">} record
 * @param {string} word */
export const meaningOf = (record, word) => termOf(record, word)?.meaning ?? "";

/** The effect of an opt on the record's device and on the others, each with its heading: `here` on
 * a processor, and on a GPU.
 * @param {Pick<PageRecord, "devices" | "device">} record
 * @param {string} here
 * @param {string} onGpu
 * @returns {[string, string][]} */
export const optCaptions = ({ devices, device }, here, onGpu) =>
  devices.find(({ name }) => name === device)?.groups
    ? [["here", onGpu], ["on a processor", here]]
    : [["here", here], ["on a GPU", onGpu]];

/** The effect of a kind of opts, on this device and on others; "" for an unknown kind.
 * @param {Pick<PageRecord, "opt_kinds" | "devices" | "device">} record
 * @param {string} op */
export function optMeaning(record, op) {
  const kind = record.opt_kinds[op];
  if (!kind) return "";
  const [[, here], [where, otherEffect]] = optCaptions(record, kind.here, kind.on_gpu);
  return `${here}\n${where}: ${otherEffect}`;
}

/** The op of a graph's node, with its meaning, and its family.
 * @param {Pick<PageRecord, "glossary" | "families">} record
 * @param {string} op
 * @param {string} family */
export const nodeMeaning = (record, op, family) =>
  `${op}: ${meaningOf(record, op)} (${family}: ${record.families[family].name})`;

/** Give every element with a glossary term its meaning on hover, as soon as it is in the page;
 * return a function that ends that.
 * @param {App} app
 * @param {Element} root */
export function explain(app, root) {
  const observer = new MutationObserver(() => explainAll(app, root));
  observer.observe(root, { childList: true, subtree: true });
  explainAll(app, root);
  return () => observer.disconnect();
}

/**
 * @param {App} app
 * @param {Element} root */
function explainAll({ record }, root) {
  for (const element of root.querySelectorAll("[data-term]:not([data-explained])")) {
    const meaning = meaningOf(record, element.getAttribute("data-term") ?? "");
    element.setAttribute("data-explained", "");
    if (!meaning) continue;
    if (element instanceof SVGElement) element.prepend(svg("title", {}, meaning));
    else element.setAttribute("title", meaning);
  }
}

/** A click on the heading of a pane, or on the sign beside its name, shows its glossary terms.
 * @param {App} app
 * @param {Element} root */
export function listenHeadings(app, root) {
  root.addEventListener("click", ({ target }) => {
    const heading = target instanceof Element && target.closest("h3[data-term], .wb-frame-words");
    const term = heading && termOf(app.record, heading.getAttribute("data-term") ?? "");
    if (term) app.select({ help: term.group, exporting: false });
  });
}
