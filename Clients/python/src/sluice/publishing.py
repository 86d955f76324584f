"""Producers: publications with back-pressure, acknowledgements, and exactly-once retransmission."""

from __future__ import annotations

import asyncio
import logging
import secrets
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import accumulate, islice
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeAlias

from . import _frames as frames
from . import _layout as layout
from ._attachment import Attachment, misplaced
from ._batches import LONGEST_BODY, encode_record, encode_word
from .errors import ErrorCode, ProtocolError, PublicationError, SluiceError
from .records import HeadersLike, Payload

if TYPE_CHECKING:
    from .client import Client

__all__ = ["Acknowledgement", "Producer"]

#: When a record counts as published: when it is sent, when it is in the topic's log, or when it is on disk.
Acknowledgement: TypeAlias = Literal["none", "received", "durable"]

_log: Final = logging.getLogger("sluice")
_ACKNOWLEDGEMENTS: Final = {"none": 0, "received": 1, "durable": 2}
#: Approximately the most bytes of one PUBLISH, if the broker's limit allows it.
_BATCH_BYTES: Final = 256 << 10
#: The most records of one PUBLISH.
_MOST_RECORDS: Final = 4_096
#: Payloads that are queued together.
_PART: Final = 256
#: The role of a producer that gets CONNECTED and DISCONNECTED.
_SOURCE: Final = 1


