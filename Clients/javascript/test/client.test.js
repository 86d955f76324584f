// All features of a client, with a real broker.

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { after, before, test } from "node:test";

import * as sluice from "../src/index.js";
import { Broker, Proxy, program } from "./broker.js";

const options = { skip: program === undefined ? "sluiced isn't built; run `swift build --product sluiced`" : false, timeout: 60_000 };
let broker;
let client;
let number = 0;
const fresh = () => `topic.${number++}`;

before(async () => {
  if (program === undefined) return;
  broker = await Broker.start();
  client = await sluice.connect(broker.address, { name: "test" });
});
after(async () => {
  await client?.close();
  await broker?.stop();
});

async function publish(topic, ...payloads) {
  const producer = client.producer(topic);
  await producer.sendMany(payloads);
  await producer.flush();
  return producer;
}

async function take(iterable, count) {
  const values = [];
  if (count > 0) for await (const value of iterable) if (values.push(value) === count) break;
  return values;
}

async function all(iterable) {
  const values = [];
  for await (const value of iterable) values.push(value);
  return values;
}

test("records come as they were published", options, async () => {
  const topic = fresh();
  const producer = client.producer(topic);
  assert.equal(await producer.publish(new Uint8Array([0, 255]), { key: "k", headers: { a: "1", b: new Uint8Array([254]) } }), 0);
  assert.equal(await producer.publish("é"), 1);
  const [first, second] = await take(client.topic(topic, { from: "earliest" }), 2);
  assert.deepEqual([...first.payload], [0, 255]);
  assert.equal(Buffer.from(first.key).toString(), "k");
  assert.deepEqual(first.headers.map(([name, value]) => [name, [...value]]), [["a", [49]], ["b", [254]]]);
  assert.deepEqual([second.text, second.key, second.offset], ["é", undefined, 1]);
  assert.ok(second.time >= first.time && first.time > 1_600_000_000_000);
});

for (const prefetch of [0, 1, 3, 1000]) {
  test(`replay becomes live without a gap, with a prefetch of ${prefetch}`, options, async () => {
    const topic = fresh();
    const producer = await publish(topic, ...Array.from({ length: 100 }, (_, i) => `${i}`));
    const more = (async () => {
      for (let i = 100; i < 300; i++) await producer.publish(`${i}`);
      await producer.complete();
    })();
    const received = await all(client.topic(topic, { from: "earliest", prefetch }));
    await more;
    assert.deepEqual(received.map((record) => Number(record.text)), Array.from({ length: 300 }, (_, i) => i));
  });
}

test("completion ends the loop, and a failure is thrown", options, async () => {
  const [good, bad] = [fresh(), fresh()];
  await (await publish(good, "last")).complete();
  await (await publish(bad, "last")).fail(1_234, "out of paper");
  assert.deepEqual((await all(client.topic(good))).map(({ text }) => text), ["last"]);
  const received = [];
  await assert.rejects(
    async () => {
      for await (const record of client.topic(bad)) received.push(record.text);
    },
    (error) => error instanceof sluice.TopicFailedError && error.code === 1_234 && error.message === "out of paper",
  );
  assert.deepEqual(received, ["last"]);
  await assert.rejects(client.producer(good).publish("late"), { codeName: "topicEnded" });
});

test("start positions, conditions and decoders", options, async () => {
  const topic = fresh();
  const producer = client.producer(topic);
  for (let i = 0; i < 20; i++) await producer.send(JSON.stringify({ i }), { key: i % 2 ? "eu" : "us", headers: { n: `${i % 5}` } });
  await producer.flush();
  assert.equal((await take(client.topic(topic, { from: sluice.last(3) }), 1))[0].offset, 17);
  assert.equal((await take(client.topic(topic, { from: sluice.offset(4) }), 1))[0].offset, 4);
  const [{ time }] = await take(client.topic(topic), 1);
  assert.equal((await take(client.topic(topic, { from: sluice.since(new Date(time)) }), 1))[0].offset, 0);
  assert.throws(() => client.topic(topic, { from: "latest" }), /earliest/);
  await producer.complete();
  const where = [sluice.key("eu"), sluice.header("n", "3")];
  assert.deepEqual(await all(client.topic(topic, { where, decode: sluice.json })), [{ i: 3 }, { i: 13 }]);
});

test("patterns have one demand for all their topics", options, async () => {
  const base = fresh();
  await publish(`${base}.a`, "1", "2");
  const events = client.pattern(`${base}.>`, { from: "earliest" }).events();
  const seen = [];
  for (;;) {
    const { value } = await events.next();
    seen.push(value);
    if (value instanceof sluice.Live) break;
  }
  await publish(`${base}.b`, "3");
  for (;;) {
    const { value } = await events.next();
    seen.push(value);
    if (value instanceof sluice.Record && value.text === "3") break;
  }
  events.cancel();
  assert.deepEqual(seen.filter((event) => event instanceof sluice.Matched).map(({ topic }) => topic.slice(-1)), ["a", "b"]);
  assert.deepEqual(seen.filter((event) => event instanceof sluice.Record).map((record) => record.topic.slice(-1) + record.text), ["a1", "a2", "b3"]);
});

