"""Records, batches of records, and the other events of a subscription."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias

__all__ = [
    "Batch",
    "Delivery",
    "Event",
    "Headers",
    "HeadersLike",
    "Lag",
    "Live",
    "Matched",
    "Payload",
    "Producers",
    "Record",
    "Restarted",
    "Rewound",
    "Unmatched",
]

#: A value to publish: bytes unchanged, text as UTF-8.
Payload: TypeAlias = bytes | bytearray | memoryview | str
#: A record's headers in their order. A name may occur more than once.
Headers: TypeAlias = tuple[tuple[str, bytes], ...]
#: Headers as an argument: a mapping or pairs.
HeadersLike: TypeAlias = "dict[str, Payload] | Iterable[tuple[str, Payload]]"


def to_bytes(value: Payload) -> bytes:
    """Returns the bytes of a payload, key or header value."""
    if isinstance(value, bytes):
        return value
    return value.encode() if isinstance(value, str) else bytes(value)


def header_pairs(headers: HeadersLike) -> list[tuple[str, Payload]]:
    """Returns headers as a list of pairs, from an argument of either form."""
    return list(headers.items() if isinstance(headers, dict) else headers)


class Record:
    """One record of a topic.

    Attributes:
        topic: the topic's name.
        offset: the position in the topic, from 0.
        time: when the broker accepted the record, in milliseconds since 1970-01-01 UTC. Times never decrease within a topic.
        payload: the bytes that were published.
        key: the key; None for a record without one.
        headers: pairs of name and value.
    """

    __slots__ = ("headers", "key", "offset", "payload", "time", "topic")

    def __init__(
        self,
        topic: str,
        offset: int,
        time: int,
        payload: bytes,
        key: bytes | None = None,
        headers: Headers = (),
    ) -> None:
        self.topic = topic
        self.offset = offset
        self.time = time
        self.payload = payload
        self.key = key
        self.headers = headers

    @property
    def text(self) -> str:
        """The payload as UTF-8 text.

        Raises:
            UnicodeDecodeError: the payload isn't UTF-8.
        """
        return self.payload.decode()

    def json(self) -> Any:
        """Returns the payload's JSON value.

        Raises:
            ValueError: the payload isn't JSON.
        """
        return json.loads(self.payload)

    @property
    def timestamp(self) -> datetime:
        """:attr:`time` as an aware datetime in UTC."""
        return datetime.fromtimestamp(self.time / 1000, UTC)

    def header(self, name: str) -> bytes | None:
        """Returns the value of the first header of that name; None without one."""
        for header, value in self.headers:
            if header == name:
                return value
        return None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record):
            return NotImplemented
        return (self.topic, self.offset, self.time, self.payload, self.key, self.headers) == (
            other.topic,
            other.offset,
            other.time,
            other.payload,
            other.key,
            other.headers,
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = self.payload if len(self.payload) <= 40 else self.payload[:37] + b"..."
        key = "" if self.key is None else f", key={self.key!r}"
        return f"Record({self.topic}@{self.offset}, {shown!r}{key})"


class Batch:
    """Records of one topic as columns, in the order of their offsets.

    Attributes:
        topic: the topic's name.
        offsets: the offset of each record; a range if no offset is skipped.
        times: the time of each record, in milliseconds since 1970-01-01 UTC.
        payloads: the payload of each record.
        keys: the key of each record, None for a record without one; an empty list if no record has a key.
        headers: the headers of each record; an empty list if no record has headers.
    """

    __slots__ = ("headers", "keys", "offsets", "payloads", "times", "topic")

    def __init__(
        self,
        topic: str,
        offsets: range,
        times: list[int],
        payloads: list[bytes],
        keys: list[bytes | None],
        headers: list[Headers],
    ) -> None:
        self.topic = topic
        self.offsets = offsets
        self.times = times
        self.payloads = payloads
        self.keys = keys
        self.headers = headers

    def __len__(self) -> int:
        return len(self.payloads)

    def records(self) -> list[Record]:
        """Returns the batch as a list of records."""
        topic = self.topic
        if not self.keys and not self.headers:
            return [
                Record(topic, offset, time, payload) for offset, time, payload in zip(self.offsets, self.times, self.payloads, strict=True)
            ]
        keys: Sequence[bytes | None] = self.keys or [None] * len(self)
        headers: Sequence[Headers] = self.headers or [()] * len(self)
        return [Record(topic, *columns) for columns in zip(self.offsets, self.times, self.payloads, keys, headers, strict=True)]

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records())

    def __repr__(self) -> str:
        return f"Batch({self.topic}@{self.offsets.start}, {len(self)} records)"


@dataclass(frozen=True, slots=True)
class Live:
    """The end of replay: every later record was published after the subscription began."""

    topic: str | None
    next_offset: int


@dataclass(frozen=True, slots=True)
class Lag:
    """Records were dropped by the topic's limits before the subscriber requested them.

    ``missed`` counts them; delivery continues with ``next_offset``.
    """

    topic: str
    missed: int
    next_offset: int


@dataclass(frozen=True, slots=True)
class Restarted:
    """The topic was deleted and created again, or a memory topic's broker was restarted. Offsets restart from 0 in another epoch."""

    topic: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Rewound:
    """The broker lost the last records of a durable topic; the subscription continues at ``next_offset`` with other records.

    Records from that offset on that the client received earlier are no longer in the topic.
    """

    topic: str
    epoch: int
    next_offset: int


@dataclass(frozen=True, slots=True)
class Producers:
    """The number of producers attached to the topic has changed to ``count``."""

    topic: str
    count: int


@dataclass(frozen=True, slots=True)
class Matched:
    """A pattern's subscription now includes this topic."""

    topic: str
    epoch: int
    next_offset: int


@dataclass(frozen=True, slots=True)
class Unmatched:
    """A pattern's subscription no longer includes this topic: it was deleted, or the client may no longer subscribe to it."""

    topic: str


#: The values of ``Topic.events()`` besides records.
Event: TypeAlias = Record | Live | Lag | Restarted | Rewound | Producers | Matched | Unmatched


class Delivery(Record):
    """A record that a consumer group has given to this member.

    Attributes:
        attempt: how many times the record has been delivered, including this delivery.
    """

    __slots__ = ("_settle", "attempt")

    def __init__(
        self,
        topic: str,
        offset: int,
        time: int,
        payload: bytes,
        key: bytes | None,
        headers: Headers,
        attempt: int,
        settle: Any,
    ) -> None:
        super().__init__(topic, offset, time, payload, key, headers)
        self.attempt = attempt
        self._settle = settle

    async def ack(self) -> None:
        """Marks the record as done. The group never delivers it again.

        Returns when the acknowledgement has been handed to the connection. After a lost connection it is sent again on the
        next one.
        """
        await self._settle(self, 0)

    async def retry(self, after: float | None = None) -> None:
        """Asks the group to deliver the record again, to any member, before records that were never delivered.

        Args:
            after: seconds that the record waits before that, while no member has it. None leaves it to the group's
                ``retry_backoff``.
        """
        await self._settle(self, 1, after)

    async def reject(self) -> None:
        """Rejects the record: the group moves it to its dead-letter topic if it has one, and skips it otherwise."""
        await self._settle(self, 2)

    async def extend(self) -> None:
        """Restarts the record's deadline, for work that takes longer."""
        await self._settle(self, 3)
