// Subscriptions below their iterators: demand, replay to live, resumption, and the queue to the program.

import { Attachment } from "./attachment.js";
import { commit, deliverHeader, demand, settle, walkBatch } from "./batch.js";
import { ErrorCode, ProtocolError, SubscriptionError, TopicFailedError, malformed, misplaced } from "./errors.js";
import { encode, joined } from "./layout.js";
import { Delivery, Lag, Live, Matched, Producers, Record, Restarted, Rewound, Unmatched } from "./records.js";

const SUBSCRIBED = 0x11;
const LIVE = 0x14;
const LAG = 0x15;
const COMPLETE = 0x18;
const MATCHED = 0x1b;
const UNMATCHED = 0x1c;
const SELECT_TOPIC = 0x1d;
const PRODUCERS = 0x1e;
const DELIVERIES = 0x29;
/** How long commits of a cursor are collected before they are sent, in milliseconds. */
const COMMIT_MILLISECONDS = 200;
/** How many queued events are searched for the event that a topic has matched. */
const LOOK_BACK = 64;
/** The most bytes of positions in one frame. */
const POSITIONS_ROOM = 48 << 10;
/** The most verdicts that wait for a connection. If there are more, the deliveries of the oldest ones arrive again. */
const MOST_UNSENT = 65_536;

/** The position of a subscription in one topic. */
class Position {
  epoch = 0n;
  nextOffset = 0;
  time = 0;
  isLive = false;
  /** Whether skipped offsets are no loss. */
  hasGaps = false;

  constructor(topic) {
    this.topic = topic;
  }

  /** Moves to the offset of the next record. Throws when it goes back, or skips records without a LAG. */
  advance(offset) {
    if (offset !== this.nextOffset && (offset < this.nextOffset || !this.hasGaps)) {
      throw malformed(`offset ${offset} of topic ${this.topic} came where ${this.nextOffset} was next`);
    }
    this.nextOffset = offset;
  }

  /** Moves past dropped records. Throws when the offset goes back. */
  skip(offset) {
    if (offset < this.nextOffset) throw malformed(`LAG goes back to offset ${offset} of topic ${this.topic}`);
    this.nextOffset = offset;
  }

  /** Moves past the records of a DELIVER. */
  take({ first, count }) {
    this.advance(first);
    this.nextOffset = first + count;
  }
}

/** The queue of a subscription, and the stream that fills it. Bounded by the demand that the program has given. */
class Feed extends Attachment {
  plan;
  /** Records that the program has requested, and those that were received, over all streams. */
  granted = 0;
  received = 0;
  #base = 0;
  #queue = [];
  #head = 0;
  #waiter;
  #failure;
  #isFinished = false;

  constructor(plan) {
    super(plan.topic);
    this.plan = plan;
  }

  get errorType() {
    return SubscriptionError;
  }

  get firstFrame() {
    return SUBSCRIBED;
  }

