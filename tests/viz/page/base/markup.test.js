// Elements as text: what a painter makes of them without a browser.

import assert from "node:assert/strict";
import { svg } from "../../../../workbench/viz/page/base/elements.js";
import { writeElements } from "../../../../workbench/viz/page/base/markup.js";
import { textWidth } from "../../../../workbench/viz/page/graph/labels.js";

writeElements();

Deno.test("text and attributes are escaped", () => {
  const text = svg("text", { class: "a  b", x: 4, style: "fill:red" }, '<script>"&"');
  assert.equal(
    String(svg("g", { title: '"<&>"' }, text)),
    '<g title="&quot;&lt;&amp;&gt;&quot;"><text class="a b" x="4" style="fill:red">' +
      "&lt;script&gt;&quot;&amp;&quot;</text></g>",
  );
});

Deno.test("children are replaced, and classes go on and off", () => {
  const group = svg("g", { class: "a" }, svg("path", { d: "M0 0" }));
  group.classList.toggle("a", false);
  group.classList.add("b");
  group.replaceChildren(svg("circle"), "word");
  assert.equal(String(group), '<g class="b"><circle/>word</g>');
});

Deno.test("a text is as wide as its letters are many", () => {
  assert.equal(textWidth("12345678", 11, "bold"), 2 * textWidth("1234", 11, "bold"));
  assert.ok(textWidth("12345678", 12) > textWidth("12345678", 10));
});
