// Drives the client for JavaScript: commands as JSON lines on standard input, answers and events on standard output.

import { createInterface } from "node:readline";

import * as sluice from "../../javascript/src/index.js";

const CONDITIONS = {
  hasKey: sluice.hasKey,
  key: sluice.key,
  keyPrefix: sluice.keyPrefix,
  hasHeader: sluice.hasHeader,
  header: sluice.header,
  headerPrefix: sluice.headerPrefix,
};
const STARTS = { last: sluice.last, offset: sluice.offset, since: sluice.since };

const write = (values) => process.stdout.write(`${JSON.stringify(values)}\n`);
const encoded = (bytes) => Buffer.from(bytes).toString("base64");
const decoded = (text) => new Uint8Array(Buffer.from(text, "base64"));
const start = (value) => (Array.isArray(value) ? STARTS[value[0]](value[1]) : value);

/** The options of `command` that are named, as far as it has them. */
const picked = (command, ...names) => Object.fromEntries(names.filter((name) => name in command).map((name) => [name, command[name]]));

function settings(values = {}) {
  const camel = (name) => name.replace(/-(.)/g, (_, letter) => letter.toUpperCase());
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [camel(name), value]));
}

function failure(error) {
  if (error instanceof sluice.SluiceError) return { code: error.code, retry: error.retry, message: error.message };
  const isKnown = error instanceof RangeError || error?.name === "TimeoutError";
  return { code: 0, retry: false, message: `${error?.name}: ${error?.message}`, internal: !isKnown };
}

/** The options that all subscriptions have in common. */
function reading(command) {
  const options = { prefetch: command.prefetch ?? 0, from: start(command.from) };
  if ("where" in command) options.where = command.where.map(([kind, ...values]) => CONDITIONS[kind](...values));
  return options;
}

/** A subscription that is iterated over as far as records are requested. */
class Reader {
  #name;
  #wanted = 0;
  #isReading = false;
  #isCancelled = false;
  taken = new Map();

  constructor(name, subscription) {
    this.#name = name;
    this.subscription = subscription.open();
  }