  /** Grants `count` more records. */
  request(count) {
    this.granted += count;
    if (this.connection !== undefined) this.connection.send(demand(this.number, this.granted - this.#base));
  }

  /** Returns the remaining demand for a new stream. */
  reopenedDemand() {
    this.#base = this.received;
    return this.granted - this.received;
  }

  /**
   * Queues the records of a DELIVER, all or none. `make` makes a record from its index, time, range in `bytes` and attributes.
   *
   * Returns the time of the last time mark.
   */
  queueBatch(bytes, view, start, end, count, time, make) {
    if (!this.isOpen) throw misplaced("DELIVER", "a stream that isn't open yet");
    this.received += count;
    if (this.received > this.granted) {
      throw new ProtocolError("the broker sent more records than were requested", { code: ErrorCode.demandExceeded });
    }
    const queue = this.#queue;
    const length = queue.length;
    try {
      time = walkBatch(bytes, view, start + 12, end, count, time, (index, at, from, to, attributes) => {
        queue.push(make(index, at, from, to, attributes));
      });
    } catch (error) {
      queue.length = length;
      throw error;
    }
    this.wake();
    return time;
  }

  /** Queues the records of a DELIVER of the topic whose position this is. */
  queueRecords(position, bytes, view, start, end) {
    const header = deliverHeader(view, start, end);
    const { first, count } = header;
    const { topic } = position;
    position.take(header);
    const make = (index, time, from, to, attributes) => new Record(topic, first + index, time, bytes, from, to, attributes);
    position.time = this.queueBatch(bytes, view, start, end, count, position.time, make);
  }

  /** The next item that has arrived; undefined without one. */
  poll() {
    if (this.#head === this.#queue.length) return undefined;
    const item = this.#queue[this.#head];
    this.#queue[this.#head++] = undefined;
    if (this.#head === this.#queue.length) {
      this.#queue.length = 0;
      this.#head = 0;
    } else if (this.#head >= 8_192) {
      this.#queue.splice(0, this.#head);
      this.#head = 0;
    }
    return item;
  }

  /** Waits for the next item; undefined at the end. Rejects, once, with the error that ended the subscription. */
  async next() {
    for (;;) {
      const item = this.poll();
      if (item !== undefined) return item;
      if (this.#failure !== undefined) {
        const error = this.#failure;
        this.#failure = undefined;
        this.#isFinished = true;
        throw error;
      }
      if (this.#isFinished || this.isOver) return undefined;
      if (this.#waiter !== undefined) throw new TypeError("a subscription's next() was called while another call waits");
      await new Promise((resolve) => {
        this.#waiter = resolve;
      });
    }
  }

  put(item) {
    this.#queue.push(item);
    this.wake();
  }

  /** Queues a lag, which replaces one directly before it, since demand doesn't limit how many the broker sends. */
  putLag(topic, missed, nextOffset) {
    const former = this.#last;
    if (former instanceof Lag && former.topic === topic) this.#last = new Lag(topic, former.missed + missed, nextOffset);
    else this.#queue.push(new Lag(topic, missed, nextOffset));
    this.wake();
  }

  /** Queues the number of producers, which replaces one directly before it. */
  putProducers(topic, count) {
    if (this.#last instanceof Producers) this.#last = new Producers(topic, count);
    else this.#queue.push(new Producers(topic, count));
    this.wake();
  }

  /**
   * Queues that a pattern's topic no longer matches. If the program hasn't seen that it matched, both events are dropped instead, since demand
   * doesn't limit how many topics appear and disappear.
   */
  putUnmatched(topic) {
    const queue = this.#queue;
    for (let index = queue.length - 1; index >= Math.max(this.#head, queue.length - LOOK_BACK); index--) {
      const item = queue[index];
      if (item instanceof Matched && item.topic === topic) return void queue.splice(index, 1);
      if (item instanceof Record || item.topic === topic) break;
    }
    this.put(new Unmatched(topic));
  }

  get #last() {
    return this.#queue.at(-1);
  }

  set #last(item) {
    this.#queue[this.#queue.length - 1] = item;
  }

  wake() {
    const waiter = this.#waiter;
    this.#waiter = undefined;
    waiter?.();
  }

  cancel() {
    super.cancel();
    this.wake();
  }

  /** Drops items that were received but not taken. */
  clear() {
    this.#queue.length = 0;
    this.#head = 0;
  }

  ended(error) {
    this.#failure = error;
    this.wake();
  }

  completed(values) {
    if (values.kind === 1) this.#failure = new TopicFailedError(values.message, { code: values.code, topic: this.topic });
    else this.#isFinished = true;
    this.finish();
    this.wake();
    return true;
  }

  unexpected(number) {
    return new ProtocolError(`a frame of type ${number} came on a subscription`, { code: ErrorCode.unexpectedFrame });
  }
}

/** A subscription to one topic. */
export class TopicFeed extends Feed {
  position;
  #asked;
  #isRestarting = false;
  /**
   * Whether the subscription waits for the offset at which it began, which may be beyond the topic's end. After a lost connection it
   * begins there again, without an epoch: an offset with an epoch means that the client knows the records before it.
   */
  #isWaiting = false;
  #hasLive = false;
  #committed = 0;
  #sentCommit = 0;
  #timer;

  constructor(plan) {
    super(plan);
    this.position = new Position(plan.topic);
  }

  opening(stream, flags) {
    const { plan, position } = this;
    let epoch = position.epoch;
    let { kind: start, value } = plan.start;
    this.#hasLive = false;
    if (this.#isWaiting) epoch = 0n;
    else if (this.#isRestarting) [epoch, start, value] = [0n, 0, 0n];
    else if (epoch !== 0n) [start, value] = [4, BigInt(position.nextOffset)];
    this.#asked = epoch === 0n ? undefined : position.nextOffset;
    return encode(
      "SUBSCRIBE",
      stream,
      {
        topic: plan.topic,
        start,
        lag: plan.lag,
        "if missing": plan.missing === "create" ? 0 : 1,
        flags: plan.watchProducers ? 1 : 0,
        "start value": value,
        epoch,
        "granted through": this.reopenedDemand(),
        cursor: plan.cursor,
        filter: plan.where,
        settings: plan.settings,
      },
      flags,
    );
  }

  handle(number, values) {
    const { position, plan } = this;
    switch (number) {
      case SUBSCRIBED:
        this.#subscribed(values);
        return false;
      case LIVE:
        if (this.#hasLive) throw misplaced("LIVE", "a stream that is live");
        this.#hasLive = true;
        position.advance(values["next offset"]);
        if (!position.isLive) {
          position.isLive = true;
          this.put(new Live(plan.topic, values["next offset"]));
        }
        return false;
      case LAG:
        position.skip(values["next offset"]);
        this.#isWaiting = false;
        this.putLag(plan.topic, values.missed, values["next offset"]);
        return false;
      case PRODUCERS:
        this.putProducers(plan.topic, values.count);
        return false;
      case COMPLETE:
        this.flushCommit();
        return this.completed(values);
      default:
        throw this.unexpected(number);
    }
  }

  #subscribed(values) {
    const { position, plan } = this;
    const { epoch } = values;
    const nextOffset = values["next offset"];
    const wasKnown = position.epoch !== 0n;
    if (wasKnown && position.epoch !== epoch && !this.#isWaiting) {
      if (values.continues === 0) {
        position.isLive = false;
        this.put(new Restarted(plan.topic, epoch));
      } else if (this.#asked !== undefined && nextOffset < this.#asked) this.put(new Rewound(plan.topic, epoch, nextOffset));
      this.#committed = 0;
    }
    position.epoch = epoch;
    position.nextOffset = nextOffset;
    position.hasGaps = values.gaps !== 0;
    if (this.#isWaiting || !wasKnown) {
      const { isOffset, value } = plan.start;
      this.#isWaiting = isOffset && value > 0n && Number(value) === nextOffset && nextOffset >= values["live offset"];
    }
    this.#isRestarting = false;
    this.#sentCommit = 0;
    this.opened();
    this.flushCommit();
  }

  recoversFrom(error) {
    const { plan, position } = this;
    if (error.code !== ErrorCode.epochChanged || position.epoch === 0n || plan.lag === 1) return false;
    // A subscription that names no epoch can't have a wrong one.
    if (this.#isRestarting) return false;
    // A program that only gets records, began at a position and has some, would combine two histories without notice.
    if (plan.lag === 2 && !plan.seesEvents && plan.start.isPosition && this.received > 0) return false;
    this.#isRestarting = true;
    return true;
  }

  deliver(bytes, view, start, end) {
    this.queueRecords(this.position, bytes, view, start, end);
    this.#isWaiting = false;
  }

  /** Moves the durable cursor past the record with that offset, after a short time. */
  commit(offset) {
    if (offset + 1 <= this.#committed || this.plan.cursor === "") return;
    this.#committed = offset + 1;
    this.#timer ??= setTimeout(() => this.flushCommit(), COMMIT_MILLISECONDS);
  }

  flushCommit() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#committed > this.#sentCommit && this.connection !== undefined) {
      this.#sentCommit = this.#committed;
      this.connection.send(commit(this.number, Math.min(this.#committed, this.position.nextOffset)));
    }
  }

  cancel() {
    this.flushCommit();
    super.cancel();
  }
}

/** A subscription to all topics whose names match a pattern. */
export class PatternFeed extends Feed {
  #positions = new Map();
  #numbers = new Map();
  #selected;
  #hasAll = false;
  #isLive = false;

  opening(stream, flags) {
    const { plan } = this;
    const pages = [[]];
    let room = POSITIONS_ROOM;
    for (const { topic, epoch, nextOffset } of this.#positions.values()) {
      const size = 26 + topic.length * 3;
      if (size > room) {
        pages.push([]);
        room = POSITIONS_ROOM;
      }
      room -= size;
      pages.at(-1).push({ topic, epoch, "next offset": nextOffset });
    }
    this.#numbers.clear();
    this.#selected = undefined;
    const frames = pages.map((positions, index) =>
      index === 0
        ? encode(
            "SUBSCRIBE_PATTERN",
            stream,
            {
              pattern: plan.topic,
              start: this.#hasAll ? 4 : plan.start.kind,
              lag: plan.lag,
              more: pages.length > 1 ? 1 : 0,
              "start value": this.#hasAll ? 0n : plan.start.value,
              "granted through": this.reopenedDemand(),
              filter: plan.where,
              positions,
            },
            flags,
          )
        : encode("POSITIONS", stream, { more: index < pages.length - 1 ? 1 : 0, positions }),
    );
    return joined(frames);
  }

  handle(number, values) {
    switch (number) {
      case SUBSCRIBED:
        this.opened();
        return false;
      case MATCHED:
        this.#matched(values);
        return false;
      case UNMATCHED: {
        const position = this.#numbers.get(values.number);
        this.#numbers.delete(values.number);
        if (position !== undefined && this.#positions.get(position.topic) === position) {
          this.#positions.delete(position.topic);
          this.putUnmatched(position.topic);
        }
        return false;
      }
      case SELECT_TOPIC:
        this.#select(values.number);
        return false;
      case LIVE:
        if (this.#selected !== undefined) {
          this.#selected.advance(values["next offset"]);
        } else if (!this.#isLive) {
          this.#isLive = true;
          this.put(new Live(undefined, values["next offset"]));
        }
        return false;
      case LAG: {
        const position = this.#current();
        position.skip(values["next offset"]);
        this.putLag(position.topic, values.missed, values["next offset"]);
        return false;
      }
      case COMPLETE:
        this.#current();
        return false;
      default:
        throw this.unexpected(number);
    }
  }

  #matched(values) {
    const { topic, epoch } = values;
    const former = this.#positions.get(topic);
    const position = new Position(topic);
    position.epoch = epoch;
    position.nextOffset = values["next offset"];
    position.hasGaps = values.gaps !== 0;
    this.#positions.set(topic, position);
    this.#numbers.set(values.number, position);
    if (former === undefined) this.put(new Matched(topic, epoch, position.nextOffset));
    else if (former.epoch !== epoch) {
      if (values.continues === 0) this.put(new Restarted(topic, epoch));
      else if (position.nextOffset < former.nextOffset) this.put(new Rewound(topic, epoch, position.nextOffset));
    }
  }

  #select(number) {
    if (number !== 0) {
      this.#selected = this.#numbers.get(number);
      if (this.#selected === undefined) throw malformed("SELECT_TOPIC names a number that isn't matched");
      return;
    }
    this.#selected = undefined;
    if (this.#numbers.size < this.#positions.size) {
      // Topics that were known and don't match now were deleted in between.
      const matched = new Set([...this.#numbers.values()].map((position) => position.topic));
      for (const topic of [...this.#positions.keys()]) {
        if (matched.has(topic)) continue;
        this.#positions.delete(topic);
        this.putUnmatched(topic);
      }
    }
    this.#hasAll = true;
  }

  #current() {
    if (this.#selected === undefined) throw malformed("a frame for one topic came before SELECT_TOPIC");
    return this.#selected;
  }

  deliver(bytes, view, start, end) {
    this.queueRecords(this.#current(), bytes, view, start, end);
  }
}

/** Membership in a consumer group. */
export class GroupFeed extends Feed {
  #attempt = 1;
  #time = 0;
  /** Verdicts that aren't sent yet. They are sent after the next JOIN. */
  #unsent = [];

  opening(stream, flags) {
    const { plan } = this;
    const { group } = plan;
    this.#attempt = 1;
    return encode(
      "JOIN",
      stream,
      {
        topic: plan.topic,
        group: group.name,
        start: plan.start.kind,
        acknowledgement: group.ack ? 1 : 0,
        order: group.orderedByKey ? 1 : 0,
        "if missing": plan.missing === "create" ? 0 : 1,
        "start value": plan.start.value,
        deadline: group.ack ? group.deadline : 0,
        deliveries: group.deliveries,
        "dead letters": group.deadLetters,
        "granted through": this.reopenedDemand(),
        filter: plan.where,
        "first backoff": group.retryBackoff[0],
        "longest backoff": group.retryBackoff[1],
      },
      flags,
    );
  }

  handle(number, values) {
    switch (number) {
      case SUBSCRIBED: {
        this.opened();
        this.#time = 0;
        const unsent = this.#unsent;
        this.#unsent = [];
        for (const settlement of unsent) this.#send(...settlement);
        return false;
      }
      case DELIVERIES:
        this.#attempt = values.count;
        return false;
      case LAG:
        this.putLag(this.plan.topic, values.missed, values["next offset"]);
        return false;
      case LIVE:
        return false;
      case COMPLETE:
        return this.completed(values);
      default:
        throw this.unexpected(number);
    }
  }

  deliver(bytes, view, start, end) {
    const { first, count } = deliverHeader(view, start, end);
    const { topic } = this.plan;
    const settleOne = (delivery, verdict, delay) => this.#settle(delivery, verdict, delay);
    const make = (index, time, from, to, attributes) =>
      new Delivery(topic, first + index, time, bytes, from, to, attributes, this.#attempt, settleOne);
    this.#time = this.queueBatch(bytes, view, start, end, count, this.#time, make);
  }

  #settle(delivery, verdict, delay) {
    if (this.isOver) {
      throw new SubscriptionError(`the member of group ${this.plan.group.name} has left, so its deliveries go to other members`, {
        topic: this.topic,
      });
    }
    this.#send(verdict, delivery.attempt, delivery.offset, delay);
  }

  #send(verdict, attempt, offset, delay) {
    if (this.connection !== undefined) this.connection.send(settle(this.number, verdict, attempt, offset, delay));
    else if (this.#unsent.length < MOST_UNSENT) this.#unsent.push([verdict, attempt, offset, delay]);
  }
}
