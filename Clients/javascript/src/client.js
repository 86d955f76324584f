// The client: one connection to a broker, and its subscriptions, producers and requests.

import { Request } from "./attachment.js";
import { ClientClosedError } from "./errors.js";
import { Link } from "./link.js";
import { makePlan, makeStart } from "./plans.js";
import { ACKNOWLEDGEMENTS, Producer, within } from "./publication.js";
import { Requester, Responder } from "./requests.js";
import { brokerInfo, connectionInfo, consumerInfo, encodeSettings, topicInfo, topicSummary } from "./settings.js";
import { Topic, asyncDispose, groupSubscription } from "./subscription.js";
import { parseServer } from "./transport.js";

const PAGE = 500;
const TOPIC_INFO = 0x32;
const TOPICS = 0x34;
const DONE = 0x36;
const CURSORS = 0x3a;
const CONNECTIONS = 0x41;
const BROKER_INFO = 0x44;
const RECONNECT = { initialDelay: 100, multiplier: 2, maximumDelay: 10_000, jitter: 0.5, refusals: 3 };

/** A connection to a broker, made by `connect()`. Topics, producers and groups are opened again after a lost connection. */
export class Client {
  #link;
  #options;
  #producers = new Set();
  #requester;
  #isClosed = false;

  constructor(link, options) {
    this.#link = link;
    this.#options = options;
    this.#requester = new Requester(this);
  }

  /** A topic to iterate over. Nothing is sent before the iteration begins. */
  topic(name, options = {}) {
    return new Topic(this, makePlan(name, options, { settings: encodeSettings(options.settings) }), false);
  }

  /** All topics whose names match, including those created later, with one demand. */
  pattern(pattern, options = {}) {
    return new Topic(this, makePlan(pattern, { ...options, cursor: "" }), true);
  }

  /** A membership in a consumer group, to iterate over. */
  group(topic, name, options = {}) {
    const { ack = true, orderedByKey = false, deadline = 30_000, deliveries = 0, deadLetters = "", retryBackoff = [] } = options;
    const group = { name, ack, orderedByKey, deadline, deliveries, deadLetters, retryBackoff };
    return groupSubscription(this, makePlan(topic, { ...options, decode: undefined, cursor: "" }, { group }));
  }

  /** Opens a publication on a topic, which is created if it doesn't exist. */
  producer(topic, options = {}) {
    return this.openProducer(topic, { ...options, role: options.source ? "source" : "producer" });
  }

  /** Like `producer`, with the role by name: `producer`, `source` or `requester`. */
  openProducer(topic, options = {}) {
    const { acknowledge = "received", role, settings, bufferRecords = 65_536, bufferBytes = 8 << 20, producerId, firstSequence = 0 } = options;
    const known = Object.keys(ACKNOWLEDGEMENTS);
    if (!known.includes(acknowledge)) {
      throw new TypeError(`acknowledge: ${JSON.stringify(acknowledge)} isn't one of ${known.join(", ")}`);
    }
    if (producerId !== undefined && (BigInt(producerId) < 1n || BigInt(producerId) >= 1n << 64n)) {
      throw new RangeError("producerId takes a number from 1 to 2n ** 64n - 1n");
    }
    if (!Number.isSafeInteger(firstSequence) || firstSequence < 0) throw new RangeError("firstSequence takes a whole number from 0 up");
    if (firstSequence > 0 && producerId === undefined) throw new TypeError("firstSequence needs a producerId");
    const producer = new Producer(this, topic, {
      acknowledge,
      role,
      settings: encodeSettings(settings),
      bufferRecords,
      bufferBytes,
      producerId: producerId === undefined ? undefined : BigInt(producerId),
      firstSequence,
    });
    this.#producers.add(producer);
    return producer;
  }

  /** Called when a producer has closed. */
  forget(producer) {
    this.#producers.delete(producer);
  }

  /** Publishes a request and resolves with the reply to it. */
  async request(topic, payload = "", options = {}) {
    this.#check();
    return this.#requester.request(topic, payload, options);
  }

  /** Answers the requests that are published to a topic after this call. */
  respond(topic, handler, options = {}) {
    this.#check();
    return new Responder(this, topic, handler, options);
  }

  // Topics

