// The layouts of the protocol's frames as tables, and a codec that follows them.
//
// Field names, types and order are those of the page "The protocol". Frames that carry records, and those that are
// frequent on a busy stream, have their own codecs in batch.js.

import { ErrorCode, ProtocolError, malformed } from "./errors.js";

/** Stands for "without limit" in demand and settings: all ones on the wire. */
const UNLIMITED = Infinity;
const ALL_ONES = 0xffff_ffff_ffff_ffffn;

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Field types. `count` is a u64 that is a number, Infinity for all ones; `id` is a u64 that is a bigint. */
function parse(text) {
  return text.split(",").map((part) => {
    const [, name, kind, absent, limit] = /^\s*([^:]*):(\w+)(?:=(\d*))?(?:<(\d+))?\s*$/.exec(part);
    return {
      name,
      kind,
      // After `=` is the value of a field that a peer omits. An empty value means an empty text, or undefined.
      isOptional: absent !== undefined,
      absent: absent ? Number(absent) : kind === "string" ? "" : undefined,
      limit: limit === undefined ? undefined : Number(limit),
    };
  });
}

const fields = (...parts) => parts.flatMap((part) => (typeof part === "string" ? parse(part) : [part]));
const list = (name, ...parts) => ({ name, kind: "list", parts: fields(...parts) });
const structure = (name, ...parts) => ({ name, kind: "structure", parts: fields(...parts) });

const filter = { name: "filter", kind: "wrapped", parts: [list("filter", "subject:u8,test:u8,header:string,value:bytes16")] };
const settings = list("settings", "key:u16,value:count");
const positions = list("positions", "topic:string,epoch:id,next offset:count");
const storage = structure("storage", "state:u8<3,since:count,used:count,limit:count");
const numbers = list("numbers", "name:string,value:count");
const states = list("states", "key:bytes32,value:bytes32");
const credentials = "method:u8,user:string,secret:string";
const summary = fields(
  "topic:string,epoch:id,first offset:count,next offset:count,bytes:count,state:u8<2,code:u32,message:string," +
    "subscriptions:u32,publications:u32,records:count,storage:u8<1",
);

