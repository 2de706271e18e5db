// The channel to Python: requests and replies, patches in order, and the state of the connection. A
// request waits for its reply; messages that Python sends by itself are handled as well.

import { withReadings } from "../record/states.js";

/** @import { AnyRequest, ErrorWords, Message, PageRecord, RecordPatch, WholeRecord } from "../record.d.ts" */
/** @import { ReplyTo } from "../types.d.ts" */
/** @import { App } from "./store.js" */

const ANSWER_WITHIN_MS = 3000;
const ASK_AGAIN_MS = 15_000; // after silence: what was busy may be so no more

export const OFFLINE = {
  what: "this needs the Python session",
  because: "the page was opened without one",
  try: "run the cell again",
};
const UNSAID = { what: "Python raised an error", because: "", try: "" };

/** Return the record from what Python sends: base64 of zlib-compressed JSON.
 * @param {string} packed
 * @returns {Promise<PageRecord>} */
export async function unpacked(packed) {
  const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return withReadings(JSON.parse(await new Response(plain).text()));
}

export class Channel {
  /** The requests under way, by their numbers.
   * @type {Map<number, {request: AnyRequest, settle: Function, fail: (error: ErrorWords) => void}>} */
  waiting = new Map();
  nextId = Math.floor(Math.random() * 2 ** 40); // other views of the same model ask too
  /** @type {number | null} */
  timer = null;
  /** Whether Jupyter said that the Python session is another one. */
  isRestarted = false;

  /**
   * @param {App} app
   * @param {((message: AnyRequest) => void) | null} send */
  constructor(app, send) {
    this.app = app;
    this.send = send;
    if (send) app.live = "unknown";
  }

  /**
   * @template {AnyRequest} R
   * @param {R} request
   * @returns {Promise<ReplyTo<R>>} */
  ask(request) {
    const { send } = this;
    if (!send || this.app.live === "offline") return Promise.reject(OFFLINE);
    const id = this.nextId++;
    return new Promise((settle, fail) => {
      this.waiting.set(id, { request, settle, fail });
      this.app.changed("pending");
      // long work answers late, a ping at once: it tells whether anybody is there
      request.do === "ping" ? this.watch() : this.ping();
      send({ id, ...request });
    });
  }

  /**
   * @param {AnyRequest["do"]} task
   * @param {Record<string, unknown>} fields */
  pending(task, fields) {
    return [...this.waiting.values()].some(
      ({ request }) =>
        request.do === task &&
        Object.entries(fields).every(([name, value]) =>
          [Reflect.get(request, name)].flat().includes(value)
        ),
    );
  }

  /** @param {Message} message */
  async hear(message) {
    const { app } = this;
    // what the background sends while a cell runs is no answer to what was asked
    const isAnswer = "id" in message;
    if (isAnswer) this.stopWatching();
    if (isAnswer || app.live === "unknown") this.setLive("live");
    if ("patch" in message && message.patch) this.takePatch(message.patch);
    const whole = wholeRecord(message);
    if (whole.record) await this.takeRecord(whole.record, isAnswer);
    if ("status" in message) {
      app.status = message.status.task ? message.status : null;
      app.changed("status");
    }
    const entry = isAnswer && message.id !== null && this.waiting.get(message.id);
    if (entry) this.waiting.delete(message.id ?? 0);
    // patches were missed: a page is told so even if its question has been given up meanwhile
    if ((whole.n ?? 0) > (app.record.n ?? Infinity)) this.ping(app.record.n);
    if (this.pending("ping", {})) this.watch(); // that was an answer to something before it
    if (!isAnswer || !entry) return;
    app.changed("pending");
    if (message.ok) entry.settle(message);
    else entry.fail(message.error || UNSAID);
  }

  /**
   * @param {string} packed
   * @param {boolean} isAnswer */
  async takeRecord(packed, isAnswer) {
    this.app.replace(await unpacked(packed));
    if (!isAnswer) this.app.unpick(); // another plan has other numbers
  }

  /** Apply a numbered patch: not twice, and only if none before it is missing.
   * @param {RecordPatch} patch */
  takePatch(patch) {
    const { record } = this.app;
    const number = patch.set.find(([path]) => path.length === 1 && path[0] === "n")?.[1];
    if (typeof number !== "number") return this.app.patch(patch);
    const next = (record.n ?? number - 1) + 1;
    if (number === next) this.app.patch(patch);
    else if (number > next) this.ping(record.n);
  }

  /** The way to Python is closed: nothing asked will be answered. */
  closed() {
    this.stopWatching();
    this.setLive("silent");
    this.waiting.forEach(({ fail }) => fail(OFFLINE));
    this.waiting.clear();
    this.app.changed("pending");
  }

  /** Ask whether Python is there. The answer comes after all patches before it: where one was
   * missed, `hear` asks for the whole record.
   * @param {number | null} [have] */
  ping(have = null) {
    if (this.send && !this.pending("ping", {})) this.ask({ do: "ping", have }).catch(() => {});
  }

  watch() {
    this.timer ??= setTimeout(() => this.unanswered(), ANSWER_WITHIN_MS);
  }

  stopWatching() {
    clearTimeout(this.timer ?? 0);
    this.timer = null;
  }

  unanswered() {
    this.forgetPings();
    this.timer = setTimeout(() => {
      this.forgetPings();
      this.timer = null;
      this.ping();
    }, ASK_AGAIN_MS);
    this.setLive("silent");
  }

  forgetPings() {
    for (const [id, { request }] of this.waiting) {
      if (request.do === "ping") this.waiting.delete(id);
    }
  }

  /** @param {App["live"]} state */
  setLive(state) {
    const { app } = this;
    if (app.live === "offline" || app.live === state) return;
    app.live = state;
    app.changed("live");
  }
}

/** What a message says of the whole record: its number, and the record where that is sent.
 * @param {Message} message
 * @returns {Partial<WholeRecord>} */
const wholeRecord = (message) => ("result" in message && message.result) || {};
