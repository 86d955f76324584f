"""One connection to a broker: handshake, frames, stream numbers, keepalive."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from . import _layout as layout
from ._frames import CANCELLED
from .errors import (
    ConnectionLostError,
    ErrorCode,
    ProtocolError,
    SluiceError,
    connection_error,
)

__all__ = ["Connection", "Hello", "Quiet", "Stream", "Welcome"]

_REDIRECTS: Final = 1
#: The longest frame that the client accepts.
_LONGEST_FRAME: Final = 1 << 20
_BEFORE_WELCOME: Final = 8_192
#: The smallest value that a broker may announce as its longest frame.
_LEAST_FRAME: Final = 65_536

WELCOME: Final = 0x02
PING: Final = 0x03
PONG: Final = 0x04
GOAWAY: Final = 0x05
ERROR: Final = 0x06
REDIRECT: Final = 0x09
DELIVER: Final = 0x13
CANCEL: Final = 0x16


class Stream(Protocol):
    """The methods that a connection calls on a stream."""

    def frame(self, number: int, values: dict[str, Any]) -> bool:
        """Handles a frame other than DELIVER. Returns whether the stream's number is free again."""

    def deliver(self, data: bytes, start: int, end: int) -> None:
        """Handles the body of a DELIVER, which is ``data[start:end]``."""

    def lost(self, error: SluiceError) -> None:
        """Called when the connection has ended, and the stream with it."""

    def writable(self) -> None:
        """Called when the connection can write again."""


class Quiet:
    """The base of a stream that only handles frames."""

    def deliver(self, data: bytes, start: int, end: int) -> None:
        return

    def lost(self, error: SluiceError) -> None:
        return

    def writable(self) -> None:
        return


class _Leaving(Quiet):
    """A stream that the client has cancelled: ignores everything up to CANCELLED."""

    def frame(self, number: int, values: dict[str, Any]) -> bool:
        return number == CANCELLED


_LEAVING: Final = _Leaving()


@dataclass(frozen=True, slots=True)
class Hello:
    """The client's description of itself."""

    name: str = ""
    method: int = 0
    user: str = ""
    secret: str = ""
    keepalive: int = 0


@dataclass(frozen=True, slots=True)
class Welcome:
    """The broker's description of itself and of the connection."""

    version: int
    longest_frame: int
    longest_record: int
    streams: int
    keepalive: float
    broker: int
    software: str
    identity: str
    expires: int | None


