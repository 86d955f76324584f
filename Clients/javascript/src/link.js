// Connections that reconnect when they are lost, and the streams that are opened on each of them.

import { jittered } from "./attachment.js";
import { Connection } from "./connection.js";
import { ConnectionLostError, ErrorCode, SluiceError, isRefusal } from "./errors.js";
import { encode } from "./layout.js";
import { isInTheOpen, parseServer } from "./transport.js";

/** How long the client's broker relays a topic whose node the client could not reach, in milliseconds. */
const RELAY_MILLISECONDS = 60_000;
const AUTHENTICATED = 0x08;

const pause = (milliseconds, signal) =>
  new Promise((resolve) => {
    const timer = setTimeout(done, milliseconds);
    signal.addEventListener("abort", done, { once: true });
    function done() {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    }
  });

/** The client's connection to its broker, or to another node of the cluster. */
export class Link {
  options;
  /** The link to the client's own broker: itself, or the link that this one belongs to. */
  home;
  #servers;
  #server = 0;
  #connection;
  #attachments = new Set();
  #closed;
  #abort = new AbortController();
  #nodes = new Map();
  #unreachable = new Map();
  #renewal;

  constructor(options, servers, home) {
    this.options = options;
    this.#servers = servers;
    this.home = home ?? this;
  }

  get welcome() {
    return this.#connection?.welcome;
  }

  get isConnected() {
    return this.#connection !== undefined;
  }

  /** The error that ended the link; undefined before its end. */
  get closed() {
    return this.#closed;
  }

