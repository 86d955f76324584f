"""A front without ``await``: the same client on an event loop in its own thread.

>>> import sluice.sync
>>> with sluice.sync.connect("127.0.0.1") as client:
...     with client.producer("orders") as producer:
...         _ = producer.publish(b"order 2")
...         producer.complete()
...     for record in client.topic("orders", from_="earliest"):
...         print(record.text)
order 1
order 2

Calls block the calling thread, and any thread may make them. Loops are demand here, too: each step requests a record. Records
are passed between threads in parts of the prefetch.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, Unpack

from . import client as _client
from .arguments import ConnectArguments, GroupArguments, PatternArguments, ProducerArguments, RequestArguments, TopicArguments
from .errors import ClientClosedError
from .info import BrokerInfo, ConnectionInfo, ConsumerInfo, Settings, TopicInfo, TopicSummary
from .plans import Start
from .publishing import Producer as _Producer
from .records import Batch, Delivery, Event, HeadersLike, Payload, Record
from .requesting import Responder as _Responder
from .subscriptions import GroupSubscription as _GroupSubscription
from .subscriptions import Topic as _Topic

__all__ = ["Client", "Group", "Producer", "Topic", "connect"]

T = TypeVar("T")
#: The most values that are passed between threads at a time.
_PART = 1_024


class _Thread:
    """The event loop's thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="sluice", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine on the loop, and waits for it."""
        if self._loop.is_closed():
            work.close()
            raise ClientClosedError("the client is closed", retry=False)
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("sluice.sync can't be called from its own thread; use the asynchronous client there")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def post(self, action: Callable[[], object]) -> None:
        """Runs a function on the loop, without waiting."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(action)

    def stop(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()


class _Iteration(Generic[T]):
    """A loop over an asynchronous iterator that runs on the client's thread."""

    def __init__(self, thread: _Thread, source: Any) -> None:
        self._thread = thread
        self._source = source
        self._values: deque[T] = deque()
        self._error: BaseException | None = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        if not self._values:
            if self._error is not None:
                raise self._error
            self._thread.call(self._fetch())
        if not self._values:
            raise self._error or StopIteration
        return self._values.popleft()

    async def _fetch(self) -> None:
        """Waits for one value, and also takes those that arrived with it."""
        try:
            self._values.append(await anext(self._source))
            taken = getattr(self._source, "take_arrived", None)
            if taken is not None:
                self._values.extend(taken(_PART))
        except StopAsyncIteration:
            self._error = StopIteration()
        except Exception as error:
            self._error = error

    def cancel(self) -> None:
        """Unsubscribes. Leaving the loop and dropping it also do."""
        self._thread.post(self._source.cancel)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.cancel()

    def __del__(self) -> None:
        # A loop that ends by `break` drops its iteration without closing it.
        self.cancel()


class Topic(Generic[T]):
    """A remote topic, or all topics that match a pattern; see :class:`sluice.Topic`."""

    def __init__(self, thread: _Thread, topic: _Topic[T]) -> None:
        self._thread = thread
        self._topic = topic

    def __iter__(self) -> Iterator[T]:
        return self._iterate(self._topic.subscribe)

    def batches(self, prefetch: int | None = None) -> _Iteration[Batch]:
        """Iterates over batches of columns, the fastest way to read."""
        return self._iterate(lambda: self._topic.batches(prefetch))

    def events(self) -> _Iteration[Event]:
        """Iterates over records, lags, the end of replay, and restarts."""
        return self._iterate(self._topic.events)

    def _iterate(self, make: Callable[[], Any]) -> _Iteration[Any]:
        async def begin() -> Any:
            return make().__aiter__()

        return _Iteration(self._thread, self._thread.call(begin()))


class GroupDelivery(Record):
    """A delivery of a consumer group; see :class:`sluice.Delivery`.

    Attributes:
        attempt: how many times the record has been delivered, including this delivery.
    """

    __slots__ = ("_delivery", "_thread", "attempt")

    def __init__(self, thread: _Thread, delivery: Delivery) -> None:
        super().__init__(delivery.topic, delivery.offset, delivery.time, delivery.payload, delivery.key, delivery.headers)
        self.attempt = delivery.attempt
        self._thread = thread
        self._delivery = delivery

    def ack(self) -> None:
        """Marks the record as done."""
        self._thread.call(self._delivery.ack())

    def retry(self, after: float | None = None) -> None:
        """Asks the group to deliver the record again, after a delay in seconds."""
        self._thread.call(self._delivery.retry(after))

    def reject(self) -> None:
        """Rejects the record."""
        self._thread.call(self._delivery.reject())

    def extend(self) -> None:
        """Restarts the record's deadline."""
        self._thread.call(self._delivery.extend())