class Connection(asyncio.Protocol):
    """A connection after ``connect``: streams begin with :meth:`begin`, and end when their ``frame`` returns true.

    Used from its event loop only.
    """

    def __init__(self, hello: Hello, ended: Callable[[Connection, SluiceError], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._hello = hello
        self._ended = ended
        self._transport: asyncio.Transport | None = None
        self.opened: asyncio.Future[Welcome] = self._loop.create_future()
        self.welcome: Welcome | None = None
        self._streams: dict[int, Stream] = {}
        self._free: list[int] = []
        self._next = 1
        self._rest = bytearray()
        self._needed = 12
        self._out: list[bytes] = []
        self._is_flushing = False
        self.is_paused = False
        #: The last PING that arrived while the connection couldn't write. It is answered when the connection can write again.
        self._unanswered: int | None = None
        self.is_leaving = False
        self.is_closed = False
        self._heard = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._error: SluiceError | None = None

    # Opening

    @classmethod
    async def open(
        cls,
        host: str,
        port: int,
        hello: Hello,
        ended: Callable[[Connection, SluiceError], None],
        *,
        tls: ssl.SSLContext | None,
        server_hostname: str | None,
        timeout: float,
    ) -> Connection:
        """Connects and completes the handshake.

        Raises:
            SluiceError: the address can't be reached, TLS fails, or the broker refuses the client.
        """
        loop = asyncio.get_running_loop()
        address = f"{host}:{port}"
        connection = cls(hello, ended)
        try:
            async with asyncio.timeout(timeout):
                await loop.create_connection(
                    lambda: connection,
                    host,
                    port,
                    ssl=tls,
                    server_hostname=(server_hostname or host) if tls else None,
                )
                await connection.opened
        except TimeoutError:
            connection.abort()
            raise ConnectionLostError(f"{address} did not answer within {timeout:g} s") from None
        except ssl.SSLCertVerificationError as error:
            raise SluiceError(
                f"the certificate of {address} can't be verified: {error.verify_message}; pass ca_file= or check the name"
            ) from None
        except OSError as error:
            reason = error.strerror or str(error)
            raise ConnectionLostError(f"can't connect to {address}: {reason}") from error
        except BaseException:
            connection.abort()
            raise
        return connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        hello = self._hello
        self.send(
            layout.encode(
                "HELLO",
                0,
                lowest_version=1,
                highest_version=1,
                features=_REDIRECTS,
                longest_frame=_LONGEST_FRAME,
                keepalive=hello.keepalive,
                name=hello.name,
                method=hello.method,
                user=hello.user,
                secret=hello.secret,
            )
        )

    # Sending

    def send(self, data: bytes) -> None:
        """Queues bytes. All bytes of one turn of the loop are written together."""
        if self.is_closed:
            return
        self._out.append(data)
        if not self._is_flushing:
            self._is_flushing = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._is_flushing = False
        if self._out and self._transport is not None and not self._transport.is_closing():
            out, self._out = self._out, []
            self._transport.write(out[0] if len(out) == 1 else b"".join(out))

    def pause_writing(self) -> None:
        self.is_paused = True

    def resume_writing(self) -> None:
        self.is_paused = False
        if self._unanswered is not None:
            self._pong(self._unanswered)
        for stream in list(self._streams.values()):
            stream.writable()

    # Streams

    def begin(self, stream: Stream) -> int:
        """Returns the number of a new stream.

        Raises:
            SluiceError: the broker's limit of streams on a connection is reached.
        """
        if self._free:
            number = self._free.pop()
        else:
            most = self.welcome.streams if self.welcome else 1
            if self._next > most:
                raise SluiceError(
                    f"the connection has {most} streams, the broker's limit; close some or use another client",
                    code=ErrorCode.LIMIT_REACHED,
                )
            number = self._next
            self._next += 1
        self._streams[number] = stream
        return number

    def cancel(self, number: int) -> None:
        """Cancels a stream. Its number is free again when the broker has answered."""
        if number in self._streams:
            self._streams[number] = _LEAVING
            self.send(layout.frame_bytes(CANCEL, number, b""))

    # Receiving

    def data_received(self, data: bytes) -> None:
        self._heard = self._loop.time()
        if self._rest:
            self._rest += data
            if len(self._rest) < self._needed:
                return
            data = bytes(self._rest)
            self._rest = bytearray()
        try:
            self._parse(data)
        except SluiceError as error:
            self.fail(error)

    def _parse(self, data: bytes) -> None:
        position = 0
        size = len(data)
        while size - position >= 12:
            length, number, flags, _, stream = layout.HEADER.unpack_from(data, position)
            is_open = self.welcome is not None
            if not is_open and number not in (WELCOME, ERROR):
                raise ProtocolError(
                    "the server isn't a Sluice broker" + (": it speaks HTTP" if data[:5] == b"HTTP/" else ""),
                    code=ErrorCode.NOT_SLUICE,
                )
            if length > (_LONGEST_FRAME if is_open else _BEFORE_WELCOME):
                raise ProtocolError(f"a frame has {length} bytes", code=ErrorCode.FRAME_TOO_LARGE)
            start = position + 12
            end = start + length
            if end > size:
                self._needed = end - position
                break
            position = end
            if number == DELIVER and not flags & 15:
                target = self._streams.get(stream)
                if target is None:
                    raise ProtocolError(f"records for stream {stream}, which isn't open", code=ErrorCode.INVALID_STREAM)
                target.deliver(data, start, end)
            else:
                self._receive(number, flags, stream, data[start:end])
            if self.is_closed:
                return
        else:
            self._needed = 12
        if position < size:
            self._rest += data[position:] if position else data

    def _receive(self, number: int, flags: int, stream: int, body: bytes) -> None:
        frame = layout.BY_NUMBER.get(number)
        if frame is None and number >= 0x80:
            return
        if frame is None or flags & 15:
            raise ProtocolError(f"the broker sent a frame of type {number:#x}", code=ErrorCode.UNSUPPORTED_FRAME)
        if frame.sender == "client":
            raise ProtocolError(f"the broker sent {frame.name}", code=ErrorCode.UNEXPECTED_FRAME)
        if number in (WELCOME, PING, PONG, GOAWAY) and stream != 0:
            raise ProtocolError(f"{frame.name} came on stream {stream}", code=ErrorCode.INVALID_STREAM)
        values = layout.decode(frame, body)
        if stream == 0:
            self._receive_own(number, values)
            return
        target = self._streams.get(stream)
        if target is None:
            raise ProtocolError(f"{frame.name} for stream {stream}, which isn't open", code=ErrorCode.INVALID_STREAM)
        # The stream may have been cancelled while its frame was handled; its number is then in use until CANCELLED.
        if target.frame(number, values) and self._streams.get(stream) is target:
            del self._streams[stream]
            self._free.append(stream)

    def _receive_own(self, number: int, values: dict[str, Any]) -> None:
        if number == PING:
            self._pong(values["token"])
        elif number == WELCOME:
            self._welcomed(values)
        elif number == ERROR:
            self._end(connection_error(values["code"], values["message"]))
        elif number == GOAWAY:
            self.is_leaving = True
        elif number != PONG:
            raise ProtocolError("a frame of a stream came on stream 0", code=ErrorCode.INVALID_STREAM)

    def _pong(self, token: int) -> None:
        # If the broker doesn't read, its answers must not accumulate.
        self._unanswered = token if self.is_paused else None
        if not self.is_paused:
            self.send(layout.encode("PONG", 0, token=token))

    def _welcomed(self, values: dict[str, Any]) -> None:
        if self.welcome is not None:
            raise ProtocolError("a second WELCOME came", code=ErrorCode.UNEXPECTED_FRAME)
        if values["version"] != 1 or values["features"] & ~_REDIRECTS:
            raise ProtocolError("the broker chose what the client didn't offer", code=ErrorCode.MALFORMED_FRAME)
        if values["longest frame"] < _LEAST_FRAME or values["streams"] < 1:
            raise ProtocolError("the broker offers less than the protocol's least limits", code=ErrorCode.MALFORMED_FRAME)
        expires = values["expires"]
        self.welcome = Welcome(
            version=values["version"],
            longest_frame=values["longest frame"],
            longest_record=values["longest record"],
            streams=values["streams"],
            keepalive=values["keepalive"] / 1000,
            broker=values["broker"],
            software=values["software"],
            identity=values["identity"],
            expires=None if expires == layout.U64_MAX else expires,
        )
        if self.welcome.keepalive:
            self._watch()
        if not self.opened.done():
            self.opened.set_result(self.welcome)

    # Keepalive

    def _watch(self) -> None:
        assert self.welcome is not None
        limit = self.welcome.keepalive
        silence = self._loop.time() - self._heard
        if silence >= limit:
            error = ConnectionLostError(f"nothing was heard from the broker for {limit:g} s", code=ErrorCode.KEEPALIVE_TIMEOUT)
            self.fail(error)
            return
        if silence >= limit / 2:
            self.send(layout.encode("PING", 0, token=0))
        self._timer = self._loop.call_later(limit / 4, self._watch)

    # Ending

    def fail(self, error: SluiceError) -> None:
        """Reports a broker's error to the broker, and closes."""
        if not self.is_closed:
            self.send(layout.encode("ERROR", 0, code=error.code or ErrorCode.MALFORMED_FRAME, message=error.message[:500]))
            self._flush()
        self._end(error)

    def close(self) -> None:
        """Closes the connection after all queued bytes are sent. Streams get ``lost`` at once."""
        self._flush()
        self._end(ConnectionLostError("the connection was closed"))

    def abort(self) -> None:
        """Closes the connection and drops queued bytes."""
        if self._transport is not None:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if isinstance(exc, ssl.SSLError):
            self._end(ConnectionLostError(f"TLS failed: {exc.reason or exc}"))
        elif self.welcome is None:
            self._end(ConnectionLostError("the server closed the connection during the handshake"))
        else:
            reason = f": {exc}" if exc else " by the broker"
            self._end(ConnectionLostError(f"the connection was closed{reason}"))

    def _end(self, error: SluiceError) -> None:
        if self.is_closed:
            return
        self.is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._transport is not None:
            self._transport.close()
        streams, self._streams = self._streams, {}
        if not self.opened.done():
            self.opened.set_exception(error)
            self.opened.exception()
        for stream in streams.values():
            stream.lost(error)
        self._ended(self, error)
