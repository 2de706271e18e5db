// The plan as a still picture: the page's drawing and painter, for V8 without a browser. Python
// calls it (`workbench/viz/javascript.py`).

import { writeElements } from "../../base/markup.js";
import { SvgPainter } from "../../graph/svg_painter.js";
import { withReadings } from "../../record/states.js";
import { planDrawing } from "./drawing.js";

/** @import { PageRecord } from "../../record.d.ts" */

/** Return the markup of the plan of a record, without style: of the record it needs `plan`, `nodes`,
 * `readings` and `families`. Words beyond its edges are left out: nobody can move it.
 * @param {PageRecord} record */
export function stillPlan(record) {
  writeElements();
  const { plan } = record;
  const { words = [], ...drawing } = planDrawing(withReadings(record));
  const inside = words.filter(({ x, w }) => x - w / 2 >= 0 && x + w / 2 <= plan.width);
  const painter = new SvgPainter();
  painter.paint({ ...drawing, words: inside });
  painter.place({ scale: 1, x: 0, y: 0 });
  return String(painter.el);
}
