// A broker that breaks the protocol: each mistake is an error with its code, and memory doesn't grow.

import assert from "node:assert/strict";
import { test } from "node:test";

import * as sluice from "../src/index.js";
import { withScripts } from "./scripted.js";

const options = { timeout: 30_000 };
const UNLIMITED = 0xffff_ffff_ffff_ffffn;

async function iterate(iterable) {
  const values = [];
  for await (const value of iterable) values.push(value);
  return values;
}

/** Frames on an open subscription whose next offset is 5, and the error that names the broker's mistake. */
const subscription = {
  "records left out": ["malformedFrame", (peer, stream) => peer.deliver(stream, 9, "x")],
  "SUBSCRIBED twice": ["unexpectedFrame", (peer, stream) => peer.send("SUBSCRIBED", stream, { epoch: 7n })],
  "LIVE behind the next offset": ["malformedFrame", (peer, stream) => peer.send("LIVE", stream, { "next offset": 9 })],
  "LAG that goes back": ["malformedFrame", (peer, stream) => peer.send("LAG", stream, { missed: 1, "next offset": 3 })],
  "more records than requested": ["demandExceeded", (peer, stream) => peer.deliver(stream, 5, ..."0123456789")],
};
for (const [mistake, [codeName, send]] of Object.entries(subscription)) {
  test(`a subscription ends with its error on ${mistake}`, options, async () => {
    const script = async (peer) => {
      await peer.welcome();
      const { stream, granted } = await peer.subscribed({ "next offset": 5, "live offset": 5 });
      if (granted === 0) await peer.expect("DEMAND");
      send(peer, stream);
      assert.equal((await peer.expect("ERROR")).values.code, sluice.ErrorCode[codeName]);
    };
    await withScripts(
      [script],
      async (client) => {
        const received = [];
        await assert.rejects(async () => {
          for await (const record of client.topic("t")) received.push(record);
        }, { codeName });
        assert.deepEqual(received, []);
      },
      { reconnect: null },
    );
  });
}

test("live comes once", options, async () => {
  const script = async (peer) => {
    await peer.welcome();
    const { stream } = await peer.subscribed();
    peer.send("LIVE", stream, {});
    peer.send("LIVE", stream, {});
  };
  await withScripts(
    [script],
    async (client) => {
      await assert.rejects(iterate(client.topic("t")), { codeName: "unexpectedFrame" });
    },
    { reconnect: null },
  );
});

test("offsets may leave gaps where the broker says so", options, async () => {
  const script = async (peer) => {
    await peer.welcome();
    const { stream, granted } = await peer.subscribed({ gaps: 1 });
    if (granted === 0) await peer.expect("DEMAND");
    peer.deliver(stream, 9, "x");
    peer.send("COMPLETE", stream, {});
  };
  await withScripts([script], async (client) => {
    assert.deepEqual((await iterate(client.topic("t"))).map(({ offset }) => offset), [9]);
  });
});

test("records before SUBSCRIBED are refused", options, async () => {
  const script = async (peer) => {
    await peer.welcome();
    const { stream, values } = await peer.expect("SUBSCRIBE");
    if (values["granted through"] === 0) await peer.expect("DEMAND");
    peer.deliver(stream, 0, "x");
  };
  await withScripts(
    [script],
    async (client) => {
      await assert.rejects(iterate(client.topic("t")), { codeName: "unexpectedFrame" });
    },
    { reconnect: null },
  );
});

const opened = (peer, stream, values) =>
  peer.send("PUBLISH_OPENED", stream, { epoch: 7n, "granted through": 10, "bytes through": UNLIMITED, ...values });

/** Frames on an open publication. */
const publication = {
  records: (peer, stream) => peer.deliver(stream, 0, "x"),
  "PUBLISH_OPENED twice": (peer, stream) => opened(peer, stream),
  "CANCELLED without CANCEL": (peer, stream) => peer.send("CANCELLED", stream, {}),
  "CONNECTED to a producer": (peer, stream) => peer.send("CONNECTED", stream, {}),
};
for (const [mistake, send] of Object.entries(publication)) {
  test(`a publication ends with its error on ${mistake}`, options, async () => {
    const script = async (peer) => {
      await peer.welcome();
      const { stream } = await peer.expect("PUBLISH_OPEN");
      opened(peer, stream);
      await peer.readPublish();
      send(peer, stream);
    };
    await withScripts(
      [script],
      async (client) => {
        await assert.rejects(client.producer("t").publish("1"), { codeName: "unexpectedFrame" });
      },
      { reconnect: null },
    );
  });
}

