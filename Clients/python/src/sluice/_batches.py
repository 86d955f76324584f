"""Codec of batches, the items of DELIVER and PUBLISH.

An item is a word of 4 bytes and a body. Bits 0 to 29 of the word are the body's length; bits 30 and 31 its kind::

    0  plain record          body = payload
    1  record with attributes  body = flags, key, headers, payload
    2  time mark             body = i64, milliseconds since 1970
"""

from __future__ import annotations

import struct
from typing import Final

from .errors import ErrorCode, ProtocolError
from .records import Batch, Headers, HeadersLike, Payload, header_pairs, to_bytes

_U32: Final = struct.Struct("<I")
_U16: Final = struct.Struct("<H")
_I64: Final = struct.Struct("<q")
LONGEST_BODY: Final = (1 << 30) - 1
#: Encodes the word of a plain record of this length.
encode_word: Final = _U32.pack
_ATTRIBUTES: Final = 1 << 30
_TIME: Final = 2 << 30
#: Runs of at least this many records of one length are split by one call.
_RUN: Final = 8

_runs: dict[tuple[int, int], struct.Struct] = {}


def _malformed(message: str) -> ProtocolError:
    return ProtocolError(message, code=ErrorCode.MALFORMED_BATCH)


def _run_length(data: bytes, position: int, most: int, stride: int) -> int:
    """Returns how many items from ``position`` on have the same word as the first, at most ``most``, each ``stride`` bytes long."""
    length = most
    for byte in range(4):
        column = data[position + byte : position + byte + (length - 1) * stride + 1 : stride]
        first = column[:1]
        length = len(column) - len(column.lstrip(first))
    return length


def _cut_run(data: bytes, position: int, count: int, size: int) -> tuple[bytes, ...]:
    """Returns the payloads of ``count`` plain records of ``size`` bytes each."""
    key = (count, size)
    layout = _runs.get(key)
    if layout is None:
        if len(_runs) >= 256:
            _runs.clear()
        layout = _runs[key] = struct.Struct("<" + f"4x{size}s" * count)
    return layout.unpack_from(data, position)


def decode_batch(data: bytes, position: int, end: int, topic: str, first_offset: int, count: int, time: int) -> tuple[Batch, int]:
    """Decodes the items between ``position`` and ``end`` of ``data``.

    Returns the batch, and the time of the last time mark, which applies to the next batch of the stream.

    Raises:
        ProtocolError: the items contradict themselves, or aren't ``count`` records.
    """
    payloads: list[bytes] = []
    times: list[int] = []
    keys: list[bytes | None] = []
    headers: list[Headers] = []
    word_at = _U32.unpack_from
    try:
        while position < end:
            (word,) = word_at(data, position)
            size = word & LONGEST_BODY
            if word <= LONGEST_BODY:
                stride = size + 4
                most = min(count - len(payloads), (end - position) // stride)
                if most >= _RUN and (run := _run_length(data, position, most, stride)) >= _RUN:
                    payloads.extend(_cut_run(data, position, run, size))
                    position += run * stride
                    continue
                position += 4
                payloads.append(data[position : position + size])
                position += size
                continue
            position += 4
            if word >= _TIME:
                if word != _TIME | 8 or position + 8 > end:
                    raise _malformed("a time mark doesn't have 8 bytes")
                times.extend([time] * (len(payloads) - len(times)))
                (time,) = _I64.unpack_from(data, position)
                position += 8
                continue
            body_end = position + size
            if body_end > end:
                raise _malformed("a record is longer than its batch")
            index = len(payloads)
            key, these, start = _attributes(data, position, body_end)
            if key is not None:
                keys.extend([None] * (index - len(keys)))
                keys.append(key)
            if these:
                headers.extend([()] * (index - len(headers)))
                headers.append(these)
            payloads.append(data[start:body_end])
            position = body_end
    except struct.error:
        raise _malformed("a batch ends within an item") from None
    total = len(payloads)
    if position != end or total != count:
        raise _malformed(f"a batch has {total} records, not {count}, or a record is longer than its batch")
    times.extend([time] * (total - len(times)))
    if keys:
        keys.extend([None] * (total - len(keys)))
    if headers:
        headers.extend([()] * (total - len(headers)))
    return Batch(topic, range(first_offset, first_offset + count), times, payloads, keys, headers), time


def _attributes(data: bytes, position: int, end: int) -> tuple[bytes | None, Headers, int]:
    """Returns the key and the headers of a record with attributes, and the start of its payload."""

    def advance(count: int) -> int:
        if position + count > end:
            raise _malformed("a record's attributes are longer than the record")
        return position + count

    behind = advance(1)
    flags = data[position]
    position = behind
    if flags > 3:
        raise _malformed("a record has attributes that aren't defined")
    key: bytes | None = None
    if flags & 1:
        behind = advance(2)
        (size,) = _U16.unpack_from(data, position)
        position = behind
        behind = advance(size)
        key = data[position:behind]
        position = behind
    if not flags & 2:
        return key, (), position
    behind = advance(2)
    (count,) = _U16.unpack_from(data, position)
    position = behind
    headers: list[tuple[str, bytes]] = []
    for _ in range(count):
        behind = advance(2)
        (size,) = _U16.unpack_from(data, position)
        position = behind
        behind = advance(size)
        name = data[position:behind].decode(errors="surrogateescape")
        position = behind
        behind = advance(4)
        (size,) = _U32.unpack_from(data, position)
        position = behind
        behind = advance(size)
        headers.append((name, data[position:behind]))
        position = behind
    return key, tuple(headers), position


def encode_record(payload: Payload, key: Payload | None = None, headers: HeadersLike | None = None) -> bytes:
    """Encodes one record as an item.

    Raises:
        ValueError: the key, a header or the record is longer than the protocol can express.
    """
    data = payload if isinstance(payload, bytes) else to_bytes(payload)
    if key is None and not headers:
        if len(data) > LONGEST_BODY:
            raise ValueError(f"a record has {len(data)} bytes; the most is {LONGEST_BODY}")
        return _U32.pack(len(data)) + data
    parts = [bytes([(key is not None) | (2 if headers else 0)])]
    if key is not None:
        parts.append(_sized(_U16, to_bytes(key), "the key"))
    if headers:
        pairs = header_pairs(headers)
        if len(pairs) > 0xFFFF:
            raise ValueError(f"a record has {len(pairs)} headers; the most is 65,535")
        parts.append(_U16.pack(len(pairs)))
        for name, value in pairs:
            parts.append(_sized(_U16, name.encode(errors="surrogateescape"), "a header's name"))
            parts.append(_sized(_U32, to_bytes(value), "a header's value"))
    parts.append(data)
    body = b"".join(parts)
    if len(body) > LONGEST_BODY:
        raise ValueError(f"a record has {len(body)} bytes; the most is {LONGEST_BODY}")
    return _U32.pack(len(body) | _ATTRIBUTES) + body


def _sized(layout: struct.Struct, data: bytes, what: str) -> bytes:
    most = (1 << 8 * layout.size) - 1
    if len(data) > most:
        raise ValueError(f"{what} has {len(data)} bytes; the most is {most}")
    return layout.pack(len(data)) + data
