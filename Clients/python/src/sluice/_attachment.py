"""Streams that a client keeps open at a broker across lost connections: the base of subscriptions, publications and requests."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any, ClassVar, Final

from . import _layout as layout
from ._connection import ERROR, REDIRECT, Connection
from .errors import RETRYABLE, ErrorCode, ProtocolError, SluiceError, stream_error

if TYPE_CHECKING:
    from ._links import Link

#: The first and the longest pause before a stream is opened again on an open connection, in seconds.
_FIRST_PAUSE: Final = 0.01
_LONGEST_PAUSE: Final = 0.5
#: The longest pause after an error that isn't about a move, such as a full store.
_LONGEST_RETRY: Final = 10.0
#: After this many redirections in a row, the client requests a relay.
_MOST_REDIRECTIONS: Final = 5


def misplaced(what: str, where: str) -> ProtocolError:
    """Returns the error for a frame that the broker must not send in this state."""
    return ProtocolError(f"the broker sent {what} on {where}", code=ErrorCode.UNEXPECTED_FRAME)


class Attachment:
    """A stream that is opened again after a lost connection, a move of its topic, and transient errors.

    Subclasses define how the stream begins (:meth:`opening`), and handle its frames. Used from the client's event loop only.
    """

    error_type: ClassVar[type[SluiceError]] = SluiceError
    #: The stream's first frame, which is sent once; None if the only frame is the answer to a request.
    first_frame: ClassVar[int | None] = None

    def __init__(self, topic: str | None) -> None:
        self.topic = topic
        self.link: Link | None = None
        #: Whether the client requests a relay by its own broker when another node serves the topic.
        self.relay = False
        self.connection: Connection | None = None
        self.number = 0
        self.is_over = False
        #: Whether the broker has opened the current stream.
        self.is_open = False
        #: Whether the stream was open before: only then is it opened again after a transient error.
        self.was_open = False
        self._pauses = 0
        self._redirections = 0
        self._since: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    # For subclasses

    def opening(self, stream: int, flags: int) -> bytes:
        """Returns the frame that opens the stream at its current position."""
        raise NotImplementedError

    def handle(self, number: int, values: dict[str, Any]) -> bool:
        """Handles a frame other than ERROR and REDIRECT. Returns whether it was the stream's last one."""
        raise NotImplementedError

    def deliver(self, data: bytes, start: int, end: int) -> None:
        """Handles the body of a DELIVER.

        Raises:
            ProtocolError: the stream has no records, or isn't open yet.
        """
        raise misplaced("DELIVER", "a stream without records")

    def interrupted(self) -> None:
        """Called when the stream has ended but will be opened again."""

    def ended(self, error: SluiceError) -> None:
        """Called when the stream has ended for good."""

    def recovers_from(self, error: SluiceError) -> bool:
        """Returns whether the stream is opened again after this error, which isn't transient."""
        return False

    def writable(self) -> None:
        """Called when the connection can write again."""

    # Opening

    def open_on(self, connection: Connection) -> None:
        """Opens the stream on a connection."""
        if self.is_over or self.connection is not None:
            return
        self._cancel_timer()
        try:
            self.number = connection.begin(self)
        except SluiceError as error:
            self.end(error)
            return
        self.connection = connection
        connection.send(self.opening(self.number, 0x10 if self.relay else 0))

    def opened(self) -> None:
        """The broker has opened the stream."""
        self.is_open = self.was_open = True
        self.relay = False
        self._pauses = self._redirections = 0
        self._since = None

    def pause_then_open(self) -> None:
        """Opens the stream on its link after a pause, which grows with each attempt."""
        loop = asyncio.get_running_loop()
        self._pauses += 1
        most = min(_FIRST_PAUSE * 2 ** min(self._pauses, 20), _LONGEST_PAUSE)
        self._later(loop, most * random.uniform(0.5, 1.0))

    def _later(self, loop: asyncio.AbstractEventLoop, delay: float) -> None:
        self._cancel_timer()
        self._timer = loop.call_later(delay, self._open_now)

    def _open_now(self) -> None:
        self._timer = None
        if self.link is not None and not self.is_over:
            self.link.open(self)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # Frames

    def frame(self, number: int, values: dict[str, Any]) -> bool:
        if self.first_frame is not None and number not in (ERROR, REDIRECT) and (number == self.first_frame) == self.is_open:
            raise misplaced(f"a frame of type {number:#x}", "a stream that is open" if self.is_open else "a stream that isn't open yet")
        if number == ERROR:
            self._detach()
            self._refused(stream_error(self.error_type, values["code"], values["message"], self.topic))
            return True
        if number == REDIRECT:
            self._detach()
            self.interrupted()
            self._redirections += 1
            if self._redirections > _MOST_REDIRECTIONS:
                self.relay = True
            assert self.link is not None
            if self.relay:
                self.link.reopen(self)
            else:
                self.link.redirect(self, values["address"])
            return True
        return self.handle(number, values)

    def _refused(self, error: SluiceError) -> None:
        link = self.link
        if self.is_over or link is None:
            return
        home = link if link._home is None else link._home
        if error.code == ErrorCode.TOPIC_MOVED:
            self.interrupted()
            if self._has_patience(home):
                link.remove(self)
                home.reopen(self)
            else:
                self.end(error)
        elif error.code == ErrorCode.SHUTTING_DOWN:
            # The broker closes the connection soon; the next one opens the stream.
            self.interrupted()
            if home._options.reconnect is None:
                self.end(error)
        elif self.was_open and error.code in RETRYABLE and home._options.reconnect is not None:
            self.interrupted()
            self._pauses += 1
            delay = min(0.1 * 2 ** min(self._pauses, 10), _LONGEST_RETRY) * random.uniform(0.5, 1.0)
            self._later(asyncio.get_running_loop(), delay)
        elif self.recovers_from(error):
            self.interrupted()
            link.open(self)
        else:
            self.end(error)

    def _has_patience(self, home: Link) -> bool:
        """Returns whether the stream still waits for a topic that no node serves."""
        now = asyncio.get_running_loop().time()
        if self._since is None:
            self._since = now
        policy = home._options.reconnect
        patience = 10.0 if policy is None else policy.give_up_after
        return patience is None or now - self._since < patience

    def lost(self, error: SluiceError) -> None:
        self._detach()
        if not self.is_over:
            self.interrupted()

    def _detach(self) -> None:
        self.is_open = False
        self.connection = None
        self.number = 0

    # Ending

    def cancel(self) -> None:
        """Ends the stream at the broker, if it is open there."""
        if self.is_over:
            return
        self.is_over = True
        self._cancel_timer()
        if self.link is not None:
            self.link.remove(self)
        if self.connection is not None:
            self.connection.cancel(self.number)
            self._detach()

    def end(self, error: SluiceError) -> None:
        """Ends the stream with an error, and passes it to the program."""
        if self.is_over:
            return
        self.cancel()
        self.ended(error)

    def finish(self) -> None:
        """The broker has ended the stream in order."""
        self.is_over = True
        self._cancel_timer()
        if self.link is not None:
            self.link.remove(self)
        self._detach()


class Request(Attachment):
    """A request with one answer.

    After a lost connection, a request that reads is sent again. One that changes something fails, since the client can't know
    whether the broker has executed it.
    """

    def __init__(self, name: str, values: dict[str, Any], answer: int, topic: str | None, *, is_reading: bool) -> None:
        super().__init__(topic)
        self._name = name
        self._values = values
        self._answer = answer
        self._is_reading = is_reading
        self._is_sent = False
        self.result: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

    def opening(self, stream: int, flags: int) -> bytes:
        self._is_sent = True
        return layout.encode(self._name, stream, **self._values)

    def handle(self, number: int, values: dict[str, Any]) -> bool:
        if number != self._answer:
            error = misplaced(f"a frame of type {number:#x}", f"the stream of {self._name}")
            self.end(error)
            raise error
        self.finish()
        if not self.result.done():
            self.result.set_result(values)
        return True

    def lost(self, error: SluiceError) -> None:
        self._detach()
        if not self._is_reading and self._is_sent:
            self.end(error)

    def ended(self, error: SluiceError) -> None:
        if not self.result.done():
            self.result.set_exception(error)
