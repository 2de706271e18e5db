// The channel to Python: requests and replies, patches in order, and the state of the connection. A
// request waits for its reply; messages that Python sends by itself are handled as well.

import { withReadings } from "../record/states.js";

/** @import { AnyRequest, ErrorWords, Message, PageRecord, RecordPatch, WholeRecord } from "../record.d.ts" */
/** @import { Constants, ReplyTo } from "../types.d.ts" */
/** @import { App } from "./store.js" */

const ANSWER_WITHIN_MS = 3000;
const ASK_AGAIN_MS = 15_000; // after silence: Python may have been busy

export const OFFLINE = {
  what: "this needs the Python session",
  because: "the page was opened without one",
  try: "run the cell again",
};
const UNSENT = { ...OFFLINE, because: "Python is not connected" };
const BUSY = "Python does not answer: it is busy, or was restarted.";
export const WORKING =
  "Python is busy, with a cell or an earlier request: what is asked for waits until that has ended.";
const CLOSED = "Python closed this workbench: its cell ran again, or its output was cleared.";
export const RESTARTED = "Python was restarted, and does not answer this page.";
const UNKNOWN_ERROR = { what: "Python raised an error", because: "", try: "" };

/** Return the record from the text that Python sends: base64 of zlib-compressed JSON, without the
 * parts that are the same in all records.
 * @param {string} packed
 * @param {Constants | null} [constants]
 * @returns {Promise<PageRecord>} */
export async function unpacked(packed, constants = null) {
  const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
  const plain = new Response(bytes).body?.pipeThrough(new DecompressionStream("deflate"));
  const own = JSON.parse(await new Response(plain).text());
  const panels = { ...constants?.sections, ...own.panels };
  return withReadings({ ...constants?.fields, ...own, panels });
}

export class Channel {
  /** The pending requests, by their numbers.
   * @type {Map<number, {request: AnyRequest, settle: Function, fail: (error: ErrorWords) => void}>} */
  waiting = new Map();
  nextId = Math.floor(Math.random() * 2 ** 40); // other views of the same model send requests too
  /** @type {number | null} */
  timer = null;
  /** Tells the reader what another page, or a cell, has changed.
   * @type {(text: string) => void} */
  tell = () => {};
  /** Why Python does not answer, as a sentence. */
  silence = BUSY;
  /** Whether Python works on a cell, where the host knows. */
  isWorking = () => false;

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
      this.reportPending(request);
      // long requests are answered late, a ping at once: it tests the connection
      request.do === "ping" ? this.watch() : this.ping();
      try {
        send({ id, ...request });
      } catch { // a host without a connection, as while Python restarts
        this.waiting.delete(id);
        fail(UNSENT);
      }
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

  /** Report that a request is pending, or no longer: no pane shows that of a ping.
   * @param {AnyRequest} request */
  reportPending({ do: task }) {
    if (task !== "ping") this.app.changed("pending", `pending ${task}`);
  }

  /** Handle a message; one about the record that stands beside this one goes to its channel.
   * @param {Message} message */
  async receive(message) {
    const { app } = this;
    const about = "record" in message ? message.record ?? null : null;
    if (about !== app.number) {
      if (about !== null && about === app.partner?.number) {
        await app.partner.channel.receive(message);
      }
      return;
    }
    // progress that is sent while a cell runs answers no ping
    const isAnswer = "id" in message;
    if (isAnswer) {
      this.stopWatching();
      if (message.ok) this.silence = BUSY; // the next time
    }
    // an error may be that there is no record any more
    const isRefused = isAnswer && !message.ok && app.live === "silent";
    if (isAnswer ? !isRefused : app.live === "unknown") this.setLive("live");
    if ("patch" in message && message.patch) {
      if (!isAnswer && !this.hasAsked()) this.tellReplaced(message.patch);
      this.takePatch(message.patch);
    }
    const whole = wholeRecord(message);
    if (whole.record) await this.takeRecord(whole.record, isAnswer);
    if ("status" in message) {
      app.status = message.status.task ? message.status : null;
      app.changed("status");
    }
    if ("notice" in message) this.tell(message.notice);
    const entry = isAnswer && message.id !== null && this.waiting.get(message.id);
    if (entry) this.waiting.delete(message.id ?? 0);
    // patches were missed: the page must know, even if its request has been given up meanwhile
    if ((whole.n ?? 0) > (app.record.n ?? Infinity)) this.ping(app.record.n);
    if (this.pending("ping", {})) this.watch(); // the answer to an earlier request
    if (!isAnswer || !entry) return;
    if (isRefused && entry.request.do !== "ping") this.ping();
    this.reportPending(entry.request);
    if (message.ok) entry.settle(message);
    else entry.fail(message.error || UNKNOWN_ERROR);
  }