  get attachments() {
    return [...this.#attachments];
  }

  /** Makes the first connection: tries each server once. Rejects with the last one's error. */
  async connect() {
    let error;
    for (let tries = 0; tries < this.#servers.length; tries++) {
      try {
        this.#use(await this.#dial());
        return;
      } catch (failure) {
        error = failure;
        this.#server = (this.#server + 1) % this.#servers.length;
      }
    }
    throw error;
  }

  async #dial() {
    const { options } = this;
    const server = this.#servers[this.#server];
    const hasCredentials = options.token !== undefined || options.user !== undefined;
    if (hasCredentials && !options.allowPlaintextCredentials && isInTheOpen(server)) {
      throw new SluiceError(
        `the client's credentials weren't sent to ${server.name}, since the connection isn't encrypted; use tls:// or wss://, ` +
          "or allow it by allowPlaintextCredentials",
        { retry: false },
      );
    }
    const hello = { name: options.name, keepalive: options.keepalive, method: 0, user: "", secret: "" };
    if (options.token !== undefined) Object.assign(hello, { method: 2, secret: await this.#token() });
    else if (options.user !== undefined) Object.assign(hello, { method: 1, user: options.user, secret: options.password ?? "" });
    return Connection.open(server, hello, options, (connection, error) => this.#lost(connection, error));
  }

  async #token() {
    const { token } = this.options;
    return typeof token === "function" ? token() : token;
  }

  #use(connection) {
    if (this.#closed !== undefined) {
      connection.close();
      throw this.#closed;
    }
    if (connection.isClosed) throw new ConnectionLostError("the connection was lost right after the handshake");
    this.#connection = connection;
    this.#renewAt(connection.welcome.expires);
    for (const attachment of this.attachments) attachment.openOn(connection);
  }

  #lost(connection, error) {
    if (this.#connection !== connection) return;
    this.#connection = undefined;
    clearTimeout(this.#renewal);
    if (this.#closed !== undefined) return;
    if (this.home !== this) this.#giveBack();
    else if (this.options.reconnect === undefined || error.code === ErrorCode.accessRevoked) this.shut(error);
    else void this.#reconnect(this.options.reconnect);
  }

  async #reconnect(policy) {
    const begin = Date.now();
    let delay = policy.initialDelay;
    let attempts = 0;
    let refusals = 0;
    let error;
    this.#server = (this.#server + 1) % this.#servers.length;
    while (this.#closed === undefined) {
      let wait = jittered(delay, policy.jitter);
      delay = Math.min(delay * policy.multiplier, policy.maximumDelay);
      if (policy.giveUpAfter !== undefined) wait = Math.max(0, Math.min(wait, begin + policy.giveUpAfter - Date.now()));
      await pause(wait, this.#abort.signal);
      let wasRefused = false;
      for (let tries = 0; tries < this.#servers.length && this.#closed === undefined; tries++) {
        attempts++;
        try {
          this.#use(await this.#dial());
          return;
        } catch (failure) {
          error = failure instanceof SluiceError ? failure : new SluiceError(String(failure?.message ?? failure), { cause: failure });
          wasRefused ||= isRefusal(error.code);
        }
        this.#server = (this.#server + 1) % this.#servers.length;
        if (policy.attempts !== undefined && attempts >= policy.attempts) return this.shut(error);
      }
      refusals = wasRefused ? refusals + 1 : 0;
      const isLate = policy.giveUpAfter !== undefined && Date.now() - begin >= policy.giveUpAfter;
      if (this.#closed === undefined && (refusals >= policy.refusals || isLate)) return this.shut(error);
    }
    return undefined;
  }

  /** Opens an attachment, now or when there is a connection. Throws when the link is closed. */
  add(attachment) {
    if (this.#closed !== undefined) throw this.#closed;
    this.#attachments.add(attachment);
    attachment.link = this;
    this.open(attachment);
  }

  remove(attachment) {
    this.#attachments.delete(attachment);
  }

  /** Opens an attachment after its pause, if it still belongs to this link. */
  open(attachment) {
    const connection = this.#connection;
    if (this.#attachments.has(attachment) && connection !== undefined && !connection.isLeaving) attachment.openOn(connection);
  }

  /** Opens an attachment again at this link, after the pause that it requests. */
  reopen(attachment) {
    if (this.#closed !== undefined) {
      attachment.end(this.#closed);
      return;
    }
    this.#attachments.add(attachment);
    attachment.link = this;
    attachment.pauseThenOpen();
  }

  /** Opens an attachment at the node that serves its topic, or requests a relay from the client's broker. */
  redirect(attachment, address) {
    const { home } = this;
    this.remove(attachment);
    const until = home.#unreachable.get(address);
    let server;
    try {
      server = parseServer(address);
    } catch {
      // If this client can't parse the address, it requests a relay.
    }
    const isSocket = home.#servers[0].kind === "socket";
    if (!this.options.direct || !isSocket || server === undefined || (until !== undefined && Date.now() < until)) {
      attachment.relay = true;
      home.reopen(attachment);
      return;
    }
    let link = home.#nodes.get(address);
    if (link === undefined) {
      // The node gets the same security as the client's broker: credentials are never sent in plain text.
      server.isSecure = home.#servers[0].isSecure;
      link = new Link(this.options, [server], home);
      home.#nodes.set(address, link);
      link.connect().catch(() => {
        home.#unreachable.set(address, Date.now() + RELAY_MILLISECONDS);
        for (const waiting of link.attachments) waiting.relay = true;
        link.#giveBack();
      });
    }
    link.add(attachment);
  }

  /** Called when the node can't be reached: opens its streams at the client's broker again. */
  #giveBack() {
    const { home } = this;
    for (const [address, link] of home.#nodes) if (link === this) home.#nodes.delete(address);
    const { attachments } = this;
    this.#attachments.clear();
    this.#closed ??= new ConnectionLostError("the connection to a node of the cluster was lost");
    for (const attachment of attachments) home.reopen(attachment);
  }

  #renewAt(expires) {
    if (typeof this.options.token !== "function" || !Number.isFinite(expires)) return;
    // After four fifths of the remaining time.
    this.#renewIn(Math.max((expires - Date.now()) * 0.8, 100));
  }

  #renewIn(milliseconds) {
    clearTimeout(this.#renewal);
    // Timers take 31 bits.
    this.#renewal = setTimeout(() => void this.#renew(), Math.min(milliseconds, 0x7fff_ffff));
    this.#renewal.unref?.();
  }

  async #renew() {
    const connection = this.#connection;
    try {
      const secret = await this.#token();
      if (connection === undefined || this.#connection !== connection) return;
      const number = connection.begin({
        frame: (type, values) => {
          if (type === AUTHENTICATED) this.#renewAt(values.expires);
          else this.#renewIn(1_000);
          return true;
        },
        deliver() {},
        lost() {},
        writable() {},
      });
      connection.send(encode("AUTHENTICATE", number, { method: 2, user: "", secret }));
    } catch {
      this.#renewIn(1_000);
    }
  }

  /** Ends the link and all its streams with an error. */
  shut(error) {
    this.#closed ??= error;
    this.#abort.abort();
    clearTimeout(this.#renewal);
    for (const link of [...this.#nodes.values()]) link.shut(error);
    const { attachments } = this;
    this.#attachments.clear();
    for (const attachment of attachments) attachment.end(error);
    const connection = this.#connection;
    this.#connection = undefined;
    connection?.close();
  }
}