class Group:
    """A membership in a consumer group; see :class:`sluice.GroupSubscription`."""

    def __init__(self, thread: _Thread, subscription: _GroupSubscription) -> None:
        self._thread = thread
        self._iteration: _Iteration[Delivery] = _Iteration(thread, subscription)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> GroupDelivery:
        return GroupDelivery(self._thread, next(self._iteration))

    def cancel(self) -> None:
        """Leaves the group."""
        self._iteration.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.cancel()


class Producer:
    """Publishes to one topic; see :class:`sluice.Producer`."""

    def __init__(self, thread: _Thread, producer: _Producer) -> None:
        self._thread = thread
        self._producer = producer

    def publish(self, payload: Payload, *, key: Payload | None = None, headers: HeadersLike | None = None) -> int | None:
        """Publishes a record, waits for its acknowledgement, and returns its offset if known."""
        return self._thread.call(self._producer.publish(payload, key=key, headers=headers))

    def send(self, payload: Payload, *, key: Payload | None = None, headers: HeadersLike | None = None) -> None:
        """Publishes a record; waits only while the buffer is full."""
        self._thread.call(self._producer.send(payload, key=key, headers=headers))

    def send_many(self, payloads: Iterable[Payload]) -> None:
        """Publishes payloads without keys or headers."""
        self._thread.call(self._producer.send_many(payloads))

    def flush(self) -> None:
        """Waits until every record is acknowledged."""
        self._thread.call(self._producer.flush())

    def complete(self) -> None:
        """Ends the topic for all its subscribers."""
        self._thread.call(self._producer.complete())

    def fail(self, code: int, message: str) -> None:
        """Ends the topic with a failure."""
        self._thread.call(self._producer.fail(code, message))

    def close(self, timeout: float | None = None) -> None:
        """Flushes and closes the publication."""
        self._thread.call(self._producer.close(timeout))

    def cancel(self) -> None:
        """Closes the publication, and drops unacknowledged records."""
        self._thread.post(self._producer.cancel)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._thread.call(self._producer.__aexit__(kind, error, trace))


