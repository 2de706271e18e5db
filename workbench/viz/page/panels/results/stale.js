// Stale times: those of another run than the reference of the ratios. They are marked, and timed
// again on request.

import { act, pinned } from "../../app/actions.js";
import { button } from "../../app/pieces.js";
import { inOneRun, real } from "../../app/timing.js";
import { h } from "../../base/elements.js";

/** @import { App } from "../../app/store.js" */

const MOST_AT_ONCE = 16; // variants of one request

/** The places of the variants whose times are of another run, or of an earlier session.
 * @param {App} app */
export function staleVariants(app) {
  const { variants } = app.record;
  const reference = variants[pinned(app) ?? -1]?.timing;
  return app.variantsOf(app.view.kernel).filter((i) => {
    const { timing, elsewhere } = variants[i];
    return [timing, ...elsewhere].filter(real).some((row) =>
      row.earlier || (real(reference) && !inOneRun(row, reference))
    );
  });
}

/** What ~ means, where it stands, and how it goes away.
 * @param {App} app */
export function staleLine(app) {
  const places = staleVariants(app);
  if (!places.length) return null;
  const all = [...new Set([pinned(app) ?? places[0], ...places])].slice(0, MOST_AT_ONCE);
  const again = () => act(app, "results", { do: "measure", variants: all, cold: app.view.cold });
  return h(
    "div",
    { class: "wb-stale-line" },
    h(
      "span",
      { class: "wb-quiet wb-small", "data-term": "~" },
      "~ timed in another run, or earlier",
    ),
    button(app, app.pending("measure") ? "Timing…" : "Time these again", again, {
      python: true,
      name: "time-stale",
      title: "in turns with the pinned variant: then they can be compared",
    }),
  );
}
