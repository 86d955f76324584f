"""Subscriptions: demand, replay to live, resumption, and the queue between the connection and the program."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, Final

from . import _frames as frames
from . import _layout as layout
from ._attachment import Attachment, misplaced
from ._batches import decode_batch
from .errors import ErrorCode, ProtocolError, SluiceError, SubscriptionError, TopicFailed
from .plans import Plan
from .records import Batch, Delivery, Event, Lag, Live, Matched, Producers, Restarted, Rewound, Unmatched

#: An item of the queue: records of one DELIVER, or an event.
Item = Batch | Event

#: How long commits of automatic cursors are collected before they are sent, in seconds.
_COMMIT_SECONDS: Final = 0.2
#: How many queued events are searched for the event that a topic has matched.
_LOOK_BACK: Final = 64


class Position:
    """The position of a subscription in one topic."""

    __slots__ = ("epoch", "has_gaps", "is_live", "next_offset", "time", "topic")

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.epoch = 0
        self.next_offset = 0
        self.time = 0
        self.is_live = False
        #: Whether skipped offsets are no loss.
        self.has_gaps = False

    def advance(self, offset: int, code: ErrorCode = ErrorCode.MALFORMED_FRAME) -> None:
        """Moves to the offset of the next record.

        Raises:
            ProtocolError: the offset goes back, or skips records without a LAG.
        """
        if offset != self.next_offset and (offset < self.next_offset or not self.has_gaps):
            raise ProtocolError(f"offset {offset} of topic {self.topic} came where {self.next_offset} was next", code=code)
        self.next_offset = offset

    def skip(self, offset: int) -> None:
        """Moves past dropped records.

        Raises:
            ProtocolError: the offset goes back.
        """
        if offset < self.next_offset:
            raise ProtocolError(f"LAG goes back to offset {offset} of topic {self.topic}", code=ErrorCode.MALFORMED_FRAME)
        self.next_offset = offset

    def take(self, data: bytes, start: int, end: int) -> Batch:
        """Decodes a DELIVER and moves past its records."""
        first, count = frames.deliver_header(data, start, end)
        self.advance(first)
        batch, self.time = decode_batch(data, start + frames.BATCH_HEADER, end, self.topic, first, count, self.time)
        self.next_offset = first + count
        return batch


class Demand:
    """How many records the program has requested, and how many of those were received.

    Counts include all streams of a subscription, so that a stream that is opened again requests the rest.
    """

    __slots__ = ("base", "granted", "received")

    def __init__(self) -> None:
        self.granted = 0
        self.received = 0
        #: The number of records that were received before the current stream was opened.
        self.base = 0

    @property
    def left(self) -> int:
        return frames.U64_MAX if self.granted == frames.U64_MAX else self.granted - self.received

    def reopened(self) -> int:
        """Begins a stream. Returns the demand to open it with."""
        self.base = self.received
        return self.left

    @property
    def through(self) -> int:
        """The number for DEMAND on the current stream."""
        return frames.U64_MAX if self.granted == frames.U64_MAX else self.granted - self.base

    def take(self, count: int) -> None:
        self.received += count
        if self.received > self.granted:
            raise ProtocolError("the broker sent more records than were requested", code=ErrorCode.DEMAND_EXCEEDED)


class Feed(Attachment):
    """The queue of a subscription, and the stream that fills it. Bounded by the demand that the program has given."""

    error_type = SubscriptionError
    first_frame = frames.SUBSCRIBED

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan.topic)
        self.plan = plan
        self.demand = Demand()
        self._items: deque[Item] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._ending: SluiceError | None = None
        self._is_finished = False

    # The program's side

    def request(self, count: int) -> None:
        """Grants ``count`` more records."""
        demand = self.demand
        demand.granted = min(demand.granted + count, frames.U64_MAX)
        if self.connection is not None:
            self.connection.send(frames.demand(self.number, demand.through))

    def poll(self) -> Item | None:
        """Returns the next item that has arrived, without waiting."""
        return self._items.popleft() if self._items else None

    async def next(self) -> Item | None:
        """Waits for the next item; None at the end.

        Raises:
            SluiceError: the error that ended the subscription, once, after all received items.
        """
        while not self._items:
            if self._ending is not None:
                error, self._ending = self._ending, None
                self._is_finished = True
                raise error
            if self._is_finished or self.is_over:
                return None
            if self._waiter is not None:
                raise RuntimeError("two tasks wait for the next record of one subscription; use a subscription for each")
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        return self._items.popleft()

    def _put(self, item: Item) -> None:
        self._items.append(item)
        self._wake()

    def _put_lag(self, lag: Lag) -> None:
        """Queues a lag, which replaces one directly before it, since demand doesn't limit how many the broker sends."""
        former = self._items[-1] if self._items else None
        if isinstance(former, Lag) and former.topic == lag.topic:
            self._items[-1] = Lag(lag.topic, former.missed + lag.missed, lag.next_offset)
            self._wake()
        else:
            self._put(lag)

    def _check_open(self) -> None:
        if not self.is_open:
            raise misplaced("DELIVER", "a stream that isn't open yet")

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def cancel(self) -> None:
        super().cancel()
        self._wake()

    def ended(self, error: SluiceError) -> None:
        self._ending = error
        self._wake()

    def _completed(self, values: dict[str, Any]) -> None:
        if values["kind"]:
            self._ending = TopicFailed(values["message"], code=values["code"], topic=self.topic)
        else:
            self._is_finished = True
        self.finish()
        self._wake()


