// Demand from the view of a scripted broker, and a broker that breaks the rules.

import assert from "node:assert/strict";
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "node:test";

import * as sluice from "../src/index.js";
import { withScripts } from "./scripted.js";

const options = { timeout: 30_000 };

test("each step of the loop requests one record", options, async () => {
  const grants = [];
  const script = async (peer) => {
    await peer.welcome();
    let { stream, granted } = await peer.subscribed();
    for (let sent = 0; sent < 3; sent++) {
      while (granted <= sent) granted = (await peer.expect("DEMAND")).values["granted through"];
      grants.push(granted);
      peer.deliver(stream, sent, "x");
    }
    grants.push((await peer.expect("DEMAND")).values["granted through"]);
    peer.send("COMPLETE", stream, {});
  };
  await withScripts([script], async (client) => {
    let count = 0;
    for await (const record of client.topic("t")) assert.equal(record.offset, count++);
    assert.equal(count, 3);
  });
  assert.deepEqual(grants, [1, 2, 3, 4]);
});

test("a prefetch is the most that is requested ahead", options, async () => {
  const script = async (peer) => {
    await peer.welcome();
    let { stream, granted } = await peer.subscribed();
    if (granted === 0) granted = (await peer.expect("DEMAND")).values["granted through"];
    assert.equal(granted, 8);
    for (let sent = 0; sent < 400; sent++) {
      while (granted <= sent) granted = (await peer.expect("DEMAND")).values["granted through"];
      assert.ok(granted <= sent + 8);
      peer.deliver(stream, sent, "x");
    }
    peer.send("COMPLETE", stream, {});
  };
  await withScripts([script], async (client) => {
    let count = 0;
    for await (const _ of client.topic("t", { prefetch: 8 })) count++;
    assert.equal(count, 400);
  });
});

test("a broker that sends more than was requested is refused", options, async () => {
  const script = async (peer) => {
    await peer.welcome();
    const { stream, granted } = await peer.subscribed();
    if (granted === 0) await peer.expect("DEMAND");
    peer.deliver(stream, 0, "x", "x");
    assert.equal((await peer.expect("ERROR")).values.code, sluice.ErrorCode.demandExceeded);
  };
  await withScripts(
    [script],
    async (client) => {
      await assert.rejects(async () => {
        for await (const _ of client.topic("t"));
      }, { codeName: "demandExceeded" });
    },
    { reconnect: null },
  );
});

test("what is left of the demand is requested after a lost connection", options, async () => {
  const first = async (peer) => {
    await peer.welcome();
    let { stream, granted } = await peer.subscribed({ epoch: 9n });
    while (granted < 10) granted = (await peer.expect("DEMAND")).values["granted through"];
    peer.deliver(stream, 0, "a", "b", "c");
    await sleep(100);
    peer.cut();
  };
  const second = async (peer) => {
    await peer.welcome();
    const { stream, values } = await peer.expect("SUBSCRIBE");
    assert.deepEqual([values.start, values["start value"], values.epoch], [4, 3n, 9n]);
    assert.ok(values["granted through"] >= 7 && values["granted through"] <= 10);
    peer.send("SUBSCRIBED", stream, { epoch: 9n, "next offset": 3, "live offset": 3 });
    peer.deliver(stream, 3, "d");
    peer.send("COMPLETE", stream, {});
  };
  await withScripts([first, second], async (client) => {
    const received = [];
    for await (const record of client.topic("t", { prefetch: 10 })) received.push(record.text);
    assert.deepEqual(received, ["a", "b", "c", "d"]);
  });
});

