// The user's names of a kernel's arguments: `p1` is the user's `a`. Code and statements keep the
// kernel's names, which opts and edits need; the user's names stand beside them.

import { h } from "../base/elements.js";

/** @import { VariantRow } from "../record.d.ts" */
/** @import { Child } from "../base/elements.d.ts" */

/** Text with the user's name beside each argument that has one. It is drawn by the style sheet, so
 * that text which is selected and copied is the kernel's.
 * @param {VariantRow | null} variant
 * @param {string} text
 * @returns {Child[]} */
export function withNames(variant, text) {
  const named = new Map(
    variant?.loops?.buffers.flatMap(({ name, user }) => (user ? [[name, user]] : [])),
  );
  return text.split(/\b(p\d+)\b/).map((part) => {
    const user = named.get(part);
    return user === undefined
      ? part
      : h("span", { class: "wb-named", "data-user": user, title: `${part}: your ${user}` }, part);
  });
}
