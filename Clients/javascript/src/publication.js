// Producers: publications with back-pressure, acknowledgements, and exactly-once retransmission.

import { Attachment } from "./attachment.js";
import { makeItem, publish } from "./batch.js";
import { ErrorCode, ProtocolError, PublicationError, malformed, misplaced } from "./errors.js";
import { encode } from "./layout.js";
import { asyncDispose } from "./subscription.js";

const DEMAND = 0x12;
const CANCELLED = 0x17;
const COMPLETE = 0x18;
const PUBLISH_OPENED = 0x21;
const ACK = 0x23;
const CONNECTED = 0x24;
const DISCONNECTED = 0x25;
/** Approximately the most bytes of one PUBLISH, if the broker's limit allows it. */
const BATCH_BYTES = 256 << 10;
export const ACKNOWLEDGEMENTS = { none: 0, received: 1, durable: 2 };
const ROLES = { producer: 0, source: 1, requester: 2 };

function randomNumber() {
  return globalThis.crypto.getRandomValues(new BigUint64Array(1))[0] | 1n;
}

/** A promise with its resolving functions. */
function deferred() {
  let resolve;
  let reject;
  const promise = new Promise((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });
  promise.catch(() => {});
  return { promise, resolve, reject };
}

/**
 * The records of a producer, and the stream that sends them. `items[0]` has the sequence `base`. Records before `sent` wait for the
 * broker's acknowledgement, the others for its grant.
 */
class Publication extends Attachment {
  error;
  isConnected;
  #acknowledgement;
  #role;
  #producer;
  #hasChosenId;
  /** The sequence that the topic expects from a producer with a chosen number. Earlier records are from an earlier run. */
  #expected = 0;
  #settings;
  #most;
  #items = [];
  /** The index of the first item that isn't acknowledged. Items before it are removed later, many at a time. */
  #first = 0;
  #base = 0;
  #sent = 0;
  #bytes = 0;
  #granted = 0;
  #grantedBytes = 0;
  #streamBytes = 0;
  /** Whether records may be sent: the stream is open, and its COMPLETE hasn't been sent. */
  #takesRecords = false;
  #hasEnded = false;
  #isSending = false;
  #acks = [];
  #firstAck = 0;
  #room = [];
  #drained = [];
  #connectedWaiters = [];
  #ending;
  #closed;
  #longestRecord = Infinity;
  #epoch = 0n;
  /** The epoch of the last acknowledged record, and the offset after it. */
  #known;
  lostFrom;
  #batchBytes = BATCH_BYTES;

  constructor(topic, { acknowledge, role, settings, bufferRecords, bufferBytes, producerId, firstSequence }) {
    super(topic);
    this.#acknowledgement = ACKNOWLEDGEMENTS[acknowledge];
    this.#role = ROLES[role];
    // Without acknowledgements the client can't know which records to send again, so the producer has no number.
    this.#producer = producerId ?? (this.#acknowledgement === 0 ? 0n : randomNumber());
    this.#hasChosenId = producerId !== undefined;
    this.#base = this.#sent = firstSequence;
    this.#settings = settings;
    this.#most = { records: Math.max(bufferRecords, 1), bytes: Math.max(bufferBytes, 1) };
  }

  get errorType() {
    return PublicationError;
  }

  get firstFrame() {
    return PUBLISH_OPENED;
  }

  get backlog() {
    return this.#items.length - this.#first;
  }

