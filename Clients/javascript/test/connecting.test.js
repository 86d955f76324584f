// TLS, certificates, and where credentials are sent.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { after, before, test } from "node:test";

import * as sluice from "../src/index.js";
import { isInTheOpen, parseServer } from "../src/transport.js";
import { Broker, program } from "./broker.js";

const options = { skip: program === undefined ? "sluiced isn't built; run `swift build --product sluiced`" : false, timeout: 60_000 };
let folder;
const path = (name) => join(folder, name);
const pem = (name) => readFileSync(path(name));

before(() => {
  folder = mkdtempSync(join(tmpdir(), "sluice-certificates-"));
  if (program !== undefined) execFileSync(fileURLToPath(new URL("../../../scripts/certs.sh", import.meta.url)), [folder], { stdio: "ignore" });
});
after(() => rmSync(folder, { recursive: true }));

test("TLS verifies the broker", options, async () => {
  const broker = await Broker.startSecure("--tls-cert", path("server.pem"), "--tls-key", path("server.key"));
  try {
    const client = await sluice.connect(`tls://${broker.address}`, { tls: { ca: pem("authority.pem") } });
    assert.equal((await client.createTopic("t")).name, "t");
    await client.close();
    await assert.rejects(sluice.connect(`tls://${broker.address}`), /certificate/);
    await assert.rejects(sluice.connect(broker.address, { connectTimeout: 5_000 }), sluice.SluiceError);
  } finally {
    await broker.stop();
  }
});

test("a client proves itself by a certificate", options, async () => {
  const clients = ["--tls-client-ca", path("authority.pem"), "--tls-client-certs", "required", "--auth", "on"];
  const broker = await Broker.startSecure("--tls-cert", path("server.pem"), "--tls-key", path("server.key"), ...clients);
  try {
    const ca = pem("authority.pem");
    const client = await sluice.connect(broker.address, { tls: { ca, cert: pem("client.pem"), key: pem("client.key") } });
    assert.equal(client.identity, "client");
    await client.close();
    await assert.rejects(sluice.connect(broker.address, { tls: { ca } }), sluice.ConnectionLostError);
  } finally {
    await broker.stop();
  }
});

test("secrets aren't sent in the open", async () => {
  for (const credentials of [{ user: "ann", password: "secret" }, { token: "secret" }]) {
    for (const server of ["192.0.2.1", "[2001:db8::1]:7420", "broker.example", "ws://broker.example:7480"]) {
      await assert.rejects(sluice.connect(server, credentials), (error) => /isn't encrypted/.test(error.message) && !error.retry);
    }
    const allowed = { ...credentials, allowPlaintextCredentials: true, connectTimeout: 100 };
    await assert.rejects(sluice.connect("192.0.2.1", allowed), sluice.ConnectionLostError);
  }
});

test("what stays on the machine isn't in the open", () => {
  const here = ["127.0.0.1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1", "localhost", "ws://localhost:1", "ws://[::1]:1"];
  const open = ["10.0.0.1", "0.0.0.0", "127.evil.org", "[::ffff:10.0.0.1]:1", "localhost.example.org", "ws://10.0.0.1:1"];
  for (const server of [...here, "ws://[::ffff:127.0.0.1]:1", "tls://10.0.0.1", "wss://broker.example"]) assert.ok(!isInTheOpen(parseServer(server)), server);
  for (const server of open) assert.ok(isInTheOpen(parseServer(server)), server);
});