test("a group delivers again what isn't done, and gives up what is rejected", options, async () => {
  const [topic, deadLetters] = [fresh(), fresh()];
  await publish(topic, ...Array.from({ length: 6 }, (_, i) => `${i}`));
  const settings = { from: "earliest", deliveries: 2, deadLetters };
  const [first, second] = [client.group(topic, "workers", settings), client.group(topic, "workers", settings)];
  const a = (await first.next()).value;
  const b = (await second.next()).value;
  assert.deepEqual([a.offset, b.offset], [0, 1]);
  await a.ack();
  await b.retry();
  const again = (await first.next()).value;
  assert.deepEqual([again.offset, again.attempt], [1, 2]);
  await again.reject();
  assert.equal((await take(client.topic(deadLetters), 1))[0].text, "1");
  second.cancel();
  const rest = [];
  for await (const delivery of first) {
    rest.push(delivery.offset);
    await delivery.ack();
    if (rest.length === 4) break;
  }
  assert.deepEqual(rest, [2, 3, 4, 5]);
});

test("a durable cursor continues where the last loop was", options, async () => {
  const topic = fresh();
  await client.createTopic(topic, { storage: "durable" });
  await publish(topic, ...Array.from({ length: 10 }, (_, i) => `${i}`));
  for await (const record of client.topic(topic, { from: "earliest", cursor: "bill" })) if (record.offset === 4) break;
  assert.equal((await take(client.topic(topic, { cursor: "bill" }), 1))[0].offset, 4);
  await client.moveCursor(topic, "bill", "earliest");
  assert.equal((await take(client.topic(topic, { cursor: "bill" }), 1))[0].offset, 0);
  await client.deleteCursor(topic, "bill");
  await assert.rejects(client.deleteCursor(topic, "bill"), { codeName: "unknownCursor", retry: false });
});

test("requests are answered, and failures are named without their secrets", options, async () => {
  const topic = fresh();
  await assert.rejects(client.request(topic, "hi"), (error) => error instanceof sluice.NoRespondersError && error.retry);
  const responder = client.respond(topic, async (request) => {
    if (request.text === "bad") throw new sluice.ReplyError("no such price");
    if (request.text === "worse") throw new RangeError("a secret");
    return `re: ${request.text}`;
  });
  while ((await client.topicInfo(topic)).subscriptions === 0) await sleep(10);
  const replies = await Promise.all(Array.from({ length: 50 }, (_, i) => client.request(topic, `${i}`)));
  assert.deepEqual(replies.map(({ text }) => text), Array.from({ length: 50 }, (_, i) => `re: ${i}`));
  await assert.rejects(client.request(topic, "bad"), /no such price/);
  await assert.rejects(client.request(topic, "worse"), (error) => error instanceof sluice.ReplyError && /RangeError/.test(error.message) && !/secret/.test(error.message));
  responder.cancel();
});

test("topics are administered", options, async () => {
  const topic = fresh();
  const info = await client.createTopic(topic, { flow: "lossless", bufferRecords: 5, replayAge: 60_000 });
  assert.deepEqual([info.settings.flow, info.settings.bufferRecords, info.settings.replayAge], ["lossless", 5, 60_000]);
  await assert.rejects(client.createTopic(topic, { flow: "free" }), { codeName: "topicExists", retry: false });
  assert.equal((await client.setTopic(topic, { replayAge: Infinity })).settings.replayAge, Infinity);
  await publish(topic, ..."abcd");
  assert.equal((await client.trimTopic(topic, { before: 1 })).floor, 1);
  assert.equal((await client.purgeTopic(topic)).records, 0);
  assert.ok((await all(client.topics())).some(({ name }) => name === topic));
  assert.ok((await all(client.connections())).some(({ client: name }) => name === "test"));
  assert.ok((await client.brokerInfo()).numbers.topics > 0);
  await client.deleteTopic(topic);
  await assert.rejects(client.topicInfo(topic), { codeName: "unknownTopic" });
  await assert.rejects(client.createTopic(topic, { replay: 5 }), /replayRecords/);
});

test("streams have exact demand in both directions", options, async () => {
  const topic = fresh();
  await client.createTopic(topic, { flow: "lossless", bufferRecords: 10 });
  const reader = client.topic(topic, { from: "new" }).stream({ highWaterMark: 0 }).getReader();
  while ((await client.topicInfo(topic)).subscriptions === 0) await sleep(10);
  const producer = client.producer(topic, { bufferRecords: 5 });
  const writer = producer.stream().getWriter();
  let written = 0;
  const writing = (async () => {
    for (; written < 40; written++) {
      await writer.ready;
      await writer.write(`${written}`);
    }
    await producer.flush();
  })();
  await sleep(300);
  // Ten in the topic's buffer, five in the producer's, and those that each is sending.
  assert.ok(written >= 10 && written <= 17, `${written} written`);
  const [subscription] = (await client.topicInfo(topic)).details.subscriptions;
  assert.equal(subscription.granted, 0);
  for (let i = 0; i < 40; i++) assert.equal((await reader.read()).value.text, `${i}`);
  await writing;
  await writer.close();
  await reader.cancel();
});

