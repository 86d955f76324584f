// Codec of batches, and of the frames that a busy stream repeats.
//
// An item is a word of 4 bytes and a body. Bits 0 to 29 of the word are the body's length; bits 30 and 31 its kind: 0 a plain
// record, 1 a record with attributes, 2 a time mark.

import { ErrorCode, ProtocolError, malformed } from "./errors.js";
import { header, readCount, utf8 } from "./layout.js";
import { toBytes } from "./records.js";

const LENGTH = 0x3fff_ffff;
const text = new TextDecoder();
const EMPTY = Object.freeze([]);

function broken(message) {
  return new ProtocolError(message, { code: ErrorCode.malformedBatch });
}

/** Reads the fields of DELIVER before its batch. */
export function deliverHeader(view, start, end) {
  if (end - start < 12) throw malformed("DELIVER ends before its fields do");
  const first = readCount(view, start);
  const count = view.getUint32(start + 8, true);
  if (count === 0 || first + count > Number.MAX_SAFE_INTEGER) throw malformed("DELIVER has no record, or offsets beyond the last");
  return { first, count };
}

/**
 * Calls `take(index, time, start, end, attributes)` for each record between `position` and `end`.
 *
 * Returns the time of the last time mark, which applies to the next batch of the stream.
 */
export function walkBatch(bytes, view, position, end, count, time, take) {
  let index = 0;
  while (position < end) {
    if (position + 4 > end) throw broken("a batch ends within an item");
    const word = view.getUint32(position, true);
    position += 4;
    const kind = word >>> 30;
    const bodyEnd = position + (word & LENGTH);
    if (bodyEnd > end) throw broken("a record is longer than its batch");
    if (kind === 0) {
      if (index >= count) throw broken(`a batch has more than ${count} records`);
      take(index++, time, position, bodyEnd, undefined);
    } else if (kind === 1) {
      if (index >= count) throw broken(`a batch has more than ${count} records`);
      const attributes = readAttributes(bytes, view, position, bodyEnd);
      take(index++, time, attributes.start, bodyEnd, attributes);
    } else if (kind === 2 && bodyEnd - position === 8) {
      time = Number(view.getBigInt64(position, true));
    } else {
      throw broken("a batch has an item that isn't defined, or a time mark that doesn't have 8 bytes");
    }
    position = bodyEnd;
  }
  if (index !== count) throw broken(`a batch has ${index} records, not ${count}`);
  return time;
}

function readAttributes(bytes, view, position, end) {
  const advance = (count) => {
    const start = position;
    if (start + count > end) throw broken("a record's attributes are longer than the record");
    position = start + count;
    return start;
  };
  const flags = bytes[advance(1)];
  if (flags > 3) throw broken("a record has attributes that aren't defined");
  let key;
  if (flags & 1) {
    const size = view.getUint16(advance(2), true);
    const start = advance(size);
    key = bytes.subarray(start, start + size);
  }
  let headers = EMPTY;
  if (flags & 2) {
    const count = view.getUint16(advance(2), true);
    headers = [];
    for (let index = 0; index < count; index++) {
      const nameSize = view.getUint16(advance(2), true);
      const name = advance(nameSize);
      const valueSize = view.getUint32(advance(4), true);
      const value = advance(valueSize);
      headers.push([text.decode(bytes.subarray(name, name + nameSize)), bytes.subarray(value, value + valueSize)]);
    }
  }
  return { key, headers, start: position };
}

/** Headers as pairs of name and value. */
export function headerPairs(headers = EMPTY) {
  return Array.isArray(headers) ? headers : Object.entries(headers);
}

