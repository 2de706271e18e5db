import assert from "node:assert/strict";
import { canAsk } from "../../../workbench/viz/page/app/actions.js";
import { OFFLINE, RESTARTED } from "../../../workbench/viz/page/app/channel.js";
import { App } from "../../../workbench/viz/page/app/store.js";
import { recordOf } from "./record.js";

/** An app, its channel, and what it has sent. */
function live() {
  const sent = [];
  const app = new App(recordOf(), { send: (message) => sent.push(message) });
  return { app, channel: app.channel, sent };
}
const patchOf = (n) => ({ append: {}, set: [[["headline"], `${n}`], [["n"], n]] });

Deno.test("without Python a request fails in words", async () => {
  await assert.rejects(new App(recordOf()).ask({ do: "stop" }), (error) => error === OFFLINE);
});

Deno.test("a reply is that to its request; until it comes the request is pending", async () => {
  const { app, channel, sent } = live();
  const reply = app.ask({ do: "check", variant: 1 });
  const { id } = sent.find((message) => message.do === "check");
  assert.ok(app.pending("check", { variant: 1 }) && !app.pending("check", { variant: 0 }));
  await channel.receive({ id, ok: true, error: null, result: { variant: 1 } });
  channel.stopWatching();
  assert.deepEqual((await reply).result, { variant: 1 });
  assert.ok(!app.pending("check") && app.live === "live");
});

Deno.test("an error rejects the request", async () => {
  const { app, channel, sent } = live();
  const error = { what: "no", because: "", try: "" };
  const reply = app.ask({ do: "stop" });
  const { id } = sent.find((message) => message.do === "stop");
  await Promise.all([
    assert.rejects(reply, (problem) => problem === error),
    channel.receive({ id, ok: false, error, result: null }),
  ]);
  channel.stopWatching();
});

Deno.test("a patch is applied once, and where one is missing the record is asked for", async () => {
  const { app, channel, sent } = live();
  await channel.receive({ patch: patchOf(2) });
  await channel.receive({ patch: patchOf(2) });
  assert.deepEqual([app.record.n, app.record.headline, sent], [2, "2", []]);
  await channel.receive({ patch: patchOf(4) });
  channel.stopWatching();
  assert.deepEqual([app.record.n, sent.map(({ do: task, have }) => [task, have])], [2, [[
    "ping",
    2,
  ]]]);
});

Deno.test("what waits when the way to Python closes fails", async () => {
  const { app, channel } = live();
  const reply = app.ask({ do: "stop" });
  channel.closed();
  channel.stopWatching();
  await assert.rejects(reply, (error) => error === OFFLINE);
  assert.equal(app.live, "silent");
});

Deno.test("what another page replaces is told, the page's own changes are not", async () => {
  const { app, channel, sent } = live();
  const told = [];
  channel.tell = (text) => told.push(text);
  const noted = (text) => ({ append: {}, set: [[["variants", 0, "note"], text]] });
  await channel.receive({ patch: noted("first") });
  assert.deepEqual(told, [], "nothing was replaced");
  await channel.receive({ patch: noted("second") });
  app.drafts.set("note", { of: 0, text: "mine", recordText: "second" });
  await channel.receive({ patch: noted("third") });
  await channel.receive({ patch: { append: {}, set: [[["device"], "OTHER"]] } });
  const [note, beside, device] = told;
  assert.ok(note.includes("“second”") && !note.includes("yours"));
  assert.ok(beside.includes("“third”") && beside.includes("yours replaces it"));
  assert.ok(device.includes("OTHER"));
  assert.equal(app.drafts.get("note").text, "mine");
  const reply = app.ask({ do: "note", variant: 0, text: "mine" });
  const { id } = sent.find((message) => message.do === "note");
  await channel.receive({ id, ok: true, error: null, result: null, patch: noted("mine") });
  channel.stopWatching();
  await reply;
  assert.equal(told.length, 3);
  assert.equal(app.record.variants[0].note, "mine");
});

Deno.test("Python that works on a cell is waited for, but not one that was restarted", async () => {
  const { app, channel } = live();
  let isWorking = true;
  channel.isWorking = () => isWorking;
  const states = [];
  const unanswered = (silence) => {
    if (silence) channel.silence = silence;
    channel.unanswered();
    channel.stopWatching();
    states.push([app.live, canAsk(app)]);
  };
  unanswered();
  await channel.receive({ id: null, ok: true, error: null, result: null });
  states.push([app.live, canAsk(app)]);
  isWorking = false;
  unanswered();
  isWorking = true;
  unanswered(RESTARTED);
  const silent = ["silent", false];
  assert.deepEqual(states, [["busy", true], ["live", true], silent, silent]);
});

Deno.test("why Python does not answer is a sentence", async () => {
  const { app, channel, sent } = live();
  channel.closed();
  assert.ok(channel.silence.includes("closed this workbench"));
  const again = live();
  again.channel.ping();
  const [{ id }] = again.sent;
  const error = { what: "no longer connected", because: "its exploration was dropped", try: "" };
  await again.channel.receive({ id, ok: false, error, result: null });
  await new Promise((done) => setTimeout(done));
  again.channel.stopWatching();
  channel.stopWatching();
  assert.ok(again.app.live === "silent" && again.channel.silence.includes(error.because));
  assert.deepEqual([app.live, sent], ["silent", []]);
});