class Publication(Attachment):
    """The records of a producer, the stream that sends them, and the answers to them.

    Records are numbered by sequence. ``[first, acknowledged)`` are removed, ``[acknowledged, sent)`` wait for the broker's
    acknowledgement, ``[sent, next)`` for its grant.
    """

    error_type = PublicationError
    first_frame = frames.PUBLISH_OPENED

    def __init__(
        self,
        topic: str,
        acknowledgement: int,
        role: int,
        settings: tuple[tuple[int, int], ...],
        buffer_records: int,
        buffer_bytes: int,
        producer_id: int | None = None,
        first_sequence: int = 0,
    ) -> None:
        super().__init__(topic)
        self._acknowledgement = acknowledgement
        self._role = role
        self._settings = settings
        self._has_chosen_id = producer_id is not None
        # Without acknowledgements the client can't know which records to send again, so the producer has no number.
        self._producer = producer_id or (secrets.randbits(63) + 1 if acknowledgement else 0)
        self._items: list[bytes] = []
        self._base = first_sequence
        self._sent = first_sequence
        #: The sequence that the topic expects from a producer with a chosen number. Earlier records are from an earlier run.
        self._expected = 0
        self._queued_bytes = 0
        self._granted = 0
        self._granted_bytes = 0
        self._stream_bytes = 0
        #: Whether records may be sent: the stream is open, and its COMPLETE hasn't been sent.
        self._takes_records = False
        self._has_ended = False
        self._is_sending = False
        self._buffer_records = buffer_records
        self._buffer_bytes = buffer_bytes
        self._acks: deque[tuple[int, asyncio.Future[int | None]]] = deque()
        self._room: list[asyncio.Future[None]] = []
        self._drained: list[asyncio.Future[None]] = []
        self.error: SluiceError | None = None
        self.is_connected: bool | None = None
        self._connected_waiters: list[asyncio.Future[None]] = []
        self._ending: dict[str, Any] | None = None
        self._closed: asyncio.Future[None] | None = None
        self._longest_item = frames.U64_MAX
        #: The longest payload without key and headers.
        self._longest_plain = LONGEST_BODY
        #: The epoch of the last acknowledged record, and the offset after it.
        self._epoch = 0
        self._known: tuple[int, int] | None = None
        self.lost_from: int | None = None
        self._most_batch = _BATCH_BYTES

    # The program's side

    @property
    def next_sequence(self) -> int:
        return self._base + len(self._items)

    @property
    def has_room(self) -> bool:
        return len(self._items) < self._buffer_records and self._queued_bytes < self._buffer_bytes

    @property
    def backlog(self) -> int:
        return len(self._items)

    def accept(self, item: bytes) -> None:
        """Queues one record."""
        if self.error is not None:
            raise self.error
        if len(item) - 4 > self._longest_item:
            raise PublicationError(
                f"a record has {len(item) - 4} bytes; the broker's limit is {self._longest_item}",
                code=ErrorCode.RECORD_TOO_LARGE,
                topic=self.topic,
            )
        if not self._items and self._base < self._expected:
            self._base += 1
            self._sent += 1
            return
        self._items.append(item)
        self._queued_bytes += len(item)
        self._schedule()

    def accept_plain(self, payload: Payload) -> bool:
        """Like :meth:`accept`, in the usual case: a payload of bytes that fits into the buffer. Returns False in all other cases."""
        items = self._items
        size = len(payload)
        if (
            type(payload) is not bytes
            or size > self._longest_plain
            or len(items) >= self._buffer_records
            or self._queued_bytes >= self._buffer_bytes
            or self.error is not None
            or self._base < self._expected
        ):
            return False
        items.append(encode_word(size) + payload)
        self._queued_bytes += size + 4
        if not self._is_sending:
            self._schedule()
        return True

    def accept_many(self, payloads: Sequence[Payload]) -> bool:
        """Like :meth:`accept_plain`, for all of them or none."""
        sizes = list(map(len, payloads))
        size = sum(sizes)
        if (
            max(sizes) > self._longest_plain
            or len(self._items) + len(payloads) > self._buffer_records
            or self._queued_bytes + size > self._buffer_bytes
            or self.error is not None
            or self._base < self._expected
        ):
            return False
        items = [encode_word(len(payload)) + payload for payload in payloads if type(payload) is bytes]
        if len(items) < len(payloads):
            return False
        self._items += items
        self._queued_bytes += size + 4 * len(items)
        self._schedule()
        return True

    def _schedule(self) -> None:
        if not self._is_sending and self._takes_records:
            self._is_sending = True
            asyncio.get_running_loop().call_soon(self._send)

    def acknowledgement(self) -> asyncio.Future[int | None]:
        """Returns a future for the acknowledgement of the last record. Its value is the record's offset if known."""
        future: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        if self._items:
            self._acks.append((self.next_sequence - 1, future))
        else:
            # A duplicate, whose offset isn't known.
            future.set_result(None)
        return future

    async def wait_for_room(self) -> None:
        """Waits until the buffer has room."""
        while self.error is None and not self.has_room:
            await _wait_in(self._room)
        if self.error is not None:
            raise self.error

    async def drain(self) -> None:
        """Waits until every record is acknowledged, or sent if the producer uses no acknowledgements."""
        while self._items:
            if self.error is not None:
                raise self.error
            await _wait_in(self._drained)
        if self.error is not None:
            raise self.error

    async def wait_connected(self) -> None:
        """Waits until the topic is connected, for a source."""
        while self.is_connected is not True:
            if self.error is not None:
                raise self.error
            await _wait_in(self._connected_waiters)

    def complete(self, kind: int, code: int, message: str) -> asyncio.Future[None]:
        """Ends the topic after all records. Returns a future for the broker's answer."""
        self._ending = {"kind": kind, "code": code, "message": message}
        self._closed = asyncio.get_running_loop().create_future()
        self._send_ending()
        return self._closed

    # The stream

    def opening(self, stream: int, flags: int) -> bytes:
        self._takes_records = self._has_ended = False
        return layout.encode(
            "PUBLISH_OPEN",
            stream,
            flags,
            topic=self.topic,
            acknowledgement=self._acknowledgement,
            role=self._role,
            producer=self._producer,
            first_sequence=self._base if self._producer else 0,
            settings=[{"key": key, "value": value} for key, value in self._settings],
            known_epoch=self._known[0] if self._known else None,
            known_offset=self._known[1] if self._known else None,
        )

    def handle(self, number: int, values: dict[str, Any]) -> bool:
        if number == frames.ACK:
            if self._producer:
                self._known = self._epoch, values["last offset"] + 1
            self._acknowledged(values["through"], values["last offset"])
        elif number == frames.DEMAND:
            self._granted = max(self._granted, values["granted through"])
            self._granted_bytes = max(self._granted_bytes, values["bytes through"])
            self._schedule()
        elif number == frames.PUBLISH_OPENED:
            self._opened(values)
        elif number in (frames.CONNECTED, frames.DISCONNECTED) and self._role == _SOURCE:
            self.is_connected = number == frames.CONNECTED
            if self.is_connected:
                _release(self._connected_waiters)
        elif number == frames.COMPLETE:
            self.finish()
            self._fail(PublicationError(f"topic {self.topic} has ended", code=ErrorCode.TOPIC_ENDED, topic=self.topic))
            return True
        elif number == frames.CANCELLED and self._has_ended:
            self.finish()
            self._fail(PublicationError(f"the producer has ended topic {self.topic}", code=ErrorCode.TOPIC_ENDED))
            if self._closed is not None and not self._closed.done():
                self._closed.set_result(None)
            return True
        else:
            raise misplaced(f"a frame of type {number:#x}", "a publication")
        return False

    def _opened(self, values: dict[str, Any]) -> None:
        assert self.connection is not None and self.connection.welcome is not None
        self._takes_records = True
        self._granted = values["granted through"]
        self._granted_bytes = values["bytes through"]
        self._stream_bytes = 0
        welcome = self.connection.welcome
        self._longest_item = welcome.longest_record
        self._longest_plain = min(welcome.longest_record, LONGEST_BODY)
        self._most_batch = min(_BATCH_BYTES, welcome.longest_frame - frames.BATCH_HEADER)
        if values["lost from"] is not None:
            self._lost(values["lost from"])
        self._epoch = values["epoch"]
        next_sequence = values["next sequence"]
        if self._producer:
            if next_sequence < self._base:
                raise ProtocolError(
                    f"the broker expects sequence {next_sequence}, before {self._base}, which the producer named",
                    code=ErrorCode.MALFORMED_FRAME,
                )
            if self._has_chosen_id:
                self._expected = next_sequence
                next_sequence = min(next_sequence, self.next_sequence)
            elif next_sequence > self.next_sequence:
                self._move_to(next_sequence)
            self._acknowledged(next_sequence, None)
            self._sent = next_sequence
        else:
            # Records count from 0 on each stream of a producer without a number.
            self._base = self._sent = next_sequence
        self.opened()
        self._send_ending()
        self._schedule()

    def _lost(self, offset: int) -> None:
        """The broker's store was replaced by a backup or an older copy: acknowledged records are no longer in the topic."""
        self.lost_from = offset
        self._known = None
        _log.warning("the broker has lost records of topic %s from offset %d on, which it had acknowledged", self.topic, offset)

    def _move_to(self, next_sequence: int) -> None:
        """The broker expects a sequence that the client doesn't have: the topic has other records of this producer number.

        Waiting records are numbered from that sequence on, so that each is still accepted once.
        """
        shift = next_sequence - self._base
        self._base = self._sent = next_sequence
        self._acks = deque((sequence + shift, future) for sequence, future in self._acks)

    def _send(self) -> None:
        self._is_sending = False
        connection = self.connection
        if connection is None or not self._takes_records:
            return
        while not connection.is_paused and self._sent < self.next_sequence:
            room = self._granted - self._sent
            if room <= 0 or self._stream_bytes >= self._granted_bytes:
                break
            first = self._sent - self._base
            some = self._items[first : first + min(room, _MOST_RECORDS)]
            sums = list(accumulate(map(len, some)))
            # A batch has at most as many bytes as the limit, unless it is one record, and ends with the record that uses up the grant.
            count = min(max(bisect_right(sums, self._most_batch), 1), bisect_left(sums, self._granted_bytes - self._stream_bytes) + 1)
            del some[count:]
            connection.send(frames.publish(self.number, self._sent, len(some), b"".join(some)))
            self._sent += len(some)
            self._stream_bytes += sums[len(some) - 1]
        if not self._acknowledgement:
            self._acknowledged(self._sent, None)
        self._send_ending()

    def _send_ending(self) -> None:
        if self._ending is not None and self._takes_records and self.connection is not None and self._sent == self.next_sequence:
            self._takes_records = False
            self._has_ended = True
            self.connection.send(layout.encode("COMPLETE", self.number, **self._ending))

    def writable(self) -> None:
        self._schedule()

    def _acknowledged(self, through: int, last_offset: int | None) -> None:
        count = through - self._base
        if count > self.next_sequence - self._base:
            raise ProtocolError("the broker acknowledged records that weren't published", code=ErrorCode.MALFORMED_FRAME)
        if count > 0:
            items = self._items
            self._queued_bytes -= sum(map(len, items[:count]))
            del items[:count]
            self._base = through
        acks = self._acks
        while acks and acks[0][0] < through:
            sequence, future = acks.popleft()
            if not future.done():
                # The frame contains the offset of the last record; the others' offsets are known only within its batch.
                future.set_result(last_offset if sequence == through - 1 else None)
        if self._room and self.has_room:
            _release(self._room)
        if not self._items:
            _release(self._drained)

    def interrupted(self) -> None:
        self._takes_records = False
        self.is_connected = None
        if not self._acknowledgement and self._sent > self._base:
            self._base = self._sent

    def ended(self, error: SluiceError) -> None:
        self._fail(error)

    def _fail(self, error: SluiceError) -> None:
        if self.error is None:
            self.error = error
        self._items.clear()
        self._queued_bytes = 0
        acks, self._acks = self._acks, deque()
        for _, future in acks:
            if not future.done():
                future.set_exception(error)
                future.exception()
        for waiters in (self._room, self._drained, self._connected_waiters):
            _release(waiters)
        if self._closed is not None and not self._closed.done() and error.code != ErrorCode.TOPIC_ENDED:
            self._closed.set_exception(error)


