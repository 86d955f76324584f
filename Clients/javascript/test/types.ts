// The code of a TypeScript program; `tsc --noEmit` checks it.

import { Client, Live, Record, Rewound, TopicFailedError, connect, json, key, last } from "../src/index.js";

interface Order {
  id: number;
}

async function main(): Promise<void> {
  const client: Client = await connect(["a.example", "b.example:7420"], { tls: { ca: "" }, token: async () => "t" });
  for await (const record of client.topic("orders", { from: last(10), where: key("eu"), prefetch: 100 })) {
    const offset: number = record.offset;
    console.log(offset, record.text);
  }
  for await (const order of client.topic<Order>("orders", { decode: json })) console.log(order.id);
  for await (const event of client.pattern("orders.>").events()) {
    if (event instanceof Live) continue;
    if (event instanceof Rewound) console.log(event.nextOffset);
    if (event instanceof Record) console.log(event.payload.length);
  }
  for await (const delivery of client.group("jobs", "workers", { deadLetters: "jobs.dead" })) await delivery.ack();
  const producer = client.producer("orders", { acknowledge: "durable" });
  const offset: number | undefined = await producer.publish(new Uint8Array(2), { key: "k", headers: { a: "b" } });
  console.log(offset);
  const reply: Record = await client.request("prices", "ACME", { timeout: 100, signal: new AbortController().signal });
  client.respond("prices", async (request) => ({ payload: request.payload, headers: [["a", "b"]] }));
  const stream: ReadableStream<Record> = client.topic("orders").stream();
  await stream.pipeTo(new WritableStream({ write: (record: Record) => console.log(record.offset) }));
  const { unsubscribe } = client.topic("orders").subscribe({ next: (record) => console.log(record.text) });
  unsubscribe();
  const info = await client.createTopic("orders", { flow: "lossless", storage: "durable", replayAge: Infinity });
  console.log(info.settings.flow, info.failure?.code, reply.header("a"));
  try {
    await producer.close({ timeout: 1_000 });
  } catch (error) {
    if (error instanceof TopicFailedError) console.log(error.code, error.retry);
  }
  for (const open of [client, producer, client.topic("orders").subscribe()]) await open[Symbol.asyncDispose]();
}

void main();
