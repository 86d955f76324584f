// Topics, patterns and groups as asynchronous iterables, streams and observables.

import { GroupFeed, PatternFeed, TopicFeed } from "./feed.js";
import { Delivery, Record } from "./records.js";

const observable = Symbol.observable ?? "@@observable";
export const asyncDispose = Symbol.asyncDispose ?? Symbol.for("nodejs.asyncDispose");

/**
 * One iteration. Iterating is demand: each `next()` requests one value, and `prefetch` more ahead.
 *
 * Leaving the loop, `cancel()` and the signal unsubscribe.
 */
export class Subscription {
  #client;
  #feed;
  #accepts;
  #taken = 0;
  #isOpen = false;
  #last;
  #onAbort;

  constructor(client, feed, accepts) {
    this.#client = client;
    this.#feed = feed;
    this.#accepts = accepts;
  }

  /** Subscribes now, rather than with the first `next()`. */
  open() {
    if (this.#isOpen) return this;
    this.#isOpen = true;
    const { signal } = this.#feed.plan;
    if (signal !== undefined) {
      signal.throwIfAborted();
      this.#onAbort = () => this.cancel();
      signal.addEventListener("abort", this.#onAbort, { once: true });
    }
    this.#client.attach(this.#feed);
    return this;
  }

  async next() {
    const feed = this.#feed;
    this.open();
    if (this.#last !== undefined) feed.commit(this.#last.offset);
    for (;;) {
      this.#want();
      const item = feed.poll() ?? (await feed.next());
      if (item === undefined) {
        this.#release();
        // If its signal ends a loop, the loop throws the signal's reason, like the platform's functions.
        feed.plan.signal?.throwIfAborted();
        return { done: true, value: undefined };
      }
      if (item instanceof Record) {
        this.#taken++;
        if (feed.plan.cursor !== "" && !feed.plan.seesEvents) this.#last = item;
      }
      if (this.#accepts(item)) {
        const { decode } = feed.plan;
        return { done: false, value: decode === undefined ? item : decode(item) };
      }
    }
  }

  /** Requests what the program needs now: one record, and the prefetch. */
  #want() {
    const feed = this.#feed;
    const { prefetch } = feed.plan;
    const ahead = feed.granted - this.#taken;
    if (ahead < 1 || (prefetch > 0 && ahead <= prefetch - (prefetch >> 2))) feed.request(Math.max(prefetch, 1) - ahead);
  }

  /** Moves the durable cursor past this record. The loop does so itself when it requests the next one. */
  commit(record) {
    this.#feed.commit(record.offset);
  }

  /** Unsubscribes. Records that were received but not taken are dropped. */
  cancel() {
    this.#isOpen = true;
    this.#feed.cancel();
    this.#feed.clear();
    this.#release();
  }

  #release() {
    if (this.#onAbort !== undefined) this.#feed.plan.signal.removeEventListener("abort", this.#onAbort);
    this.#onAbort = undefined;
  }

  async return(value) {
    this.cancel();
    return { done: true, value };
  }

  [Symbol.asyncIterator]() {
    return this.open();
  }

  async [asyncDispose]() {
    this.cancel();
  }
}

/** A remote topic, or all topics that match a pattern. It may be iterated many times; each iteration is a subscription. */
export class Topic {
  #client;
  #plan;
  #Feed;

  constructor(client, plan, isPattern) {
    this.#client = client;
    this.#plan = plan;
    this.#Feed = isPattern ? PatternFeed : TopicFeed;
  }

  get name() {
    return this.#plan.topic;
  }

  /** A subscription to the topic's values. */
  subscribe(observer) {
    if (observer !== undefined) return this.#observe(observer);
    return new Subscription(this.#client, new this.#Feed(this.#plan), (item) => item instanceof Record);
  }

  [Symbol.asyncIterator]() {
    return this.subscribe()[Symbol.asyncIterator]();
  }

  /** Records and all other events: lags, the end of replay, and restarts. */
  events() {
    const plan = { ...this.#plan, seesEvents: true, decode: undefined };
    return new Subscription(this.#client, new this.#Feed(plan), () => true);
  }

  /** A stream of the topic's values. Demand follows the stream's queue: no record is requested beyond its size. */
  stream({ highWaterMark = this.#plan.prefetch } = {}) {
    const subscription = new Subscription(
      this.#client,
      new this.#Feed({ ...this.#plan, prefetch: 0 }),
      (item) => item instanceof Record,
    );
    return new ReadableStream(
      {
        start: () => void subscription.open(),
        async pull(controller) {
          const { done, value } = await subscription.next();
          if (done) controller.close();
          else controller.enqueue(value);
        },
        cancel: () => subscription.cancel(),
      },
      { highWaterMark },
    );
  }

  /** Interoperability with observables: an observer gets all values, each after it has returned from the one before. */
  #observe(observer) {
    const sinks = typeof observer === "function" ? { next: observer } : observer;
    const subscription = this.subscribe();
    let isClosed = false;
    (async () => {
      try {
        for await (const value of subscription) {
          if (isClosed) return;
          sinks.next?.(value);
        }
        if (!isClosed) sinks.complete?.();
      } catch (error) {
        if (!isClosed) sinks.error?.(error);
      } finally {
        isClosed = true;
      }
    })();
    return {
      get closed() {
        return isClosed;
      },
      unsubscribe() {
        isClosed = true;
        subscription.cancel();
      },
    };
  }

  [observable]() {
    return { subscribe: (observer) => this.#observe(observer), [observable]() { return this; } };
  }
}

/** A membership in a consumer group. */
export function groupSubscription(client, plan) {
  return new Subscription(client, new GroupFeed(plan), (item) => item instanceof Delivery);
}
