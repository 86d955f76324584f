// A broker in its own process, for tests.

import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { connect as connectSocket, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../../", import.meta.url));

/** The program; undefined if it isn't built. */
export const program =
  process.env.SLUICED ??
  ["strict/debug", "release", "debug"].map((build) => join(root, ".build", build, "sluiced")).find(existsSync);

export async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

export class Broker {
  static async start(...options) {
    const broker = new Broker();
    broker.directory = await mkdtemp(join(tmpdir(), "sluice-test-"));
    broker.port = await freePort();
    broker.options = options;
    await broker.run();
    return broker;
  }

  /** With TLS. The `options` name the certificates. */
  static async startSecure(...options) {
    const broker = new Broker();
    broker.directory = await mkdtemp(join(tmpdir(), "sluice-test-"));
    broker.port = await freePort();
    broker.scheme = "tls://";
    broker.options = options;
    await broker.run();
    return broker;
  }

  get address() {
    return `127.0.0.1:${this.port}`;
  }

  async run() {
    const options = ["--listen", `${this.scheme ?? ""}${this.address}`, "--admin", "off", "--data", join(this.directory, "data"), ...this.options];
    this.process = spawn(program, options, { stdio: "ignore" });
    this.exited = new Promise((resolve) => this.process.once("exit", resolve));
    let isRunning = true;
    void this.exited.then(() => (isRunning = false));
    for (let tries = 0; tries < 1_500; tries++) {
      if (!isRunning) throw new Error("sluiced has ended");
      if (await this.#answers()) return;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    throw new Error("sluiced takes no connections");
  }

  #answers() {
    return new Promise((resolve) => {
      const socket = connectSocket(this.port, "127.0.0.1");
      socket.once("connect", () => {
        socket.destroy();
        resolve(true);
      });
      socket.once("error", () => resolve(false));
    });
  }

  async kill() {
    this.process.kill("SIGKILL");
    await this.exited;
  }

  async stop() {
    this.process.kill("SIGTERM");
    await this.exited;
    await rm(this.directory, { recursive: true, force: true });
  }
}

/** Forwards bytes to a broker, and cuts all connections on request. */
export class Proxy {
  #sockets = new Set();
  connections = 0;

  static async start(port) {
    const proxy = new Proxy();
    proxy.server = createServer((socket) => {
      const upstream = connectSocket(port, "127.0.0.1");
      proxy.connections++;
      for (const [from, to] of [[socket, upstream], [upstream, socket]]) {
        proxy.#sockets.add(from);
        from.pipe(to);
        from.on("error", () => to.destroy());
        from.on("close", () => {
          proxy.#sockets.delete(from);
          to.destroy();
        });
      }
    }).listen(0, "127.0.0.1");
    await new Promise((resolve) => proxy.server.once("listening", resolve));
    proxy.address = `127.0.0.1:${proxy.server.address().port}`;
    return proxy;
  }

  cut() {
    for (const socket of this.#sockets) socket.destroy();
  }

  stop() {
    this.cut();
    this.server.close();
  }
}
