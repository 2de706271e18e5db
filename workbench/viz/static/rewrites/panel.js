// Rewrites: the passes, their rewrites, and for each what it made of what: the rule, the text
// before and after, and the graph around the change with a ghost of what was before.

import { button, failure, hasAny, heading } from "../app/pieces.js";
import { h, refill, words } from "../base/elements.js";
import { focusItem } from "../base/lists.js";
import { plural } from "../base/text.js";
import { graphView } from "../graph/view.js";
import { decisionParts } from "../plan/decision.js";
import { exprInline, exprLines } from "../record/expression.js";
import { ancestors } from "../record/history.js";
import { passesOf, stepPass } from "../record/passes.js";
import { decisionOf } from "../record/rules.js";
import { timelineOf } from "../record/states.js";
import { rulesOffBanner } from "../without/banner.js";
import { bisectAnswer, bisectRewrites } from "./bisect.js";
import { changeText, textDifference } from "./differences.js";
import { placedDrawing, rewritesScene } from "./drawing.js";
import { rewritesKeys } from "./keys.js";
import { markStep, passTree, rewriteList } from "./lists.js";
import { nodePanel } from "./node.js";
import { copyStep } from "./python_code.js";
import { passOverview, ruleCard } from "./step.js";

export const panel = { place: "middle", order: 2, title: "Rewrites", make: modeRewrites };

