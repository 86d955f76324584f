"""Codecs of the frames that are frequent on a busy stream."""

from __future__ import annotations

import struct
from typing import Final

from .errors import ErrorCode, ProtocolError

_DEMAND: Final = struct.Struct("<IBBHIQQ")
_DELIVER: Final = struct.Struct("<QI")
_PUBLISH: Final = struct.Struct("<IBBHIQI")
_SETTLE: Final = struct.Struct("<IBBHIB3xIQI")
_DELAY: Final = struct.Struct("<I")
#: The longest delay of a retry in milliseconds.
LONGEST_DELAY: Final = 0xFFFF_FFFE
_COMMIT: Final = struct.Struct("<IBBHIQ")
U64_MAX: Final = 0xFFFF_FFFF_FFFF_FFFF

SUBSCRIBED: Final = 0x11
DEMAND: Final = 0x12
LIVE: Final = 0x14
LAG: Final = 0x15
CANCELLED: Final = 0x17
COMPLETE: Final = 0x18
MATCHED: Final = 0x1B
UNMATCHED: Final = 0x1C
SELECT_TOPIC: Final = 0x1D
PRODUCERS: Final = 0x1E
PUBLISH_OPENED: Final = 0x21
ACK: Final = 0x23
CONNECTED: Final = 0x24
DISCONNECTED: Final = 0x25
DELIVERIES: Final = 0x29
TOPIC_INFO: Final = 0x32
TOPICS: Final = 0x34
DONE: Final = 0x36
CURSORS: Final = 0x3A
CONNECTIONS: Final = 0x41
BROKER_INFO: Final = 0x44

#: The bytes of DELIVER's and PUBLISH's fields before the batch.
BATCH_HEADER: Final = 12


def demand(stream: int, through: int) -> bytes:
    """Returns DEMAND: ``through`` records in total may be sent on the stream."""
    return _DEMAND.pack(16, DEMAND, 0, 0, stream, through, U64_MAX)


def deliver_header(data: bytes, start: int, end: int) -> tuple[int, int]:
    """Returns the first offset and the number of records of a DELIVER.

    Raises:
        ProtocolError: the frame is too short, has no record, or offsets beyond the last.
    """
    if end - start < BATCH_HEADER:
        raise ProtocolError("DELIVER ends before its fields do", code=ErrorCode.MALFORMED_FRAME)
    first, count = _DELIVER.unpack_from(data, start)
    if count == 0 or first + count > U64_MAX:
        raise ProtocolError("DELIVER has no record, or offsets beyond the last", code=ErrorCode.MALFORMED_FRAME)
    return first, count


def publish(stream: int, first: int, count: int, batch: bytes, flags: int = 0) -> bytes:
    """Returns PUBLISH with a batch."""
    return _PUBLISH.pack(len(batch) + BATCH_HEADER, 0x22, flags, 0, stream, first, count) + batch


def settle(stream: int, verdict: int, attempt: int, first: int, count: int, delay: int | None = None) -> bytes:
    """Returns SETTLE of ``count`` records from ``first`` on; ``delay`` is in milliseconds, or None for the group's backoff."""
    if delay is None:
        return _SETTLE.pack(20, 0x2A, 0, 0, stream, verdict, attempt, first, count)
    return _SETTLE.pack(24, 0x2A, 0, 0, stream, verdict, attempt, first, count) + _DELAY.pack(delay)


def commit(stream: int, next_offset: int) -> bytes:
    """Returns COMMIT, which moves the cursor to ``next_offset``."""
    return _COMMIT.pack(8, 0x2B, 0, 0, stream, next_offset)
