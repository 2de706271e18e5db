// The keys of Rewrites.

import { isAcross } from "../base/lists.js";

/** Keys of this mode. In lists other than that of the rewrites, arrows walk the list, and in those
 * of other panes j and k too. */
export function rewritesKeys({ el, side, stepBy, go, graph, count, set, pass, copied }) {
  const inListOutside = ({ target }, here) =>
    target.closest("[data-walk]") && !isAcross(target) && !here().contains(target);
  const unlessOutside = (here, actOn) => (event) => (inListOutside(event, here) ? false : actOn());
  const letter = (by) => unlessOutside(el, () => stepBy(by));
  const arrow = (actOn) => unlessOutside(() => side.list, actOn);
  const [next, back] = [arrow(() => stepBy(1)), arrow(() => stepBy(-1))];
  return {
    j: letter(1),
    k: letter(-1),
    ArrowDown: next,
    ArrowRight: next,
    ArrowUp: back,
    ArrowLeft: back,
    Home: arrow(() => go(0)),
    End: arrow(() => go(count())),
    h: () => pass(-1),
    l: () => pass(1),
    f: () => graph.fit(),
    g: () => set(({ whole }) => ({ whole: !whole }))(),
    "/": () => (graph.el.hidden ? side.filter : graph.field).focus(),
    y: copied,
  };
}
