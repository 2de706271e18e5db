// The export sheet: the page as one HTML file, pictures of its panes, a comparison, Python.

import { copy, failAt, notify, pinned, reference } from "../app/actions.js";
import { button, failure, heading } from "../app/pieces.js";
import { elementsOf, h, recordText, refill } from "../base/elements.js";
import { vectorOf } from "../graph/svg_painter.js";
import { canLink, copyLink } from "./link.js";
import { comparison } from "./markdown.js";
import { drawingSvg, paneSvg, png } from "./picture.js";

/** @import { App } from "../app/store.js" */
/** @import { Child } from "../base/elements.d.ts" */
/** @import { Board } from "../board/board.js" */
/** @import { Changes } from "../types.d.ts" */
/** @import { Picture } from "./picture.js" */

/** The source of a picture: a drawing, or a pane.
 * @typedef {{name: string, make: () => Picture}} Shown */

/**
 * @param {App} app
 * @param {Board} board */
export function exportPane(app, board) {
  const el = h("div", { class: "wb-help-place" });
  const update = (/** @type {Changes} */ changes) => {
    if (
      !["exporting", "failure", "mode", "board", "variant", "record"].some((name) =>
        changes.has(name)
      )
    ) {
      return;
    }
    refill(el, app.view.exporting && exportSheet(app, board));
  };
  return { el, update };
}

/**
 * @param {App} app
 * @param {Board} board */
function exportSheet(app, board) {
  const rows = [
    pageRow(app),
    ...pictures(app, board).map((shown) => pictureRow(app, shown)),
    comparisonRow(app),
    pythonRow(app, board),
    linkRow(app),
  ];
  return h(
    "div",
    { class: "wb-help wb-export", role: "dialog", "aria-label": "export" },
    heading(
      "EXPORT",
      button(app, "close", () => app.select({ exporting: false }), { key: "Esc" }),
    ),
    h("dl", {}, ...rows.flat()),
    failure(app, "export"),
  );
}

/** The rows of the sheet: the glossary term and the name of a thing, and the ways to export it.
 * @param {string} term
 * @param {string} name
 * @param {...Child} ways */
const row = (term, name, ...ways) => [
  h("dt", { "data-term": term }, recordText(name, "", 60)),
  h("dd", { class: "wb-buttons", "data-term": term }, ...ways),
];

/** @param {App} app */
function pageRow(app) {
  const { file } = app;
  if (!file) return [];
  const save = () => saved(app, "html", async () => asBlob(await pageHtml(app, file())));
  return row(
    "whole page",
    "the whole page",
    button(app, "HTML", save, { name: "export-html", title: "one file, which opens offline" }),
  );
}

/** @param {string} text */
const asBlob = (text) => new Blob([text], { type: "text/html" });

/** The visible drawings and panes of which a picture can be made.
 * @param {App} app
 * @param {Board} board
 * @returns {Shown[]} */
function pictures(app, board) {
  const root = /** @type {HTMLElement} */ (app.root);
  const layout = app.arrangements.layout?.title ?? "";
  const ground = getComputedStyle(root).backgroundColor;
  const drawn = ":is(.wb-g-svg, .wb-g-canvas)";
  /** @type {[string, string][]} */
  const drawings = [
    ["graph of Rewrites", `[data-pane="graph"] ${drawn}`],
    ["graph of Plan", `[data-pane="plan"] ${drawn}`],
    ["roofline", ".wb-roof"],
  ];
  /** @type {[string, string][]} */
  const cells = board.kinds.map(({ name, title }) => [
    `pane ${title.toLowerCase()}`,
    `[data-pane="${name}"] > .wb-frame-body`,
  ]);
  /** @type {[string, string][]} */
  const panes = [[`layout ${layout}`, ".wb-board"], ...cells];
  /** @type {(selector: string) => Element[]} */
  const inSight = (selector) =>
    [...root.querySelectorAll(selector)].filter((element) => element.checkVisibility());
  const sides = [" (before)", " (after)"]; // two graphs are those of a step
  return [
    ...drawings.flatMap(([name, selector]) =>
      inSight(selector).map((drawing, i, { length }) => ({
        name: name + (length > 1 ? sides[i] : ""),
        make: () => pictureOf(drawing, ground),
      }))
    ),
    ...panes.flatMap(([name, selector]) => {
      const [pane] = inSight(selector);
      if (!(pane instanceof HTMLElement)) return [];
      return [{ name, make: () => paneSvg(root, pane, styleOf(app)) }];
    }),
  ];
}

/** A drawing as a picture; a canvas is redrawn as SVG.
 * @param {Element} drawing
 * @param {string} ground */
function pictureOf(drawing, ground) {
  if (drawing instanceof SVGSVGElement) return drawingSvg(drawing, ground);
  const vector = /** @type {SVGSVGElement} */ (vectorOf(drawing, { scale: 1, x: 0, y: 0 }));
  vector.style.cssText = "position:absolute;opacity:0"; // only the page knows its looks
  drawing.after(vector);
  try {
    return drawingSvg(vector, ground);
  } finally {
    vector.remove();
  }
}

/** The style sheet of the page, which pictures of its panes contain.
 * @param {App} app */
