// Types of the client for Sluice. Times are in milliseconds unless a name says otherwise.

declare global {
  // The same as in TypeScript's own library from 5.2 on, which has `await using`.
  interface SymbolConstructor {
    readonly asyncDispose: unique symbol;
  }
}

/** A value to publish: bytes unchanged, text as UTF-8. */
export type Payload = string | ArrayBuffer | ArrayBufferView;
export type Headers = Record_<string, Payload> | Array<[string, Payload]>;
type Record_<K extends string, V> = { [key in K]: V };

/** A message for `Producer.stream()` and for handlers of requests. */
export interface Message {
  payload: Payload;
  key?: Payload;
  headers?: Headers;
}

/** Codes of the protocol's errors, by name. */
export const ErrorCode: { readonly [name: string]: number };

/** The base of all errors of this package. */
export class SluiceError extends Error {
  /** The protocol's code; 0 for an error that the client detected itself. */
  readonly code: number;
  /** The code's name, such as `unknownTopic`. */
  readonly codeName: string | undefined;
  readonly topic: string | undefined;
  /** Whether the same call can succeed later. */
  readonly retry: boolean;
  constructor(message: string, options?: { code?: number; topic?: string; retry?: boolean; cause?: unknown });
}
/** The other side sent bytes that contradict the protocol. */
export class ProtocolError extends SluiceError {}
/** No server could be reached, or the reconnect policy gave up. */
export class ConnectionLostError extends SluiceError {}
/** The broker refuses the client's credentials, or requires some. */
export class AuthenticationError extends SluiceError {}
/** The client is closed. */
export class ClientClosedError extends SluiceError {}
/** The broker has refused or ended a subscription. */
export class SubscriptionError extends SluiceError {}
/** The broker has refused or ended a publication, or the topic has ended. */
export class PublicationError extends SluiceError {}
/** The topic of a request has no subscribers. The request was not published. */
export class NoRespondersError extends SluiceError {}
/** No reply came in time. */
export class RequestTimeoutError extends SluiceError {}
/** The responder reported that it can't answer. */
export class ReplyError extends SluiceError {}
/** The topic ended with a failure, whose code and message are its producer's. */
export class TopicFailedError extends SluiceError {}

/** One record of a topic. Payload, key and headers are views of the received bytes. */
export class Record {
  readonly topic: string;
  /** The position in the topic, from 0. */
  readonly offset: number;
  /** When the broker accepted the record, in milliseconds since 1970-01-01 UTC. */
  readonly time: number;
  readonly payload: Uint8Array;
  readonly text: string;
  readonly key: Uint8Array | undefined;
  readonly headers: ReadonlyArray<readonly [string, Uint8Array]>;
  /** The payload's JSON value. */
  json(): any;
  /** The value of the first header of that name, as text. */
  header(name: string): string | undefined;
}

/** A record that a consumer group has given to this member. */
export class Delivery extends Record {
  /** How many times the record has been delivered, including this delivery. */
  readonly attempt: number;
  /** Marks the record as done. */
  ack(): Promise<void>;
  /** Asks the group to deliver the record again, after that many milliseconds, or as the group's `retryBackoff` says. */
  retry(options?: { after?: number }): Promise<void>;
  /** Gives the record up: to the dead-letter topic if there is one. */
  reject(): Promise<void>;
  /** Restarts the record's deadline. */
  extend(): Promise<void>;
}

/** The end of replay: every later record was published after the subscription began. */
export class Live {
  readonly topic: string | undefined;
  readonly nextOffset: number;
}
/** Records were dropped before they were requested. */
export class Lag {
  readonly topic: string;
  readonly missed: number;
  readonly nextOffset: number;
}
/** The topic was created again: offsets restart from 0. */
export class Restarted {
  readonly topic: string;
  readonly epoch: bigint;
}
/** The broker lost the last records of a durable topic; delivery continues at `nextOffset` with others. */
export class Rewound {
  readonly topic: string;
  readonly epoch: bigint;
  readonly nextOffset: number;
}
/** The number of producers has changed. */
export class Producers {
  readonly topic: string;
  readonly count: number;
}
/** A pattern now includes this topic. */
export class Matched {
  readonly topic: string;
  readonly epoch: bigint;
  readonly nextOffset: number;
}
/** A pattern no longer includes this topic. */
export class Unmatched {
  readonly topic: string;
}
export type Event = Record | Live | Lag | Restarted | Rewound | Producers | Matched | Unmatched;

