// The way to Python: requests and their answers, patches in their order, and whether anybody is
// there. One that asks, waits; what Python sends by itself is heard as well.

const ANSWER_WITHIN_MS = 3000;

export const OFFLINE = {
  what: "this needs the Python session",
  because: "the page is looked at without one",
  try: "run the cell again",
};

/** Return the record from what Python sends: base64 of zlib-compressed JSON. */
export async function unpacked(packed) {
  const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(plain).text());
}

/** Give the app `ask`, `pending`, `hear`, `closed`, `ping` and `stopWatching`. */
export function addChannel(app, send) {
  const channel = new Channel(app, send);
  app.live = send ? "unknown" : "offline"; // "live", "silent": asked and not answered
  app.ask = (request) => channel.ask(request);
  app.pending = (task, fields = {}) => channel.pending(task, fields);
  app.hear = (message) => channel.hear(message);
  app.closed = () => channel.closed();
  app.ping = () => channel.ping(null);
  app.stopWatching = () => clearTimeout(channel.timer);
}

class Channel {
  constructor(app, send) {
    this.app = app;
    this.send = send;
    this.waiting = new Map(); // request id -> {request, settle, fail}
    this.nextId = Math.floor(Math.random() * 2 ** 40); // other views of the same model ask too
    this.timer = null;
  }

  ask(request) {
    if (!this.send || this.app.live === "offline") return Promise.reject(OFFLINE);
    const id = this.nextId++;
    return new Promise((settle, fail) => {
      this.waiting.set(id, { request, settle, fail });
      this.app.changed("pending");
      // long work answers late, a ping at once: it tells whether anybody is there
      request.do === "ping" ? this.watch() : this.ping(null);
      this.send({ id, ...request });
    });
  }

  /** Whether a request that fits is under way: pending("check", {variant: 3}); where it has a
   * list, that has the value: pending("measure", {variants: 3}). */
  pending(task, fields) {
    return [...this.waiting.values()].some(
      ({ request }) =>
        request.do === task &&
        Object.entries(fields).every(([name, value]) => [request[name]].flat().includes(value)),
    );
  }

  async hear(message) {
    const { app, waiting } = this;
    // what the background sends while a cell runs is no answer to what was asked
    const isAnswer = "id" in message;
    if (isAnswer) this.stopTimer();
    if (isAnswer || app.live === "unknown") this.setLive("live");
    if (message.patch) this.takePatch(message.patch);
    if (message.result?.record) await this.takeRecord(message.result.record, isAnswer);
    if (message.status) {
      app.status = message.status.task ? message.status : null;
      app.changed("status");
    }
    const asked = waiting.get(message.id);
    waiting.delete(message.id);
    // patches were missed: a page is told so even if its question has been given up meanwhile
    if (message.result?.n > app.record.n) this.ping(app.record.n);
    if (this.pending("ping", {})) this.watch(); // that was an answer to something before it
    if (!asked) return;
    app.changed("pending");
    if (message.ok) asked.settle(message);
    else asked.fail(message.error || { what: "Python could not do it", because: "", try: "" });
  }

  async takeRecord(packed, isAnswer) {
    this.app.replace(await unpacked(packed));
    if (!isAnswer) this.app.unpick(); // another plan has other numbers
  }

  /** Apply a numbered patch: not twice, and only if none before it is missing. */
  takePatch(patch) {
    const { record } = this.app;
    const number = (patch.set || []).find(([path]) => path.length === 1 && path[0] === "n")?.[1];
    const next = (record.n ?? number - 1) + 1;
    if (number === undefined || number === next) this.app.patch(patch);
    else if (number > next) this.ping(record.n);
  }

  /** The way to Python is closed: nothing asked will be answered. */
  closed() {
    this.setLive("silent");
    this.waiting.forEach(({ fail }) => fail(OFFLINE));
    this.waiting.clear();
    this.app.changed("pending");
  }

  /** Ask whether Python is there. The answer comes after all patches before it: where one was
   * missed, `hear` asks for the whole record. */
  ping(have) {
    if (this.send && !this.pending("ping", {})) this.ask({ do: "ping", have }).catch(() => {});
  }

  watch() {
    if (this.timer === null) this.timer = setTimeout(() => this.unanswered(), ANSWER_WITHIN_MS);
  }

  stopTimer() {
    clearTimeout(this.timer);
    this.timer = null;
  }

  unanswered() {
    for (const [id, { request }] of this.waiting) {
      if (request.do === "ping") this.waiting.delete(id);
    }
    this.timer = null;
    this.setLive("silent");
  }

  setLive(state) {
    const { app } = this;
    if (app.live === "offline" || app.live === state) return;
    app.live = state;
    app.changed("live");
  }
}
