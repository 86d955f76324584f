"""Codec of the frames that the scripted broker reads and writes.

It is the kit's own, written from the protocol's page, so that a mistake in a client's codec can't hide in the kit.
"""

from __future__ import annotations

import struct
from typing import Any

ALL_ONES = (1 << 64) - 1
_HEADER = struct.Struct("<IBBHI")
_INTEGERS = {"u8": "<B", "u16": "<H", "u32": "<I", "u64": "<Q", "pad1": "<x", "pad2": "<2x", "pad3": "<3x"}

_FILTER = "filter:filter"
_SETTINGS = "settings:settings"
_POSITIONS = "positions:positions"
_ENDING = "kind:u8 :pad3 code:u32 message:string"
_LISTS = {
    "settings": "key:u16 value:u64",
    "positions": "topic:string epoch:u64 next_offset:u64",
    "conditions": "subject:u8 test:u8 header:string value:bytes",
}

#: Type, and layout of the body, of each frame that the kit knows.
FRAMES: dict[str, tuple[int, str]] = {
    "HELLO": (
        0x01,
        "magic:u32 lowest:u16 highest:u16 features:u64 longest_frame:u32 keepalive:u32 name:string method:u8 user:string secret:string",
    ),
    "WELCOME": (
        0x02,
        "magic:u32 version:u16 :pad2 features:u64 longest_frame:u32 longest_record:u32 streams:u32 keepalive:u32 broker:u64"
        " software:string identity:string expires:u64",
    ),
    "PING": (0x03, "token:u64"),
    "PONG": (0x04, "token:u64"),
    "GOAWAY": (0x05, "code:u32 message:string"),
    "ERROR": (0x06, "code:u32 message:string"),
    "AUTHENTICATE": (0x07, "method:u8 user:string secret:string"),
    "AUTHENTICATED": (0x08, "identity:string expires:u64"),
    "REDIRECT": (0x09, "node:string address:string"),
    "SUBSCRIBE": (
        0x10,
        f"topic:string start:u8 lag:u8 if_missing:u8 flags:u8 start_value:u64 epoch:u64 granted:u64 cursor:string {_FILTER} {_SETTINGS}",
    ),
    "SUBSCRIBED": (0x11, "epoch:u64 next_offset:u64 live_offset:u64 gaps:u8 continues:u8 shareable:u8 :pad1"),
    "DEMAND": (0x12, "granted:u64 bytes:u64"),
    "DELIVER": (0x13, "first:u64 count:u32 batch:rest"),
    "LIVE": (0x14, "next_offset:u64"),
    "LAG": (0x15, "missed:u64 next_offset:u64"),
    "CANCEL": (0x16, ""),
    "CANCELLED": (0x17, "flags:u8"),
    "COMPLETE": (0x18, _ENDING),
    "SUBSCRIBE_PATTERN": (0x19, f"pattern:string start:u8 lag:u8 more:u8 :pad1 start_value:u64 granted:u64 {_FILTER} {_POSITIONS}"),
    "POSITIONS": (0x1A, f"more:u8 {_POSITIONS}"),
    "MATCHED": (0x1B, "number:u32 topic:string epoch:u64 next_offset:u64 live_offset:u64 gaps:u8 continues:u8 :pad2"),
    "UNMATCHED": (0x1C, "number:u32"),
    "SELECT_TOPIC": (0x1D, "number:u32"),
    "PRODUCERS": (0x1E, "count:u32"),
    "PUBLISH_OPEN": (0x20, f"topic:string acknowledgement:u8 role:u8 :pad2 producer:u64 first_sequence:u64 {_SETTINGS}"),
    "PUBLISH_OPENED": (0x21, "epoch:u64 granted:u64 bytes:u64 next_sequence:u64"),
    "PUBLISH": (0x22, "first:u64 count:u32 batch:rest"),
    "ACK": (0x23, "through:u64 last_offset:u64"),
    "CONNECTED": (0x24, ""),
    "DISCONNECTED": (0x25, ""),
    "JOIN": (
        0x28,
        "topic:string group:string start:u8 acknowledgement:u8 order:u8 if_missing:u8 start_value:u64 deadline:u32 deliveries:u32"
        f" dead_letters:string granted:u64 {_FILTER} more:rest",
    ),
    "DELIVERIES": (0x29, "count:u32"),
    "SETTLE": (0x2A, "verdict:u8 :pad3 delivery:u32 first:u64 count:u32 more:rest"),
    "COMMIT": (0x2B, "next_offset:u64"),
    "TOPIC_CREATE": (0x30, f"topic:string {_SETTINGS}"),
    "TOPIC_SHOW": (0x31, "topic:string"),
    "TOPIC_DELETE": (0x35, "topic:string"),
    "DONE": (0x36, ""),
}
MAGIC = int.from_bytes(b"SLCE", "little")
#: The fields of a plain WELCOME.
WELCOME: dict[str, Any] = {
    "magic": MAGIC,
    "version": 1,
    "longest_frame": 1 << 20,
    "longest_record": 1 << 18,
    "streams": 8,
    "expires": ALL_ONES,
}
_BY_NUMBER = {number: (name, layout) for name, (number, layout) in FRAMES.items()}