/** A start position, from `last()`, `offset()` or `since()`. */
export interface Start {
  readonly isPosition: boolean;
}
export type From = "replay" | "earliest" | "new" | Start;
/** The last `count` records that the topic keeps. */
export function last(count: number): Start;
/** The record with that offset. */
export function offset(value: number): Start;
/** The first record that isn't older than this. */
export function since(time: Date | number): Start;

/** A condition on records, checked by the broker. */
export interface Condition {
  readonly subject: number;
}
export function hasKey(): Condition;
export function key(value: Payload): Condition;
export function keyPrefix(value: Payload): Condition;
export function hasHeader(name: string): Condition;
export function header(name: string, value: Payload): Condition;
export function headerPrefix(name: string, value: Payload): Condition;

/** Decodes a record's payload as JSON, for the option `decode`. */
export function json(record: Record): any;

/** Settings of a topic. Sizes are in bytes, durations in milliseconds; Infinity means no limit. */
export interface Settings {
  replayRecords?: number;
  replayBytes?: number;
  replayAge?: number;
  scope?: "forever" | "connected";
  flow?: "free" | "lossless" | "fastest";
  connect?: "immediate" | "manual" | number;
  bufferRecords?: number;
  bufferBytes?: number;
  withoutSubscribers?: "buffer" | "hold" | "drop";
  lag?: "skip" | "fail";
  compact?: boolean;
  autoDelete?: boolean;
  storage?: "memory" | "durable";
  sync?: "always" | "os" | number;
  whenProducerLost?: number;
}

export interface TopicSummary {
  name: string;
  epoch: bigint;
  /** The lowest offset that can be delivered. */
  floor: number;
  /** The offset of the next record. */
  head: number;
  records: number;
  bytes: number;
  state: "open" | "completed" | "failed";
  failure: { code: number; message: string } | undefined;
  subscriptions: number;
  publications: number;
  isDurable: boolean;
}
export interface TopicInfo extends TopicSummary {
  settings: Settings;
  /** Further values that the broker reports, by the names of the protocol's page. */
  details: { [name: string]: any };
}
export interface ConsumerInfo {
  name: string;
  kind: "cursor" | "group";
  nextOffset: number;
  lag: number;
  members: number;
  unacknowledged: number;
  redeliveries: number;
  deadLetters: number;
  idle: number;
  /** Records of a group that wait for the time of their retry, and milliseconds until the first is delivered. */
  delayed: number;
  nextRetry: number;
}
export interface ConnectionInfo {
  id: number;
  client: string;
  identity: string;
  peer: string;
  security: string;
  age: number;
  subscriptions: number;
  publications: number;
  receivedBytes: number;
  sentBytes: number;
}
export interface BrokerInfo {
  uptime: number;
  time: number;
  problems: Array<{ severity: "critical" | "warning"; kind: string; sentence: string; topic: string | undefined; since: number }>;
  numbers: { [name: string]: number };
}

export interface SubscribeOptions<T = Record> {
  /** Where the subscription begins. Default: "replay". */
  from?: From;
  /** Conditions. The broker only sends records that meet all of them. */
  where?: Condition | Condition[];
  /** Records requested ahead of the loop. Default: 0. */
  prefetch?: number;
  /** How to handle records that were dropped before they were requested. Default: the topic's setting. */
  lag?: "skip" | "fail";
  /** The name of a durable cursor, which the loop moves when it requests the next record. */
  cursor?: string;
  /** Whether to create the topic or to fail if it doesn't exist. Default: "create". */
  missing?: "create" | "fail";
  /** Whether `events()` reports the number of producers. */
  watchProducers?: boolean;
  /** The settings that the topic must have. If it doesn't exist, it is created with them. */
  settings?: Settings;
  /** Turns each record into the loop's value. */
  decode?: (record: Record) => T;
  /** Unsubscribes when the signal is aborted; the loop then throws its reason. */
  signal?: AbortSignal;
}

/** One iteration over a topic, a pattern or a group. */
export class Subscription<T> implements AsyncIterableIterator<T> {
  open(): this;
  next(): Promise<IteratorResult<T>>;
  return(value?: any): Promise<IteratorResult<T>>;
  /** Moves the durable cursor past this record. */
  commit(record: Record): void;
  /** Unsubscribes. */
  cancel(): void;
  [Symbol.asyncIterator](): this;
  [Symbol.asyncDispose](): Promise<void>;
}