function modeRewrites(app) {
  const side = {
    passes: h("div", { class: "wb-pane wb-rw-tree" }),
    list: h("div", { class: "wb-pane wb-rw-steps" }),
  };
  const head = h("div", { class: "wb-rw-head" });
  const said = h("div", { class: "wb-rw-said" });
  const panel = h("div", { class: "wb-rw-panel" });
  const askRoom = h("div", { class: "wb-rw-failed-ask" });
  const found = h("div", { class: "wb-rw-found" });
  const state = {
    filter: "",
    idle: false,
    rule: null,
    whole: false,
    fold: true,
    closed: new Set(),
    texts: false,
    at: {},
    asked: null,
    place: null,
    seen: null,
    drawn: { timeline: null, positions: new Map() },
  };
  const graph = graphView("graph of the rewrite", {
    node: (node) => app.select({ node: node.n }),
    hover: (node) => app.light(node && { by: "node", axes: [], nodes: [node.n], lines: [] }),
    open: (node) => toggleClosed(node),
  });
  const filter = rewritesFilter(state, () => update(new Set(["filter"])));
  side.filter = filter.querySelector("input");
  const main = h(
    "div",
    { class: "wb-rw-main" },
    head,
    askRoom,
    found,
    said,
    h("div", { class: "wb-rw-picture" }, graph.el, panel),
  );
  const el = h(
    "div",
    { class: "wb-rw" },
    h(
      "div",
      { class: "wb-rw-side" },
      h("div", { class: "wb-pane wb-rw-search" }, heading("PASSES"), filter),
      side.passes,
      side.list,
    ),
    main,
  );

  const current = () => {
    const places = passesOf(app);
    if (places.includes(app.view.pass)) return app.view.pass;
    const most = (place) =>
      app.record.passes[place].rewrites.length *
      (app.record.passes[place].unit === "rewrite" ? 1 : 0.01);
    return places.reduce(
      (best, place) => (most(place) > most(best) ? place : best),
      places[0] ?? null,
    );
  };
  const count = (
    place,
  ) => (place === null ? 0 : timelineOf(app.record, app.record.passes[place]).steps.length);
  const shownStep = (place) => Math.min(app.view.pass === place ? app.view.step : 0, count(place));

  state.chooseRule = (rule) => {
    state.rule = rule;
    update(new Set(["filter"]));
  };
  const go = (step) => {
    const place = current();
    app.select({ pass: place, step: Math.max(0, Math.min(count(place), step)) });
  };
  /** Go on by `by` steps, over those of other rules if one is chosen. */
  const stepBy = (by) => {
    const place = current();
    if (place === null) return;
    let step = shownStep(place) + by;
    const { rewrites } = app.record.passes[place];
    while (
      state.rule !== null && step > 0 && step <= rewrites.length &&
      rewrites[step - 1][0] !== state.rule
    ) step += by;
    if (step >= 0 && step <= count(place)) go(step);
  };
  function toggleClosed(node) {
    if (!state.whole) return;
    if (!state.closed.delete(node.key)) state.closed.add(node.key);
    draw(current(), true);
  }
  function closeLoops() {
    const place = current();
    const timeline = timelineOf(app.record, app.record.passes[place]);
    const loops = (timeline.state(shownStep(place))?.order || []).filter((n) =>
      ["LOOP", "REDUCE", "STAGE", "ACCUMULATE"].includes(timeline.nodes.op[n])
    );
    state.closed = new Set(state.closed.size ? [] : loops.map(timeline.keyOf));
    draw(place, true);
  }
  const set = (values) => () => {
    Object.assign(state, values(state));
    app.changed("drawn");
  };
  /** Whether the record has more passes or nodes, or is another one; figures that arrive change
   * nothing of what is listed, drawn or answered here. */
  const hasGrown = () => {
    const { nodes, passes } = app.record;
    const [seen, now] = [state.seen, [nodes, nodes.op.length, passes.length]];
    state.seen = now;
    return now.some((part, i) => part !== seen?.[i]);
  };

  function update(changes) {
    const place = current();
    if (place !== state.place) Object.assign(state, { place, rule: null });
    const isOther = hasGrown() || hasAny(changes, "kernel", "variant", "pass");
    const isOtherStep = isOther || hasAny(changes, "step");
    if (changes.has("theme")) graph.repaint();
    if (isOther || hasAny(changes, "filter")) {
      refill(side.passes, passTree(app, state, place));
      refill(side.list, ...(place === null ? [] : rewriteList(app, state, place)));
    }
    if (hasAny(changes, "failure")) refill(askRoom, failure(app, "rewrites"));
    if (hasAny(changes, "found", "variant", "pending")) refill(found, bisectAnswer(app));
    if (place === null) return refill(said, h("p", { class: "wb-quiet" }, "No pass is recorded."));
    const step = shownStep(place);
    if (isOtherStep || hasAny(changes, "record", "live", "drawn")) {
      markStep(side.list, step);
      refill(
        head,
        ...stepBar(app, state, place, step, { go, stepBy, set, count: count(place), closeLoops }),
      );
      refill(said, ...saidOf(app, state, place, step, go));
    }
    // the button that tries a decision the other way says when that is under way
    if (changes.has("pending") && app.record.passes[place].unit === "decision") {
      refill(said, ...saidOf(app, state, place, step, go));
    }
    const isPicked = app.view.node !== null;
    if ((isOtherStep || hasAny(changes, "node", "live")) && (isPicked || panel.firstChild)) {
      refill(panel, nodePanel(app, place, step, state));
    }
    if (isOtherStep || hasAny(changes, "drawn")) draw(place, changes.has("drawn"));
    if (isOtherStep || hasAny(changes, "node", "drawn")) pickNode();
    if (changes.has("hover")) {
      graph.light(
        new Set(
          graph.drawing().nodes.filter((node) => app.hover?.nodes.includes(node.n)).map((node) =>
            node.key
          ),
        ),
      );
    }
  }

  /** Draw the step: around its change, or the whole state. */
  function draw(place, isOtherView = false) {
    const step = shownStep(place);
    const scene = rewritesScene(app, state, place, step);
    graph.el.hidden = !scene;
    main.classList.toggle("wb-rw-words", !scene);
    if (!scene) return;
    const timeline = timelineOf(app.record, app.record.passes[place]);
    const anew = isOtherView || state.drawn.timeline !== timeline ||
      state.drawn.whole !== state.whole;
    const drawing = placedDrawing(scene, anew ? new Map() : state.drawn.positions);
    state.drawn = {
      timeline,
      whole: state.whole,
      positions: new Map(drawing.nodes.map((node) => [node.key, node])),
    };
    const keys = scene.focus.length
      ? scene.focus
      : drawing.nodes.slice(0, 1).map((node) => node.key);
    graph.el.classList.toggle("wb-g-tall", state.whole);
    graph.show(
      drawing,
      { keys, first: scene.first },
      scene.left ? `${plural(scene.left, "node")} more that near` : "",
    );
  }

  function pickNode() {
    const drawn = new Map(graph.drawing().nodes.map((node) => [node.n, node.key]));
    const before = app.view.node === null
      ? []
      : [...ancestors(app.record, passesOf(app), [app.view.node])];
    graph.pick(drawn.get(before.find((n) => drawn.has(n))) ?? null);
  }

  const keys = rewritesKeys({
    el: () => el,
    side,
    stepBy,
    go,
    graph,
    count: () => count(current()),
    set,
    pass: (by) => stepPass(app, by, current()),
    copied: () => copyStep(app, current(), shownStep(current())),
  });
  const focus = () => {
    const item = side.list.querySelector('[aria-selected="true"]') ||
      side.passes.querySelector('[aria-selected="true"]');
    if (item) focusItem(item.closest("[data-walk]"), item);
  };
  return { el, update, focus, keys };
}

