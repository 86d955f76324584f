"""The layouts of the protocol's frames as tables, and a codec that follows them.

Field names, types and order are those of the page *The protocol*. Frames that carry records (DELIVER and PUBLISH) and those that are
frequent on a busy stream (DEMAND, ACK, SETTLE) have hand-written codecs in ``_frames``; the tables serve every other frame and the tests.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from .errors import ErrorCode, ProtocolError

U64_MAX: Final = 0xFFFF_FFFF_FFFF_FFFF

_INTEGERS: Final = {
    "u8": struct.Struct("<B"),
    "u16": struct.Struct("<H"),
    "u32": struct.Struct("<I"),
    "u64": struct.Struct("<Q"),
    "i64": struct.Struct("<q"),
}


@dataclass(frozen=True)
class Field:
    """One field of a frame or structure.

    ``kind`` is an integer type, ``string``, ``bytes16``, ``bytes32``, ``structure``, ``list``, ``magic`` or ``pad``.
    """

    name: str
    kind: str
    parts: tuple[Field, ...] = ()
    #: For ``pad``: the number of bytes. For an integer: the highest defined value.
    limit: int | None = None
    #: Whether a peer may omit the field, with all that follow it.
    is_optional: bool = False
    #: The value of an omitted field.
    absent: int | str | None = None


def _parse(text: str) -> tuple[Field, ...]:
    """Parses ``name:kind`` separated by commas, where ``kind`` may have ``<=limit``, or ``=`` and the value of an absent field.

    After ``=``, an empty value means an empty text, or None if the field is a number.
    """
    fields = []
    for part in text.split(","):
        name, _, kind = part.strip().rpartition(":")
        limit: int | None = None
        absent: int | str | None = None
        is_optional = "=" in kind and "<=" not in kind
        if is_optional:
            kind, _, value = kind.partition("=")
            absent = int(value) if value else "" if kind == "string" else None
        if "<=" in kind:
            kind, _, value = kind.partition("<=")
            limit = int(value)
        if kind.startswith("pad"):
            fields.append(Field("", "pad", limit=int(kind[3:])))
        else:
            fields.append(Field(name, kind, limit=limit, is_optional=is_optional, absent=absent))
    return tuple(fields)


def _structure(name: str, *parts: str | Field) -> Field:
    return Field(name, "structure", _fields(*parts))


def _list(name: str, *parts: str | Field) -> Field:
    return Field(name, "list", _fields(*parts))


def _fields(*parts: str | Field) -> tuple[Field, ...]:
    fields: list[Field] = []
    for part in parts:
        fields.extend([part] if isinstance(part, Field) else _parse(part))
    return tuple(fields)


_CONDITIONS: Final = _list("filter", "subject:u8, test:u8, header:string, value:bytes16")
#: A filter is a structure whose only field is its list of conditions.
_FILTER: Final = Field("filter", "wrapped", (_CONDITIONS,))
_SETTINGS: Final = _list("settings", "key:u16, value:u64")
_POSITIONS: Final = _list("positions", "topic:string, epoch:u64, next offset:u64")
_STORAGE: Final = _structure("storage", "state:u8<=3, since:u64, used:u64, limit:u64")
_NUMBERS: Final = _list("numbers", "name:string, value:u64")
_SUMMARY_FIELDS: Final = _fields(
    "topic:string, epoch:u64, first offset:u64, next offset:u64, bytes:u64, state:u8<=2, code:u32, message:string,"
    "subscriptions:u32, publications:u32, records:u64, storage:u8<=1"
)
_STATES: Final = _list("states", "key:bytes32, value:bytes32")


@dataclass(frozen=True)
class Frame:
    """The number, name, sender and layout of a type of frame."""

    number: int
    name: str
    sender: str
    fields: tuple[Field, ...] = field(default=())


def _frame(number: int, name: str, sender: str, *parts: str | Field) -> Frame:
    return Frame(number, name, sender, _fields(*parts))


_CREDENTIALS: Final = "method:u8, user:string, secret:string"
_ENDING: Final = "kind:u8<=1, :pad3, code:u32, message:string"
_TOPIC: Final = "topic:string"
_START: Final = "start:u8, lag:u8"

FRAMES: Final[tuple[Frame, ...]] = (
    _frame(
        0x01,
        "HELLO",
        "client",
        "magic:magic, lowest version:u16, highest version:u16, features:u64, longest frame:u32, keepalive:u32, name:string",
        _CREDENTIALS,
    ),
    _frame(
        0x02,
        "WELCOME",
        "broker",
        "magic:magic, version:u16, :pad2, features:u64, longest frame:u32, longest record:u32, streams:u32, keepalive:u32,"
        "broker:u64, software:string, identity:string, expires:u64",
    ),
    _frame(0x03, "PING", "both", "token:u64"),
    _frame(0x04, "PONG", "both", "token:u64"),
    _frame(0x05, "GOAWAY", "broker", "code:u32, message:string"),
    _frame(0x06, "ERROR", "both", "code:u32, message:string"),
    _frame(0x07, "AUTHENTICATE", "client", _CREDENTIALS),
    _frame(0x08, "AUTHENTICATED", "broker", "identity:string, expires:u64"),
    _frame(0x09, "REDIRECT", "broker", "node:string, address:string"),
    _frame(
        0x10,
        "SUBSCRIBE",
        "client",
        _TOPIC,
        _START,
        "if missing:u8, flags:u8, start value:u64, epoch:u64, granted through:u64, cursor:string",
        _FILTER,
        _SETTINGS,
    ),
    _frame(
        0x11,
        "SUBSCRIBED",
        "broker",
        "epoch:u64, next offset:u64, live offset:u64, gaps:u8, continues:u8, shareable:u8, :pad1",
    ),
    _frame(0x12, "DEMAND", "both", "granted through:u64, bytes through:u64"),
    _frame(0x13, "DELIVER", "broker", "first offset:u64, count:u32, batch:batch"),
    _frame(0x14, "LIVE", "broker", "next offset:u64"),
    _frame(0x15, "LAG", "broker", "missed:u64, next offset:u64"),
    _frame(0x16, "CANCEL", "client"),
    _frame(0x17, "CANCELLED", "broker", "flags:u8"),
    _frame(0x18, "COMPLETE", "both", _ENDING),
    _frame(
        0x19,
        "SUBSCRIBE_PATTERN",
        "client",
        "pattern:string",
        _START,
        "more:u8, :pad1, start value:u64, granted through:u64",
        _FILTER,
        _POSITIONS,
    ),
    _frame(0x1A, "POSITIONS", "client", "more:u8", _POSITIONS),
    _frame(
        0x1B,
        "MATCHED",
        "broker",
        "number:u32, topic:string, epoch:u64, next offset:u64, live offset:u64, gaps:u8, continues:u8, :pad2",
    ),
    _frame(0x1C, "UNMATCHED", "broker", "number:u32"),
    _frame(0x1D, "SELECT_TOPIC", "broker", "number:u32"),
    _frame(0x1E, "PRODUCERS", "broker", "count:u32"),
    _frame(
        0x20,
        "PUBLISH_OPEN",
        "client",
        _TOPIC,
        "acknowledgement:u8, role:u8, :pad2, producer:u64, first sequence:u64",
        _SETTINGS,
        "known epoch:u64=, known offset:u64=",
    ),
    _frame(0x21, "PUBLISH_OPENED", "broker", "epoch:u64, granted through:u64, bytes through:u64, next sequence:u64, lost from:u64="),
    _frame(0x22, "PUBLISH", "client", "first sequence:u64, count:u32, batch:batch"),
    _frame(0x23, "ACK", "broker", "through:u64, last offset:u64"),
    _frame(0x24, "CONNECTED", "broker"),
    _frame(0x25, "DISCONNECTED", "broker"),
    _frame(
        0x28,
        "JOIN",
        "client",
        _TOPIC,
        "group:string, start:u8, acknowledgement:u8, order:u8, if missing:u8, start value:u64, deadline:u32,"
        "deliveries:u32, dead letters:string, granted through:u64",
        _FILTER,
        "first backoff:u32=, longest backoff:u32=",
    ),
    _frame(0x29, "DELIVERIES", "broker", "count:u32"),
    _frame(0x2A, "SETTLE", "client", "verdict:u8, :pad3, delivery:u32, first offset:u64, count:u32, delay:u32="),
    _frame(0x2B, "COMMIT", "client", "next offset:u64"),
    _frame(0x30, "TOPIC_CREATE", "client", _TOPIC, _SETTINGS),
    _frame(0x31, "TOPIC_SHOW", "client", _TOPIC),
    _frame(
        0x32,
        "TOPIC_INFO",
        "broker",
        Field("summary", "structure", _SUMMARY_FIELDS),
        _SETTINGS,
        _list(
            "subscriptions",
            "connection:u64, client:string, stream:u32, state:u8<=1, next offset:u64, granted:u64, sent:u64, holding:u64,"
            "limit:u8, last minute:u16, last five minutes:u16, consumer:string, slowness:u8, slow:u64, age:u64, node:string=",
        ),
        _list(
            "publications",
            "connection:u64, client:string, stream:u32, granted:u64, received:u64, waiting:u64, reason:u8, node:string=",
        ),
        _structure(
            "dropped",
            "records by records:u64, bytes by records:u64, records by bytes:u64, bytes by bytes:u64, records by age:u64,"
            "bytes by age:u64, records by trim:u64, bytes by trim:u64",
        ),
        _STORAGE,
        "flags:u8, without producers:u64",
        _list("holds", "reason:u8, milliseconds:u64, last minute:u16, last five minutes:u16"),
        "consumers in all:u32",
        _list(
            "consumers",
            "name:string, kind:u8<=1, next offset:u64, lag:u64, bytes:u64, age:u64, members:u32, unacknowledged:u64,"
            "redeliveries:u64, dead letters:u64, abandoned:u64, missed:u64, idle:u64, delayed:u64=0, next retry:u64=0",
        ),
    ),
    _frame(0x33, "TOPIC_LIST", "client", "after:string, limit:u32"),
    _frame(0x34, "TOPICS", "broker", "more:u8", Field("topics", "list", _SUMMARY_FIELDS)),
    _frame(0x35, "TOPIC_DELETE", "client", _TOPIC),
    _frame(0x36, "DONE", "broker"),
    _frame(0x37, "TOPIC_CONNECT", "client", _TOPIC),
    _frame(0x38, "TOPIC_DISCONNECT", "client", _TOPIC),
    _frame(0x39, "CURSOR_LIST", "client", _TOPIC, "after:string, limit:u32"),
    _frame(
        0x3A,
        "CURSORS",
        "broker",
        "more:u8",
        _list(
            "cursors",
            "name:string, kind:u8<=1, epoch:u64, next offset:u64, end:u64, members:u32, outstanding:u64, idle:u64, bytes:u64,"
            "age:u64, redeliveries:u64, dead letters:u64, abandoned:u64, missed:u64, delayed:u64=0, next retry:u64=0",
        ),
    ),
    _frame(0x3B, "CURSOR_MOVE", "client", _TOPIC, "name:string, start:u8, :pad3, start value:u64"),
    _frame(0x3C, "CURSOR_DELETE", "client", _TOPIC, "name:string"),
    _frame(0x3D, "TOPIC_SET", "client", _TOPIC, _SETTINGS),
    _frame(0x3E, "TOPIC_TRIM", "client", _TOPIC, "limit:u8, :pad3, value:u64"),
    _frame(0x40, "CONNECTION_LIST", "client", "after:u64, limit:u32"),
    _frame(
        0x41,
        "CONNECTIONS",
        "broker",
        "more:u8",
        _list(
            "connections",
            "connection:u64, client:string, identity:string, peer:string, security:string, age:u64, subscriptions:u32,"
            "publications:u32, buffered:u64, received:u64=0, sent:u64=0",
        ),
    ),
    _frame(0x42, "CONNECTION_CLOSE", "client", "connection:u64"),
    _frame(0x43, "BROKER_SHOW", "client"),
    _frame(
        0x44,
        "BROKER_INFO",
        "broker",
        "time:u64, uptime:u64",
        _STORAGE,
        "stopped:u32",
        _list("stopped topics", "topic:string, reason:u8, milliseconds:u64"),
        _NUMBERS,
        _list(
            "problems",
            "severity:u8, since:u64, sentence:string, kind:string, topic:string, consumer:string, connection:u64",
        ),
        _list("problem kinds", "kind:string, severity:u8, since:u64, count:u32, sentence:string"),
    ),
    _frame(0x45, "STATE_LIST", "client", _TOPIC, "kind:u8, :pad3, after:bytes32"),
    _frame(0x46, "STATES", "broker", "epoch:u64, next offset:u64, more:u8", _STATES),
    _frame(0x47, "STATE_RESTORE", "client", _TOPIC, "kind:u8, :pad3, origin:u64", _STATES),
    _frame(0x60, "CLUSTER_SHOW", "client", "after:string, nodes:u32, first shard:u32, shards:u32"),
    _frame(
        0x61,
        "CLUSTER_INFO",
        "broker",
        "name:string, unreadiness:string",
        _structure("engine", "connected:u8, unsafe:u8, server:string, commit latency:u64", _list("problems", "problem:string")),
        "more nodes:u8",
        _list("nodes", "name:string, address:string, version:string, state:u8, shards:u32, silence:u64, problem:string="),
        "shard count:u32, more shards:u8",
        _list("shards", "number:u32, state:u8, owner:string, term:u64, target:string, pin:string"),
        _NUMBERS,
    ),
    _frame(0x62, "CLUSTER_DRAIN", "client", "node:string, wanted:u8"),
    _frame(0x63, "CLUSTER_MOVE", "client", "shard:u32, node:string"),
    _frame(0x64, "LEND", "client", "granted through:u64, paced through:u64, recall:u8, :pad7"),
    _frame(0xC0, "ORIGIN", "client", "node:string, connection:u64, client:string"),
    _frame(0xC1, "FLOOR", "broker", "floor:u64"),
    _frame(0x65, "OFFER", "broker", "returned:u64, waits:u8, paced:u8, :pad6"),
)

BY_NAME: Final = {frame.name: frame for frame in FRAMES}
BY_NUMBER: Final = {frame.number: frame for frame in FRAMES}

MAGIC: Final = b"SLCE"


class _Reader:
    """Reads fields from bytes, and raises ``malformed-frame`` if they end too early."""

    __slots__ = ("data", "end", "position")

    def __init__(self, data: bytes, position: int, end: int) -> None:
        self.data = data
        self.position = position
        self.end = end

    def take(self, count: int) -> bytes:
        start = self.position
        if count > self.end - start:
            raise malformed("a frame ends before its fields do")
        self.position = start + count
        return self.data[start : self.position]

    def integer(self, kind: str) -> int:
        layout = _INTEGERS[kind]
        value: int = layout.unpack(self.take(layout.size))[0]
        return value

    def part(self) -> _Reader:
        """Returns a reader of the structure that starts here, and moves past it."""
        size = self.integer("u32")
        if size > self.end - self.position:
            raise malformed("a structure is longer than its frame")
        part = _Reader(self.data, self.position, self.position + size)
        self.position += size
        return part

    @property
    def is_empty(self) -> bool:
        return self.position >= self.end


def malformed(message: str) -> ProtocolError:
    """Returns the error for a frame that contradicts its layout."""
    return ProtocolError(message, code=ErrorCode.MALFORMED_FRAME)


def _read_fields(reader: _Reader, fields: Sequence[Field]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for part in fields:
        if part.is_optional and reader.is_empty:
            values[part.name] = part.absent
            continue
        value = _read(reader, part)
        if part.name:
            values[part.name] = value
    return values


def _read(reader: _Reader, part: Field) -> Any:
    kind = part.kind
    if kind in _INTEGERS:
        value = reader.integer(kind)
        if part.limit is not None and value > part.limit:
            raise malformed(f"{part.name} is {value}, which isn't defined")
        return value
    if kind == "string":
        try:
            return reader.take(reader.integer("u16")).decode()
        except UnicodeDecodeError:
            raise malformed(f"{part.name} isn't UTF-8") from None
    if kind == "bytes16":
        return reader.take(reader.integer("u16"))
    if kind == "bytes32":
        return reader.take(reader.integer("u32"))
    if kind == "pad":
        return reader.take(part.limit or 0)
    if kind == "magic":
        if reader.take(4) != MAGIC:
            raise ProtocolError("the first bytes aren't those of a Sluice broker", code=ErrorCode.NOT_SLUICE)
        return None
    if kind == "structure":
        return _read_fields(reader.part(), part.parts)
    if kind == "wrapped":
        return _read(reader.part(), part.parts[0])
    if kind == "list":
        count = reader.integer("u32")
        # Each element has a length word, so the frame's size limits the count.
        if count * 4 > reader.end - reader.position:
            raise malformed(f"{part.name} has fewer elements than its count says")
        return [_read_fields(reader.part(), part.parts) for _ in range(count)]
    raise AssertionError(f"no layout reads {kind}")


def decode(frame: Frame, body: bytes) -> dict[str, Any]:
    """Decodes the body of a frame. Bytes after the known fields are ignored, as the protocol requires.

    Raises:
        ProtocolError: the body contradicts its layout.
    """
    return _read_fields(_Reader(body, 0, len(body)), frame.fields)


def _write_fields(out: bytearray, fields: Sequence[Field], values: dict[str, Any]) -> None:
    for index, part in enumerate(fields):
        if part.is_optional and all(values.get(later.name) is None for later in fields[index:]):
            return
        _write(out, part, values.get(part.name))


def _write(out: bytearray, part: Field, value: Any) -> None:
    kind = part.kind
    if kind in _INTEGERS:
        out += _INTEGERS[kind].pack(int(value or 0))
    elif kind == "string":
        text = (value or "").encode()
        out += _INTEGERS["u16"].pack(len(text)) + text
    elif kind in ("bytes16", "bytes32"):
        data = value or b""
        out += _INTEGERS["u16" if kind == "bytes16" else "u32"].pack(len(data)) + data
    elif kind == "pad":
        out += bytes(part.limit or 0)
    elif kind == "magic":
        out += MAGIC
    elif kind in ("structure", "wrapped"):
        inner = bytearray()
        if kind == "structure":
            _write_fields(inner, part.parts, value or {})
        else:
            _write(inner, part.parts[0], value)
        out += _INTEGERS["u32"].pack(len(inner)) + inner
    elif kind == "list":
        elements = value or []
        out += _INTEGERS["u32"].pack(len(elements))
        for element in elements:
            inner = bytearray()
            _write_fields(inner, part.parts, element)
            out += _INTEGERS["u32"].pack(len(inner)) + inner
    else:
        raise AssertionError(f"no layout writes {kind}")


#: The header of a frame: length, number, flags, an unused field, stream.
HEADER: Final = struct.Struct("<IBBHI")


def frame_bytes(number: int, stream: int, body: bytes | bytearray, flags: int = 0) -> bytes:
    """Returns a frame: the header of 12 bytes, and the body."""
    return HEADER.pack(len(body), number, flags, 0, stream) + body


def encode(name: str, stream: int, flags: int = 0, /, **values: Any) -> bytes:
    """Encodes a frame by its name. Underscores in argument names stand for spaces. Fields without an argument are 0 or empty."""
    frame = BY_NAME[name]
    out = bytearray()
    _write_fields(out, frame.fields, {key.replace("_", " "): value for key, value in values.items()})
    return frame_bytes(frame.number, stream, out, flags)
