"""Errors that the client raises, with the numeric codes of the protocol.

The broker answers with a number, a message for people, and a scope: a request, a stream or the connection. Names of the numbers are in
:class:`ErrorCode`. :attr:`SluiceError.retry` is true if the same call can succeed later.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

__all__ = [
    "AuthenticationError",
    "ClientClosedError",
    "ConnectionLostError",
    "ErrorCode",
    "NoRespondersError",
    "ProtocolError",
    "PublicationError",
    "ReplyError",
    "RequestTimeoutError",
    "SluiceError",
    "SubscriptionError",
    "TopicFailed",
]


class ErrorCode(IntEnum):
    """Codes of the protocol's errors. A code that a later broker adds stays a plain integer."""

    NOT_SLUICE = 1
    VERSION_MISMATCH = 2
    MALFORMED_FRAME = 3
    FRAME_TOO_LARGE = 4
    UNSUPPORTED_FRAME = 5
    UNEXPECTED_FRAME = 6
    KEEPALIVE_TIMEOUT = 7
    SHUTTING_DOWN = 8
    TOO_MANY_CONNECTIONS = 9
    HANDSHAKE_TIMEOUT = 10
    INVALID_STREAM = 11
    AUTHENTICATION_REQUIRED = 12
    AUTHENTICATION_FAILED = 13
    CREDENTIALS_EXPIRED = 14
    ACCESS_REVOKED = 15
    IDLE_TIMEOUT = 16
    WRITE_TIMEOUT = 17
    TOO_MANY_ATTEMPTS = 18
    CLOSED_BY_OPERATOR = 19
    INVALID_TOPIC = 101
    UNKNOWN_TOPIC = 102
    TOPIC_ENDED = 103
    TOPIC_DELETED = 104
    TOPIC_EXISTS = 105
    RECORD_TOO_LARGE = 106
    MALFORMED_BATCH = 107
    DEMAND_EXCEEDED = 108
    INVALID_DEMAND = 109
    LAGGED = 110
    EPOCH_CHANGED = 111
    INVALID_SETTING = 112
    LIMIT_REACHED = 113
    UNSUPPORTED = 114
    PRODUCER_FENCED = 115
    CURSOR_TAKEN = 116
    CURSOR_MOVED = 117
    CURSOR_DELETED = 118
    KEY_REQUIRED = 119
    UNKNOWN_CURSOR = 120
    GROUP_MISMATCH = 121
    STORAGE_FULL = 122
    STORAGE_FAILED = 123
    PERMISSION_DENIED = 124
    NO_RESPONDERS = 125
    PRODUCER_LOST = 126
    UNKNOWN_CONNECTION = 127
    TOPIC_MOVED = 128
    PRODUCER_FAILURE = 200

    @property
    def label(self) -> str:
        """The name in the protocol's page, such as ``unknown-topic``."""
        return self.name.lower().replace("_", "-")


#: Codes after which the same request may succeed later.
RETRYABLE: Final = frozenset(
    {
        ErrorCode.KEEPALIVE_TIMEOUT,
        ErrorCode.SHUTTING_DOWN,
        ErrorCode.TOO_MANY_CONNECTIONS,
        ErrorCode.HANDSHAKE_TIMEOUT,
        ErrorCode.IDLE_TIMEOUT,
        ErrorCode.WRITE_TIMEOUT,
        ErrorCode.TOO_MANY_ATTEMPTS,
        ErrorCode.CLOSED_BY_OPERATOR,
        ErrorCode.LIMIT_REACHED,
        ErrorCode.STORAGE_FULL,
        ErrorCode.STORAGE_FAILED,
        ErrorCode.NO_RESPONDERS,
        ErrorCode.TOPIC_MOVED,
    }
)

#: Codes with which a broker refuses the client's credentials.
REFUSED_CREDENTIALS: Final = frozenset(
    {
        ErrorCode.AUTHENTICATION_REQUIRED,
        ErrorCode.AUTHENTICATION_FAILED,
        ErrorCode.CREDENTIALS_EXPIRED,
        ErrorCode.ACCESS_REVOKED,
    }
)


def code_label(code: int) -> str:
    """Returns the name of a code, or ``code N`` for one that this version doesn't know."""
    try:
        return ErrorCode(code).label
    except ValueError:
        return f"code {code}"


class SluiceError(Exception):
    """Base class of all errors of this package.

    Attributes:
        code: the protocol's code; 0 for an error that the client detected itself.
        message: a description of the error, and how to correct it.
        topic: the topic that the error is about; None for the connection's errors.
        retry: whether the same call can succeed later.
    """

    def __init__(self, message: str, *, code: int = 0, topic: str | None = None, retry: bool | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.topic = topic
        self.retry = code in RETRYABLE if retry is None else retry

    def __str__(self) -> str:
        label = f" ({code_label(self.code)})" if self.code else ""
        return f"{self.message}{label}"


class ProtocolError(SluiceError):
    """The other side sent bytes that contradict the protocol. The connection is closed."""


class ConnectionLostError(SluiceError):
    """The client could not connect, or it lost the connection and its reconnect policy doesn't allow another attempt."""

    def __init__(self, message: str, *, code: int = 0, topic: str | None = None) -> None:
        super().__init__(message, code=code, topic=topic, retry=True)


class AuthenticationError(SluiceError):
    """The broker refuses the client's credentials, or requires some."""


class ClientClosedError(SluiceError):
    """The call was made on a closed client, or the client was closed while the call waited."""


class SubscriptionError(SluiceError):
    """The broker has refused or ended a subscription."""


class PublicationError(SluiceError):
    """The broker has refused or ended a publication, or the topic has ended."""


class NoRespondersError(SluiceError):
    """The topic of a request has no subscribers. The request was not published."""


class RequestTimeoutError(SluiceError):
    """No reply came in time."""


class ReplyError(SluiceError):
    """The responder reported that it can't answer the request."""


class TopicFailed(SluiceError):
    """The topic ended with a failure that its producer reported.

    ``code`` is the producer's (from 1,000 on for applications), or :attr:`ErrorCode.PRODUCER_FAILURE` or
    :attr:`ErrorCode.PRODUCER_LOST`.
    """


def stream_error(kind: type[SluiceError], code: int, message: str, topic: str | None) -> SluiceError:
    """Returns the exception for an ERROR of the broker on a stream."""
    if code == ErrorCode.NO_RESPONDERS:
        kind = NoRespondersError
    return kind(message, code=code, topic=topic)


def connection_error(code: int, message: str) -> SluiceError:
    """Returns the exception for an ERROR of the broker that ends the connection."""
    if code in REFUSED_CREDENTIALS:
        return AuthenticationError(message, code=code)
    if code in (ErrorCode.NOT_SLUICE, ErrorCode.MALFORMED_FRAME, ErrorCode.UNSUPPORTED_FRAME):
        return ProtocolError(message, code=code)
    return ConnectionLostError(message, code=code) if code in RETRYABLE else SluiceError(message, code=code)