class TopicFeed(Feed):
    """A subscription to one topic."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.position = Position(plan.topic)
        self._was_asked_for: int | None = None
        self._is_restarting = False
        #: Whether the subscription waits for the offset at which it began, which may be beyond the topic's end. After a lost connection
        #: it begins there again, without an epoch: an offset with an epoch means that the client knows the records before it.
        self._is_waiting = False
        self._has_live = False
        self._committed = 0
        self._sent_commit = 0
        self._timer_commit: asyncio.TimerHandle | None = None

    def opening(self, stream: int, flags: int) -> bytes:
        plan = self.plan
        position = self.position
        epoch, start, value = position.epoch, plan.start.kind, plan.start.value
        self._has_live = False
        if self._is_waiting:
            epoch = 0
        elif self._is_restarting:
            epoch, start, value = 0, 0, 0
        elif epoch:
            start, value = 4, position.next_offset
        self._was_asked_for = value if epoch else None
        return layout.encode(
            "SUBSCRIBE",
            stream,
            flags,
            topic=plan.topic,
            start=start,
            lag=plan.lag_number,
            if_missing=0 if plan.missing == "create" else 1,
            flags=int(plan.watch_producers),
            start_value=value,
            epoch=epoch,
            granted_through=self.demand.reopened(),
            cursor=plan.cursor,
            filter=plan.filter(),
            settings=[{"key": key, "value": number} for key, number in plan.settings],
        )

    def handle(self, number: int, values: dict[str, Any]) -> bool:
        position = self.position
        topic = self.plan.topic
        if number == frames.SUBSCRIBED:
            self._subscribed(values)
        elif number == frames.LIVE:
            if self._has_live:
                raise misplaced("LIVE", "a stream that is live")
            self._has_live = True
            position.advance(values["next offset"])
            if not position.is_live:
                position.is_live = True
                self._put(Live(topic, values["next offset"]))
        elif number == frames.LAG:
            position.skip(values["next offset"])
            self._is_waiting = False
            self._put_lag(Lag(topic, values["missed"], values["next offset"]))
        elif number == frames.PRODUCERS:
            if self._items and isinstance(self._items[-1], Producers):
                self._items.pop()
            self._put(Producers(topic, values["count"]))
        elif number == frames.COMPLETE:
            self._send_commit()
            self._completed(values)
            return True
        else:
            raise ProtocolError(f"a frame of type {number:#x} came on a subscription", code=ErrorCode.UNEXPECTED_FRAME)
        return False

    def _subscribed(self, values: dict[str, Any]) -> None:
        position = self.position
        epoch, next_offset = values["epoch"], values["next offset"]
        was_known = position.epoch
        if was_known and was_known != epoch and not self._is_waiting:
            if values["continues"]:
                asked = self._was_asked_for
                if asked is not None and next_offset < asked:
                    self._put(Rewound(self.plan.topic, epoch, next_offset))
            else:
                position.is_live = False
                self._put(Restarted(self.plan.topic, epoch))
            self._committed = self._sent_commit = 0
        position.epoch = epoch
        position.next_offset = next_offset
        position.has_gaps = bool(values["gaps"])
        start = self.plan.start
        if self._is_waiting or not was_known:
            self._is_waiting = start.is_offset and 0 < start.value == next_offset >= values["live offset"]
        self._is_restarting = False
        self._sent_commit = 0
        self.opened()
        if self._committed:
            self._send_commit()

    def recovers_from(self, error: SluiceError) -> bool:
        if error.code != ErrorCode.EPOCH_CHANGED or not self.position.epoch or self.plan.lag == "fail":
            return False
        # A subscription that names no epoch can't have a wrong one.
        if self._is_restarting:
            return False
        # A program that only gets records, began at a position and has some, would combine two histories without notice.
        is_blind = self.plan.lag is None and not self.plan.sees_events
        if is_blind and self.plan.start.is_position and self.demand.received:
            return False
        self._is_restarting = True
        return True

    def deliver(self, data: bytes, start: int, end: int) -> None:
        self._check_open()
        batch = self.position.take(data, start, end)
        self.demand.take(len(batch))
        self._is_waiting = False
        self._put(batch)

    # Durable cursor

    def commit(self, through: int) -> None:
        """Moves the durable cursor past the record with that offset, after a short time."""
        if through + 1 <= self._committed or not self.plan.cursor:
            return
        self._committed = through + 1
        if self._timer_commit is None and self.connection is not None:
            self._timer_commit = asyncio.get_running_loop().call_later(_COMMIT_SECONDS, self._send_commit)

    def _send_commit(self) -> None:
        if self._timer_commit is not None:
            self._timer_commit.cancel()
            self._timer_commit = None
        if self._committed > self._sent_commit and self.connection is not None:
            self._sent_commit = self._committed
            self.connection.send(frames.commit(self.number, min(self._committed, self.position.next_offset)))

    def cancel(self) -> None:
        self._send_commit()
        super().cancel()


class PatternFeed(Feed):
    """A subscription to all topics whose names match a pattern."""

    #: The most bytes of positions in one frame.
    _FRAME_ROOM: Final = 48 << 10

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self._positions: dict[str, Position] = {}
        self._numbers: dict[int, Position] = {}
        self._selected: Position | None = None
        self._has_all = False
        self._is_live = False

    def opening(self, stream: int, flags: int) -> bytes:
        plan = self.plan
        known = [
            {"topic": position.topic, "epoch": position.epoch, "next offset": position.next_offset} for position in self._positions.values()
        ]
        pages: list[list[dict[str, Any]]] = [[]]
        room = self._FRAME_ROOM
        for place in known:
            size = 26 + len(str(place["topic"]).encode())
            if size > room:
                pages.append([])
                room = self._FRAME_ROOM
            room -= size
            pages[-1].append(place)
        start, value = (4, 0) if self._has_all else (plan.start.kind, plan.start.value)
        self._numbers = {}
        self._selected = None
        out = layout.encode(
            "SUBSCRIBE_PATTERN",
            stream,
            flags,
            pattern=plan.topic,
            start=start,
            lag=plan.lag_number,
            more=int(len(pages) > 1),
            start_value=value,
            granted_through=self.demand.reopened(),
            filter=plan.filter(),
            positions=pages[0],
        )
        for index, page in enumerate(pages[1:], 2):
            out += layout.encode("POSITIONS", stream, more=int(index < len(pages)), positions=page)
        return out

    def handle(self, number: int, values: dict[str, Any]) -> bool:
        if number == frames.SUBSCRIBED:
            self.opened()
        elif number == frames.MATCHED:
            self._matched(values)
        elif number == frames.UNMATCHED:
            position = self._numbers.pop(values["number"], None)
            if position is not None and self._positions.get(position.topic) is position:
                del self._positions[position.topic]
                self._put_unmatched(position.topic)
        elif number == frames.SELECT_TOPIC:
            self._select(values["number"])
        elif number == frames.LIVE:
            self._live(values["next offset"])
        elif number == frames.LAG:
            position = self._current()
            position.skip(values["next offset"])
            self._put_lag(Lag(position.topic, values["missed"], values["next offset"]))
        elif number == frames.COMPLETE:
            self._current()
        else:
            raise ProtocolError(f"a frame of type {number:#x} came on a pattern", code=ErrorCode.UNEXPECTED_FRAME)
        return False

    def _put_unmatched(self, topic: str) -> None:
        """Queues that a topic no longer matches.

        If the program hasn't seen that it matched, both events are dropped, since demand doesn't limit how many topics appear and
        disappear.
        """
        for back in range(1, min(len(self._items), _LOOK_BACK) + 1):
            item = self._items[-back]
            if isinstance(item, Matched) and item.topic == topic:
                del self._items[-back]
                return
            if isinstance(item, Batch) or item.topic == topic:
                break
        self._put(Unmatched(topic))

    def _matched(self, values: dict[str, Any]) -> None:
        topic, epoch, next_offset = values["topic"], values["epoch"], values["next offset"]
        former = self._positions.get(topic)
        position = Position(topic)
        position.epoch = epoch
        position.next_offset = next_offset
        position.has_gaps = bool(values["gaps"])
        self._positions[topic] = position
        self._numbers[values["number"]] = position
        if former is None:
            self._put(Matched(topic, epoch, next_offset))
        elif former.epoch == epoch:
            position.is_live = former.is_live
        elif values["continues"]:
            if next_offset < former.next_offset:
                self._put(Rewound(topic, epoch, next_offset))
        else:
            self._put(Restarted(topic, epoch))

    def _select(self, number: int) -> None:
        if number:
            position = self._numbers.get(number)
            if position is None:
                raise ProtocolError("SELECT_TOPIC names a number that isn't matched", code=ErrorCode.MALFORMED_FRAME)
            self._selected = position
            return
        self._selected = None
        if not self._has_all or len(self._numbers) < len(self._positions):
            # Topics that were known and don't match now were deleted in between.
            matched = {position.topic for position in self._numbers.values()}
            for topic in [topic for topic in self._positions if topic not in matched]:
                del self._positions[topic]
                self._put_unmatched(topic)
        self._has_all = True

    def _live(self, next_offset: int) -> None:
        position = self._selected
        if position is not None:
            position.advance(next_offset)
            position.is_live = True
        elif not self._is_live:
            self._is_live = True
            self._put(Live(None, next_offset))

    def _current(self) -> Position:
        if self._selected is None:
            raise ProtocolError("a frame for one topic came before SELECT_TOPIC", code=ErrorCode.MALFORMED_FRAME)
        return self._selected

    def deliver(self, data: bytes, start: int, end: int) -> None:
        self._check_open()
        batch = self._current().take(data, start, end)
        self.demand.take(len(batch))
        self._put(batch)


class GroupFeed(Feed):
    """Membership in a consumer group."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        assert plan.group is not None
        self._group = plan.group
        self._attempt = 1
        self._time = 0
        #: Verdicts that no connection took yet: they are sent behind the next JOIN.
        self._unsent: deque[tuple[int, int, int, int | None]] = deque(maxlen=65_536)

    def opening(self, stream: int, flags: int) -> bytes:
        plan, group = self.plan, self._group
        self._attempt = 1
        return layout.encode(
            "JOIN",
            stream,
            flags,
            topic=plan.topic,
            group=group.name,
            start=plan.start.kind,
            acknowledgement=int(group.explicit),
            order=int(group.ordered_by_key),
            if_missing=0 if plan.missing == "create" else 1,
            start_value=plan.start.value,
            deadline=int(group.deadline * 1000) if group.explicit else 0,
            deliveries=group.deliveries,
            dead_letters=group.dead_letters or "",
            granted_through=self.demand.reopened(),
            filter=plan.filter(),
            first_backoff=milliseconds(group.retry_backoff[0]) if group.retry_backoff else None,
            longest_backoff=milliseconds(group.retry_backoff[1]) if group.retry_backoff else None,
        )

    def handle(self, number: int, values: dict[str, Any]) -> bool:
        if number == frames.SUBSCRIBED:
            self.opened()
            self._time = 0
            unsent, self._unsent = self._unsent, deque(maxlen=65_536)
            for settlement in unsent:
                self._send(*settlement)
        elif number == frames.DELIVERIES:
            self._attempt = values["count"]
        elif number == frames.LAG:
            self._put_lag(Lag(self.plan.topic, values["missed"], values["next offset"]))
        elif number == frames.COMPLETE:
            self._completed(values)
            return True
        elif number != frames.LIVE:
            raise ProtocolError(f"a frame of type {number:#x} came to a member", code=ErrorCode.UNEXPECTED_FRAME)
        return False

    def deliver(self, data: bytes, start: int, end: int) -> None:
        self._check_open()
        first, count = frames.deliver_header(data, start, end)
        batch, self._time = decode_batch(data, start + frames.BATCH_HEADER, end, self.plan.topic, first, count, self._time)
        self.demand.take(count)
        for record in batch.records():
            self._put(
                Delivery(
                    record.topic,
                    record.offset,
                    record.time,
                    record.payload,
                    record.key,
                    record.headers,
                    self._attempt,
                    self._settle,
                )
            )

    async def _settle(self, delivery: Delivery, verdict: int, after: float | None = None) -> None:
        if self.is_over:
            raise SubscriptionError(
                f"the member of group {self._group.name} has left, so its deliveries go to other members", topic=self.topic
            )
        delay = None if after is None else milliseconds(after)
        self._send(verdict, delivery.attempt, delivery.offset, delay)

    def _send(self, verdict: int, attempt: int, offset: int, delay: int | None) -> None:
        if self.connection is None:
            self._unsent.append((verdict, attempt, offset, delay))
        else:
            self.connection.send(frames.settle(self.number, verdict, attempt, offset, 1, delay))


def milliseconds(seconds: float) -> int:
    """Returns a delay as the protocol has it: at most 49 days."""
    return min(max(round(seconds * 1000), 0), frames.LONGEST_DELAY)