/** An observer, or its `next` alone. */
export type Observer<T> =
  | ((value: T) => void)
  | { next?: (value: T) => void; error?: (error: unknown) => void; complete?: () => void };

/** A remote topic, or all topics that match a pattern. Each iteration is a subscription. */
export class Topic<T = Record> implements AsyncIterable<T> {
  readonly name: string;
  subscribe(): Subscription<T>;
  subscribe(observer: Observer<T>): { readonly closed: boolean; unsubscribe(): void };
  /**
   * Records and all other events.
   * @example
   * for await (const event of client.topic("orders").events()) {
   *   if (event instanceof Live) break;
   *   console.log(event.text); // → order 1
   * }
   */
  events(): Subscription<Event>;
  /**
   * A stream of the topic's values. Its queue is the prefetch, and demand follows the queue.
   * @example
   * const reader = client.topic("orders").stream({ highWaterMark: 10 }).getReader();
   * console.log((await reader.read()).value.text); // → order 1
   * await reader.cancel();
   */
  stream(options?: { highWaterMark?: number }): ReadableStream<T>;
  [Symbol.asyncIterator](): AsyncIterator<T>;
}

export interface GroupOptions {
  from?: From;
  where?: Condition | Condition[];
  prefetch?: number;
  /** Whether each delivery is settled. Default: true. */
  ack?: boolean;
  /** Whether records with the same key are delivered one at a time. */
  orderedByKey?: boolean;
  /** Milliseconds after which a delivery that isn't settled goes to another member; 0 for never. Default: 30,000. */
  deadline?: number;
  /** How many times a record is delivered before it is rejected; 0 for no limit. */
  deliveries?: number;
  deadLetters?: string;
  /** Milliseconds that a retry waits at first, and at most: twice as long after each delivery. Default: not at all. */
  retryBackoff?: [number, number];
  missing?: "create" | "fail";
  signal?: AbortSignal;
}

export interface ProducerOptions {
  /** When a record counts as published. Default: "received". */
  acknowledge?: "none" | "received" | "durable";
  /** Whether the broker reports to the producer if the topic is connected. */
  source?: boolean;
  settings?: Settings;
  bufferRecords?: number;
  bufferBytes?: number;
  /**
   * The producer's number: the same in each run of the program, unique on the topic, and not 0. A restarted program publishes the same
   * records in the same order. Those that the topic already has are acknowledged and not published again. Default: a random number, which
   * suffices for lost connections.
   */
  producerId?: number | bigint;
  /** The sequence of the first record that will be published. Default: 0. */
  firstSequence?: number;
}

