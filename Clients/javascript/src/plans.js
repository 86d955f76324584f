// The parameters of a subscription: its start, and conditions on its records.

import { toBytes } from "./records.js";

/** A start position. */
export class Start {
  constructor(kind, value = 0n) {
    this.kind = kind;
    this.value = value;
  }

  /** Whether it is a position in the topic, rather than relative to its end. */
  get isPosition() {
    return this.kind === 1 || this.kind >= 4;
  }

  /** Whether it names an offset. */
  get isOffset() {
    return this.kind === 4;
  }
}

const NAMED = { replay: 0, earliest: 1, new: 2 };

function whole(value, what) {
  if (!Number.isSafeInteger(value) || value < 0) throw new RangeError(`${what} takes an integer from 0 up`);
  return BigInt(value);
}

/** The last `count` records that the topic keeps. */
export const last = (count) => new Start(3, whole(count, "last()"));

/** The record with that offset. If it was dropped, the subscription begins with a lag. If it is beyond the end, the subscription waits for it. */
export const offset = (value) => new Start(4, whole(value, "offset()"));

/** The first record that isn't older than a Date, or than milliseconds since 1970-01-01 UTC. */
export const since = (time) => new Start(5, whole(time instanceof Date ? time.getTime() : time, "since()"));

export function makeStart(value = "replay") {
  if (value instanceof Start) return value;
  if (!Object.hasOwn(NAMED, value)) {
    throw new TypeError(`from: ${JSON.stringify(value)} isn't a start; use "replay", "earliest", "new", last(n), offset(n) or since(time)`);
  }
  return new Start(NAMED[value]);
}

const NOTHING = new Uint8Array(0);
const condition = (subject, test, header, value) => ({ subject, test, header, value: value === undefined ? NOTHING : toBytes(value) });

/** Records that have a key. */
export const hasKey = () => condition(0, 0, "");
/** Records with this key. */
export const key = (value) => condition(0, 1, "", value);
/** Records whose key begins with these bytes. */
export const keyPrefix = (value) => condition(0, 2, "", value);
/** Records that have a header of this name. */
export const hasHeader = (name) => condition(1, 0, name);
/** Records with this header and value. */
export const header = (name, value) => condition(1, 1, name, value);
/** Records with this header, whose value begins with these bytes. */
export const headerPrefix = (name, value) => condition(1, 2, name, value);

export function makePlan(topic, options = {}, extra = {}) {
  const { from, where = [], lag, missing = "create", cursor = "", prefetch = 0, watchProducers = false, signal, decode } = options;
  if (typeof topic !== "string") throw new TypeError("a topic's name is a string");
  if (!Number.isSafeInteger(prefetch) || prefetch < 0) throw new RangeError("prefetch takes a number of records from 0 up");
  const conditions = Array.isArray(where) ? where : [where];
  if (conditions.length > 16) throw new RangeError(`where has ${conditions.length} conditions; the most is 16`);
  const lags = { skip: 0, fail: 1 };
  if (lag !== undefined && !Object.hasOwn(lags, lag)) throw new TypeError(`lag: ${JSON.stringify(lag)} isn't "skip" or "fail"`);
  return {
    topic,
    start: makeStart(from),
    where: conditions,
    lag: lag === undefined ? 2 : lags[lag],
    missing,
    cursor,
    prefetch,
    watchProducers,
    signal,
    decode,
    settings: [],
    seesEvents: false,
    ...extra,
  };
}