async def _wait_in(waiters: list[asyncio.Future[None]]) -> None:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    waiters.append(future)
    await future


def _release(waiters: list[asyncio.Future[None]]) -> None:
    for waiter in waiters:
        if not waiter.done():
            waiter.set_result(None)
    waiters.clear()


class Producer:
    """Publishes to one topic. Made by :meth:`Client.producer`, used with ``async with``.

    The broker's grants create back-pressure: when the topic is full, the buffer fills, and :meth:`send` and :meth:`publish` wait.
    With acknowledgements each record is in the topic exactly once, even after lost connections.

    >>> async with client.producer("orders") as producer:
    ...     print(await producer.publish(b"order 2", key="eu"))
    1
    """

    def __init__(self, client: Client, publication: Publication) -> None:
        self._client = client
        self._publication = publication

    async def publish(self, payload: Payload, *, key: Payload | None = None, headers: HeadersLike | None = None) -> int | None:
        """Publishes a record and waits for its acknowledgement.

        Returns:
            the record's offset; None if one acknowledgement is for several records, and without acknowledgements.

        Raises:
            PublicationError: the broker refused the record, or the topic has ended.
            ConnectionLostError: the connection was lost, and the reconnect policy gave up.
            ValueError: the key or a header is longer than the protocol allows.

        A task that is cancelled stops waiting; the record is still published.
        """
        await self.send(payload, key=key, headers=headers)
        # No other code runs between queueing the record and this call, so it is the last one.
        publication = self._publication
        return await publication.acknowledgement() if publication._acknowledgement else None

    async def send(self, payload: Payload, *, key: Payload | None = None, headers: HeadersLike | None = None) -> None:
        """Publishes a record without waiting for its acknowledgement. Waits only while the buffer is full.

        :meth:`flush` waits for the acknowledgements, and raises errors.
        """
        publication = self._publication
        if key is None and headers is None and publication.accept_plain(payload):
            return
        item = encode_record(payload, key, headers)
        if not publication.has_room:
            await publication.wait_for_room()
        publication.accept(item)

    async def send_many(self, payloads: Iterable[Payload]) -> None:
        """Publishes payloads without keys or headers, each like :meth:`send`."""
        iterator = iter(payloads)
        while True:
            some: list[Payload] = []
            error: Exception | None = None
            try:
                some.extend(islice(iterator, _PART))
            except Exception as raised:
                # Payloads before the invalid one are published.
                error = raised
            if some and not self._publication.accept_many(some):
                for payload in some:
                    await self.send(payload)
            if error is not None:
                raise error
            if len(some) < _PART:
                return

    async def flush(self) -> None:
        """Waits until every record is acknowledged.

        Raises:
            SluiceError: the error that ended the publication while records weren't acknowledged.
        """
        await self._publication.drain()

    async def complete(self) -> None:
        """Ends the topic for all its subscribers, after all records of this producer. The producer can't publish afterwards."""
        await self._end(0, 0, "")

    async def fail(self, code: int, message: str) -> None:
        """Ends the topic with a failure, which every subscriber gets.

        Args:
            code: a number that the application defines, from 1,000 on.
            message: one line for people, at most 1,024 bytes.
        """
        await self._end(1, code, message)

    async def _end(self, kind: int, code: int, message: str) -> None:
        publication = self._publication
        if publication.error is not None:
            raise publication.error
        await publication.complete(kind, code, message)

    @property
    def is_connected(self) -> bool:
        """For a source: whether the topic is connected, so that it should publish."""
        return self._publication.is_connected is True

    async def wait_connected(self) -> None:
        """Waits until the topic is connected, for a source of a topic whose setting ``connect`` isn't immediate."""
        await self._publication.wait_connected()

    @property
    def lost_from(self) -> int | None:
        """The offset from which on acknowledged records were lost because the broker's store was replaced by an older copy; None otherwise.

        The logger ``sluice`` also gets a warning about the loss.
        """
        return self._publication.lost_from

    @property
    def backlog(self) -> int:
        """Records that aren't acknowledged yet."""
        return self._publication.backlog

    async def close(self, timeout: float | None = None) -> None:
        """Flushes within ``timeout`` seconds (the client's ``close_timeout`` by default), and closes the publication.

        Raises:
            TimeoutError: records weren't acknowledged in time. They are dropped.
            SluiceError: the error by which records weren't published.
        """
        publication = self._publication
        try:
            if publication.error is None:
                async with asyncio.timeout(self._client.close_timeout if timeout is None else timeout):
                    await publication.drain()
        finally:
            self.cancel()

    def cancel(self) -> None:
        """Closes the publication, and drops unacknowledged records. From the client's event loop only."""
        self._publication.cancel()
        self._client.forget_producer(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None:
            await self.close()
        else:
            self.cancel()