const TABLE = [
  [0x01, "HELLO", "client", "magic:magic,lowest version:u16,highest version:u16,features:id,longest frame:u32,keepalive:u32,name:string", credentials],
  [0x02, "WELCOME", "broker", "magic:magic,version:u16,:pad2,features:id,longest frame:u32,longest record:u32,streams:u32,keepalive:u32,broker:id,software:string,identity:string,expires:count"],
  [0x03, "PING", "both", "token:id"],
  [0x04, "PONG", "both", "token:id"],
  [0x05, "GOAWAY", "broker", "code:u32,message:string"],
  [0x06, "ERROR", "both", "code:u32,message:string"],
  [0x07, "AUTHENTICATE", "client", credentials],
  [0x08, "AUTHENTICATED", "broker", "identity:string,expires:count"],
  [0x09, "REDIRECT", "broker", "node:string,address:string"],
  [0x10, "SUBSCRIBE", "client", "topic:string,start:u8,lag:u8,if missing:u8,flags:u8,start value:id,epoch:id,granted through:count,cursor:string", filter, settings],
  [0x11, "SUBSCRIBED", "broker", "epoch:id,next offset:count,live offset:count,gaps:u8,continues:u8,shareable:u8,:pad1"],
  [0x12, "DEMAND", "both", "granted through:count,bytes through:count"],
  [0x13, "DELIVER", "broker", "first offset:count,count:u32,batch:batch"],
  [0x14, "LIVE", "broker", "next offset:count"],
  [0x15, "LAG", "broker", "missed:count,next offset:count"],
  [0x16, "CANCEL", "client"],
  [0x17, "CANCELLED", "broker", "flags:u8"],
  [0x18, "COMPLETE", "both", "kind:u8<1,:pad3,code:u32,message:string"],
  [0x19, "SUBSCRIBE_PATTERN", "client", "pattern:string,start:u8,lag:u8,more:u8,:pad1,start value:id,granted through:count", filter, positions],
  [0x1a, "POSITIONS", "client", "more:u8", positions],
  [0x1b, "MATCHED", "broker", "number:u32,topic:string,epoch:id,next offset:count,live offset:count,gaps:u8,continues:u8,:pad2"],
  [0x1c, "UNMATCHED", "broker", "number:u32"],
  [0x1d, "SELECT_TOPIC", "broker", "number:u32"],
  [0x1e, "PRODUCERS", "broker", "count:u32"],
  [0x20, "PUBLISH_OPEN", "client", "topic:string,acknowledgement:u8,role:u8,:pad2,producer:id,first sequence:count", settings, "known epoch:id=,known offset:count="],
  [0x21, "PUBLISH_OPENED", "broker", "epoch:id,granted through:count,bytes through:count,next sequence:count,lost from:count="],
  [0x22, "PUBLISH", "client", "first sequence:count,count:u32,batch:batch"],
  [0x23, "ACK", "broker", "through:count,last offset:count"],
  [0x24, "CONNECTED", "broker"],
  [0x25, "DISCONNECTED", "broker"],
  [0x28, "JOIN", "client", "topic:string,group:string,start:u8,acknowledgement:u8,order:u8,if missing:u8,start value:id,deadline:u32,deliveries:u32,dead letters:string,granted through:count", filter, "first backoff:u32=,longest backoff:u32="],
  [0x29, "DELIVERIES", "broker", "count:u32"],
  [0x2a, "SETTLE", "client", "verdict:u8,:pad3,delivery:u32,first offset:count,count:u32,delay:u32="],
  [0x2b, "COMMIT", "client", "next offset:count"],
  [0x30, "TOPIC_CREATE", "client", "topic:string", settings],
  [0x31, "TOPIC_SHOW", "client", "topic:string"],
  [0x32, "TOPIC_INFO", "broker", { name: "summary", kind: "structure", parts: summary }, settings,
    list("subscriptions", "connection:count,client:string,stream:u32,state:u8<1,next offset:count,granted:count,sent:count,holding:count,limit:u8,last minute:u16,last five minutes:u16,consumer:string,slowness:u8,slow:count,age:count,node:string="),
    list("publications", "connection:count,client:string,stream:u32,granted:count,received:count,waiting:count,reason:u8,node:string="),
    structure("dropped", "records by records:count,bytes by records:count,records by bytes:count,bytes by bytes:count,records by age:count,bytes by age:count,records by trim:count,bytes by trim:count"),
    storage, "flags:u8,without producers:count",
    list("holds", "reason:u8,milliseconds:count,last minute:u16,last five minutes:u16"), "consumers in all:u32",
    list("consumers", "name:string,kind:u8<1,next offset:count,lag:count,bytes:count,age:count,members:u32,unacknowledged:count,redeliveries:count,dead letters:count,abandoned:count,missed:count,idle:count,delayed:count=0,next retry:count=0")],
  [0x33, "TOPIC_LIST", "client", "after:string,limit:u32"],
  [0x34, "TOPICS", "broker", "more:u8", { name: "topics", kind: "list", parts: summary }],
  [0x35, "TOPIC_DELETE", "client", "topic:string"],
  [0x36, "DONE", "broker"],
  [0x37, "TOPIC_CONNECT", "client", "topic:string"],
  [0x38, "TOPIC_DISCONNECT", "client", "topic:string"],
  [0x39, "CURSOR_LIST", "client", "topic:string,after:string,limit:u32"],
  [0x3a, "CURSORS", "broker", "more:u8",
    list("cursors", "name:string,kind:u8<1,epoch:id,next offset:count,end:count,members:u32,outstanding:count,idle:count,bytes:count,age:count,redeliveries:count,dead letters:count,abandoned:count,missed:count,delayed:count=0,next retry:count=0")],
  [0x3b, "CURSOR_MOVE", "client", "topic:string,name:string,start:u8,:pad3,start value:id"],
  [0x3c, "CURSOR_DELETE", "client", "topic:string,name:string"],
  [0x3d, "TOPIC_SET", "client", "topic:string", settings],
  [0x3e, "TOPIC_TRIM", "client", "topic:string,limit:u8,:pad3,value:count"],
  [0x40, "CONNECTION_LIST", "client", "after:count,limit:u32"],
  [0x41, "CONNECTIONS", "broker", "more:u8",
    list("connections", "connection:count,client:string,identity:string,peer:string,security:string,age:count,subscriptions:u32,publications:u32,buffered:count,received:count=0,sent:count=0")],
  [0x42, "CONNECTION_CLOSE", "client", "connection:count"],
  [0x43, "BROKER_SHOW", "client"],
  [0x44, "BROKER_INFO", "broker", "time:count,uptime:count", storage, "stopped:u32",
    list("stopped topics", "topic:string,reason:u8,milliseconds:count"), numbers,
    list("problems", "severity:u8,since:count,sentence:string,kind:string,topic:string,consumer:string,connection:count"),
    list("problem kinds", "kind:string,severity:u8,since:count,count:u32,sentence:string")],
  [0x45, "STATE_LIST", "client", "topic:string,kind:u8,:pad3,after:bytes32"],
  [0x46, "STATES", "broker", "epoch:id,next offset:count,more:u8", states],
  [0x47, "STATE_RESTORE", "client", "topic:string,kind:u8,:pad3,origin:count", states],
  [0x60, "CLUSTER_SHOW", "client", "after:string,nodes:u32,first shard:u32,shards:u32"],
  [0x61, "CLUSTER_INFO", "broker", "name:string,unreadiness:string",
    structure("engine", "connected:u8,unsafe:u8,server:string,commit latency:count", list("problems", "problem:string")),
    "more nodes:u8", list("nodes", "name:string,address:string,version:string,state:u8,shards:u32,silence:count,problem:string="),
    "shard count:u32,more shards:u8", list("shards", "number:u32,state:u8,owner:string,term:count,target:string,pin:string"), numbers],
  [0x62, "CLUSTER_DRAIN", "client", "node:string,wanted:u8"],
  [0x63, "CLUSTER_MOVE", "client", "shard:u32,node:string"],
  [0x64, "LEND", "client", "granted through:count,paced through:count,recall:u8,:pad7"],
  [0xc0, "ORIGIN", "client", "node:string,connection:count,client:string"],
  [0xc1, "FLOOR", "broker", "floor:count"],
  [0x65, "OFFER", "broker", "returned:count,waits:u8,paced:u8,:pad6"],
];