const styleOf = (app) =>
  app.file?.().css || elementsOf(document, "style").map((el) => el.textContent).join("\n");

/**
 * @param {App} app
 * @param {Shown} shown */
function pictureRow(app, { name, make }) {
  const svg = () => new Blob([make().text], { type: "image/svg+xml" });
  return row(
    "picture",
    name,
    button(app, "SVG", () => saved(app, "svg", svg, name), { name: `svg-${name}` }),
    button(app, "PNG", () => saved(app, "png", () => png(make()), name), { name: `png-${name}` }),
  );
}

/** @param {App} app */
function comparisonRow(app) {
  const [variant, other] = [app.variant(), reference(app)];
  if (!variant || !other) return [];
  const text = () => comparison(app.record, variant, other);
  const blob = () => new Blob([text()], { type: "text/markdown" });
  const title = pinned(app) === app.view.variant
    ? "select another variant to compare it with the pinned one"
    : "opts, times, counts and code of both";
  return row(
    "Markdown",
    variant === other ? variant.name : `${variant.name} beside ${other.name}`,
    button(app, "Markdown", () => saved(app, "md", blob), { name: "export-markdown", title }),
    button(app, "copy", () => copy(app, text(), "the comparison as Markdown"), {
      name: "copy-markdown",
      title,
    }),
  );
}

/**
 * @param {App} app
 * @param {Board} board */
function pythonRow(app, board) {
  const variant = app.variant();
  const { expr, recipes } = app.record;
  const ofMode = board.answering(null).map(({ keys }) => keys?.y).find(Boolean); // a plan or a step
  return row(
    "as Python",
    "as Python",
    variant &&
      button(app, "kernel alone", () => copy(app, variant.python, "the kernel as Python"), {
        title: "self-contained, on seeded data",
      }),
    variant && button(
      app,
      "kernel of my expression",
      () => copy(app, expr.python + variant.recipe, "the expression and this variant as Python"),
      { title: "with the names of your own code" },
    ),
    ofMode && button(app, "this view", () => ofMode(new KeyboardEvent("keydown")), {
      title: "the plan, decision, pass or step in the middle",
    }),
    button(app, "exploration", () => copy(app, expr.python, "the exploration as Python")),
    button(app, "script of all kernels", () => copy(app, recipes.script, "the call"), {
      title: "copies the call that writes it; the script needs no other framework",
    }),
  );
}

/** @param {App} app */
const linkRow = (app) =>
  row(
    "link",
    "link to this view",
    canLink(app)
      ? button(app, "copy link", () => copyLink(app), {
        title: "opens this page at exactly this view",
      })
      : h("span", { class: "wb-quiet" }, "in an exported page"),
  );

/** Hand a file to the browser, or say why there is none.
 * @param {App} app
 * @param {string} kind
 * @param {() => Blob | Promise<Blob>} make
 * @param {string} [part] */
async function saved(app, kind, make, part = "") {
  failAt(app, "export", null);
  try {
    const blob = await make();
    const url = URL.createObjectURL(blob);
    const name = fileName(app, part, kind);
    h("a", { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 60_000); // a browser may ask for the folder
    notify(app, `saved ${name}`);
  } catch (error) {
    const because = error instanceof Error ? error.message : String(error);
    failAt(app, "export", { what: `cannot write ${kind.toUpperCase()}`, because, try: "" });
  }
}

/** matmul-relu-graph-of-plan.svg
 * @param {App} app
 * @param {string} part
 * @param {string} kind */
function fileName(app, part, kind) {
  const { kernels, expr } = app.record;
  const title = kernels.length === 1 ? kernels[0].title : expr.text;
  const words = `${title} ${part}`.toLowerCase().match(/[a-z0-9]+/g) ?? ["workbench"];
  return `${words.join("-").slice(0, 60)}.${kind}`;
}

// The page as one HTML file, with the current record, view, and arrangements of panes.

const SLOTS = /** @type {const} */ (["css", "script", "record", "title", "view"]);

/** Return the file of a page. `shell` is a document with a slot for each part, which no title
 * contains.
 * @param {App} app
 * @param {Record<"shell" | "css" | "script", string>} parts */
async function pageHtml(app, { shell, css, script }) {
  const boards = app.arrangements.all;
  const view = JSON.stringify({ ...app.view, help: false, exporting: false, boards });
  const parts = {
    title: asText(app.record.expr.text),
    css,
    script,
    record: await packed(app),
    view: view.replace(/</g, "\\u003c"),
  };
  return SLOTS.reduce((html, name) => html.replace(`<@${name}>`, () => parts[name]), shell);
}

/** @param {string} text */
const asText = (text) => text.slice(0, 80).replace(/[&<>]/g, (sign) => `&#${sign.charCodeAt(0)};`);

/** The record as pages read it: base64 of zlib-compressed JSON.
 * @param {App} app */
async function packed({ whole }) {
  const plain = new Blob([JSON.stringify(whole)]).stream();
  const small = new Response(plain.pipeThrough(new CompressionStream("deflate")));
  let letters = "";
  new Uint8Array(await small.arrayBuffer()).forEach((byte) => letters += String.fromCharCode(byte));
  return btoa(letters);
}