/** A record to publish: its parts in bytes, and the size of its item. */
export function makeItem(payload, { key, headers } = {}) {
  const data = toBytes(payload);
  const pairs = headerPairs(headers);
  if (key === undefined && pairs.length === 0) {
    if (data.length > LENGTH) throw new RangeError(`a record has ${data.length} bytes; the most is ${LENGTH}`);
    return { data, attributes: undefined, size: data.length + 4 };
  }
  const keyBytes = key === undefined ? undefined : toBytes(key);
  const encoded = pairs.map(([name, value]) => [utf8.encode(name), toBytes(value)]);
  let size = 1;
  if (keyBytes !== undefined) size += 2 + limited(keyBytes, 0xffff, "the key").length;
  if (encoded.length > 0xffff) throw new RangeError(`a record has ${encoded.length} headers; the most is 65,535`);
  if (encoded.length > 0) size += 2;
  for (const [name, value] of encoded) size += 6 + limited(name, 0xffff, "a header's name").length + value.length;
  if (size + data.length > LENGTH) throw new RangeError(`a record has ${size + data.length} bytes; the most is ${LENGTH}`);
  const attributes = new Uint8Array(size);
  const view = new DataView(attributes.buffer);
  let position = 1;
  attributes[0] = (keyBytes !== undefined ? 1 : 0) | (encoded.length > 0 ? 2 : 0);
  if (keyBytes !== undefined) {
    view.setUint16(position, keyBytes.length, true);
    attributes.set(keyBytes, position + 2);
    position += 2 + keyBytes.length;
  }
  if (encoded.length > 0) {
    view.setUint16(position, encoded.length, true);
    position += 2;
    for (const [name, value] of encoded) {
      view.setUint16(position, name.length, true);
      attributes.set(name, position + 2);
      position += 2 + name.length;
      view.setUint32(position, value.length, true);
      attributes.set(value, position + 4);
      position += 4 + value.length;
    }
  }
  return { data, attributes, size: size + data.length + 4 };
}

function limited(bytes, most, what) {
  if (bytes.length > most) throw new RangeError(`${what} has ${bytes.length} bytes; the most is ${most}`);
  return bytes;
}

/** PUBLISH with the items from `from` to `to`, whose total size is `size` bytes. */
export function publish(stream, sequence, items, from, to, size) {
  const bytes = new Uint8Array(24 + size);
  const view = new DataView(bytes.buffer);
  header(view, 0, 12 + size, 0x22, 0, stream);
  view.setBigUint64(12, BigInt(sequence), true);
  view.setUint32(20, to - from, true);
  let position = 24;
  for (let index = from; index < to; index++) {
    const { data, attributes } = items[index];
    if (attributes === undefined) {
      view.setUint32(position, data.length, true);
      bytes.set(data, position + 4);
      position += 4 + data.length;
    } else {
      view.setUint32(position, (0x4000_0000 | (attributes.length + data.length)) >>> 0, true);
      bytes.set(attributes, position + 4);
      bytes.set(data, position + 4 + attributes.length);
      position += 4 + attributes.length + data.length;
    }
  }
  return bytes;
}

/** DEMAND: `through` records in total may be sent on the stream. */
export function demand(stream, through) {
  const bytes = new Uint8Array(28);
  const view = new DataView(bytes.buffer);
  header(view, 0, 16, 0x12, 0, stream);
  view.setBigUint64(12, through === Infinity ? 0xffff_ffff_ffff_ffffn : BigInt(through), true);
  view.setBigUint64(20, 0xffff_ffff_ffff_ffffn, true);
  return bytes;
}

/** SETTLE of one delivery. `delay` is in milliseconds; without one the group's backoff says how long a retry waits. */
export function settle(stream, verdict, attempt, offset, delay) {
  const length = delay === undefined ? 20 : 24;
  const bytes = new Uint8Array(12 + length);
  const view = new DataView(bytes.buffer);
  header(view, 0, length, 0x2a, 0, stream);
  view.setUint8(12, verdict);
  view.setUint32(16, attempt, true);
  view.setBigUint64(20, BigInt(offset), true);
  view.setUint32(28, 1, true);
  if (delay !== undefined) view.setUint32(32, Math.min(Math.max(Math.round(delay), 0), LONGEST_DELAY), true);
  return bytes;
}

/** The longest delay of a retry, in milliseconds. */
const LONGEST_DELAY = 0xffff_fffe;

/** COMMIT: the cursor stands at `nextOffset`. */
export function commit(stream, nextOffset) {
  const bytes = new Uint8Array(20);
  const view = new DataView(bytes.buffer);
  header(view, 0, 8, 0x2b, 0, stream);
  view.setBigUint64(12, BigInt(nextOffset), true);
  return bytes;
}