/** Publishes to one topic. */
export class Producer {
  /** Publishes a record and waits for its acknowledgement. Returns its offset if known. */
  publish(payload: Payload, options?: { key?: Payload; headers?: Headers }): Promise<number | undefined>;
  /** Publishes a record; waits only while the buffer is full. */
  send(payload: Payload, options?: { key?: Payload; headers?: Headers }): Promise<void>;
  sendMany(payloads: Iterable<Payload> | AsyncIterable<Payload>): Promise<void>;
  /** Waits until every record is acknowledged. */
  flush(): Promise<void>;
  /** Ends the topic for all its subscribers. */
  complete(): Promise<void>;
  /** Ends the topic with a failure. */
  fail(code: number, message: string): Promise<void>;
  readonly isConnected: boolean;
  connected(): Promise<void>;
  /** The offset from which on acknowledged records were lost because the broker's store was replaced by an older copy. */
  readonly lostFrom: number | undefined;
  readonly backlog: number;
  readonly error: SluiceError | undefined;
  /** A stream that publishes each written value, with the broker's back-pressure. */
  stream(): WritableStream<Payload | Message>;
  /** Flushes within a deadline, and closes the publication. */
  close(options?: { timeout?: number }): Promise<void>;
  /** Closes the publication, and drops unacknowledged records. */
  cancel(): void;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Answers requests until it is cancelled. */
export class Responder {
  readonly done: Promise<void>;
  cancel(): void;
}

export interface ReconnectPolicy {
  initialDelay?: number;
  multiplier?: number;
  maximumDelay?: number;
  /** The part of each delay that is random, from 0 to 1. Default: 0.5. */
  jitter?: number;
  giveUpAfter?: number;
  attempts?: number;
  refusals?: number;
}

export interface ConnectOptions {
  /** The name that operators of the broker see. */
  name?: string;
  user?: string;
  password?: string;
  /** A token, or a function that returns one, called for each connection and before a token expires. */
  token?: string | (() => string | Promise<string>);
  /** Node: whether to use TLS, or options of `tls.connect` such as `ca`, `cert` and `key`. */
  tls?: boolean | { [option: string]: any };
  /** Whether passwords and tokens are sent without TLS to other machines. Default: false. */
  allowPlaintextCredentials?: boolean;
  /** null or false: the client ends with the first lost connection. */
  reconnect?: ReconnectPolicy | null | false;
  connectTimeout?: number;
  keepalive?: number;
  /** Whether to connect to the node that serves a topic. Default: true. */
  direct?: boolean;
  closeTimeout?: number;
}

/** A connection to a broker. */
export class Client {
  /**
   * A topic to iterate over. Nothing is sent before the iteration begins.
   * @example
   * for await (const record of client.topic("orders", { from: "earliest", prefetch: 100 })) {
   *   console.log(record.offset, record.text); // → 0 order 1
   *   break;
   * }
   */
  topic<T = Record>(name: string, options?: SubscribeOptions<T>): Topic<T>;
  /**
   * All topics whose names match, including those created later, with one demand. `*` is any one token, a last `>` one or more.
   * @example
   * for await (const record of client.pattern(">")) {
   *   console.log(record.topic); // → orders
   *   break;
   * }
   */
  pattern<T = Record>(pattern: string, options?: SubscribeOptions<T>): Topic<T>;
  /**
   * A membership in a consumer group: each record of the topic goes to one of the group's members.
   * @example
   * for await (const delivery of client.group("orders", "billing", { deliveries: 5, deadLetters: "orders.dead" })) {
   *   console.log(delivery.attempt, delivery.text); // → 1 order 1
   *   await delivery.ack();
   *   break;
   * }
   */
  group(topic: string, name: string, options?: GroupOptions): Subscription<Delivery>;
  /**
   * Opens a publication on a topic, which is created if it doesn't exist.
   * @example
   * const producer = client.producer("orders");
   * console.log(await producer.publish("order 2", { key: "eu" })); // → 1
   * await producer.close();
   */
  producer(topic: string, options?: ProducerOptions): Producer;
  /**
   * Publishes a request and resolves with the reply to it.
   * @example
   * const responder = client.respond("prices", (request) => `42 for ${request.text}`);
   * await subscribed("prices");
   * console.log((await client.request("prices", "ACME", { timeout: 2_000 })).text); // → 42 for ACME
   * responder.cancel();
   */
  request(
    topic: string,
    payload?: Payload,
    options?: { key?: Payload; headers?: Headers; timeout?: number; signal?: AbortSignal },
  ): Promise<Record>;
  respond(
    topic: string,
    handler: (request: Record) => Payload | Message | Promise<Payload | Message>,
    options?: { concurrent?: number },
  ): Responder;
  /**
   * Creates a topic with these settings, or returns the existing topic if its settings are the same.
   * @example
   * console.log((await client.createTopic("prices", { compact: true })).settings.compact); // → true
   */
  createTopic(name: string, settings?: Settings): Promise<TopicInfo>;
  setTopic(name: string, settings: Settings): Promise<TopicInfo>;
  topicInfo(name: string): Promise<TopicInfo>;
  topics(): AsyncIterableIterator<TopicSummary>;
  trimTopic(name: string, limit: { before: number } | { keepLast: number }): Promise<TopicInfo>;
  purgeTopic(name: string): Promise<TopicInfo>;
  deleteTopic(name: string): Promise<void>;
  connectTopic(name: string): Promise<void>;
  disconnectTopic(name: string): Promise<void>;
  consumers(topic: string): AsyncIterableIterator<ConsumerInfo>;
  moveCursor(topic: string, name: string, to: From): Promise<void>;
  deleteCursor(topic: string, name: string): Promise<void>;
  brokerInfo(): Promise<BrokerInfo>;
  connections(): AsyncIterableIterator<ConnectionInfo>;
  closeConnection(id: number): Promise<void>;
  readonly identity: string;
  readonly isConnected: boolean;
  readonly closeTimeout: number;
  close(options?: { timeout?: number }): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Connects to a broker, or to any node of a cluster.
 *
 * Addresses are `HOST`, `HOST:PORT`, `tls://HOST:PORT` in Node, and `ws://` or `wss://` URLs in browsers and Node from 22 on.
 */
export function connect(servers?: string | string[], options?: ConnectOptions): Promise<Client>;
