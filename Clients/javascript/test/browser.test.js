// The client in a browser: headless Chromium connects to a real broker by WebSocket.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { Broker, freePort, program } from "./broker.js";

function chromium() {
  try {
    return execFileSync("sh", ["-c", "command -v chromium"], { encoding: "utf8" }).trim();
  } catch {
    return undefined;
  }
}

const browser = chromium();
const skip = program === undefined ? "sluiced isn't built" : browser === undefined ? "chromium isn't installed; scripts/bootstrap.sh --tests installs it" : false;

const PAGE = (address) => `<!doctype html><script type="module">
  import * as sluice from "/src/index.js";
  async function run() {
    const client = await sluice.connect("${address}");
    await client.createTopic("browser", { flow: "lossless", bufferRecords: 10 });
    const subscription = client.topic("browser").subscribe().open();
    const producer = client.producer("browser", { bufferRecords: 5 });
    let sent = 0;
    const producing = (async () => {
      while (sent < 1000) { await producer.send("record " + sent); sent++; }
      await producer.flush();
      await producer.complete();
    })();
    await new Promise((resolve) => setTimeout(resolve, 300));
    const sentBeforeDemand = sent;
    const received = [];
    for await (const record of subscription) received.push(record.text);
    await producing;
    const responder = client.respond("echo", (request) => request.payload);
    await new Promise((resolve) => setTimeout(resolve, 100));
    const reply = (await client.request("echo", new Uint8Array([1, 255]))).payload;
    await client.close();
    return { sentBeforeDemand, count: received.length, last: received.at(-1), reply: [...reply] };
  }
  const result = await run().catch((error) => ({ error: String(error.stack ?? error) }));
  await fetch("/result", { method: "POST", body: JSON.stringify(result) });
</script>`;

test("a browser publishes, subscribes and requests through a WebSocket", { skip, timeout: 90_000 }, async () => {
  const port = await freePort();
  const address = `ws://127.0.0.1:${port}`;
  const broker = await Broker.start("--listen", address, "--origins", "any");
  const profile = mkdtempSync(join(tmpdir(), "sluice-chromium-"));
  let done;
  const result = new Promise((resolve) => (done = resolve));
  const server = createServer(async (request, response) => {
    if (request.method === "POST") {
      let body = "";
      for await (const part of request) body += part;
      response.end();
      done(JSON.parse(body));
    } else if (request.url.startsWith("/src/")) {
      response.setHeader("content-type", "text/javascript");
      response.end(await readFile(new URL(`..${request.url}`, import.meta.url)));
    } else {
      response.setHeader("content-type", "text/html");
      response.end(PAGE(address));
    }
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const options = ["--headless", "--no-sandbox", "--disable-gpu", `--user-data-dir=${profile}`, `http://127.0.0.1:${server.address().port}/`];
  const page = spawn(browser, [...options.slice(0, 4), "--remote-debugging-port=0", options[4]], { stdio: "ignore" });
  try {
    const { error, sentBeforeDemand, count, last, reply } = await result;
    assert.equal(error, undefined);
    // Ten in the topic's buffer, five in the producer's, and those that each is sending.
    assert.ok(sentBeforeDemand >= 10 && sentBeforeDemand <= 17, `${sentBeforeDemand} sent`);
    assert.deepEqual([count, last, reply], [1000, "record 999", [1, 255]]);
  } finally {
    page.kill("SIGKILL");
    await new Promise((resolve) => page.once("exit", resolve));
    server.close();
    server.closeAllConnections();
    await broker.stop();
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  }
});