def frame(number: int, stream: int, body: bytes = b"", flags: int = 0, length: int | None = None) -> bytes:
    """Returns a frame; if ``length`` is given, its header has this length, even if that is wrong."""
    return _HEADER.pack(len(body) if length is None else length, number, flags, 0, stream) + body


def encode(name: str, stream: int, /, **values: Any) -> bytes:
    """Returns a frame by its name. Fields that aren't named are 0 or empty."""
    number, layout = FRAMES[name]
    return frame(number, stream, _write(layout, values))


def body(name: str, **values: Any) -> bytes:
    """Returns the body of a frame."""
    return _write(FRAMES[name][1], values)


def header(data: bytes) -> tuple[int, int, int, int]:
    """Returns length, type, flags and stream of a frame's header."""
    length, number, flags, _, stream = _HEADER.unpack(data)
    return length, number, flags, stream


def decode(number: int, data: bytes) -> tuple[str, dict[str, Any]]:
    """Returns the name and the fields of a frame."""
    name, layout = _BY_NUMBER[number]
    values, _ = _read(layout, data, 0)
    return name, values


def _fields(layout: str) -> list[tuple[str, str]]:
    return [(name, kind) for name, _, kind in (part.partition(":") for part in layout.split())]


def _write(layout: str, values: dict[str, Any]) -> bytes:
    out = b""
    for name, kind in _fields(layout):
        value = values.get(name)
        if kind.startswith("pad"):
            out += bytes(int(kind[3:]))
        elif kind in _INTEGERS:
            out += struct.pack(_INTEGERS[kind], value or 0)
        elif kind in ("string", "bytes"):
            data = value.encode() if isinstance(value, str) else value or b""
            out += struct.pack("<H", len(data)) + data
        elif kind == "rest":
            out += value or b""
        elif kind == "filter":
            inner = _list("conditions", value or [])
            out += struct.pack("<I", len(inner)) + inner
        else:
            out += _list(kind, value or [])
    return out


def _list(kind: str, elements: list[dict[str, Any]]) -> bytes:
    parts = [_write(_LISTS[kind], element) for element in elements]
    return struct.pack("<I", len(parts)) + b"".join(struct.pack("<I", len(part)) + part for part in parts)


def _read(layout: str, data: bytes, position: int) -> tuple[dict[str, Any], int]:
    values: dict[str, Any] = {}
    for name, kind in _fields(layout):
        if kind in _INTEGERS:
            unpacked = struct.unpack_from(_INTEGERS[kind], data, position)
            position += struct.calcsize(_INTEGERS[kind])
            if unpacked:
                values[name] = unpacked[0]
        elif kind in ("string", "bytes"):
            (size,) = struct.unpack_from("<H", data, position)
            content = data[position + 2 : position + 2 + size]
            values[name] = content.decode() if kind == "string" else content
            position += 2 + size
        elif kind == "rest":
            values[name] = data[position:]
            position = len(data)
        elif kind == "filter":
            (size,) = struct.unpack_from("<I", data, position)
            values[name], _ = _read_list("conditions", data, position + 4)
            position += 4 + size
        else:
            values[name], position = _read_list(kind, data, position)
    return values, position


def _read_list(kind: str, data: bytes, position: int) -> tuple[list[dict[str, Any]], int]:
    (count,) = struct.unpack_from("<I", data, position)
    position += 4
    elements = []
    for _ in range(count):
        (size,) = struct.unpack_from("<I", data, position)
        elements.append(_read(_LISTS[kind], data, position + 4)[0])
        position += 4 + size
    return elements, position


def item(payload: bytes, kind: int = 0) -> bytes:
    """Returns one item of a batch."""
    return struct.pack("<I", kind << 30 | len(payload)) + payload


#: A time mark.
MARK = item(struct.pack("<q", 1_000), 2)


def batch(*payloads: bytes) -> bytes:
    """Returns a batch of plain records after a time mark."""
    return MARK + b"".join(item(payload) for payload in payloads)


def deliver(stream: int, batch: bytes, count: int = 1, first: int = 0, flags: int = 0) -> bytes:
    """Returns DELIVER with a batch that needn't be valid."""
    return frame(0x13, stream, struct.pack("<QI", first, count) + batch, flags)


def payloads(data: bytes) -> list[bytes]:
    """Returns the payloads of a client's batch, without keys and headers."""
    found = []
    position = 0
    while position < len(data):
        (word,) = struct.unpack_from("<I", data, position)
        size, kind = word & (1 << 30) - 1, word >> 30
        record = data[position + 4 : position + 4 + size]
        if len(record) != size or kind > 1:
            raise ValueError("the client sent a batch that contradicts itself")
        found.append(record if kind == 0 else _payload(record))
        position += 4 + size
    return found


def _payload(record: bytes) -> bytes:
    flags = record[0]
    position = 1
    if flags & 1:
        position += 2 + int.from_bytes(record[position : position + 2], "little")
    if flags & 2:
        count = int.from_bytes(record[position : position + 2], "little")
        position += 2
        for _ in range(count):
            position += 2 + int.from_bytes(record[position : position + 2], "little")
            position += 4 + int.from_bytes(record[position : position + 4], "little")
    return record[position:]
