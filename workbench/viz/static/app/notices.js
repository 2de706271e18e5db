// What comes and goes: progress, that Python does not answer, what was copied.

import { h, refill, words } from "../base/elements.js";
import { say, stop } from "./actions.js";
import { button, hasAny } from "./pieces.js";

/** What comes and goes, in the free part of the strip's heading so that nothing shifts. */
export function notices(app) {
  const el = h("div", { class: "wb-notices", "aria-live": "polite" });
  const update = (changes) => {
    if (!hasAny(changes, "live", "status", "said")) return;
    refill(
      el,
      app.status && progress(app),
      app.live === "silent" &&
        h(
          "div",
          { class: "wb-notice wb-silent" },
          "Python does not answer (busy; if restarted, run the cell again): looking still works.",
          button(app, "ask again", () => askAgain(app)),
        ),
      app.said && h("div", { class: "wb-notice" }, app.said),
    );
  };
  return { el, update };
}

/** Ask whether Python is there. One that was restarted knows nothing of this page, and is silent. */
function askAgain(app) {
  app.ping();
  say(app, "asking … after a restart only running the cell again helps");
}

function progress(app) {
  const { task, done, total, text } = app.status;
  return h(
    "div",
    { class: "wb-notice" },
    h("b", {}, words(task)),
    h("progress", { max: total || 1, value: total ? done : null, "aria-label": task }),
    words(text || (total ? `${done} of ${total}` : "")),
    button(app, "Stop", () => stop(app), { python: true }),
  );
}
