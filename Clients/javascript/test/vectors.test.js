// The protocol's test vectors: every frame is decoded and encoded, and invalid frames are rejected.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { makeItem, publish, walkBatch } from "../src/batch.js";
import { Connection } from "../src/connection.js";
import { ErrorCode, ProtocolError } from "../src/errors.js";
import { BY_NAME, decode, encode } from "../src/layout.js";
import { Record } from "../src/records.js";
import { TopicFeed } from "../src/feed.js";
import { makePlan } from "../src/plans.js";

const vectors = JSON.parse(
  readFileSync(new URL("../../../Sources/SluiceWire/SluiceWire.docc/Protocol-vectors.json", import.meta.url), "utf8"),
);
const bytesOf = (hex) => new Uint8Array(Buffer.from(hex, "hex"));
const hexOf = (bytes) => Buffer.from(bytes).toString("hex");
const hasBatch = (vector) => vector.frame === "DELIVER" || vector.frame === "PUBLISH";

/** Writes integers and bytes in the form of the vectors. */
function texts(value, exact) {
  if (value instanceof Uint8Array) return hexOf(value);
  if (Array.isArray(value)) return value.map((part, index) => texts(part, exact?.[index]));
  if (typeof value === "object") return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, texts(part, exact?.[key])]));
  if (value === Infinity) return "18446744073709551615";
  // Counts beyond 2^53 lose their last digits, by design: no topic has so many records.
  if (typeof value === "number" && !Number.isSafeInteger(value)) return Number(exact) === value ? exact : String(value);
  return String(value);
}

/** Converts the vectors' texts to the values of the codec. */
function values(part, value) {
  if (part.kind.startsWith("bytes")) return bytesOf(value);
  if (part.kind === "count" || part.kind === "id") return BigInt(value);
  if (part.kind === "structure") return Object.fromEntries(part.parts.filter(({ name }) => name in value).map((inner) => [inner.name, values(inner, value[inner.name])]));
  if (part.kind === "wrapped") return values(part.parts[0], value);
  if (part.kind === "list") return value.map((element) => Object.fromEntries(part.parts.map((inner) => [inner.name, values(inner, element[inner.name])])));
  return value;
}

test("frames are decoded and encoded", () => {
  for (const vector of vectors.frames.filter((frame) => !hasBatch(frame))) {
    const data = bytesOf(vector.hex);
    const frame = BY_NAME.get(vector.frame);
    const decoded = decode(frame, data.subarray(12));
    assert.deepEqual(texts(decoded, vector.fields), texts(vector.fields), vector.name);
    const fields = Object.fromEntries(frame.fields.filter(({ name }) => name in vector.fields).map((part) => [part.name, values(part, vector.fields[part.name])]));
    const encoded = encode(frame.name, vector.stream, fields, data[5] & 0xf0);
    assert.ok(hexOf(data.subarray(4)).startsWith(hexOf(encoded.subarray(4))), vector.name);
  }
});

test("frames that are cut anywhere are refused", () => {
  for (const vector of vectors.frames.filter((frame) => !hasBatch(frame))) {
    const body = bytesOf(vector.hex).subarray(12);
    const frame = BY_NAME.get(vector.frame);
    const known = encode(frame.name, 1, decode(frame, body)).length - 12;
    for (let end = 0; end < known; end++) {
      let refused = false;
      try {
        decode(frame, body.subarray(0, end));
      } catch (error) {
        assert.ok(error instanceof ProtocolError, `${vector.name}: ${error}`);
        refused = true;
      }
      const grows = frame.fields.some((outer) => outer.isOptional || outer.parts?.some((part) => part.isOptional));
      assert.ok(refused || grows, `${vector.name} cut at ${end}`);
    }
  }
});

test("batches are decoded, encoded, and refused when they are cut", () => {
  for (const vector of vectors.frames.filter(hasBatch)) {
    const data = bytesOf(vector.hex);
    const view = new DataView(data.buffer);
    const records = [];
    walkBatch(data, view, 24, data.length, vector.fields.count, 0, (index, time, start, end, attributes) => {
      records.push(new Record("t", index, time, data, start, end, attributes));
    });
    const items = vector.fields.batch.filter((item) => !("time" in item));
    assert.deepEqual(
      records.map((record) => ({
        payload: hexOf(record.payload),
        key: record.key && hexOf(record.key),
        headers: record.headers.map(([name, value]) => ({ name: hexOf(new TextEncoder().encode(name)), value: hexOf(value) })),
      })),
      items.map((item) => ({ payload: item.payload, key: item.key, headers: item.headers ?? [] })),
      vector.name,
    );
    if (vector.frame === "PUBLISH") {
      const made = records.map((record) => makeItem(record.payload, { key: record.key, headers: [...record.headers] }));
      const size = made.reduce((sum, item) => sum + item.size, 0);
      const frame = publish(vector.stream, Number(vector.fields["first sequence"]), made, 0, made.length, size);
      assert.equal(hexOf(frame), vector.hex.replace(/^(.{10})../, "$100"), vector.name);
    }
    for (let end = 24; end < data.length; end++) {
      assert.throws(() => walkBatch(data, view, 24, end, vector.fields.count, 0, () => {}), ProtocolError);
    }
  }
});

test("what a client must refuse is refused", () => {
  for (const vector of vectors.malformed.filter(({ receiver }) => receiver === "client")) {
    let failure;
    const connection = new Connection(() => {});
    connection.fail = (error) => {
      failure ??= error;
      connection.isClosed = true;
    };
    if (!vector.opening) {
      connection.receive(encode("WELCOME", 0, { version: 1, "longest frame": 65_536, "longest record": 1_000, streams: 8, expires: Infinity }));
      const feed = new TopicFeed(makePlan("t"));
      feed.request(100);
      connection.receive(encode("SUBSCRIBED", connection.begin(feed), { epoch: 7n, gaps: 1 }));
    }
    for (const byte of bytesOf(vector.hex)) if (failure === undefined) connection.receive(new Uint8Array([byte]));
    const name = Object.entries(ErrorCode).find(([, code]) => code === failure?.code)?.[0];
    assert.equal(name?.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`), vector.error, vector.name);
  }
});