test("a signal unsubscribes, and the loop throws its reason", options, async () => {
  const topic = fresh();
  const abort = new AbortController();
  setTimeout(() => abort.abort(new Error("enough")), 50);
  await assert.rejects(all(client.topic(topic, { signal: abort.signal })), /enough/);
  while ((await client.topicInfo(topic)).subscriptions > 0) await sleep(10);
});

test("leaving the loop unsubscribes", options, async () => {
  const topic = fresh();
  await publish(topic, "1", "2");
  for await (const record of client.topic(topic)) if (record.offset === 0) break;
  while ((await client.topicInfo(topic)).subscriptions > 0) await sleep(10);
});

test("observers get values, the end, and can leave", options, async () => {
  const topic = fresh();
  await (await publish(topic, "1", "2", "3")).complete();
  const seen = [];
  await new Promise((resolve, reject) => {
    client.topic(topic).subscribe({ next: (record) => seen.push(record.text), error: reject, complete: resolve });
  });
  assert.deepEqual(seen, ["1", "2", "3"]);
  const key = Symbol.observable ?? "@@observable";
  const first = await new Promise((resolve) => {
    const subscription = client.topic(topic)[key]().subscribe((record) => {
      resolve(record.text);
      queueMicrotask(() => subscription.unsubscribe());
    });
  });
  assert.equal(first, "1");
});

test("nothing is lost or doubled over cut connections", options, async () => {
  const topic = fresh();
  const proxy = await Proxy.start(broker.port);
  const cut = await sluice.connect(proxy.address, { reconnect: { initialDelay: 10, maximumDelay: 50 } });
  await cut.createTopic(topic, { flow: "lossless", bufferRecords: 200 });
  const timer = setInterval(() => proxy.cut(), 30);
  const producing = (async () => {
    const producer = cut.producer(topic);
    for (let i = 0; i < 5_000; i++) {
      await producer.send(`${i}`);
      if (i % 50 === 0) await sleep(5);
    }
    await producer.flush();
    clearInterval(timer);
    await producer.complete();
  })();
  const received = await all(cut.topic(topic, { from: "earliest", prefetch: 100 }));
  await producing;
  assert.deepEqual(received.map(({ text }) => Number(text)), Array.from({ length: 5_000 }, (_, i) => i));
  assert.ok(proxy.connections > 5, `${proxy.connections} connections`);
  await cut.close();
  proxy.stop();
});

test("nothing acknowledged is lost when the broker is killed", options, async () => {
  const own = await Broker.start();
  const crashing = await sluice.connect(own.address, { reconnect: { initialDelay: 20, maximumDelay: 200 } });
  await crashing.createTopic("jobs", { storage: "durable" });
  let isOver = false;
  const crashes = (async () => {
    for (let i = 0; i < 3; i++) {
      await sleep(200);
      await own.kill();
      await own.run();
    }
    isOver = true;
  })();
  let sent = 0;
  const producing = (async () => {
    const producer = crashing.producer("jobs", { acknowledge: "durable" });
    while (!isOver || sent < 500) {
      await producer.send(`${sent++}`);
      if (sent % 20 === 0) await sleep(5);
    }
    await producer.flush();
    await producer.complete();
  })();
  const received = await all(crashing.topic("jobs", { from: "earliest", prefetch: 100 }));
  await Promise.all([producing, crashes]);
  assert.deepEqual(received.map(({ text }) => Number(text)), Array.from({ length: sent }, (_, i) => i));
  await crashing.close();
  await own.stop();
});

test("a closed client refuses calls, and servers are tried in turn", options, async () => {
  const other = await sluice.connect(["127.0.0.1:1", broker.address]);
  assert.ok(other.isConnected);
  await other.close();
  await other.close();
  await assert.rejects(other.topicInfo("t"), sluice.ClientClosedError);
  assert.throws(() => other.producer("t"), sluice.ClientClosedError);
  await assert.rejects(sluice.connect("127.0.0.1:1"), /127\.0\.0\.1:1/);
  await assert.rejects(sluice.connect("127.0.0.1:port"), /HOST:PORT/);
});

test("a program that starts over publishes each record once", options, async () => {
  const topic = fresh();
  for (const [run, count] of [10, 25, 25].entries()) {
    const producer = client.producer(topic, { producerId: 7 });
    for (let i = 0; i < count; i++) await (run === 1 ? producer.publish(`${i}`) : producer.send(`${i}`));
    await producer.close();
  }
  const later = client.producer(topic, { producerId: 7n, firstSequence: 20 });
  for (let i = 20; i < 30; i++) await later.send(`${i}`);
  await later.close();
  const received = await take(client.topic(topic), 30);
  assert.deepEqual(received.map((record) => Number(record.text)), Array.from({ length: 30 }, (_, i) => i));
  assert.equal((await client.topicInfo(topic)).head, 30);
  for (const wrong of [{ producerId: 0 }, { producerId: 2n ** 64n }, { firstSequence: 1 }, { producerId: 1, firstSequence: -1 }]) {
    assert.throws(() => client.producer(topic, wrong), /takes|needs/);
  }
});
