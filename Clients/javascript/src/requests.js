// Requests and replies over topics.
//
// A request is a record with two headers: `reply-to`, the topic for its reply, and `correlation-id`. The reply is a record in that
// topic with the same `correlation-id`, and with `reply-error` if the request couldn't be answered.

import { headerPairs } from "./batch.js";
import { ReplyError, RequestTimeoutError, SluiceError } from "./errors.js";
import { asyncDispose } from "./subscription.js";

const REPLY_TO = "reply-to";
const CORRELATION = "correlation-id";
const REPLY_ERROR = "reply-error";
/** How many producers for requests and replies stay open. */
const MOST_PRODUCERS = 64;

/** The most recently used producers, by topic. */
class ProducerCache {
  #client;
  #role;
  #producers = new Map();

  constructor(client, role) {
    this.#client = client;
    this.#role = role;
  }

  use(topic) {
    let producer = this.#producers.get(topic);
    this.#producers.delete(topic);
    if (producer === undefined || producer.error !== undefined) producer = this.#client.openProducer(topic, { role: this.#role });
    this.#producers.set(topic, producer);
    if (this.#producers.size > MOST_PRODUCERS) {
      const [oldest, former] = this.#producers.entries().next().value;
      this.#producers.delete(oldest);
      if (former.backlog === 0) former.cancel();
      else this.#producers.set(oldest, former);
    }
    return producer;
  }
}

/** The requests of a client that wait for their replies, and the inbox in which those arrive. */
export class Requester {
  #client;
  #producers;
  #waiting = new Map();
  #inbox;
  #subscription;
  #last = 0;

  constructor(client) {
    this.#client = client;
    this.#producers = new ProducerCache(client, "requester");
  }

  async request(topic, payload, { key, headers, timeout = 5_000, signal } = {}) {
    signal?.throwIfAborted();
    const inbox = this.#openInbox();
    const correlation = (++this.#last).toString(16);
    let timer;
    let onAbort;
    try {
      return await new Promise((resolve, reject) => {
        this.#waiting.set(correlation, { resolve, reject, topic });
        timer = setTimeout(() => {
          const message = `no reply came within ${timeout / 1000} s; does a subscriber of topic ${topic} reply to requests?`;
          reject(new RequestTimeoutError(message, { topic, retry: true }));
        }, timeout);
        onAbort = () => reject(signal.reason);
        signal?.addEventListener("abort", onAbort, { once: true });
        const all = [...headerPairs(headers), [REPLY_TO, inbox], [CORRELATION, correlation]];
        this.#producers.use(topic).publish(payload, { key, headers: all }).catch(reject);
      });
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
      this.#waiting.delete(correlation);
    }
  }

  #openInbox() {
    if (this.#inbox === undefined) {
      const random = globalThis.crypto.getRandomValues(new Uint8Array(16));
      this.#inbox = `_inbox.${Array.from(random, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
      // The subscription is sent before any request.
      this.#subscription = this.#client.topic(this.#inbox, { from: "new", lag: "skip", prefetch: 256 }).subscribe().open();
      void this.#read(this.#subscription);
    }
    return this.#inbox;
  }

  async #read(subscription) {
    let error = new SluiceError("the inbox for replies was ended by another client");
    try {
      for await (const record of subscription) {
        const waiting = this.#waiting.get(record.header(CORRELATION));
        if (waiting === undefined) continue;
        const failure = record.header(REPLY_ERROR);
        if (failure === undefined) waiting.resolve(record);
        else waiting.reject(new ReplyError(`the request couldn't be answered: ${failure}`, { topic: waiting.topic }));
      }
    } catch (failure) {
      error = failure;
    }
    this.#inbox = undefined;
    for (const { reject } of this.#waiting.values()) reject(error);
  }

  close() {
    this.#subscription?.cancel();
  }
}

/** Answers the requests that are published to a topic, until it is cancelled. */
export class Responder {
  #subscription;
  #producers;
  #handler;
  /** Settles when the topic has ended, and rejects with the error that ended the responder. */
  done;

  constructor(client, topic, handler, { concurrent = 64 } = {}) {
    this.#producers = new ProducerCache(client, "producer");
    this.#handler = handler;
    this.#subscription = client.topic(topic, { from: "new", prefetch: Math.max(concurrent, 1) }).subscribe().open();
    this.done = this.#run(Math.max(concurrent, 1));
    this.done.catch(() => {});
  }

  async #run(concurrent) {
    const running = new Set();
    for await (const request of this.#subscription) {
      const answer = this.#answer(request).finally(() => running.delete(answer));
      running.add(answer);
      if (running.size >= concurrent) await Promise.race(running);
    }
  }

  async #answer(request) {
    let payload = "";
    let headers = [];
    try {
      const reply = await this.#handler(request);
      const isMessage = typeof reply === "object" && reply !== null && "payload" in reply;
      payload = isMessage ? reply.payload : (reply ?? "");
      headers = isMessage ? headerPairs(reply.headers) : [];
    } catch (error) {
      // A program can choose the text by throwing ReplyError. Otherwise only the error's type is sent.
      const line = error instanceof ReplyError ? error.message : (error?.name ?? "Error");
      headers = [[REPLY_ERROR, line.split(/\s+/).join(" ").slice(0, 1_000)]];
    }
    const address = request.header(REPLY_TO);
    if (address === undefined) return;
    const correlation = request.header(CORRELATION);
    if (correlation !== undefined) headers = [...headers, [CORRELATION, correlation]];
    try {
      await this.#producers.use(address).send(payload, { headers });
    } catch (error) {
      // The requester has left, or its address isn't a topic's name.
      if (!(error instanceof SluiceError)) throw error;
    }
  }

  /** Ends the subscription. Running handlers finish. */
  cancel() {
    this.#subscription.cancel();
  }

  async [asyncDispose]() {
    this.cancel();
  }
}