  get #next() {
    return this.#base + this.backlog;
  }

  get hasRoom() {
    return this.backlog < this.#most.records && this.#bytes < this.#most.bytes;
  }

  accept(item) {
    if (this.error !== undefined) throw this.error;
    if (item.size - 4 > this.#longestRecord) {
      throw new PublicationError(`a record has ${item.size - 4} bytes; the broker's limit is ${this.#longestRecord}`, {
        code: ErrorCode.recordTooLarge,
        topic: this.topic,
      });
    }
    if (this.backlog === 0 && this.#base < this.#expected) {
      this.#base++;
      this.#sent++;
      return;
    }
    this.#items.push(item);
    this.#bytes += item.size;
    this.#schedule();
  }

  #schedule() {
    if (this.#isSending || !this.#takesRecords) return;
    this.#isSending = true;
    queueMicrotask(() => this.#send());
  }

  /** Settles when the last record is acknowledged, with its offset if known. */
  acknowledgement() {
    // The offset of a duplicate isn't known either.
    if (this.#acknowledgement === 0 || this.backlog === 0) return undefined;
    const ack = deferred();
    this.#acks.push({ sequence: this.#next - 1, ack });
    return ack.promise;
  }

  async waitForRoom() {
    while (this.error === undefined && !this.hasRoom) await this.#wait(this.#room);
    if (this.error !== undefined) throw this.error;
  }

  async drain() {
    while (this.error === undefined && this.backlog > 0) await this.#wait(this.#drained);
    if (this.error !== undefined) throw this.error;
  }

  async waitConnected() {
    while (this.error === undefined && this.isConnected !== true) await this.#wait(this.#connectedWaiters);
    if (this.error !== undefined) throw this.error;
  }

  #wait(waiters) {
    return new Promise((resolve) => {
      waiters.push(resolve);
    });
  }

  /** Ends the topic after all records. Settles with the broker's answer. */
  complete(kind, code, message) {
    if (this.error !== undefined) throw this.error;
    this.#ending = { kind, code, message };
    this.#closed = deferred();
    this.#sendEnding();
    return this.#closed.promise;
  }

  opening(stream, flags) {
    this.#takesRecords = this.#hasEnded = false;
    return encode(
      "PUBLISH_OPEN",
      stream,
      {
        topic: this.topic,
        acknowledgement: this.#acknowledgement,
        role: this.#role,
        producer: this.#producer,
        "first sequence": this.#producer === 0n ? 0 : this.#base,
        settings: this.#settings,
        "known epoch": this.#known?.epoch,
        "known offset": this.#known?.offset,
      },
      flags,
    );
  }

  handle(number, values) {
    switch (number) {
      case ACK:
        if (this.#producer !== 0n) this.#known = { epoch: this.#epoch, offset: values["last offset"] + 1 };
        this.#acknowledged(values.through, values["last offset"]);
        return false;
      case DEMAND:
        this.#granted = Math.max(this.#granted, values["granted through"]);
        this.#grantedBytes = Math.max(this.#grantedBytes, values["bytes through"]);
        this.#schedule();
        return false;
      case PUBLISH_OPENED:
        this.#opened(values);
        return false;
      case CONNECTED:
      case DISCONNECTED:
        if (this.#role !== ROLES.source) throw misplaced(`a frame of type ${number}`, "a publication that isn't a source");
        this.isConnected = number === CONNECTED;
        if (this.isConnected) release(this.#connectedWaiters);
        return false;
      case COMPLETE:
        this.finish();
        this.#fail(new PublicationError(`topic ${this.topic} has ended`, { code: ErrorCode.topicEnded, topic: this.topic }));
        return true;
      case CANCELLED:
        if (!this.#hasEnded) throw misplaced("CANCELLED", "a stream that isn't cancelled");
        this.finish();
        this.#closed?.resolve();
        this.#fail(new PublicationError(`the producer has ended topic ${this.topic}`, { code: ErrorCode.topicEnded }));
        return true;
      default:
        throw misplaced(`a frame of type ${number}`, "a publication");
    }
  }

  #opened(values) {
    const { welcome } = this.connection;
    this.#takesRecords = true;
    this.#granted = values["granted through"];
    this.#grantedBytes = values["bytes through"];
    this.#streamBytes = 0;
    this.#longestRecord = welcome.longestRecord;
    this.#batchBytes = Math.min(BATCH_BYTES, welcome.longestFrame - 12);
    if (values["lost from"] !== undefined) {
      this.lostFrom = values["lost from"];
      this.#known = undefined;
    }
    this.#epoch = values.epoch;
    let next = values["next sequence"];
    if (this.#producer === 0n) this.#base = this.#sent = next;
    else {
      if (next < this.#base) throw malformed(`the broker expects sequence ${next}, before ${this.#base}, which the producer named`);
      if (this.#hasChosenId) {
        this.#expected = next;
        next = Math.min(next, this.#next);
      }
      if (next > this.#next) {
        // The topic has other records of this producer number. Waiting records are numbered from `next` on.
        const shift = next - this.#base;
        for (const entry of this.#acks) entry.sequence += shift;
        this.#base = next;
      } else this.#acknowledged(next, undefined);
      this.#sent = next;
    }
    this.opened();
    this.#sendEnding();
    this.#schedule();
  }

  #send() {
    this.#isSending = false;
    const { connection } = this;
    if (connection === undefined || !this.#takesRecords) return;
    const items = this.#items;
    while (!connection.isPaused && this.#sent < this.#next) {
      const room = this.#granted - this.#sent;
      const bytesLeft = this.#grantedBytes - this.#streamBytes;
      if (room <= 0 || bytesLeft <= 0) break;
      const from = this.#first + this.#sent - this.#base;
      const most = Math.min(items.length, from + room);
      let to = from;
      let size = 0;
      while (to < most && size < bytesLeft && (to === from || size + items[to].size <= this.#batchBytes)) size += items[to++].size;
      connection.send(publish(this.number, this.#sent, items, from, to, size));
      this.#sent += to - from;
      this.#streamBytes += size;
    }
    if (this.#acknowledgement === 0) this.#acknowledged(this.#sent, undefined);
    this.#sendEnding();
  }

  #sendEnding() {
    if (this.#ending === undefined || !this.#takesRecords || this.connection === undefined || this.#sent !== this.#next) return;
    this.#takesRecords = false;
    this.#hasEnded = true;
    this.connection.send(encode("COMPLETE", this.number, this.#ending));
  }

  writable() {
    this.#schedule();
  }

  #acknowledged(through, lastOffset) {
    let count = through - this.#base;
    if (count > this.backlog) throw new ProtocolError("the broker acknowledged records that weren't published", { code: ErrorCode.malformedFrame });
    if (count > 0) {
      this.#base = through;
      const items = this.#items;
      for (; count > 0; count--) {
        this.#bytes -= items[this.#first].size;
        items[this.#first++] = undefined;
      }
      if (this.#first === items.length) {
        items.length = 0;
        this.#first = 0;
      } else if (this.#first >= 16_384) {
        items.splice(0, this.#first);
        this.#first = 0;
      }
    }
    const acks = this.#acks;
    while (this.#firstAck < acks.length && acks[this.#firstAck].sequence < through) {
      const { sequence, ack } = acks[this.#firstAck];
      acks[this.#firstAck++] = undefined;
      // The frame contains the offset of the last record; the others' offsets are known only within its batch.
      ack.resolve(sequence === through - 1 ? lastOffset : undefined);
    }
    if (this.#firstAck === acks.length || this.#firstAck >= 16_384) {
      acks.splice(0, this.#firstAck);
      this.#firstAck = 0;
    }
    if (this.#room.length > 0 && this.hasRoom) release(this.#room);
    if (this.backlog === 0) release(this.#drained);
  }

  interrupted() {
    this.#takesRecords = false;
    this.isConnected = undefined;
  }

  ended(error) {
    this.#closed?.reject(error);
    this.#fail(error);
  }

  #fail(error) {
    this.error ??= error;
    const acks = this.#acks.slice(this.#firstAck);
    this.#acks = [];
    this.#firstAck = 0;
    for (const { ack } of acks) ack.reject(error);
    this.#items = [];
    this.#first = 0;
    this.#bytes = 0;
    release(this.#room);
    release(this.#drained);
    release(this.#connectedWaiters);
  }
}

function release(waiters) {
  for (const waiter of waiters.splice(0)) waiter();
}

/**
 * Publishes to one topic. The broker's grants create back-pressure: when the topic is full, the buffer fills, and `send()` and
 * `publish()` wait. With acknowledgements each record is in the topic exactly once, even after lost connections.
 */
export class Producer {
  #client;
  #publication;

  constructor(client, topic, options) {
    this.#client = client;
    this.#publication = new Publication(topic, options);
    client.attach(this.#publication);
  }

  /** Publishes a record and waits for its acknowledgement. Returns its offset; undefined if several records were acknowledged at once. */
  async publish(payload, options) {
    const publication = this.#publication;
    const item = makeItem(payload, options);
    if (!publication.hasRoom) await publication.waitForRoom();
    publication.accept(item);
    return publication.acknowledgement();
  }

  /** Publishes a record without waiting for its acknowledgement. Waits only while the buffer is full. */
  async send(payload, options) {
    const publication = this.#publication;
    const item = makeItem(payload, options);
    if (!publication.hasRoom) await publication.waitForRoom();
    publication.accept(item);
  }

  /** Publishes many payloads, each like `send`. */
  async sendMany(payloads) {
    const publication = this.#publication;
    for await (const payload of payloads) {
      const item = makeItem(payload);
      if (!publication.hasRoom) await publication.waitForRoom();
      publication.accept(item);
    }
  }

  /** Waits until every record is acknowledged. Rejects with the error that ended the publication. */
  async flush() {
    await this.#publication.drain();
  }

  /** Ends the topic for all its subscribers, after all records of this producer. */
  async complete() {
    await this.#publication.complete(0, 0, "");
  }

  /** Ends the topic with a failure: a code that the application defines, from 1,000 on, and a line of text for people. */
  async fail(code, message) {
    await this.#publication.complete(1, code, message);
  }

  /** For a source: whether the topic is connected, so that it should publish. */
  get isConnected() {
    return this.#publication.isConnected === true;
  }

  /** For a source: waits until the topic is connected. */
  async connected() {
    await this.#publication.waitConnected();
  }

  /**
   * The offset from which on acknowledged records were lost because the broker's store was replaced by an older copy; undefined
   * otherwise.
   */
  get lostFrom() {
    return this.#publication.lostFrom;
  }

  /** Records that aren't acknowledged yet. */
  get backlog() {
    return this.#publication.backlog;
  }

  /** The error that ended the publication; undefined before its end. */
  get error() {
    return this.#publication.error;
  }

  /** A stream that publishes each written value: a payload, or an object with `payload`, `key` and `headers`. */
  stream() {
    return new WritableStream(
      {
        write: (chunk) => {
          const isMessage = typeof chunk === "object" && chunk !== null && "payload" in chunk;
          return isMessage ? this.send(chunk.payload, chunk) : this.send(chunk);
        },
        close: () => this.close(),
        abort: () => this.cancel(),
      },
      { highWaterMark: 1 },
    );
  }

  /** Flushes within a deadline in milliseconds, and closes the publication. Rejects with TimeoutError, or the error by which records are lost. */
  async close({ timeout = this.#client.closeTimeout } = {}) {
    try {
      if (this.error === undefined) await within(timeout, this.flush());
    } finally {
      this.cancel();
    }
  }

  /** Closes the publication, and drops unacknowledged records. */
  cancel() {
    this.#publication.cancel();
    this.#client.forget(this);
  }

  async [asyncDispose]() {
    await this.close();
  }
}

/** Waits for a promise for at most `milliseconds`, then rejects with a DOMException named TimeoutError. */
export async function within(milliseconds, promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new DOMException(`not done within ${milliseconds} ms`, "TimeoutError")), milliseconds);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