  /**
   * @param {string} packed
   * @param {boolean} isAnswer */
  async takeRecord(packed, isAnswer) {
    const isOwn = isAnswer || this.hasAsked();
    this.app.replace(await unpacked(packed, this.app.constants));
    if (!isOwn) this.tell("another page or a cell has changed the plan");
    if (!isAnswer) this.app.unpick(); // another plan has its own numbering of patches
  }

  /** Whether the page waits for what it has asked for, which may change the record. */
  hasAsked() {
    return [...this.waiting.values()].some(({ request }) => request.do !== "ping");
  }

  /** Tell the reader what another page, or a cell, replaces: the last one counts. An unsent text stays.
   * @param {RecordPatch} patch */
  tellReplaced({ set }) {
    const { record, drafts } = this.app;
    for (const [path, value] of set) {
      const [field, place, name] = path;
      if (field === "device" && path.length === 1 && record.device !== value) {
        this.tell(`another page or a cell has chosen ${value}`);
      }
      if (field !== "variants" || path.length !== 3 || name !== "note") continue;
      const { note: before, name: variant } = record.variants[Number(place)];
      const hasDraft = drafts.get(name)?.of === place;
      if (before === value || !(before || hasDraft)) continue;
      const yours = hasDraft ? "; yours replaces it when you leave the field" : "";
      this.tell(`another page or a cell has changed the note of ${variant} to “${value}”${yours}`);
    }
  }

  /** Apply a numbered patch once, and only if all before it have arrived.
   * @param {RecordPatch} patch */
  takePatch(patch) {
    const { record } = this.app;
    const number = patch.set.find(([path]) => path.length === 1 && path[0] === "n")?.[1];
    if (typeof number !== "number") return this.app.patch(patch);
    const next = (record.n ?? number - 1) + 1;
    if (number === next) this.app.patch(patch);
    else if (number > next) this.ping(record.n);
  }

  /** The channel is closed: all pending requests fail. */
  closed() {
    this.stopWatching();
    this.silence = CLOSED;
    this.app.changed("live");
    this.setLive("silent");
    const requests = [...this.waiting.values()];
    this.waiting.clear();
    for (const { request, fail } of requests) {
      fail(OFFLINE);
      this.reportPending(request);
    }
  }

  /** Ping Python. The reply comes after all earlier patches: if one was missed, `receive` requests the
   * whole record.
   * @param {number | null} [have] */
  ping(have = null) {
    if (!this.send || this.pending("ping", {})) return;
    this.ask({ do: "ping", have }).catch((/** @type {ErrorWords} */ error) => {
      if (error === OFFLINE) return;
      this.silence = error === UNSENT
        ? BUSY
        : `Python no longer has this exploration: ${error.because}.`;
      this.setLive("silent");
    });
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
    // after a restart another Python works
    this.setLive(this.silence === BUSY && this.isWorking() ? "busy" : "silent");
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
    const isSeen = [app.live, state].some((each) => each === "silent" || each === "busy");
    app.live = state;
    if (isSeen) app.changed("live"); // "unknown" looks as "live" does
    if (state === "live") app.changed("answers");
  }
}

/** The part of a message about the whole record: its number, and the record where it is sent.
 * @param {Message} message
 * @returns {Partial<WholeRecord>} */
const wholeRecord = (message) => ("result" in message && message.result) || {};