test("a topic that continues another epoch reports where the histories part", options, async () => {
  const first = async (peer) => {
    await peer.welcome();
    let { stream, granted } = await peer.subscribed({ epoch: 9n });
    while (granted < 2) granted = (await peer.expect("DEMAND")).values["granted through"];
    peer.deliver(stream, 0, "a", "lost");
    await sleep(100);
    peer.cut();
  };
  const second = async (peer) => {
    await peer.welcome();
    const { stream } = await peer.expect("SUBSCRIBE");
    peer.send("SUBSCRIBED", stream, { epoch: 10n, "next offset": 1, "live offset": 1, continues: 1 });
    peer.deliver(stream, 1, "other");
    peer.send("COMPLETE", stream, {});
  };
  await withScripts([first, second], async (client) => {
    const events = [];
    for await (const event of client.topic("t", { prefetch: 4 }).events()) events.push(event);
    assert.deepEqual(events.filter((event) => event instanceof sluice.Record).map(({ text }) => text), ["a", "lost", "other"]);
    assert.deepEqual(events.filter((event) => event instanceof sluice.Rewound).map(({ nextOffset }) => nextOffset), [1]);
  });
});

test("a topic that was made anew ends a loop that would join two histories", options, async () => {
  const first = async (peer) => {
    await peer.welcome();
    const { stream, granted } = await peer.subscribed({ epoch: 9n });
    if (granted === 0) await peer.expect("DEMAND");
    peer.deliver(stream, 0, "a");
    await sleep(100);
    peer.cut();
  };
  const second = async (peer) => {
    await peer.welcome();
    const { stream } = await peer.expect("SUBSCRIBE");
    peer.send("ERROR", stream, { code: sluice.ErrorCode.epochChanged, message: "started anew" });
  };
  await withScripts([first, second], async (client) => {
    await assert.rejects(async () => {
      for await (const _ of client.topic("t", { from: "earliest" }));
    }, { codeName: "epochChanged" });
  });
});

test("a token is renewed before it expires", options, async () => {
  const tokens = ["first", "second"];
  const script = async (peer) => {
    const hello = await peer.welcome({ expires: Date.now() + 500 });
    assert.deepEqual([hello.method, hello.secret], [2, "first"]);
    const { stream, values } = await peer.expect("AUTHENTICATE");
    assert.equal(values.secret, "second");
    peer.send("AUTHENTICATED", stream, { identity: "ann", expires: Infinity });
  };
  await withScripts([script], async () => sleep(700), { token: () => tokens.shift() });
});

test("a node that can't be reached is relayed by the client's broker", options, async () => {
  const script = async (peer) => {
    await peer.welcome();
    const { stream } = await peer.expect("SUBSCRIBE");
    peer.send("REDIRECT", stream, { node: "b", address: "127.0.0.1:1" });
    let frame = await peer.read();
    while (frame.name !== "SUBSCRIBE") frame = await peer.read();
    assert.equal(frame.flags, 0x10);
    peer.send("SUBSCRIBED", frame.stream, { epoch: 1n });
    peer.send("COMPLETE", frame.stream, {});
  };
  await withScripts([script], async (client) => {
    for await (const _ of client.topic("t"));
  });
});

test("refused credentials, HTTP servers and silent brokers are named", options, async () => {
  const refuse = async (peer) => {
    await peer.expect("HELLO");
    peer.send("ERROR", 0, { code: sluice.ErrorCode.authenticationFailed, message: "wrong user or password" });
  };
  await assert.rejects(withScripts([refuse], async () => {}, { user: "ann", password: "wrong" }), sluice.AuthenticationError);
  const http = createServer((socket) => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n")).listen(0, "127.0.0.1");
  await new Promise((resolve) => http.once("listening", resolve));
  await assert.rejects(sluice.connect(`127.0.0.1:${http.address().port}`), /it speaks HTTP/);
  http.close();
  const silent = async (peer) => {
    await peer.welcome({ keepalive: 100 });
    while (!peer.isEnded) await peer.read().catch(() => {});
  };
  await withScripts(
    [silent],
    async (client) => {
      await assert.rejects(async () => {
        for await (const _ of client.topic("t"));
      }, { codeName: "keepaliveTimeout" });
    },
    { reconnect: null },
  );
});
