// What a search tried, below the form it found: a tree, each form under the one it came from. The
// way to the best form is open, the rest opens on a click, Enter or the right arrow.

function tried_pane(app) {
  const el = h("div", { class: "wb-pane wb-tried-pane", hidden: true });
  let shown = null;
  const update = () => {
    const search = app.variant()?.search || null;
    if (search === shown) return; // branches that were opened stay so while figures arrive
    shown = search;
    el.hidden = !search;
    refill(el, search && fold("tried", tried_title(search), () => tried_tree(search)));
  };
  return { el, update };
}

function tried_title({ tried, timed, seconds, speedup, device, ended }) {
  const ratio = speedup === null ? "" : `, ${three(speedup)} times as fast as it began`;
  return `SEARCH on ${device}: ${tried} tried, ${timed} timed in ${seconds_text(seconds)}${ratio}; ${ended}`;
}

function tried_tree(search) {
  const forms = search.trials.map(([number, parent, how, seconds, note]) => ({ number, parent, how, seconds, note }));
  const below = new Map(forms.map((form) => [form.number, []]));
  for (const form of forms) below.get(form.parent)?.push(form);
  const open = new Set(way_to(forms, search.best));
  const tree = walkable("tree", "what the search tried", { class: "wb-list wb-tried" });

  const rows = (form, level) => {
    const children = below.get(form.number);
    const is_open = open.has(form.number);
    const row = tried_row(form, level, children.length, is_open, form.number === search.best);
    row.addEventListener("click", () => turn(form.number, !is_open));
    return [row, ...(is_open ? children.flatMap((child) => rows(child, level + 1)) : [])];
  };
  const fill = () => {
    refill(tree, ...forms.filter((form) => form.parent === null).flatMap((form) => rows(form, 1)));
    rove(tree, tree.contains(document.activeElement) ? document.activeElement : null);
  };
  const turn = (number, wanted) => {
    wanted ? open.add(number) : open.delete(number);
    fill();
  };
  tree.addEventListener("keydown", ({ key, target }) => {
    const number = Number(target.dataset.key?.replace("tried-", ""));
    if (key in ACROSS && target.hasAttribute("aria-expanded")) turn(number, key === "ArrowRight");
  });
  fill();
  return tree;
}

/** The numbers of a form and of those that it came from. */
function way_to(forms, best) {
  const parents = new Map(forms.map((form) => [form.number, form.parent]));
  const way = [];
  for (let at = best; at !== null; at = parents.get(at)) way.push(at);
  return way;
}

function tried_row({ number, how, seconds, note }, level, children, is_open, is_best) {
  const mark = children ? (is_open ? "▾" : "▸") : "";
  return h(
    "div",
    {
      class: "wb-row wb-trial",
      role: "treeitem",
      "aria-level": level,
      "aria-expanded": children ? String(is_open) : null,
      "aria-selected": String(is_best),
      "data-item": "",
      "data-key": `tried-${number}`,
      tabindex: -1,
    },
    h("span", { class: "wb-figure wb-quiet" }, String(number)),
    h("span", { class: "wb-figure" }, seconds === null ? "" : seconds_text(seconds)),
    h(
      "span",
      { class: "wb-name", style: `padding-left:${Math.min(level - 1, 12) * 10}px` },
      h("span", { class: "wb-pin", "aria-hidden": "true" }, mark),
      words(how, "wb-code wb-clip"),
      is_best && h("b", { class: "wb-mark" }, "best"),
      note && words(note, "wb-quiet wb-clip", 300),
    ),
  );
}
