"""The parameters of a subscription: its start, and conditions on its records."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias

from .records import Payload, to_bytes

__all__ = [
    "Condition",
    "Missing",
    "Start",
    "WhenLagging",
    "has_header",
    "has_key",
    "header",
    "header_prefix",
    "key",
    "key_prefix",
    "last",
    "offset",
    "since",
]

#: The reaction of a subscription when the topic drops records before it has requested them: report the lag and continue, or fail.
WhenLagging: TypeAlias = Literal["skip", "fail"]
#: Whether to create a topic that doesn't exist, or to fail.
Missing: TypeAlias = Literal["create", "fail"]

_NAMED: Final = {"replay": 0, "earliest": 1, "new": 2}


@dataclass(frozen=True, slots=True)
class Start:
    """A start position, made by :func:`last`, :func:`offset` or :func:`since`."""

    kind: int
    value: int = 0

    @property
    def is_position(self) -> bool:
        """Whether it is a position in the topic, rather than relative to its end."""
        return self.kind in (1, 4, 5)

    @property
    def is_offset(self) -> bool:
        """Whether it names an offset."""
        return self.kind == 4


def last(count: int) -> Start:
    """The last ``count`` records that the topic keeps."""
    if count < 0:
        raise ValueError("last() takes a count from 0 up")
    return Start(3, count)


def offset(value: int) -> Start:
    """The record with that offset.

    If it was dropped, the subscription begins with a lag. If it is beyond the end, the subscription waits for it.
    """
    if not 0 <= value < 1 << 64:
        raise ValueError("offset() takes an integer from 0 to 2^64 - 1")
    return Start(4, value)


def since(time: datetime | int) -> Start:
    """The first record that isn't older than this: an aware datetime, or milliseconds since 1970-01-01 UTC."""
    if isinstance(time, datetime):
        if time.tzinfo is None:
            raise ValueError("since() takes a datetime with a time zone; add tzinfo=UTC")
        time = int(time.timestamp() * 1000)
    return Start(5, time & 0xFFFF_FFFF_FFFF_FFFF)


def make_start(value: str | Start) -> Start:
    """Returns the start for ``from_=``.

    Raises:
        ValueError: the text isn't a start position.
    """
    if isinstance(value, Start):
        return value
    if value not in _NAMED:
        raise ValueError(f"from_={value!r} isn't a start; use 'replay', 'earliest', 'new', last(n), offset(n) or since(time)")
    return Start(_NAMED[value])


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on a record's key or header. The broker checks it, and only sends records that meet it."""

    subject: int
    test: int
    header: str = ""
    value: bytes = b""

    def fields(self) -> dict[str, Any]:
        return {"subject": self.subject, "test": self.test, "header": self.header, "value": self.value}


def has_key() -> Condition:
    """Records that have a key."""
    return Condition(0, 0)


def key(value: Payload) -> Condition:
    """Records with this key."""
    return Condition(0, 1, value=to_bytes(value))


def key_prefix(value: Payload) -> Condition:
    """Records whose key begins with these bytes."""
    return Condition(0, 2, value=to_bytes(value))


def has_header(name: str) -> Condition:
    """Records that have a header of this name."""
    return Condition(1, 0, name)


def header(name: str, value: Payload) -> Condition:
    """Records with this header and value."""
    return Condition(1, 1, name, to_bytes(value))


def header_prefix(name: str, value: Payload) -> Condition:
    """Records with this header, whose value begins with these bytes."""
    return Condition(1, 2, name, to_bytes(value))


@dataclass(frozen=True, slots=True)
class Plan:
    """The parameters of a subscription to a topic, a pattern or a group."""

    topic: str
    start: Start = Start(0)
    where: tuple[Condition, ...] = ()
    lag: WhenLagging | None = None
    missing: Missing = "create"
    cursor: str = ""
    prefetch: int = 0
    watch_producers: bool = False
    settings: tuple[tuple[int, int], ...] = ()
    #: Whether the program gets lags and restarts as events, so that none of them ends the subscription by default.
    sees_events: bool = False
    group: Group | None = None

    def filter(self) -> list[dict[str, Any]]:
        return [condition.fields() for condition in self.where]

    @property
    def lag_number(self) -> int:
        return {None: 2, "skip": 0, "fail": 1}[self.lag]


@dataclass(frozen=True, slots=True)
class Group:
    """The settings of a consumer group, which are the same for all its members."""

    name: str
    #: Whether members acknowledge each delivery. If not, sending a record acknowledges it.
    explicit: bool = True
    #: Whether records with the same key are delivered one at a time.
    ordered_by_key: bool = False
    #: Seconds until an unsettled record is delivered to another member; 0 for no limit.
    deadline: float = 30.0
    #: How many times a record is delivered before it is rejected; 0 for no limit.
    deliveries: int = 0
    #: The topic for rejected records; None to skip them.
    dead_letters: str | None = None
    #: Seconds that a retry waits at first and at most; None for not at all.
    retry_backoff: tuple[float, float] | None = None


def make_where(where: Condition | Iterable[Condition] | None) -> tuple[Condition, ...]:
    if where is None:
        return ()
    conditions = (where,) if isinstance(where, Condition) else tuple(where)
    if len(conditions) > 16:
        raise ValueError(f"where= has {len(conditions)} conditions; the most is 16")
    return conditions
