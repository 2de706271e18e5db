// What a question hides of a record, and how a guess is judged.

import assert from "node:assert/strict";
import { App } from "../../../../workbench/viz/page/app/store.js";
import { answerOf, shownRecord, verdictOf } from "../../../../workbench/viz/page/record/asking.js";
import { recordOf } from "../record.js";

const question = {
  text: "How fast?",
  judgement: "factor",
  answers: [
    ["variants", { kernel: 0, name: "auto" }, "timing"],
    ["variants", { kernel: 0, name: "plain" }, "timing"],
  ],
  hides: [
    { path: ["variants"], only: { name: "plain" } },
    { path: ["variants", "*", "timing"], value: null },
    { path: ["headline"], value: "" },
  ],
  unit: "µs",
  scale: 1e-6,
  factor: 2,
};

function asked() {
  const record = { ...recordOf(), headline: "2 kernels", ask: question };
  record.variants.forEach((row) => Object.assign(row, { name: "plain", timing: 3e-6 }));
  Object.assign(record.variants[1], { name: "auto", timing: null });
  return record;
}

Deno.test("panels see a record without what is hidden; the whole one stays as it is", () => {
  const record = asked();
  const shown = shownRecord(record, null);
  assert.deepEqual(shown.variants.map(({ name, timing }) => [name, timing]), [
    ["plain", null],
    ["plain", null],
  ]);
  assert.equal(shown.headline, "");
  assert.equal(record.variants[0].timing, 3e-6);
  assert.equal(shown.nodes, record.nodes, "the rest is shared");
  assert.equal(shownRecord(record, "4"), record);
  assert.equal(shownRecord({ ...record, ask: null }, null).headline, "2 kernels");
});

Deno.test("what arrives while a question waits is hidden, too, and shown by a guess", async () => {
  const app = new App(asked());
  app.patch({ append: {}, set: [[["variants", 0, "timing"], 5e-6], [["headline"], "now 3"]] });
  assert.deepEqual([app.record.variants[0].timing, app.record.headline], [null, ""]);
  app.select({ guess: "4" });
  assert.deepEqual([app.record.variants[0].timing, app.record.headline], [5e-6, "now 3"]);
  assert.equal(answerOf(app.whole), 5e-6, "the first path leads to nothing yet");
  app.select({ guess: null });
  assert.equal(app.record.headline, "");
  await Promise.resolve();
});

Deno.test("a number is judged by how far off it is", () => {
  const number = { ...question, judgement: "number", unit: "", scale: 1 };
  assert.deepEqual(verdictOf(number, "3", 2), {
    isRight: false,
    text: "You said 3: it is 2, 1 too many.",
  });
  assert.equal(verdictOf(number, "2", 2).isRight, true);
  assert.deepEqual(verdictOf(question, "10", 15e-6), {
    isRight: true,
    text: "You said 10 µs: it is 15 µs. The answer is 1.5 times your guess.",
  });
  assert.equal(verdictOf(question, "10", 3e-6).isRight, false);
});

Deno.test("a choice is the same or not; of several, what is wrong and what is missing", () => {
  const choice = { ...question, judgement: "choice" };
  assert.equal(verdictOf(choice, "L2", "core").text, "You said L2: it is core.");
  assert.equal(verdictOf(choice, "core", "core").isRight, true);
  const set = { ...question, judgement: "set" };
  assert.equal(
    verdictOf(set, "SPLIT, UPCAST", ["UPCAST", "UPCAST", "THREAD"]).text,
    "You said SPLIT, UPCAST: it is UPCAST, THREAD; not SPLIT; you left out THREAD.",
  );
  assert.equal(verdictOf(set, "none", []).isRight, true);
});
