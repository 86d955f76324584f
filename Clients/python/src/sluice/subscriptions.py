"""Topics, patterns and consumer groups as asynchronous iterables."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from ._subscription import Feed, GroupFeed, Item, PatternFeed, TopicFeed
from .plans import Plan
from .records import Batch, Delivery, Event, Record

if TYPE_CHECKING:
    from .client import Client

__all__ = ["BatchSubscription", "EventSubscription", "GroupSubscription", "Subscription", "Topic"]

T = TypeVar("T")


class _Handle:
    """The base of all kinds of subscriptions: opening on first use, and cancelling."""

    def __init__(self, client: Client, feed: Feed, prefetch: int) -> None:
        if prefetch < 0:
            raise ValueError("prefetch= takes a number of records from 0 up")
        self._client = client
        self._feed = feed
        self._prefetch = prefetch
        self._is_open = False
        #: The number of records that the program has taken.
        self._taken = 0

    def _open(self) -> None:
        if not self._is_open:
            self._is_open = True
            self._client.open_attachment(self._feed)

    def _want(self, count: int) -> None:
        """Requests what the program needs now: ``count`` records, and the prefetch."""
        demand = self._feed.demand
        ahead = demand.granted - self._taken
        prefetch = self._prefetch
        if ahead < count or (prefetch and ahead <= prefetch - (prefetch >> 2)):
            self._feed.request(max(prefetch, count) - ahead)

    def __aiter__(self) -> Self:
        self._open()
        return self

    async def _next_item(self) -> Item:
        """Requests a record if none is requested ahead, and takes the next item of the queue."""
        self._open()
        self._want(1)
        item = self._feed.poll() or await self._feed.next()
        if item is None:
            raise StopAsyncIteration
        return item

    def cancel(self) -> None:
        """Unsubscribes. Records that were received but not taken are dropped. From the client's event loop only."""
        self._is_open = True
        self._feed.cancel()

    async def aclose(self) -> None:
        """Like :meth:`cancel`, for ``contextlib.aclosing``."""
        self.cancel()

    async def __aenter__(self) -> Self:
        self._open()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.cancel()

    def __del__(self) -> None:
        # A loop that ends by `break` drops its subscription without closing it.
        feed = self._feed
        if self._is_open and not feed.is_over:
            self._client.cancel_from_anywhere(feed)

    @property
    def epoch(self) -> int:
        """The topic's epoch; 0 before the broker has answered, and for patterns and groups."""
        feed = self._feed
        return feed.position.epoch if isinstance(feed, TopicFeed) else 0

    @property
    def is_live(self) -> bool:
        """Whether replay has ended; False for patterns and groups."""
        feed = self._feed
        return feed.position.is_live if isinstance(feed, TopicFeed) else False


class Subscription(_Handle, Generic[T]):
    """One iteration over a topic or a pattern. Iterating is demand.

    Each step of the loop requests one record; with ``prefetch=n`` the client keeps up to ``n`` records requested ahead. Leaving
    the loop, cancelling the task or :meth:`cancel` unsubscribes. The loop ends when the topic completes.

    Raises from the loop:
        TopicFailed: the topic ended with a failure.
        SubscriptionError: the broker refused or ended the subscription.
        ConnectionLostError: the connection was lost, and the reconnect policy gave up.
    """

    def __init__(self, client: Client, feed: Feed, prefetch: int, decode: Callable[[Record], T] | None) -> None:
        super().__init__(client, feed, prefetch)
        self._decode = decode
        self._records: Iterator[Record] = iter(())
        self._pending: list[Record] = []
        self._last: Record | None = None
        plan = feed.plan
        self._commits = bool(plan.cursor) and not plan.sees_events
        self.auto_commit = True

    async def __anext__(self) -> T:
        record = next(self._records, None)
        if record is None:
            record = await self._refill()
        if self._commits:
            self._advance(record)
        return record if self._decode is None else self._decode(record)  # type: ignore[return-value]

    async def _refill(self) -> Record:
        """Takes the next part of the queue, at most a quarter of the prefetch, so that the rest stays requested."""
        if self._commits and self.auto_commit and self._last is not None:
            self.commit(self._last)
        while not self._pending:
            item = await self._next_item()
            if isinstance(item, Batch):
                self._pending = item.records()
                self._pending.reverse()
        part = max(1, self._prefetch >> 2)
        taken = self._pending[-part:]
        del self._pending[-part:]
        self._taken += len(taken)
        if self._prefetch:
            self._want(0)
        self._records = reversed(taken)
        return next(self._records)

    def take_arrived(self, most: int) -> list[T]:
        """Takes up to ``most`` values that have already arrived, for a front in another thread.

        Only records within the prefetch can have arrived: with ``prefetch=0``, nothing is taken ahead of the loop.
        """
        if self._commits or not self._prefetch:
            return []
        taken = list(islice(self._records, most))
        return taken if self._decode is None else [self._decode(record) for record in taken]  # type: ignore[return-value]

    def _advance(self, record: Record) -> None:
        if self.auto_commit and self._last is not None:
            self.commit(self._last)
        self._last = record

    def commit(self, record: Record) -> None:
        """Moves the durable cursor past this record, and so past all before it. Sent within 0.2 s.

        With ``auto_commit`` (the default) the loop commits a record when it requests the next one.
        """
        feed = self._feed
        if isinstance(feed, TopicFeed):
            feed.commit(record.offset)

    def cancel(self) -> None:
        self._pending = []
        self._records = iter(())
        super().cancel()


