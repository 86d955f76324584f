// One connection to a broker: handshake, frames, stream numbers, keepalive.

import { ConnectionLostError, ErrorCode, ProtocolError, SluiceError, connectionError } from "./errors.js";
import { BY_NUMBER, decode, encode, joined } from "./layout.js";
import { openTransport } from "./transport.js";

const LONGEST_FRAME = 1 << 20;
const BEFORE_WELCOME = 8_192;
/** The smallest value that a broker may announce as its longest frame. */
const LEAST_FRAME = 65_536;
const REDIRECTS = 1n;
const DELIVER = 0x13;
const WELCOME = 0x02;
const PING = 0x03;
const PONG = 0x04;
const GOAWAY = 0x05;
const ERROR = 0x06;
const CANCELLED = 0x17;

/** A stream that the client has cancelled: ignores everything up to CANCELLED. */
const LEAVING = { frame: (number) => number === CANCELLED, deliver() {}, lost() {}, writable() {} };

/**
 * A connection after the handshake. Streams begin with `begin`, and end when their `frame` returns true.
 *
 * A stream implements `frame(number, values)`, `deliver(bytes, view, start, end)`, `lost(error)` and `writable()`.
 */
export class Connection {
  #transport;
  #ended;
  #streams = new Map();
  #free = [];
  #next = 1;
  #rest = [];
  #restLength = 0;
  #needed = 12;
  #out = [];
  #isFlushing = false;
  #heard = Date.now();
  #timer;
  #opened;
  /** The last PING that arrived while the connection couldn't write. It is answered when the connection can write again. */
  #unanswered;
  welcome;
  isPaused = false;
  /** Whether the broker will close the connection soon, so that no new stream is opened on it. */
  isLeaving = false;
  isClosed = false;