  request(count) {
    this.#wanted += count;
    if (!this.#isReading) void this.#read();
  }

  cancel() {
    this.#isCancelled = true;
    this.subscription.cancel();
  }

  async #read() {
    this.#isReading = true;
    try {
      while (this.#wanted > 0) {
        const { done, value } = await this.subscription.next();
        if (this.#isCancelled) return;
        if (done) {
          write({ on: this.#name, event: "completed" });
          return;
        }
        this.#report(value);
      }
      this.#isReading = false;
    } catch (error) {
      if (error instanceof sluice.TopicFailedError) write({ on: this.#name, event: "failed", code: error.code, message: error.message });
      else write({ on: this.#name, event: "error", ...failure(error) });
    }
  }

  #report(event) {
    const on = this.#name;
    const { topic } = event;
    if (event instanceof sluice.Record) {
      this.#wanted--;
      const { offset, time, attempt = 0, key } = event;
      this.taken.set(`${offset}/${attempt}`, event);
      const headers = event.headers.map(([name, value]) => [name, encoded(value)]);
      write({ on, event: "record", topic, offset, time, attempt, payload: encoded(event.payload), key: key && encoded(key), headers });
    } else if (event instanceof sluice.Live) write({ on, event: "live", topic, next: event.nextOffset });
    else if (event instanceof sluice.Lag) write({ on, event: "lag", topic, missed: event.missed, next: event.nextOffset });
    else if (event instanceof sluice.Restarted) write({ on, event: "restarted", topic });
    else if (event instanceof sluice.Rewound) write({ on, event: "rewound", topic, next: event.nextOffset });
    else if (event instanceof sluice.Matched) write({ on, event: "matched", topic });
    else if (event instanceof sluice.Unmatched) write({ on, event: "unmatched", topic });
    else if (event instanceof sluice.Producers) write({ on, event: "producers", count: event.count });
  }
}

const clients = new Map();
const opened = new Map();
const client = (command) => clients.get(command.client);
const thing = (command) => opened.get(command.on);

async function list(values, change) {
  const found = [];
  for await (const value of values) found.push(change(value));
  return found;
}

const admin = {
  create: (to, { topic, settings: values }) => to.createTopic(topic, settings(values)).then(() => undefined),
  set: (to, { topic, settings: values }) => to.setTopic(topic, settings(values)).then(() => undefined),
  info: async (to, { topic }) => {
    const { head, floor, state, subscriptions } = await to.topicInfo(topic);
    return { head, floor, state, subscriptions };
  },
  topics: (to) => list(to.topics(), ({ name }) => name),
  trim: (to, { topic, before, keepLast }) => to.trimTopic(topic, { before, keepLast }).then(() => undefined),
  delete: (to, { topic }) => to.deleteTopic(topic),
  connect: (to, { topic }) => to.connectTopic(topic),
  disconnect: (to, { topic }) => to.disconnectTopic(topic),
  consumers: (to, { topic }) => list(to.consumers(topic), ({ name, nextOffset }) => ({ name, next: nextOffset })),
  moveCursor: (to, { topic, name, to: place }) => to.moveCursor(topic, name, start(place)),
  deleteCursor: (to, { topic, name }) => to.deleteCursor(topic, name),
  connections: (to) => list(to.connections(), ({ id }) => id),
  closeConnection: (to, { connection }) => to.closeConnection(connection),
  identity: (to) => to.identity,
};

const commands = {
  async connect(command) {
    const options = picked(command, "user", "password", "direct", "keepalive", "connectTimeout", "closeTimeout");
    if ("tokens" in command) {
      const left = [...command.tokens];
      options.token = () => (left.length > 1 ? left.shift() : left[0]);
    }
    const { initial = 20, maximum = 200, giveUpAfter } = command.reconnect || {};
    options.reconnect = command.reconnect === false ? null : { initialDelay: initial, maximumDelay: maximum, giveUpAfter };
    clients.set(command.client, await sluice.connect(command.servers, options));
  },
  async close(command) {
    const closing = client(command);
    clients.delete(command.client);
    await closing.close();
  },
  async reset() {
    const closing = [...clients.values()];
    for (const each of opened.values()) if (!(each instanceof sluice.Producer)) each.cancel();
    clients.clear();
    opened.clear();
    await Promise.allSettled(closing.map((each) => each.close({ timeout: 50 })));
  },
  subscribe(command) {
    const options = { ...reading(command), ...picked(command, "lag", "cursor", "missing") };
    if ("settings" in command) options.settings = settings(command.settings);
    if ("producers" in command) options.watchProducers = command.producers;
    const topic = client(command).topic(command.topic, options);
    opened.set(command.on, new Reader(command.on, command.events === false ? topic.subscribe() : topic.events()));
  },
  pattern(command) {
    const pattern = client(command).pattern(command.topic, { ...reading(command), ...picked(command, "lag") });
    opened.set(command.on, new Reader(command.on, pattern.events()));
  },
  group(command) {
    const options = { ...reading(command), ...picked(command, "ack", "deliveries", "missing", "deadline", "deadLetters", "retryBackoff") };
    if ("ordered" in command) options.orderedByKey = command.ordered;
    opened.set(command.on, new Reader(command.on, client(command).group(command.topic, command.group, options)));
  },
  request(command) {
    thing(command).request(command.n);
  },
  async settle(command) {
    const delivery = thing(command).taken.get(`${command.offset}/${command.attempt}`);
    await delivery[command.verdict](...("after" in command ? [{ after: command.after }] : []));
  },
  commit(command) {
    const reader = thing(command);
    reader.subscription.commit(reader.taken.get(`${command.offset}/0`));
  },
  async cancel(command) {
    const ending = thing(command);
    opened.delete(command.on);
    if (ending instanceof sluice.Producer) await ending.close();
    else ending.cancel();
  },
  produce(command) {
    const options = picked(command, "acknowledge", "source");
    if ("settings" in command) options.settings = settings(command.settings);
    if ("buffer" in command) options.bufferRecords = command.buffer;
    opened.set(command.on, client(command).producer(command.topic, options));
  },
  async publish(command) {
    const producer = thing(command);
    const records = command.records.map(({ payload, key, headers }) => [
      decoded(payload),
      { key: key && decoded(key), headers: headers?.map(([name, value]) => [name, decoded(value)]) },
    ]);
    if (command.wait) {
      const offsets = await Promise.all(records.map(([payload, options]) => producer.publish(payload, options)));
      return { offsets: offsets.map((offset) => offset ?? null) };
    }
    for (const [payload, options] of records) await producer.send(payload, options);
    return {};
  },
  flush: (command) => thing(command).flush(),
  complete: (command) => thing(command).complete(),
  fail: (command) => thing(command).fail(command.code, command.message),
  connected: (command) => thing(command).connected(),
  async call(command) {
    const reply = await client(command).request(command.topic, decoded(command.payload), { timeout: command.timeout ?? 5_000 });
    return { payload: encoded(reply.payload) };
  },
  respond(command) {
    const handler = (request) => {
      if (command.reply === "error") throw new sluice.ReplyError("out of stock");
      return command.reply === "never" ? new Promise(() => {}) : request.payload;
    };
    opened.set(command.on, client(command).respond(command.topic, handler));
  },
  async admin(command) {
    return { value: await admin[command.call](client(command), command) };
  },
};

process.on("uncaughtException", (error) => write({ event: "fault", message: `${error?.stack ?? error}` }));
write({ event: "ready", client: "javascript", lacks: [] });
for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  Promise.resolve()
    .then(() => commands[command.do](command))
    .then(
      (answer) => write({ id: command.id, ...answer }),
      (error) => write({ id: command.id, error: failure(error) }),
    );
}
process.exit(0);
