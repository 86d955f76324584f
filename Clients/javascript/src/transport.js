// The stream of bytes below a connection: TCP or TLS in Node, a WebSocket in browsers (and in Node from 22 on).
//
// A transport implements `write(bytes)`, which returns whether more may be written now, and `close()`. It calls `onData(bytes)`,
// `onDrain()` and, once, `onClose(error)`.

import { ConnectionLostError, SluiceError } from "./errors.js";

const DEFAULT_PORT = 7420;

/** Parses `HOST`, `HOST:PORT`, `tls://…`, `ws://…` or `wss://…`. Throws TypeError for anything else. */
export function parseServer(address) {
  if (/^wss?:\/\//.test(address)) {
    const url = new URL(address);
    return { kind: "websocket", url: url.href, name: address, isSecure: url.protocol === "wss:" };
  }
  const isSecure = address.startsWith("tls://");
  const rest = isSecure ? address.slice(6) : address;
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:/[\]]+))(?::(\d{1,5}))?$/.exec(rest);
  const port = match?.[3] === undefined ? DEFAULT_PORT : Number(match[3]);
  if (match === null || port === 0 || port > 65_535) {
    throw new TypeError(`${JSON.stringify(address)} isn't an address; write HOST:PORT, tls://HOST:PORT or ws://HOST:PORT`);
  }
  return { kind: "socket", host: match[1] ?? match[2], port, name: rest, isSecure };
}

/** Whether others on the network can read bytes for a server: they leave the machine, without TLS. */
export function isInTheOpen(server) {
  if (server.isSecure) return false;
  const host = (server.kind === "websocket" ? new URL(server.url).hostname.replace(/^\[|\]$/g, "") : server.host).toLowerCase();
  // The second form is how URLs write ::ffff:127.0.0.1.
  return !/^(localhost|(::ffff:)?127(\.\d{1,3}){3}|::ffff:7f[0-9a-f]{2}:[0-9a-f]{1,4}|::1)$/.test(host);
}

/** Opens a transport, which then calls `handlers`. Rejects with a SluiceError when it can't be opened. */
export async function openTransport(server, options, handlers) {
  return server.kind === "websocket" ? openWebSocket(server, handlers) : openSocket(server, options, handlers);
}

async function openSocket(server, options, handlers) {
  const isSecure = server.isSecure || options.tls !== undefined;
  let net;
  try {
    net = isSecure ? await import("node:tls") : await import("node:net");
  } catch (cause) {
    throw new SluiceError(`${server.name} needs TCP, which this runtime doesn't have; use ws:// or wss://`, { cause });
  }
  return new Promise((resolve, reject) => {
    const target = { host: server.host, port: server.port };
    const socket = isSecure
      ? net.connect({ ...target, servername: /^[\d.:]+$/.test(server.host) ? undefined : server.host, ALPNProtocols: ["sluice/1"], ...options.tls })
      : net.connect(target);
    let isOpen = false;
    let failure;
    const abort = () => socket.destroy();
    options.signal?.addEventListener("abort", abort, { once: true });
    socket.once(isSecure ? "secureConnect" : "connect", () => {
      isOpen = true;
      socket.setNoDelay(true);
      resolve({
        write: (bytes) => socket.write(bytes),
        close: () => socket.end(),
      });
    });
    socket.on("data", (data) => handlers.onData(data));
    socket.on("drain", () => handlers.onDrain());
    socket.on("error", (error) => {
      failure = error;
    });
    socket.once("close", () => {
      options.signal?.removeEventListener("abort", abort);
      const reason = failure === undefined ? "" : `: ${failure.message}`;
      if (isOpen) handlers.onClose(new ConnectionLostError(`the connection was closed${reason || " by the broker"}`, { cause: failure }));
      else reject(openingError(server, failure));
    });
  });
}

function openingError(server, failure) {
  const message = failure?.message ?? "the attempt was given up";
  if (/certificate|CERT|SELF_SIGNED/i.test(`${failure?.code} ${message}`)) {
    return new SluiceError(`the certificate of ${server.name} can't be verified: ${message}; pass tls: { ca } or check the name`, { cause: failure });
  }
  return new ConnectionLostError(`can't connect to ${server.name}: ${message}`, { cause: failure });
}

/** How many bytes a WebSocket may hold before writing pauses. It has no event for more room, so the client checks again later. */
const WEBSOCKET_BUFFER = 1 << 20;
const WEBSOCKET_LOOK_MILLISECONDS = 5;

function openWebSocket(server, handlers) {
  const { WebSocket } = globalThis;
  if (WebSocket === undefined) {
    throw new SluiceError(`${server.name} needs WebSocket, which this runtime doesn't have; use HOST:PORT, or Node from 22 on`);
  }
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(server.url, "sluice.1");
    socket.binaryType = "arraybuffer";
    let isOpen = false;
    let timer;
    const look = () => {
      timer = undefined;
      if (socket.bufferedAmount < WEBSOCKET_BUFFER) handlers.onDrain();
      else timer = setTimeout(look, WEBSOCKET_LOOK_MILLISECONDS);
    };
    socket.onopen = () => {
      isOpen = true;
      resolve({
        write(bytes) {
          if (socket.readyState !== 1) return true;
          socket.send(bytes);
          if (socket.bufferedAmount < WEBSOCKET_BUFFER) return true;
          timer ??= setTimeout(look, WEBSOCKET_LOOK_MILLISECONDS);
          return false;
        },
        close: () => socket.close(1000),
      });
    };
    socket.onmessage = ({ data }) => {
      if (typeof data !== "string") handlers.onData(new Uint8Array(data));
    };
    socket.onclose = ({ reason }) => {
      clearTimeout(timer);
      const why = reason === "" ? "" : `: ${reason}`;
      if (isOpen) handlers.onClose(new ConnectionLostError(`the connection was closed${why || " by the broker"}`));
      else reject(new ConnectionLostError(`can't connect to ${server.name}${why}`));
    };
  });
}