  /** Connects and completes the handshake. `ended(connection, error)` is called once, when an open connection ends. */
  static async open(server, hello, options, ended) {
    const connection = new Connection(ended);
    const abort = new AbortController();
    const timer = setTimeout(() => abort.abort(), options.connectTimeout);
    try {
      connection.#transport = await openTransport(server, { tls: options.tls, signal: abort.signal }, {
        onData: (bytes) => connection.receive(bytes),
        onDrain: () => connection.#resume(),
        onClose: (error) => connection.#end(connection.welcome === undefined ? handshakeError(error) : error),
      });
      const opened = new Promise((resolve, reject) => {
        connection.#opened = { resolve, reject };
      });
      abort.signal.addEventListener("abort", () => connection.#end(new ConnectionLostError(`${server.name} did not answer in time`)));
      connection.send(
        encode("HELLO", 0, {
          "lowest version": 1,
          "highest version": 1,
          features: REDIRECTS,
          "longest frame": LONGEST_FRAME,
          keepalive: hello.keepalive,
          name: hello.name,
          method: hello.method,
          user: hello.user,
          secret: hello.secret,
        }),
      );
      await opened;
    } finally {
      clearTimeout(timer);
    }
    return connection;
  }

  constructor(ended) {
    this.#ended = ended;
  }

  /** Queues bytes. All bytes of one turn of the event loop are written together. */
  send(bytes) {
    if (this.isClosed) return;
    this.#out.push(bytes);
    if (!this.#isFlushing) {
      this.#isFlushing = true;
      queueMicrotask(() => this.#flush());
    }
  }

  #flush() {
    this.#isFlushing = false;
    const out = this.#out;
    if (out.length === 0 || this.#transport === undefined) return;
    this.#out = [];
    if (!this.#transport.write(out.length === 1 ? out[0] : joined(out))) this.isPaused = true;
  }

  #resume() {
    this.isPaused = false;
    if (this.#unanswered !== undefined) this.#pong(this.#unanswered);
    for (const stream of [...this.#streams.values()]) stream.writable();
  }

  /** The number of a new stream. Throws SluiceError when the broker's limit is reached. */
  begin(stream) {
    let number = this.#free.pop();
    if (number === undefined) {
      const most = this.welcome.streams;
      if (this.#next > most) {
        throw new SluiceError(`the connection has ${most} streams, the broker's limit; close some or use another client`, {
          code: ErrorCode.limitReached,
        });
      }
      number = this.#next++;
    }
    this.#streams.set(number, stream);
    return number;
  }

  /** Cancels a stream. Its number is free again when the broker has answered. */
  cancel(number) {
    if (!this.#streams.has(number)) return;
    this.#streams.set(number, LEAVING);
    this.send(encode("CANCEL", number));
  }

  /** Handles bytes from the transport. */
  receive(bytes) {
    this.#heard = Date.now();
    if (this.#restLength > 0) {
      this.#rest.push(bytes);
      this.#restLength += bytes.length;
      if (this.#restLength < this.#needed) return;
      bytes = joined(this.#rest);
      this.#rest = [];
      this.#restLength = 0;
    }
    try {
      this.#parse(bytes);
    } catch (error) {
      if (!(error instanceof SluiceError)) throw error;
      this.fail(error);
    }
  }

  #parse(bytes) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    let position = 0;
    this.#needed = 12;
    while (bytes.length - position >= 12) {
      const length = view.getUint32(position, true);
      const number = bytes[position + 4];
      const isOpen = this.welcome !== undefined;
      if (!isOpen && number !== WELCOME && number !== ERROR) {
        const isHTTP = String.fromCharCode(...bytes.subarray(0, 5)) === "HTTP/";
        throw new ProtocolError(`the server isn't a Sluice broker${isHTTP ? ": it speaks HTTP" : ""}`, { code: ErrorCode.notSluice });
      }
      if (length > (isOpen ? LONGEST_FRAME : BEFORE_WELCOME)) {
        throw new ProtocolError(`a frame has ${length} bytes`, { code: ErrorCode.frameTooLarge });
      }
      const start = position + 12;
      const end = start + length;
      if (end > bytes.length) {
        this.#needed = end - position;
        break;
      }
      const flags = bytes[position + 5];
      const stream = view.getUint32(position + 8, true);
      position = end;
      if (number === DELIVER && (flags & 15) === 0) this.#stream(stream, "DELIVER").deliver(bytes, view, start, end);
      else this.#frame(number, flags, stream, bytes.subarray(start, end));
      if (this.isClosed) return;
    }
    if (position < bytes.length) {
      const rest = bytes.subarray(position);
      this.#rest = [rest];
      this.#restLength = rest.length;
    }
  }

  #stream(number, name) {
    const stream = this.#streams.get(number);
    if (stream === undefined) throw new ProtocolError(`${name} for stream ${number}, which isn't open`, { code: ErrorCode.invalidStream });
    return stream;
  }

  #frame(number, flags, stream, body) {
    const frame = BY_NUMBER.get(number);
    if (frame === undefined && number >= 0x80) return;
    if (frame === undefined || (flags & 15) !== 0) {
      throw new ProtocolError(`the broker sent a frame of type ${number}`, { code: ErrorCode.unsupportedFrame });
    }
    if (frame.sender === "client") throw new ProtocolError(`the broker sent ${frame.name}`, { code: ErrorCode.unexpectedFrame });
    const isOwn = number === WELCOME || number === PING || number === PONG || number === GOAWAY;
    if (isOwn && stream !== 0) throw new ProtocolError(`${frame.name} came on stream ${stream}`, { code: ErrorCode.invalidStream });
    const values = decode(frame, body);
    if (stream === 0) {
      this.#own(number, values);
      return;
    }
    const target = this.#stream(stream, frame.name);
    // The stream may have been cancelled while its frame was handled; its number is then in use until CANCELLED.
    if (target.frame(number, values) && this.#streams.get(stream) === target) {
      this.#streams.delete(stream);
      this.#free.push(stream);
    }
  }

  #own(number, values) {
    switch (number) {
      case PING:
        this.#pong(values.token);
        return;
      case PONG:
        return;
      case GOAWAY:
        this.isLeaving = true;
        return;
      case ERROR:
        this.#end(connectionError(values.code, values.message));
        return;
      case WELCOME:
        this.#welcomed(values);
        return;
      default:
        throw new ProtocolError("a frame of a stream came on stream 0", { code: ErrorCode.invalidStream });
    }
  }

  /** Answers a PING. If the broker doesn't read, its answers must not accumulate. */
  #pong(token) {
    this.#unanswered = this.isPaused ? token : undefined;
    if (!this.isPaused) this.send(encode("PONG", 0, { token }));
  }

  #welcomed(values) {
    if (this.welcome !== undefined) throw new ProtocolError("a second WELCOME came", { code: ErrorCode.unexpectedFrame });
    if (values.version !== 1 || (values.features & ~REDIRECTS) !== 0n) {
      throw new ProtocolError("the broker chose what the client didn't offer", { code: ErrorCode.malformedFrame });
    }
    if (values["longest frame"] < LEAST_FRAME || values.streams < 1) {
      throw new ProtocolError("the broker offers less than the protocol's least limits", { code: ErrorCode.malformedFrame });
    }
    this.welcome = {
      longestFrame: values["longest frame"],
      longestRecord: values["longest record"],
      streams: values.streams,
      keepalive: values.keepalive,
      software: values.software,
      identity: values.identity,
      expires: values.expires,
    };
    if (values.keepalive > 0) this.#watch();
    this.#opened?.resolve();
    this.#opened = undefined;
  }

  #watch() {
    const limit = this.welcome.keepalive;
    const silence = Date.now() - this.#heard;
    if (silence >= limit) {
      this.fail(new ConnectionLostError(`nothing was heard from the broker for ${limit / 1000} s`, { code: ErrorCode.keepaliveTimeout }));
      return;
    }
    if (silence >= limit / 2) this.send(encode("PING", 0));
    this.#timer = setTimeout(() => this.#watch(), limit / 4);
    this.#timer.unref?.();
  }

  /** Reports a broker's error to the broker, and closes. */
  fail(error) {
    this.send(encode("ERROR", 0, { code: error.code || ErrorCode.malformedFrame, message: error.message.slice(0, 300) }));
    this.#flush();
    this.#end(error);
  }

  /** Closes the connection after all queued bytes are sent. */
  close() {
    this.#flush();
    this.#end(new ConnectionLostError("the connection was closed"));
  }

  #end(error) {
    if (this.isClosed) return;
    this.isClosed = true;
    clearTimeout(this.#timer);
    this.#transport?.close();
    const streams = [...this.#streams.values()];
    this.#streams.clear();
    if (this.#opened !== undefined) {
      this.#opened.reject(error);
      this.#opened = undefined;
      return;
    }
    for (const stream of streams) stream.lost(error);
    if (this.welcome !== undefined) this.#ended(this, error);
  }
}

function handshakeError(error) {
  return new ConnectionLostError("the server closed the connection during the handshake", { cause: error });
}