function rewritesFilter(state, changed) {
  return h(
    "div",
    { class: "wb-rw-filter" },
    h("input", {
      type: "search",
      class: "wb-input",
      placeholder: "filter passes",
      "aria-label": "filter passes",
      oninput: (event) => ((state.filter = event.target.value), changed()),
    }),
    h(
      "label",
      {},
      h("input", {
        type: "checkbox",
        onchange: (event) => ((state.idle = event.target.checked), changed()),
      }),
      "no-ops",
    ),
  );
}

/** The line with which one steps: first, back, where, on, last; and what the graph shows. */
function stepBar(app, state, place, step, { go, stepBy, set, count, closeLoops }) {
  const pass = app.record.passes[place];
  return [
    h("b", {}, words(pass.name)),
    count > 0 && stepper(step, count, go, stepBy),
    pass.unit !== "decision" && viewButtons(app, state, set, closeLoops),
    app.view.variant !== null &&
    button(app, "bisect", () => bisectRewrites(app), {
      python: true,
      title: "find the first rewrite that changes the answer of this variant",
      name: "bisect",
    }),
  ];
}

function stepper(step, count, go, stepBy) {
  const tool = (text, title, actOn, key, off) =>
    h("button", {
      class: "wb-button",
      type: "button",
      title: `${title} (${key})`,
      "aria-label": title,
      "data-key": `step-${title}`,
      disabled: off,
      onclick: actOn,
    }, text);
  const at = step === 0 ? `before, of ${count}` : `${step} of ${count}`;
  return h(
    "span",
    { class: "wb-rw-stepper" },
    tool("«", "first", () => go(0), "Home", step === 0),
    tool("‹", "back", () => stepBy(-1), "k", step === 0),
    h("span", { class: "wb-rw-at", role: "status" }, at),
    tool("›", "next", () => stepBy(1), "j", step >= count),
    tool("»", "last", () => go(count), "End", step >= count),
  );
}

/** What the graph shows: the whole or what is near, folded or not, loops open or closed. */
function viewButtons(app, state, set, closeLoops) {
  return h(
    "span",
    { class: "wb-rw-stepper" },
    button(app, "whole graph", set(({ whole }) => ({ whole: !whole })), {
      pressed: state.whole,
      key: "g",
      name: "whole",
    }),
    button(app, "fold", set(({ fold }) => ({ fold: !fold })), {
      pressed: state.fold,
      title: "constants always, index arithmetic if pressed, stand in the words of what uses them",
      name: "fold",
    }),
    state.whole &&
      button(app, "close loops", closeLoops, {
        title: "a double click on a node closes or opens what only it needs",
        name: "close",
      }),
  );
}

/** The words of a step: its rule, its change, the whole text; of a pass: what it did in all. */
function saidOf(app, state, place, step, go) {
  const pass = app.record.passes[place];
  const timeline = timelineOf(app.record, pass);
  const remember = (isOpen) => (state.texts = isOpen);
  const texts = (k) => app.record.texts[k]?.split("\n");
  if (step === 0) {
    const [before, after] = [texts(pass.text_before), texts(pass.text_after)];
    const differs = before && after && pass.text_before !== pass.text_after;
    return [
      rulesOffBanner(app),
      ...passOverview(app, place, go),
      (before || after) &&
      textDifference(
        differs ? "what the whole pass changed" : "the text",
        true,
        () => [before || after, after || before],
        () => {},
      ),
    ];
  }
  if (pass.unit === "decision") return decisionWords(app, pass.rewrites[step - 1][1]);
  const change = timeline.steps[step - 1];
  const { nodes } = timeline;
  const both = [timeline.roots(step - 1), timeline.roots(step)];
  return [
    rulesOffBanner(app),
    ruleCard(app, change.rule),
    changeText(nodes, change),
    both.every((roots) => roots?.length === 1) &&
    textDifference(
      "whole text, and what differs",
      state.texts,
      () => both.map(([root]) => exprLines(nodes, root)),
      remember,
    ),
  ];
}

/** Why a value is stored or not; more of it is in Plan. */
function decisionWords(app, node) {
  const decision = decisionOf(app, node);
  if (!decision) return [h("p", { class: "wb-quiet" }, "The reason is not recorded.")];
  return [
    h("pre", {}, `${decision.name}: ${exprInline(app.record.nodes, node, 120)}`),
    ...decisionParts(app, decision),
    h("button", {
      class: "wb-button",
      type: "button",
      onclick: () => app.select({ mode: "plan", node }),
    }, "see it in Plan"),
  ];
}
