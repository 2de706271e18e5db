// The page as one HTML file, with the current record and view.

/** @import { App } from "../app/store.js" */

const SLOTS = /** @type {const} */ (["css", "script", "record", "title", "view"]);

/** Return the file of a page. `shell` is a document with a slot for each part, which no title has.
 * @param {App} app
 * @param {Record<"shell" | "css" | "script", string>} parts */
export async function pageHtml(app, { shell, css, script }) {
  const view = JSON.stringify({ ...app.view, help: false, exporting: false });
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