const FRAMES = TABLE.map(([number, name, sender, ...parts]) => Object.freeze({ number, name, sender, fields: fields(...parts) }));
export const BY_NAME = new Map(FRAMES.map((frame) => [frame.name, frame]));
export const BY_NUMBER = new Map(FRAMES.map((frame) => [frame.number, frame]));

const MAGIC = [0x53, 0x4c, 0x43, 0x45];

/** Reads fields, and throws `malformed-frame` if they end too early. */
class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.position = 0;
  }

  advance(count) {
    const start = this.position;
    if (count > this.bytes.length - start) throw malformed("a frame ends before its fields do");
    this.position = start + count;
    return start;
  }

  take(count) {
    const start = this.advance(count);
    return this.bytes.subarray(start, start + count);
  }

  get isEmpty() {
    return this.position >= this.bytes.length;
  }
}

function read(reader, part) {
  const { view } = reader;
  switch (part.kind) {
    case "u8":
      return checked(part, view.getUint8(reader.advance(1)));
    case "u16":
      return view.getUint16(reader.advance(2), true);
    case "u32":
      return view.getUint32(reader.advance(4), true);
    case "count":
      return readCount(view, reader.advance(8));
    case "id":
      return view.getBigUint64(reader.advance(8), true);
    case "string":
      try {
        return decoder.decode(reader.take(view.getUint16(reader.advance(2), true)));
      } catch (error) {
        if (error instanceof ProtocolError) throw error;
        throw malformed(`${part.name} isn't UTF-8`);
      }
    case "bytes16":
      return reader.take(view.getUint16(reader.advance(2), true));
    case "bytes32":
      return reader.take(view.getUint32(reader.advance(4), true));
    case "structure":
      return readFields(inner(reader), part.parts);
    case "wrapped":
      return read(inner(reader), part.parts[0]);
    case "list": {
      const count = view.getUint32(reader.advance(4), true);
      // Each element has a length word, so the frame's size limits the count.
      if (count * 4 > reader.bytes.length - reader.position) throw malformed(`${part.name} is shorter than its count says`);
      return Array.from({ length: count }, () => readFields(inner(reader), part.parts));
    }
    case "magic":
      if (!MAGIC.every((byte, index) => reader.bytes[reader.position + index] === byte)) {
        throw new ProtocolError("the first bytes aren't those of a Sluice broker", { code: ErrorCode.notSluice });
      }
      reader.advance(4);
      return undefined;
    default:
      reader.advance(Number(part.kind.slice(3)));
      return undefined;
  }
}

function inner(reader) {
  return new Reader(reader.take(reader.view.getUint32(reader.advance(4), true)));
}

function checked(part, value) {
  if (part.limit !== undefined && value > part.limit) throw malformed(`${part.name} is ${value}, which isn't defined`);
  return value;
}

/** Reads a u64 as a number: Infinity for all ones. No topic reaches other counts beyond 2^53. */
export function readCount(view, position) {
  const low = view.getUint32(position, true);
  const high = view.getUint32(position + 4, true);
  if (high < 0x20_0000) return high * 0x1_0000_0000 + low;
  if (low === 0xffff_ffff && high === 0xffff_ffff) return UNLIMITED;
  return Number((BigInt(high) << 32n) | BigInt(low));
}