class BatchSubscription(_Handle):
    """One iteration over a topic or a pattern in batches of columns, for speed.

    ``prefetch`` records are kept requested. A batch has as many records as the broker sent together.
    """

    async def __anext__(self) -> Batch:
        while True:
            item = await self._next_item()
            if isinstance(item, Batch):
                self._taken += len(item)
                return item

    def commit(self, batch: Batch) -> None:
        """Moves the durable cursor past this batch. Sent within 0.2 s."""
        if isinstance(self._feed, TopicFeed):
            self._feed.commit(batch.offsets[-1])


class EventSubscription(_Handle):
    """One iteration over records and all other events: :class:`Live`, :class:`Lag` and others."""

    def __init__(self, client: Client, feed: Feed, prefetch: int) -> None:
        super().__init__(client, feed, prefetch)
        self._pending: list[Record] = []

    async def __anext__(self) -> Event:
        if not self._pending:
            item = await self._next_item()
            if not isinstance(item, Batch):
                return item
            self._pending = item.records()
            self._pending.reverse()
        self._taken += 1
        return self._pending.pop()

    def commit(self, record: Record) -> None:
        """Moves the durable cursor past this record. Sent within 0.2 s."""
        if isinstance(self._feed, TopicFeed):
            self._feed.commit(record.offset)


class GroupSubscription(_Handle):
    """Membership in a consumer group: an iteration over deliveries.

    With ``prefetch=0`` the group gives this member its next record when the loop requests it.
    """

    async def __anext__(self) -> Delivery:
        while True:
            item = await self._next_item()
            if isinstance(item, Delivery):
                self._taken += 1
                return item


class Topic(Generic[T]):
    """A remote topic, or all topics that match a pattern. Iterating over it subscribes; it may be iterated over many times.

    >>> async for record in client.topic("orders", from_="earliest"):
    ...     print(record.text)
    ...     break
    order 1
    """

    def __init__(self, client: Client, plan: Plan, decode: Callable[[Record], T] | None, *, is_pattern: bool) -> None:
        self._client = client
        self._plan = plan
        self._decode = decode
        self._is_pattern = is_pattern

    @property
    def name(self) -> str:
        """The topic's name, or the pattern."""
        return self._plan.topic

    def _feed(self, plan: Plan) -> Feed:
        return PatternFeed(plan) if self._is_pattern else TopicFeed(plan)

    def subscribe(self) -> Subscription[T]:
        """Returns a subscription, to be used with ``async with`` and ``async for``. It begins with either."""
        return Subscription(self._client, self._feed(self._plan), self._plan.prefetch, self._decode)

    def __aiter__(self) -> AsyncIterator[T]:
        return self.subscribe().__aiter__()

    def batches(self, prefetch: int | None = None) -> BatchSubscription:
        """Returns an iteration over batches of columns, the fastest way to read.

        >>> async for batch in client.topic("orders").batches():
        ...     print(list(batch.offsets), [bytes(payload) for payload in batch.payloads])
        ...     break
        [0] [b'order 1']

        Args:
            prefetch: how many records are kept requested; by default the topic's prefetch, or 65,536.
        """
        size = prefetch if prefetch is not None else self._plan.prefetch or 65_536
        return BatchSubscription(self._client, self._feed(self._plan), size)

    def events(self) -> EventSubscription:
        """Returns an iteration over records, lags, the end of replay, and restarts of the topic.

        >>> async for event in client.topic("orders").events():
        ...     print(type(event).__name__)
        ...     if isinstance(event, sluice.Live):
        ...         break
        Record
        Live
        """
        plan = replace(self._plan, sees_events=True)
        return EventSubscription(self._client, self._feed(plan), plan.prefetch)


def group_subscription(client: Client, plan: Plan) -> GroupSubscription:
    """Returns a membership that begins with its iteration."""
    return GroupSubscription(client, GroupFeed(plan), plan.prefetch)


def any_value(record: Record) -> Any:
    """Decodes a record's payload as JSON, for ``decode=``."""
    return record.json()
