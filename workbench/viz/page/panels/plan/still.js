// The plan as a still picture: the page's drawing and painter, for V8 without a browser. Python
// calls it (`workbench/viz/javascript.py`).

import { writeElements } from "../../base/markup.js";
import { planDrawing } from "../../graph/plan_drawing.js";
import { SvgPainter } from "../../graph/svg_painter.js";
import { withReadings } from "../../record/states.js";

/** @import { PageRecord } from "../../record.d.ts" */

/** Return the markup of the plan of a record, without style: of the record it needs `plan`, `nodes`,
 * `readings` and `families`. Labels beyond its edges are left out, since a still cannot be moved.
 * @param {PageRecord} record */
export function stillPlan(record) {
  writeElements();
  const { plan } = record;
  const { labels = [], ...drawing } = planDrawing(withReadings(record));
  const inside = labels.filter(({ x, w }) => x - w / 2 >= 0 && x + w / 2 <= plan.width);
  const painter = new SvgPainter();
  painter.paint({ ...drawing, labels: inside });
  painter.place({ scale: 1, x: 0, y: 0 });
  return String(painter.el);
}