  /** Creates a topic with these settings, or returns the existing topic if its settings are the same. */
  async createTopic(name, settings) {
    return topicInfo(await this.#ask("TOPIC_CREATE", TOPIC_INFO, { topic: name, settings: encodeSettings(settings) }));
  }

  /** Changes settings of a topic. All others stay. */
  async setTopic(name, settings) {
    return topicInfo(await this.#ask("TOPIC_SET", TOPIC_INFO, { topic: name, settings: encodeSettings(settings) }));
  }

  /** A topic's state and settings. */
  async topicInfo(name) {
    return topicInfo(await this.#ask("TOPIC_SHOW", TOPIC_INFO, { topic: name }, { isReading: true }));
  }

  /** All topics that the client is allowed to see, in the byte order of their names. */
  async *topics() {
    for await (const topic of this.#list("TOPIC_LIST", TOPICS, "topics", "topic")) yield topicSummary(topic);
  }

  /** Removes the oldest records: those before an offset, or all but the newest `keepLast`. */
  async trimTopic(name, { before, keepLast }) {
    if ((before === undefined) === (keepLast === undefined)) throw new TypeError("trimTopic() takes either before or keepLast");
    const limit = before === undefined ? 1 : 0;
    return topicInfo(await this.#ask("TOPIC_TRIM", TOPIC_INFO, { topic: name, limit, value: before ?? keepLast }));
  }

  /** Removes all records of a topic. Offsets continue. */
  async purgeTopic(name) {
    return this.trimTopic(name, { keepLast: 0 });
  }

  /** Deletes a topic. */
  async deleteTopic(name) {
    await this.#ask("TOPIC_DELETE", DONE, { topic: name });
  }

  /** Connects a topic whose setting `connect` is manual. */
  async connectTopic(name) {
    await this.#ask("TOPIC_CONNECT", DONE, { topic: name });
  }

  /** Disconnects a topic whose setting `connect` is manual. */
  async disconnectTopic(name) {
    await this.#ask("TOPIC_DISCONNECT", DONE, { topic: name });
  }

  // Cursors and groups

  /** The durable cursors and groups of a topic, in the byte order of their names. */
  async *consumers(topic) {
    for await (const cursor of this.#list("CURSOR_LIST", CURSORS, "cursors", "name", { topic })) yield consumerInfo(cursor);
  }

  /** Moves a durable cursor or a group. A cursor is created if it doesn't exist. */
  async moveCursor(topic, name, to) {
    const { kind, value } = makeStart(to);
    await this.#ask("CURSOR_MOVE", DONE, { topic, name, start: kind, "start value": value });
  }

  /** Deletes a durable cursor or a group. */
  async deleteCursor(topic, name) {
    await this.#ask("CURSOR_DELETE", DONE, { topic, name });
  }

  // The broker

  /** The broker's state. Needs the permission to administer every topic. */
  async brokerInfo() {
    return brokerInfo(await this.#ask("BROKER_SHOW", BROKER_INFO, {}, { isReading: true }));
  }

  /** The broker's connections in the order of their numbers. */
  async *connections() {
    for await (const values of this.#list("CONNECTION_LIST", CONNECTIONS, "connections", "connection")) yield connectionInfo(values);
  }

  /** Closes another client's connection. */
  async closeConnection(id) {
    await this.#ask("CONNECTION_CLOSE", DONE, { connection: id });
  }

  /** The name under which the broker has authenticated the client; empty without authentication or connection. */
  get identity() {
    return this.#link.welcome?.identity ?? "";
  }

  /** Whether the client is connected. */
  get isConnected() {
    return this.#link.isConnected;
  }

  get closeTimeout() {
    return this.#options.closeTimeout;
  }

  // Ending

  /** Flushes the producers within a deadline in milliseconds, then closes the connection. */
  async close({ timeout = this.#options.closeTimeout } = {}) {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#requester.close();
    try {
      const pending = [...this.#producers].filter((producer) => producer.backlog > 0);
      if (pending.length > 0 && this.#link.closed === undefined) {
        await within(timeout, Promise.all(pending.map((producer) => producer.flush())));
      }
    } finally {
      for (const attachment of this.#link.attachments) if (attachment.plan !== undefined) attachment.cancel();
      this.#link.shut(new ClientClosedError("the client is closed", { retry: false }));
    }
  }

  async [asyncDispose]() {
    await this.close();
  }

  // Used by other modules of the client

  /** Opens a stream, now or on the next connection. */
  attach(attachment) {
    this.#check();
    this.#link.add(attachment);
  }

  #check() {
    if (this.#isClosed) throw new ClientClosedError("the client is closed", { retry: false });
  }

  async #ask(name, answer, values, options) {
    const request = new Request(name, values, answer, options);
    this.attach(request);
    return request.result;
  }

  /** The elements of a list that the broker sends in pages. Each page begins after the field `key` of the last element before it. */
  async *#list(name, answer, elements, key, values) {
    let after;
    for (;;) {
      const page = await this.#ask(name, answer, { ...values, after, limit: PAGE }, { isReading: true });
      const found = page[elements];
      yield* found;
      if (page.more === 0 || found.length === 0) return;
      after = found.at(-1)[key];
    }
  }
}

/** Connects to a broker, or to any node of a cluster. Rejects with a SluiceError when no server accepts the client. */
export async function connect(servers = "127.0.0.1", options = {}) {
  const addresses = Array.isArray(servers) ? servers : [servers];
  if (addresses.length === 0) throw new TypeError("connect() takes at least one server");
  const { name = "", user, password, token, tls, reconnect = {}, connectTimeout = 10_000, keepalive = 0 } = options;
  const { direct = true, closeTimeout = 5_000, allowPlaintextCredentials = false } = options;
  if (token !== undefined && user !== undefined) throw new TypeError("connect() takes either user and password, or token");
  const complete = {
    name,
    user,
    password,
    token,
    tls: tls === true ? {} : tls || undefined,
    reconnect: reconnect === null || reconnect === false ? undefined : { ...RECONNECT, ...reconnect },
    connectTimeout,
    keepalive,
    direct,
    closeTimeout,
    allowPlaintextCredentials,
  };
  const parsed = addresses.map(parseServer);
  if (complete.tls !== undefined) for (const server of parsed) server.isSecure = true;
  const link = new Link(complete, parsed);
  await link.connect();
  return new Client(link, complete);
}