function readFields(reader, parts) {
  const values = {};
  for (const part of parts) {
    if (part.isOptional && reader.isEmpty) {
      if (part.absent !== undefined) values[part.name] = part.absent;
      continue;
    }
    const value = read(reader, part);
    if (part.name && part.kind !== "magic") values[part.name] = value;
  }
  return values;
}

/** Decodes the body of a frame. Bytes after the known fields are ignored, as the protocol requires. */
export function decode(frame, body) {
  return readFields(new Reader(body), frame.fields);
}

/** A growing buffer for writing fields. */
class Writer {
  bytes = new Uint8Array(128);
  view = new DataView(this.bytes.buffer);
  length = 0;

  room(count) {
    const start = this.length;
    if (start + count > this.bytes.length) {
      const larger = new Uint8Array(Math.max(this.bytes.length * 2, start + count));
      larger.set(this.bytes);
      this.bytes = larger;
      this.view = new DataView(larger.buffer);
    }
    this.length = start + count;
    return start;
  }

  // Each method makes room first, which may replace the view.

  u8(value) {
    const start = this.room(1);
    this.view.setUint8(start, value);
  }

  u16(value) {
    const start = this.room(2);
    this.view.setUint16(start, value, true);
  }

  u32(value) {
    const start = this.room(4);
    this.view.setUint32(start, value, true);
  }

  u64(value) {
    const start = this.room(8);
    this.view.setBigUint64(start, value, true);
  }

  put(data) {
    const start = this.room(data.length);
    this.bytes.set(data, start);
  }
}

function write(writer, part, value) {
  switch (part.kind) {
    case "u8":
      writer.u8(Number(value ?? 0));
      return;
    case "u16":
      writer.u16(Number(value ?? 0));
      return;
    case "u32":
      writer.u32(Number(value ?? 0));
      return;
    case "count":
    case "id":
      writer.u64(bits(value ?? 0));
      return;
    case "string": {
      const data = encoder.encode(value ?? "");
      if (data.length > 0xffff) throw new RangeError(`${part.name} has ${data.length} bytes; the most is 65,535`);
      writer.u16(data.length);
      writer.put(data);
      return;
    }
    case "bytes16":
      writer.u16(value.length);
      writer.put(value);
      return;
    case "bytes32":
      writer.u32(value.length);
      writer.put(value);
      return;
    case "structure":
      sized(writer, () => writeFields(writer, part.parts, value ?? {}));
      return;
    case "wrapped":
      sized(writer, () => write(writer, part.parts[0], value));
      return;
    case "list": {
      const elements = value ?? [];
      writer.u32(elements.length);
      for (const element of elements) sized(writer, () => writeFields(writer, part.parts, element));
      return;
    }
    case "magic":
      writer.put(MAGIC);
      return;
    default:
      writer.room(Number(part.kind.slice(3)));
  }
}

function bits(value) {
  if (typeof value === "bigint") return BigInt.asUintN(64, value);
  return value === UNLIMITED ? ALL_ONES : BigInt(value);
}

function sized(writer, body) {
  const start = writer.room(4);
  body();
  writer.view.setUint32(start, writer.length - start - 4, true);
}

function writeFields(writer, parts, values) {
  for (const [index, part] of parts.entries()) {
    if (part.isOptional && parts.slice(index).every(({ name }) => values[name] === undefined)) return;
    write(writer, part, values[part.name]);
  }
}

/** Encodes a frame by its name, from an object whose field names are those of the protocol's page. */
export function encode(name, stream, values = {}, flags = 0) {
  const frame = BY_NAME.get(name);
  const writer = new Writer();
  writer.room(12);
  writeFields(writer, frame.fields, values);
  header(writer.view, 0, writer.length - 12, frame.number, flags, stream);
  return writer.bytes.subarray(0, writer.length);
}

/** Writes the header of a frame. */
export function header(view, position, length, number, flags, stream) {
  view.setUint32(position, length, true);
  view.setUint8(position + 4, number);
  view.setUint8(position + 5, flags);
  view.setUint16(position + 6, 0, true);
  view.setUint32(position + 8, stream, true);
}

/** The concatenated bytes of all parts. */
export function joined(parts) {
  let length = 0;
  for (const part of parts) length += part.length;
  const bytes = new Uint8Array(length);
  let position = 0;
  for (const part of parts) {
    bytes.set(part, position);
    position += part.length;
  }
  return bytes;
}

export { encoder as utf8 };
