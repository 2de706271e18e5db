// Variants as the store knows them: deleted ones keep their places, and are not shown.

import assert from "node:assert/strict";
import { undo } from "../../../workbench/viz/page/app/actions.js";
import { App, notDeleted } from "../../../workbench/viz/page/app/store.js";
import { dateText } from "../../../workbench/viz/page/base/text.js";
import { isOfOtherDevice } from "../../../workbench/viz/page/record/variants.js";
import { recordOf } from "./record.js";

/** plain, a child of it, and a child of that. */
function family() {
  const record = recordOf();
  record.variants.push({ kernel: 0, parent: 1, loops: null });
  return record;
}

Deno.test("who looked at a variant that is deleted looks at the one it came from", () => {
  const app = new App(family());
  app.select({ variant: 3 });
  app.patch({ append: {}, set: [[["variants", 1, "deleted"], true]] });
  assert.equal(app.view.variant, 3);
  assert.deepEqual(app.variantsOf(0), [0, 3]);
  app.patch({ append: {}, set: [[["variants", 3, "deleted"], true]] });
  assert.equal(app.view.variant, 0, "its parent is deleted, too");
  assert.equal(notDeleted(app.record, 3), 0);
});

Deno.test("undo passes by what is deleted", () => {
  const record = family();
  record.variants[1].deleted = true;
  const app = new App(record);
  app.select({ variant: 3 });
  undo(app);
  assert.equal(app.view.variant, 0);
});

Deno.test("a date says the time of today, the day of another", () => {
  const now = new Date(2026, 4, 20, 18, 0);
  const seconds = (...parts) => new Date(...parts) / 1000;
  assert.deepEqual(
    [seconds(2026, 4, 20, 9, 5), seconds(2026, 3, 1), seconds(2025, 11, 31)].map((at) =>
      dateText(at, now)
    ),
    ["09:05", "1 Apr", "31 Dec 2025"],
  );
});

Deno.test("default opts are of another device where one of both has its own", () => {
  const devices = [
    { name: "LLVM" },
    { name: "C" },
    { name: "OPENCL", groups: true },
    { name: "CUDA:H100", groups: true, elsewhere: true },
  ];
  const isFolded = (device, default_of) => isOfOtherDevice({ devices, device }, { default_of });
  const folded = devices.map(({ name }) =>
    devices.filter((of) => isFolded(name, of.name)).map((of) => of.name)
  );
  assert.deepEqual(folded, [
    ["OPENCL", "CUDA:H100"],
    ["OPENCL", "CUDA:H100"],
    ["LLVM", "C", "CUDA:H100"],
    ["LLVM", "C", "OPENCL"],
  ]);
  assert.equal(isFolded("OPENCL", ""), false, "a reader's own opts are for all");
});