class Client:
    """A connection to a broker; see :class:`sluice.Client`. Made by :func:`connect`."""

    def __init__(self, thread: _Thread, client: _client.Client) -> None:
        self._thread = thread
        self._client = client

    def topic(self, name: str, **options: Unpack[TopicArguments]) -> Topic[Any]:
        """Returns a topic to iterate over, with the options of :meth:`sluice.Client.topic`."""
        return Topic(self._thread, self._client.topic(name, **options))

    def pattern(self, pattern: str, **options: Unpack[PatternArguments]) -> Topic[Record]:
        """Returns all topics whose names match, with the options of :meth:`sluice.Client.pattern`."""
        return Topic(self._thread, self._client.pattern(pattern, **options))

    def group(self, topic: str, name: str, **options: Unpack[GroupArguments]) -> Group:
        """Returns a membership in a consumer group, with the options of :meth:`sluice.Client.group`."""
        return Group(self._thread, self._client.group(topic, name, **options))

    def producer(self, topic: str, **options: Unpack[ProducerArguments]) -> Producer:
        """Opens a publication, with the options of :meth:`sluice.Client.producer`."""

        async def begin() -> _Producer:
            return self._client.producer(topic, **options)

        return Producer(self._thread, self._thread.call(begin()))

    def request(self, topic: str, payload: Payload = b"", **options: Unpack[RequestArguments]) -> Record:
        """Publishes a request and returns the reply."""
        return self._thread.call(self._client.request(topic, payload, **options))

    def respond(self, topic: str, handler: Callable[[Record], Payload | tuple[Payload, HeadersLike]], *, concurrent: int = 8) -> Responder:
        """Answers requests. The handler runs in a pool of threads, ``concurrent`` at a time."""

        async def answer(request: Record) -> Payload | tuple[Payload, HeadersLike]:
            return await asyncio.to_thread(handler, request)

        async def begin() -> _Responder:
            return self._client.respond(topic, answer, concurrent=concurrent)

        return Responder(self._thread, self._thread.call(begin()))

    def create_topic(self, name: str, **settings: Unpack[Settings]) -> TopicInfo:
        """Creates a topic with these settings, or returns the existing topic if its settings are the same."""
        return self._thread.call(self._client.create_topic(name, **settings))

    def set_topic(self, name: str, **settings: Unpack[Settings]) -> TopicInfo:
        """Changes settings of a topic."""
        return self._thread.call(self._client.set_topic(name, **settings))

    def topic_info(self, name: str) -> TopicInfo:
        """Returns a topic's state and settings."""
        return self._thread.call(self._client.topic_info(name))

    def topics(self) -> list[TopicSummary]:
        """Returns all topics that the client is allowed to see."""
        return self._thread.call(_collect(self._client.topics()))

    def trim_topic(self, name: str, *, before: int | None = None, keep_last: int | None = None) -> TopicInfo:
        """Removes the oldest records: those before an offset, or all but the newest ``keep_last``."""
        return self._thread.call(self._client.trim_topic(name, before=before, keep_last=keep_last))

    def purge_topic(self, name: str) -> TopicInfo:
        """Removes all records of a topic."""
        return self._thread.call(self._client.purge_topic(name))

    def delete_topic(self, name: str) -> None:
        """Deletes a topic."""
        self._thread.call(self._client.delete_topic(name))

    def connect_topic(self, name: str) -> None:
        """Connects a topic whose setting ``connect`` is manual."""
        self._thread.call(self._client.connect_topic(name))

    def disconnect_topic(self, name: str) -> None:
        """Disconnects a topic whose setting ``connect`` is manual."""
        self._thread.call(self._client.disconnect_topic(name))

    def consumers(self, topic: str) -> list[ConsumerInfo]:
        """Returns the durable cursors and groups of a topic."""
        return self._thread.call(_collect(self._client.consumers(topic)))

    def move_cursor(self, topic: str, name: str, to: str | Start) -> None:
        """Moves a durable cursor or a group."""
        self._thread.call(self._client.move_cursor(topic, name, to))

    def delete_cursor(self, topic: str, name: str) -> None:
        """Deletes a durable cursor or a group."""
        self._thread.call(self._client.delete_cursor(topic, name))

    def broker_info(self) -> BrokerInfo:
        """Returns the broker's state."""
        return self._thread.call(self._client.broker_info())

    def connections(self) -> list[ConnectionInfo]:
        """Returns the broker's connections."""
        return self._thread.call(_collect(self._client.connections()))

    def close_connection(self, number: int) -> None:
        """Closes another client's connection."""
        self._thread.call(self._client.close_connection(number))

    @property
    def identity(self) -> str:
        """The name under which the broker has authenticated the client; empty without authentication."""
        return self._client.identity

    def close(self, timeout: float | None = None) -> None:
        """Flushes the producers, closes the connection, and ends the thread."""
        try:
            self._thread.call(self._client.close(timeout))
        finally:
            self._thread.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self._thread.call(self._client.__aexit__(kind, error, trace))
        finally:
            self._thread.stop()


class Responder:
    """Answers requests until it is cancelled."""

    def __init__(self, thread: _Thread, responder: _Responder) -> None:
        self._thread = thread
        self._responder = responder

    def cancel(self) -> None:
        """Ends the subscription."""
        self._thread.post(self._responder.cancel)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.cancel()


def connect(servers: str | Iterable[str] = "127.0.0.1", **options: Unpack[ConnectArguments]) -> Client:
    """Connects to a broker, with the options of :func:`sluice.connect`.

    Raises:
        SluiceError: no server accepted the client.
    """
    thread = _Thread()

    async def begin() -> _client.Client:
        return await _client.connect(servers, **options)

    try:
        return Client(thread, thread.call(begin()))
    except BaseException:
        thread.stop()
        raise


async def _collect(values: AsyncIterator[T]) -> list[T]:
    return [value async for value in values]
