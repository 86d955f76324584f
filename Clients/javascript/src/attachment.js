// Streams that a client keeps open at a broker across lost connections: the base of subscriptions, publications and requests.

import { ErrorCode, SluiceError, isRetryable, misplaced, streamError } from "./errors.js";
import { encode } from "./layout.js";

const ERROR = 0x06;
const REDIRECT = 0x09;
/** The first and the longest pause before a stream is opened again on an open connection, in milliseconds. */
const FIRST_PAUSE = 10;
const LONGEST_PAUSE = 500;
/** The longest pause after an error that isn't about a move, such as a full store. */
const LONGEST_RETRY = 10_000;
/** After this many redirections in a row, the client requests a relay. */
const MOST_REDIRECTIONS = 5;
/** How long the client waits for a topic that no node serves, unless the reconnect policy sets another time. */
const MOVE_PATIENCE = 10_000;

/** A random time of at most `milliseconds`; `jitter` is the part that may be left out. */
export function jittered(milliseconds, jitter = 0.5) {
  return milliseconds * (1 - Math.random() * Math.min(Math.max(jitter, 0), 1));
}

/**
 * A stream that is opened again after a lost connection, a move of its topic, and transient errors.
 *
 * Subclasses implement `opening(stream, flags)`, which returns the frame that opens the stream at its current position. They
 * implement `handle(number, values)`, which returns whether a frame was the stream's last one. If needed, they implement
 * `firstFrame`, `deliver`, `interrupted`, `ended(error)`, `recoversFrom(error)` and `writable`.
 */
export class Attachment {
  topic;
  link;
  /** Whether the client requests a relay by its own broker when another node serves the topic. */
  relay = false;
  connection;
  number = 0;
  isOver = false;
  /** Whether the broker has opened the current stream. */
  isOpen = false;
  /** Whether the stream was open before: only then is it opened again after a transient error. */
  wasOpen = false;
  #pauses = 0;
  #redirections = 0;
  #since;
  #timer;

  constructor(topic) {
    this.topic = topic;
  }

  get errorType() {
    return SluiceError;
  }

  /** The type of the stream's first frame, which is sent once; undefined if the only frame is the answer to a request. */
  get firstFrame() {
    return undefined;
  }

  deliver() {
    throw misplaced("DELIVER", "a stream without records");
  }

  interrupted() {}
  ended() {}
  writable() {}
  recoversFrom() {
    return false;
  }

  /** Opens the stream on a connection. */
  openOn(connection) {
    if (this.isOver || this.connection !== undefined) return;
    clearTimeout(this.#timer);
    try {
      this.number = connection.begin(this);
    } catch (error) {
      this.end(error);
      return;
    }
    this.connection = connection;
    connection.send(this.opening(this.number, this.relay ? 0x10 : 0));
  }

  /** The broker has opened the stream. */
  opened() {
    this.isOpen = this.wasOpen = true;
    this.relay = false;
    this.#pauses = this.#redirections = 0;
    this.#since = undefined;
  }

  /** Opens the stream on its link after a pause, which grows with each attempt. */
  pauseThenOpen() {
    this.#pauses++;
    this.#later(jittered(Math.min(FIRST_PAUSE * 2 ** Math.min(this.#pauses, 20), LONGEST_PAUSE)));
  }

  #later(milliseconds) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      if (!this.isOver) this.link?.open(this);
    }, milliseconds);
  }

  frame(number, values) {
    const { firstFrame } = this;
    if (firstFrame !== undefined && number !== ERROR && number !== REDIRECT && (number === firstFrame) === this.isOpen) {
      throw misplaced(`a frame of type ${number}`, this.isOpen ? "a stream that is open" : "a stream that isn't open yet");
    }
    if (number === ERROR) {
      this.#detach();
      this.#refused(streamError(this.errorType, values.code, values.message, this.topic));
      return true;
    }
    if (number === REDIRECT) {
      this.#detach();
      this.interrupted();
      this.#redirections++;
      if (this.#redirections > MOST_REDIRECTIONS) this.relay = true;
      if (this.relay) this.link.reopen(this);
      else this.link.redirect(this, values.address);
      return true;
    }
    return this.handle(number, values);
  }

  #refused(error) {
    const { link } = this;
    if (this.isOver || link === undefined) return;
    const { home } = link;
    const { reconnect } = home.options;
    if (error.code === ErrorCode.topicMoved) {
      this.interrupted();
      if (this.#hasPatience(reconnect)) {
        link.remove(this);
        home.reopen(this);
      } else this.end(error);
    } else if (error.code === ErrorCode.shuttingDown) {
      // The broker closes the connection soon; the next one opens the stream.
      this.interrupted();
      if (reconnect === undefined) this.end(error);
    } else if (this.wasOpen && isRetryable(error.code) && reconnect !== undefined) {
      this.interrupted();
      this.#pauses++;
      this.#later(jittered(Math.min(100 * 2 ** Math.min(this.#pauses, 10), LONGEST_RETRY)));
    } else if (this.recoversFrom(error)) {
      this.interrupted();
      link.open(this);
    } else this.end(error);
  }

  #hasPatience(reconnect) {
    this.#since ??= Date.now();
    const patience = reconnect === undefined ? MOVE_PATIENCE : reconnect.giveUpAfter;
    return patience === undefined || Date.now() - this.#since < patience;
  }

  lost() {
    this.#detach();
    if (!this.isOver) this.interrupted();
  }

  #detach() {
    this.isOpen = false;
    this.connection = undefined;
    this.number = 0;
  }

  /** Ends the stream at the broker, if it is open there. */
  cancel() {
    if (this.isOver) return;
    this.isOver = true;
    clearTimeout(this.#timer);
    this.link?.remove(this);
    if (this.connection !== undefined) {
      this.connection.cancel(this.number);
      this.#detach();
    }
  }

  /** Ends the stream with an error, and passes it to the program. */
  end(error) {
    if (this.isOver) return;
    this.cancel();
    this.ended(error);
  }

  /** The broker has ended the stream in order. */
  finish() {
    this.isOver = true;
    clearTimeout(this.#timer);
    this.link?.remove(this);
    this.#detach();
  }
}

/**
 * A request with one answer. After a lost connection, a request that reads is sent again. One that changes something fails, since the
 * client can't know whether the broker has executed it.
 */
export class Request extends Attachment {
  #name;
  #values;
  #answer;
  #isReading;
  #isSent = false;
  #settle;

  constructor(name, values, answer, { isReading = false } = {}) {
    super(values.topic);
    this.#name = name;
    this.#values = values;
    this.#answer = answer;
    this.#isReading = isReading;
    /** The fields of the answer. */
    this.result = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
    this.result.catch(() => {});
  }

  opening(stream) {
    this.#isSent = true;
    return encode(this.#name, stream, this.#values);
  }

  handle(number, values) {
    if (number !== this.#answer) {
      const error = misplaced(`a frame of type ${number}`, `the stream of ${this.#name}`);
      this.end(error);
      throw error;
    }
    this.finish();
    this.#settle.resolve(values);
    return true;
  }

  lost(error) {
    super.lost(error);
    if (!this.#isReading && this.#isSent) this.end(error);
  }

  ended(error) {
    this.#settle.reject(error);
  }
}
