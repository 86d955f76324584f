"""The keyword arguments of the client's functions as types, for functions that pass them on."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable
from typing import Any, Literal, TypedDict

from .info import Settings
from .options import ReconnectPolicy, TokenSource
from .plans import Condition, Missing, Start, WhenLagging
from .publishing import Acknowledgement
from .records import HeadersLike, Payload, Record

__all__ = ["ConnectArguments", "GroupArguments", "PatternArguments", "ProducerArguments", "RequestArguments", "TopicArguments"]


class PatternArguments(TypedDict, total=False):
    """The arguments of :meth:`sluice.Client.pattern`."""

    from_: str | Start
    where: Condition | Iterable[Condition] | None
    prefetch: int
    lag: WhenLagging | None


class TopicArguments(PatternArguments, total=False):
    """The arguments of :meth:`sluice.Client.topic`."""

    cursor: str | None
    missing: Missing
    watch_producers: bool
    settings: Settings | None
    decode: Callable[[Record], Any] | None


class GroupArguments(TypedDict, total=False):
    """The arguments of :meth:`sluice.Client.group`."""

    from_: str | Start
    where: Condition | Iterable[Condition] | None
    prefetch: int
    ack: bool
    ordered_by_key: bool
    deadline: float
    deliveries: int
    dead_letters: str | None
    retry_backoff: tuple[float, float] | None
    missing: Missing


class ProducerArguments(TypedDict, total=False):
    """The arguments of :meth:`sluice.Client.producer`."""

    acknowledge: Acknowledgement
    source: bool
    settings: Settings | None
    buffer_records: int
    buffer_bytes: int
    producer_id: int | None
    first_sequence: int


class RequestArguments(TypedDict, total=False):
    """The arguments of :meth:`sluice.Client.request`."""

    key: Payload | None
    headers: HeadersLike | None
    timeout: float


class ConnectArguments(TypedDict, total=False):
    """The arguments of :func:`sluice.connect`."""

    name: str
    user: str | None
    password: str | None
    token: TokenSource | None
    tls: bool | ssl.SSLContext
    ca_file: str | None
    certificate: str | None
    certificate_key: str | None
    server_hostname: str | None
    allow_plaintext_credentials: bool
    reconnect: ReconnectPolicy | Literal["default"] | None
    connect_timeout: float
    keepalive: float
    direct: bool
    close_timeout: float
