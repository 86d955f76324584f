// Records, and the other events of a subscription.

import { utf8 } from "./layout.js";

const text = new TextDecoder();

/** The bytes of a payload, key or header's value: strings as UTF-8, buffers unchanged. */
export function toBytes(value) {
  if (typeof value === "string") return utf8.encode(value);
  if (value instanceof Uint8Array) return value;
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  throw new TypeError("a payload, key or header is a string, an ArrayBuffer or a view of one");
}

/**
 * One record of a topic. Its payload, key and headers are views of the received bytes, and share their memory with other records.
 * To keep a few of many records for a long time, copy them (`payload.slice()`).
 */
export class Record {
  #bytes;
  #start;
  #end;
  #attributes;

  constructor(topic, offset, time, bytes, start, end, attributes) {
    /** The topic's name. */
    this.topic = topic;
    /** The position in the topic, from 0. */
    this.offset = offset;
    /** When the broker accepted the record, in milliseconds since 1970-01-01 UTC. */
    this.time = time;
    this.#bytes = bytes;
    this.#start = start;
    this.#end = end;
    this.#attributes = attributes;
  }

  /** The bytes that were published. */
  get payload() {
    return this.#bytes.subarray(this.#start, this.#end);
  }

  /** The payload as UTF-8 text. */
  get text() {
    return text.decode(this.payload);
  }

  /** The payload's JSON value. Throws SyntaxError if it isn't JSON. */
  json() {
    return JSON.parse(this.text);
  }

  /** The key's bytes; undefined for a record without one. */
  get key() {
    return this.#attributes?.key;
  }

  /** The headers in their order, as pairs of name and bytes. */
  get headers() {
    return this.#attributes?.headers ?? [];
  }

  /** The value of the first header of that name as text; undefined without one. */
  header(name) {
    const found = this.headers.find(([key]) => key === name);
    return found === undefined ? undefined : text.decode(found[1]);
  }
}

/** A record that a consumer group has given to this member. */
export class Delivery extends Record {
  #settle;

  constructor(topic, offset, time, bytes, start, end, attributes, attempt, settle) {
    super(topic, offset, time, bytes, start, end, attributes);
    /** How many times the record has been delivered, including this delivery. */
    this.attempt = attempt;
    this.#settle = settle;
  }

  /** Marks the record as done. */
  async ack() {
    this.#settle(this, 0);
  }

  /**
   * Asks the group to deliver the record again, before records that were never delivered. `after` is how many milliseconds the record
   * waits before that, while no member has it; without it the group's `retryBackoff` says.
   */
  async retry({ after } = {}) {
    this.#settle(this, 1, after);
  }

  /** Rejects the record: it goes to the group's dead-letter topic if it has one, and is skipped otherwise. */
  async reject() {
    this.#settle(this, 2);
  }

  /** Restarts the record's deadline, for work that takes longer. */
  async extend() {
    this.#settle(this, 3);
  }
}

/** The end of replay: every later record was published after the subscription began. */
export class Live {
  constructor(topic, nextOffset) {
    this.topic = topic;
    this.nextOffset = nextOffset;
  }
}

/** Records were dropped by the topic's limits before the subscriber requested them. */
export class Lag {
  constructor(topic, missed, nextOffset) {
    this.topic = topic;
    this.missed = missed;
    this.nextOffset = nextOffset;
  }
}

/** The topic was created again: offsets restart from 0 in another epoch. */
export class Restarted {
  constructor(topic, epoch) {
    this.topic = topic;
    this.epoch = epoch;
  }
}

/** The broker lost the last records of a durable topic; the subscription continues at `nextOffset` with other records. */
export class Rewound {
  constructor(topic, epoch, nextOffset) {
    this.topic = topic;
    this.epoch = epoch;
    this.nextOffset = nextOffset;
  }
}

/** The number of producers attached to the topic has changed. */
export class Producers {
  constructor(topic, count) {
    this.topic = topic;
    this.count = count;
  }
}

/** A pattern's subscription now includes this topic. */
export class Matched {
  constructor(topic, epoch, nextOffset) {
    this.topic = topic;
    this.epoch = epoch;
    this.nextOffset = nextOffset;
  }
}

/** A pattern's subscription no longer includes this topic. */
export class Unmatched {
  constructor(topic) {
    this.topic = topic;
  }
}