test("a sequence before the one that was named is refused", options, async () => {
  const script = async (peer) => {
    await peer.welcome();
    const { stream } = await peer.expect("PUBLISH_OPEN");
    opened(peer, stream);
    await peer.readPublish();
    peer.send("ACK", stream, { through: 1, "last offset": 0 });
    peer.send("ERROR", stream, { code: sluice.ErrorCode.topicMoved, message: "moved" });
    const again = await peer.expect("PUBLISH_OPEN");
    assert.equal(again.values["first sequence"], 1);
    opened(peer, again.stream, { "next sequence": 0 });
  };
  await withScripts(
    [script],
    async (client) => {
      const producer = client.producer("t");
      await producer.sendMany(["1", "2"]);
      await assert.rejects(producer.flush(), { codeName: "malformedFrame" });
    },
    { reconnect: null },
  );
});

test("a request that gets another answer fails", options, async () => {
  const script = async (peer) => {
    await peer.welcome();
    const { stream } = await peer.expect("TOPIC_DELETE");
    peer.send("LIVE", stream, {});
  };
  await withScripts(
    [script],
    async (client) => {
      await assert.rejects(client.deleteTopic("t"), { codeName: "unexpectedFrame" });
    },
    { reconnect: null },
  );
});

for (const limits of [{ "longest frame": 65_535 }, { streams: 0 }]) {
  test(`a broker with less than the least limits is refused: ${JSON.stringify(limits)}`, options, async () => {
    const script = (peer) => peer.welcome(limits);
    await assert.rejects(withScripts([script], async () => {}), { codeName: "malformedFrame" });
  });
}

test("epoch-changed for a subscription that names no epoch ends it", options, async () => {
  const script = async (peer) => {
    await peer.welcome();
    let { stream } = await peer.subscribed();
    peer.send("ERROR", stream, { code: sluice.ErrorCode.epochChanged, message: "another epoch" });
    let frame = await peer.read();
    while (frame.name !== "SUBSCRIBE") frame = await peer.read();
    peer.send("ERROR", frame.stream, { code: sluice.ErrorCode.epochChanged, message: "another epoch" });
  };
  await withScripts([script], async (client) => {
    await assert.rejects(iterate(client.topic("t").events()), { codeName: "epochChanged" });
  });
});

test("events that no demand bounds are joined", options, async () => {
  let arrived;
  const isArrived = new Promise((resolve) => (arrived = resolve));
  const script = async (peer) => {
    await peer.welcome();
    const { stream } = await peer.subscribed();
    for (let i = 1; i <= 100; i++) peer.send("LAG", stream, { missed: 2, "next offset": 2 * i });
    for (let i = 1; i <= 100; i++) peer.send("PRODUCERS", stream, { count: i });
    peer.send("PING", 0, { token: 1n });
    await peer.expect("PONG");
    arrived();
    await peer.expect("DEMAND");
    peer.send("COMPLETE", stream, {});
  };
  await withScripts([script], async (client) => {
    const events = client.topic("t", { watchProducers: true }).events().open();
    await isArrived;
    assert.deepEqual(await iterate(events), [new sluice.Lag("t", 200, 200), new sluice.Producers("t", 100)]);
  });
});

for (const received of [false, true]) {
  test(`a subscription beyond the end ${received ? "with" : "without"} a record names ${received ? "its" : "no"} epoch again`, options, async () => {
    const first = async (peer) => {
      await peer.welcome();
      const { stream, granted } = await peer.subscribed({ epoch: 5n, "next offset": 100, "live offset": 100 });
      if (received) {
        if (granted === 0) await peer.expect("DEMAND");
        peer.deliver(stream, 100, "x");
      }
      peer.end();
    };
    const second = async (peer) => {
      await peer.welcome();
      const { stream, values } = await peer.expect("SUBSCRIBE");
      const { start, "start value": value, epoch } = values;
      assert.deepEqual([start, value, epoch], received ? [4, 101n, 5n] : [4, 100n, 0n]);
      const offset = Number(value);
      peer.send("SUBSCRIBED", stream, { epoch: received ? 5n : 6n, "next offset": offset, "live offset": offset });
      peer.send("COMPLETE", stream, {});
    };
    await withScripts([first, second], async (client) => {
      const events = await iterate(client.topic("t", { from: sluice.offset(100) }).events());
      assert.equal(events.filter((event) => event instanceof sluice.Record).length, received ? 1 : 0);
      // None of the program's records is in doubt, so another epoch is no restart.
      assert.ok(!events.some((event) => event instanceof sluice.Restarted));
    });
  });
}
