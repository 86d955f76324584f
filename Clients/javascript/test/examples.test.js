// Runs the examples of the type declarations, and compares their output with the comments after `console.log`.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { format } from "node:util";
import { test } from "node:test";

import * as sluice from "../src/index.js";
import { Broker, program } from "./broker.js";

const options = { skip: program === undefined ? "sluiced isn't built; run `swift build --product sluiced`" : false, timeout: 60_000 };
const AsyncFunction = (async () => {}).constructor;

/** The examples' lines, and for each the declaration to which it belongs. */
function examples() {
  const found = [];
  let lines;
  for (const line of readFileSync(new URL("../src/index.d.ts", import.meta.url), "utf8").split("\n")) {
    const comment = /^\s*\* ?(?!\/)(.*)$/.exec(line)?.[1];
    if (comment?.startsWith("@example")) found.push({ lines: (lines = []) });
    else if (comment !== undefined) lines?.push(comment);
    else if (lines !== undefined && !/^\s*\*\//.test(line)) {
      found.at(-1).name = /\w+/.exec(line)[0];
      lines = undefined;
    }
  }
  return found;
}

for (const { name, lines } of examples()) {
  test(`the example of ${name}`, options, async () => {
    const broker = await Broker.start();
    const client = await sluice.connect(broker.address);
    try {
      const producer = client.producer("orders");
      await producer.publish("order 1");
      const subscribed = async (topic) => {
        while ((await client.topicInfo(topic).catch(() => undefined))?.subscriptions !== 1) await new Promise((next) => setTimeout(next, 10));
      };
      const printed = [];
      const scope = { ...sluice, client, subscribed, console: { log: (...values) => printed.push(format(...values)) } };
      await new AsyncFunction(...Object.keys(scope), lines.join("\n"))(...Object.values(scope));
      const expected = lines.flatMap((line) => / \/\/ → (.*)$/.exec(line)?.[1] ?? []);
      assert.ok(expected.length > 0);
      assert.deepEqual(printed, expected);
    } finally {
      await client.close();
      await broker.stop();
    }
  });
}

test("the main calls have examples", () => {
  const names = new Set(examples().map(({ name }) => name));
  for (const name of ["topic", "pattern", "group", "producer", "request", "createTopic", "events", "stream"]) assert.ok(names.has(name), name);
});
