// A broker that follows a test's script, frame by frame.

import assert from "node:assert/strict";
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

import * as sluice from "../src/index.js";
import { BY_NUMBER, decode, encode, header } from "../src/layout.js";

/** The broker's side of one connection. */
class Peer {
  #socket;
  #bytes = Buffer.alloc(0);
  #wake = () => {};
  isEnded = false;

  constructor(socket) {
    this.#socket = socket;
    socket.on("data", (data) => {
      this.#bytes = Buffer.concat([this.#bytes, data]);
      this.#wake();
    });
    socket.on("close", () => {
      this.isEnded = true;
      this.#wake();
    });
    socket.on("error", () => {});
  }

  async #read(count) {
    while (this.#bytes.length < count) {
      if (this.isEnded) throw new Error("the client has closed");
      await new Promise((resolve) => (this.#wake = resolve));
    }
    const part = new Uint8Array(this.#bytes.subarray(0, count));
    this.#bytes = this.#bytes.subarray(count);
    return part;
  }

  async read() {
    const head = await this.#read(12);
    const view = new DataView(head.buffer);
    const body = await this.#read(view.getUint32(0, true));
    const frame = BY_NUMBER.get(head[4]);
    return { name: frame.name, stream: view.getUint32(8, true), flags: head[5], values: decode(frame, body) };
  }

  async expect(name) {
    const frame = await this.read();
    assert.equal(frame.name, name);
    return frame;
  }

  send(name, stream, values) {
    this.#socket.write(encode(name, stream, values));
  }

  deliver(stream, first, ...payloads) {
    const size = 12 + 12 + payloads.reduce((sum, payload) => sum + 4 + payload.length, 0);
    const bytes = new Uint8Array(12 + size);
    const view = new DataView(bytes.buffer);
    header(view, 0, size, 0x13, 0, stream);
    view.setBigUint64(12, BigInt(first), true);
    view.setUint32(20, payloads.length, true);
    view.setUint32(24, 0x8000_0008, true);
    view.setBigInt64(28, 1_000n, true);
    let position = 36;
    for (const payload of payloads) {
      view.setUint32(position, payload.length, true);
      bytes.set(new TextEncoder().encode(payload), position + 4);
      position += 4 + payload.length;
    }
    this.#socket.write(bytes);
  }

  async welcome(values) {
    const { values: hello } = await this.expect("HELLO");
    this.send("WELCOME", 0, {
      version: 1, features: hello.features, "longest frame": 1 << 20, "longest record": 1 << 18, streams: 64, broker: 1n,
      software: "scripted", expires: Infinity, ...values,
    });
    return hello;
  }

  async subscribed(values) {
    const frame = await this.expect("SUBSCRIBE");
    this.send("SUBSCRIBED", frame.stream, { epoch: 7n, ...values });
    return { stream: frame.stream, granted: frame.values["granted through"], frame };
  }

  /** Reads the next frame, which must be PUBLISH. Its batch isn't decoded. */
  async readPublish() {
    const head = await this.#read(12);
    assert.equal(head[4], 0x22);
    await this.#read(new DataView(head.buffer).getUint32(0, true));
  }

  /** Cuts the connection. */
  cut() {
    this.#socket.destroy();
  }

  /** Closes the connection after all sent bytes. */
  end() {
    this.#socket.end();
  }
}

/** Runs `body` with a client of a broker whose connections follow the scripts. */
export async function withScripts(scripts, body, connectOptions) {
  const failures = [];
  const running = [];
  const sockets = new Set();
  const server = createServer((socket) => {
    sockets.add(socket);
    const script = scripts.shift();
    if (script === undefined) socket.destroy();
    else running.push(script(new Peer(socket)).catch((error) => failures.push(error)));
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  let client;
  try {
    client = await sluice.connect(`127.0.0.1:${server.address().port}`, connectOptions);
    await body(client);
    await Promise.race([Promise.all(running), sleep(2_000)]);
  } finally {
    await client?.close();
    for (const socket of sockets) socket.destroy();
    server.close();
  }
  assert.deepEqual(failures, []);
}
