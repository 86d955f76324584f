// One load of a client for Node: prints what was measured as a JSON object. Started by run.py.
//
// node load.mjs CLIENT LOAD ADDRESS COUNT [TOPIC]

import { createRequire } from "node:module";
import { connect as connectSocket, createServer } from "node:net";

import { connect } from "../../Clients/javascript/src/index.js";

const PAYLOAD = new Uint8Array(128).fill(120);
// PUBLISH and DEMAND in one direction, DELIVER and ACK in the other.
const [SENT, ANSWERED] = [Buffer.alloc(184, "p"), Buffer.alloc(184, "r")];
/** Measures records in a second, and in a second of the client's processor time, which other programs on the machine change less. */
function clock(count) {
  const begin = performance.now();
  const cpu = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(cpu);
    return { rate: (count / (performance.now() - begin)) * 1e3, processor: (count / (user + system)) * 1e6 };
  };
}
const middle = (times) => times.sort((left, right) => left - right)[times.length >> 1] / 1000;
const endpoint = (address) => ({ host: address.split(":")[0], port: Number(address.split(":")[1]) });

/** Awaits so many bytes of a socket, again and again. */
function awaited(socket, length) {
  let left = length;
  let resolve;
  socket.on("data", (data) => {
    left -= data.length;
    if (left === 0) {
      left = length;
      resolve();
    }
  });
  return () => new Promise((done) => (resolve = done));
}

async function iterate(address, count, topic, prefetch, each = () => {}) {
  const client = await connect(address);
  let taken = 0;
  const result = clock(count);
  for await (const record of client.topic(topic, { from: "earliest", prefetch })) {
    if (record.payload.length !== 128) throw new Error(`a record has ${record.payload.length} bytes`);
    each(++taken);
    if (taken === count) break;
  }
  const values = result();
  await client.close();
  return values;
}

/** MQTT.js, which isn't an ES module. */
async function mqtt(address) {
  const client = createRequire(import.meta.url)("mqtt").connect(`mqtt://${address}`, { protocolVersion: 5, keepalive: 0 });
  await new Promise((resolve) => client.once("connect", resolve));
  return client;
}

const loads = {
  sluice_iterate: (address, count, topic) => iterate(address, count, topic, 10_000),

  async sluice_memory(address, count, topic) {
    const memory = {};
    await iterate(address, count, topic, 10_000, (taken) => {
      if (taken % 1_000_000 === 0) memory[taken / 1_000_000] = process.memoryUsage.rss();
    });
    return { memory };
  },

  async sluice_publish(address, count, topic) {
    const client = await connect(address);
    const producer = client.producer(topic);
    const result = clock(count);
    for (let index = 0; index < count; index++) await producer.send(PAYLOAD);
    await producer.flush();
    const values = result();
    await client.close();
    return values;
  },

  /** Publishes a record, and requests and awaits it, with a demand of one. */
  async sluice_trip(address, count, topic) {
    const client = await connect(address);
    const producer = client.producer(topic);
    const subscription = client.topic(topic, { from: "new" }).subscribe().open();
    while ((await client.topicInfo(topic).catch(() => undefined))?.subscriptions !== 1);
    const times = [];
    for (let index = 0; index < count; index++) {
      const begin = performance.now();
      await producer.send(PAYLOAD);
      await subscription.next();
      times.push(performance.now() - begin);
    }
    await client.close();
    return { trip: middle(times) };
  },

  async echo_serve(address) {
    const server = createServer((socket) => {
      socket.setNoDelay(true);
      const whole = awaited(socket, SENT.length);
      (async () => {
        for (;;) {
          await whole();
          socket.write(ANSWERED);
        }
      })();
      socket.on("error", () => {});
    });
    server.listen(endpoint(address).port, "127.0.0.1");
    await new Promise(() => {});
  },

  async echo_trip(address, count) {
    const socket = connectSocket(endpoint(address));
    await new Promise((resolve) => socket.once("connect", resolve));
    socket.setNoDelay(true);
    const answer = awaited(socket, ANSWERED.length);
    const times = [];
    for (let index = 0; index < count; index++) {
      const begin = performance.now();
      const came = answer();
      socket.write(SENT);
      await came;
      times.push(performance.now() - begin);
    }
    socket.destroy();
    return { trip: middle(times) };
  },

  /** Says "ready" once it is subscribed; run.py then publishes. */
  async mqtt_iterate(address, count, topic) {
    const client = await mqtt(address);
    await new Promise((resolve) => client.subscribe(topic, { qos: 0 }, resolve));
    let taken = 0;
    let result;
    const whole = new Promise((resolve) => {
      client.on("message", () => {
        result ??= clock(count);
        if (++taken === count) resolve();
      });
    });
    console.log("ready");
    await whole;
    const values = result();
    client.end(true);
    return values;
  },

  async mqtt_publish(address, count, topic) {
    const client = await mqtt(address);
    const result = clock(count);
    // Enough calls in flight to keep it busy, but not so many that they dominate the measurement.
    for (let left = count; left > 0; ) {
      const part = Math.min(left, 1_000);
      left -= part;
      await new Promise((resolve) => {
        let open = part;
        for (let index = 0; index < part; index++) client.publish(topic, PAYLOAD, { qos: 0 }, () => --open === 0 && resolve());
      });
    }
    await new Promise((resolve) => client.end(false, {}, resolve));
    return result();
  },
};

const [client, load, address, count, topic] = process.argv.slice(2);
const result = await loads[`${client}_${load}`](address, Number(count), topic);
console.log(JSON.stringify(result));
process.exit(0);
