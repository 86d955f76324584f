"""The client: one connection to a broker, and its subscriptions, producers and requests."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Generator, Iterable
from types import TracebackType
from typing import Any, Final, Literal, TypeVar, Unpack, overload

from . import _frames as frames
from ._attachment import Attachment, Request
from ._links import Link, closed_error
from ._subscription import Feed
from .info import (
    BrokerInfo,
    ConnectionInfo,
    ConsumerInfo,
    Settings,
    TopicInfo,
    TopicSummary,
    broker_info,
    connection_info,
    consumer_info,
    encode_settings,
    topic_info,
    topic_summary,
)
from .options import Options, ReconnectPolicy, TokenSource, parse_server, tls_context
from .plans import Condition, Group, Missing, Plan, Start, WhenLagging, make_start, make_where
from .publishing import _ACKNOWLEDGEMENTS, Acknowledgement, Producer, Publication
from .records import HeadersLike, Payload, Record
from .requesting import Handler, Requester, Responder
from .subscriptions import GroupSubscription, Topic, group_subscription

__all__ = ["Client", "connect"]

T = TypeVar("T")
_PAGE: Final = 500
_ROLES: Final = {"producer": 0, "source": 1, "requester": 2}


class Client:
    """A connection to a broker, made by :func:`connect` and used from one event loop.

    Topics, producers and groups are opened on it, and again after a lost connection. Closing the client flushes its producers
    within ``close_timeout`` and ends all other streams.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._loop = asyncio.get_running_loop()
        self._link = Link(options, options.servers)
        self._producers: set[Producer] = set()
        self._requester = Requester(self)
        self._is_closed = False

    # Subscribing

    @overload
    def topic(
        self,
        name: str,
        *,
        from_: str | Start = ...,
        where: Condition | Iterable[Condition] | None = ...,
        prefetch: int = ...,
        lag: WhenLagging | None = ...,
        cursor: str | None = ...,
        missing: Missing = ...,
        watch_producers: bool = ...,
        settings: Settings | None = ...,
        decode: None = ...,
    ) -> Topic[Record]: ...

    @overload
    def topic(
        self,
        name: str,
        *,
        from_: str | Start = ...,
        where: Condition | Iterable[Condition] | None = ...,
        prefetch: int = ...,
        lag: WhenLagging | None = ...,
        cursor: str | None = ...,
        missing: Missing = ...,
        watch_producers: bool = ...,
        settings: Settings | None = ...,
        decode: Callable[[Record], T],
    ) -> Topic[T]: ...

    @overload
    def topic(
        self,
        name: str,
        *,
        from_: str | Start = ...,
        where: Condition | Iterable[Condition] | None = ...,
        prefetch: int = ...,
        lag: WhenLagging | None = ...,
        cursor: str | None = ...,
        missing: Missing = ...,
        watch_producers: bool = ...,
        settings: Settings | None = ...,
        decode: Callable[[Record], Any] | None,
    ) -> Topic[Any]: ...

    def topic(
        self,
        name: str,
        *,
        from_: str | Start = "replay",
        where: Condition | Iterable[Condition] | None = None,
        prefetch: int = 0,
        lag: WhenLagging | None = None,
        cursor: str | None = None,
        missing: Missing = "create",
        watch_producers: bool = False,
        settings: Settings | None = None,
        decode: Callable[[Record], Any] | None = None,
    ) -> Topic[Any]:
        """Returns a topic to iterate over. Nothing is sent before the iteration begins.

        >>> async for record in client.topic("orders", from_=sluice.last(10), prefetch=100):
        ...     print(record.offset, record.key, record.text)
        ...     break
        0 b'eu' order 1

        Args:
            name: the topic's name, tokens separated by dots.
            from_: ``"replay"`` (all that the topic keeps), ``"earliest"``, ``"new"``, :func:`last`, :func:`offset` or :func:`since`.
            where: conditions that the broker checks. It only sends records that meet all of them.
            prefetch: how many records are requested ahead of the loop; 0 requests each one when the loop does.
            lag: ``"skip"`` or ``"fail"`` when records were dropped before they were requested; None follows the topic's setting.
            cursor: the name of a durable cursor. The subscription begins at the cursor's position, and the loop commits a record
                when it requests the next one.
            missing: ``"create"`` the topic, or ``"fail"`` with ``unknown-topic``.
            watch_producers: whether ``events()`` reports the number of producers.
            settings: the settings that the topic must have. It is created with them, and ``topic-exists`` is raised if it has others.
            decode: turns each record into the loop's value; an exception ends the loop and is raised from it.

        Raises:
            ValueError: an argument is out of range.
        """
        plan = Plan(
            name,
            start=make_start(from_),
            where=make_where(where),
            lag=lag,
            missing=missing,
            cursor=cursor or "",
            prefetch=prefetch,
            watch_producers=watch_producers,
            settings=encode_settings(settings),
        )
        return Topic(self, plan, decode, is_pattern=False)

    def pattern(
        self,
        pattern: str,
        *,
        from_: str | Start = "replay",
        where: Condition | Iterable[Condition] | None = None,
        prefetch: int = 0,
        lag: WhenLagging | None = None,
    ) -> Topic[Record]:
        """Returns all topics whose names match, including those created later, to iterate over with one demand.

        >>> async for record in client.pattern(">"):
        ...     print(record.topic)
        ...     break
        orders

        In a pattern ``*`` stands for one token, and a last ``>`` for one or more. Records have their topic's name in ``topic``.
        """
        plan = Plan(pattern, start=make_start(from_), where=make_where(where), lag=lag, prefetch=prefetch)
        return Topic(self, plan, None, is_pattern=True)

    def group(
        self,
        topic: str,
        name: str,
        *,
        from_: str | Start = "replay",
        where: Condition | Iterable[Condition] | None = None,
        prefetch: int = 0,
        ack: bool = True,
        ordered_by_key: bool = False,
        deadline: float = 30.0,
        deliveries: int = 0,
        dead_letters: str | None = None,
        retry_backoff: tuple[float, float] | None = None,
        missing: Missing = "create",
    ) -> GroupSubscription:
        """Returns a membership in a consumer group: each record of the topic goes to one of the group's members.

        >>> async for delivery in client.group("orders", "billing", deliveries=5, dead_letters="orders.dead"):
        ...     print(delivery.attempt, delivery.text)
        ...     await delivery.ack()
        ...     break
        1 order 1

        All members must have the same settings, or get ``group-mismatch``.

        Args:
            topic: the topic's name.
            name: the group's name.
            from_: the group's start, used for its first member.
            where: conditions; records that don't meet them count as acknowledged.
            prefetch: deliveries that are requested ahead of the loop.
            ack: whether each delivery is settled by ``ack()``, ``retry()`` or ``reject()``. If not, sending it acknowledges it.
            ordered_by_key: whether records with the same key are delivered one at a time, in order.
            deadline: seconds after which a delivery that isn't settled goes to another member; 0 for never.
            deliveries: how many times a record is delivered before it is given up; 0 for no limit.
            dead_letters: the topic for records that were given up; None skips them.
            retry_backoff: how long a retry waits in seconds: the first number after the first delivery, twice as long after
                each further one, at most the second number. None for not at all.
            missing: ``"create"`` the topic, or ``"fail"``.
        """
        group = Group(
            name,
            explicit=ack,
            ordered_by_key=ordered_by_key,
            deadline=deadline,
            deliveries=deliveries,
            dead_letters=dead_letters,
            retry_backoff=retry_backoff,
        )
        plan = Plan(topic, start=make_start(from_), where=make_where(where), missing=missing, prefetch=prefetch, group=group)
        return group_subscription(self, plan)

    # Publishing

    def producer(
        self,
        topic: str,
        *,
        acknowledge: Acknowledgement = "received",
        source: bool = False,
        settings: Settings | None = None,
        buffer_records: int = 65_536,
        buffer_bytes: int = 8 << 20,
        producer_id: int | None = None,
        first_sequence: int = 0,
    ) -> Producer:
        """Opens a publication on a topic, which is created if it doesn't exist.

        Args:
            topic: the topic's name.
            acknowledge: ``"received"``: in the topic's log; ``"durable"``: on disk; ``"none"``: if the connection is lost, so are
                records in flight.
            source: whether the broker reports to the producer if the topic is connected, see :meth:`Producer.wait_connected`.
            settings: the settings that the topic must have.
            buffer_records: the most records that wait for the broker's grant or acknowledgement.
            buffer_bytes: the most bytes of those.
            producer_id: the producer's number: the same in each run of the program, unique on the topic, and not 0. The topic has each
                of its records once: a restarted program publishes the same records in the same order, and those that the topic already
                has are acknowledged and not published again. The topic stores the number for 24 hours by default. None for a random
                number, which suffices for lost connections.
            first_sequence: the sequence of the first record that will be published, for a program that begins with a later record.

        Raises:
            ClientClosedError: the client is closed.
            ValueError: a number is out of range.
        """
        return self.open_producer(
            topic,
            acknowledge=acknowledge,
            role="source" if source else "producer",
            settings=settings,
            buffer_records=buffer_records,
            buffer_bytes=buffer_bytes,
            producer_id=producer_id,
            first_sequence=first_sequence,
        )

    def open_producer(
        self,
        topic: str,
        *,
        acknowledge: Acknowledgement = "received",
        role: str = "producer",
        settings: Settings | None = None,
        buffer_records: int = 65_536,
        buffer_bytes: int = 8 << 20,
        producer_id: int | None = None,
        first_sequence: int = 0,
    ) -> Producer:
        """Like :meth:`producer`, with the role by name: ``producer``, ``source`` or ``requester``."""
        if acknowledge not in _ACKNOWLEDGEMENTS:
            raise ValueError(f"acknowledge={acknowledge!r} isn't one of none, received, durable")
        if producer_id is not None and not 0 < producer_id < 1 << 64:
            raise ValueError("producer_id= takes a number from 1 to 2**64 - 1")
        if first_sequence and producer_id is None:
            raise ValueError("first_sequence= needs a producer_id=")
        if not 0 <= first_sequence <= 1 << 62:
            raise ValueError("first_sequence= takes a number from 0 to 2**62")
        publication = Publication(
            topic,
            _ACKNOWLEDGEMENTS[acknowledge],
            _ROLES[role],
            encode_settings(settings),
            max(buffer_records, 1),
            max(buffer_bytes, 1),
            producer_id,
            first_sequence,
        )
        producer = Producer(self, publication)
        self._producers.add(producer)
        self.open_attachment(publication)
        return producer

    def forget_producer(self, producer: Producer) -> None:
        """Called when a producer has closed."""
        self._producers.discard(producer)

    # Requests and replies

    async def request(
        self,
        topic: str,
        payload: Payload = b"",
        *,
        key: Payload | None = None,
        headers: HeadersLike | None = None,
        timeout: float = 5.0,
    ) -> Record:
        """Publishes a request and returns the reply to it.

        >>> async def quote(request):
        ...     return b"42 for " + request.payload
        >>> async with client.respond("prices", quote):
        ...     print((await client.request("prices", b"ACME", timeout=2)).text)
        42 for ACME

        Raises:
            NoRespondersError: the topic has no subscriber; the request wasn't published.
            RequestTimeoutError: no reply came within ``timeout`` seconds.
            ReplyError: the responder couldn't answer.
        """
        self._check()
        return await self._requester.request(topic, payload, key, headers, timeout)

    def respond(self, topic: str, handler: Handler, *, concurrent: int = 64) -> Responder:
        """Answers the requests that are published to a topic after this call.

        ``handler`` gets the request and returns the reply's payload, or a pair of payload and headers. At most ``concurrent``
        requests are handled at a time, which is also the demand. When it raises, the requester gets :class:`ReplyError`: with the
        message of a ``ReplyError`` that the handler raised, otherwise with the type of the exception.
        """
        self._check()
        return Responder(self, topic, handler, max(concurrent, 1))

    # Topics

    async def create_topic(self, name: str, **settings: Unpack[Settings]) -> TopicInfo:
        """Creates a topic with these settings (see :class:`Settings`), or returns the existing topic if its settings are the same.

        >>> print((await client.create_topic("prices", compact=True, replay_age=3600)).settings["compact"])
        True

        Raises:
            SluiceError: ``topic-exists`` if its settings differ, ``invalid-topic``, ``invalid-setting``.
        """
        pairs = _setting_fields(settings)
        values = await self._ask("TOPIC_CREATE", frames.TOPIC_INFO, topic=name, settings=pairs)
        return topic_info(values)

    async def set_topic(self, name: str, **settings: Unpack[Settings]) -> TopicInfo:
        """Changes settings of a topic. All others stay."""
        values = await self._ask("TOPIC_SET", frames.TOPIC_INFO, topic=name, settings=_setting_fields(settings))
        return topic_info(values)

    async def topic_info(self, name: str) -> TopicInfo:
        """Returns a topic's state and settings.

        Raises:
            SluiceError: ``unknown-topic``.
        """
        return topic_info(await self._ask("TOPIC_SHOW", frames.TOPIC_INFO, is_reading=True, topic=name))

    async def topics(self) -> AsyncIterator[TopicSummary]:
        """Yields all topics that the client is allowed to see, in the byte order of their names."""
        async for values in self._pages("TOPIC_LIST", frames.TOPICS, "topics", "topic", ""):
            yield topic_summary(values)

    async def trim_topic(self, name: str, *, before: int | None = None, keep_last: int | None = None) -> TopicInfo:
        """Removes the oldest records: those before an offset, or all but the newest ``keep_last``."""
        if (before is None) == (keep_last is None):
            raise ValueError("trim_topic() takes either before= or keep_last=")
        limit, value = (0, before) if before is not None else (1, keep_last)
        values = await self._ask("TOPIC_TRIM", frames.TOPIC_INFO, topic=name, limit=limit, value=value)
        return topic_info(values)

    async def purge_topic(self, name: str) -> TopicInfo:
        """Removes all records of a topic. Offsets continue."""
        return await self.trim_topic(name, keep_last=0)

    async def delete_topic(self, name: str) -> None:
        """Deletes a topic. Its subscriptions and publications end with ``topic-deleted``."""
        await self._ask("TOPIC_DELETE", frames.DONE, topic=name)

    async def connect_topic(self, name: str) -> None:
        """Connects a topic whose setting ``connect`` is manual: its producers get grants."""
        await self._ask("TOPIC_CONNECT", frames.DONE, topic=name)

    async def disconnect_topic(self, name: str) -> None:
        """Disconnects a topic whose setting ``connect`` is manual."""
        await self._ask("TOPIC_DISCONNECT", frames.DONE, topic=name)

    async def complete_topic(self, name: str) -> None:
        """Ends a topic for all its subscribers, without publishing to it."""
        async with self.producer(name) as producer:
            await producer.complete()

    # Cursors and groups

    async def consumers(self, topic: str) -> AsyncIterator[ConsumerInfo]:
        """Yields the durable cursors and groups of a topic, in the byte order of their names."""
        async for values in self._pages("CURSOR_LIST", frames.CURSORS, "cursors", "name", "", topic=topic):
            yield consumer_info(values)

    async def move_cursor(self, topic: str, name: str, to: str | Start) -> None:
        """Moves a durable cursor or a group, and creates a cursor if needed. Subscriptions that use it end with ``cursor-moved``."""
        start = make_start(to)
        await self._ask("CURSOR_MOVE", frames.DONE, topic=topic, name=name, start=start.kind, start_value=start.value)

    async def delete_cursor(self, topic: str, name: str) -> None:
        """Deletes a durable cursor or a group.

        Raises:
            SluiceError: ``unknown-cursor``.
        """
        await self._ask("CURSOR_DELETE", frames.DONE, topic=topic, name=name)

    # The broker

    async def broker_info(self) -> BrokerInfo:
        """Returns the broker's state. Needs the permission to administer every topic."""
        return broker_info(await self._ask("BROKER_SHOW", frames.BROKER_INFO, is_reading=True))

    async def connections(self) -> AsyncIterator[ConnectionInfo]:
        """Yields the broker's connections in the order of their numbers."""
        async for values in self._pages("CONNECTION_LIST", frames.CONNECTIONS, "connections", "connection", 0):
            yield connection_info(values)

    async def close_connection(self, id: int) -> None:
        """Closes another client's connection, which gets ``closed-by-operator``."""
        await self._ask("CONNECTION_CLOSE", frames.DONE, connection=id)

    @property
    def identity(self) -> str:
        """The name under which the broker has authenticated the client; empty without authentication or connection."""
        welcome = self._link.welcome
        return welcome.identity if welcome else ""

    @property
    def is_connected(self) -> bool:
        """Whether the client is connected."""
        return self._link.is_connected

    @property
    def close_timeout(self) -> float:
        return self._options.close_timeout

    # Ending

    async def close(self, timeout: float | None = None) -> None:
        """Flushes the producers within ``timeout`` seconds (``close_timeout`` by default), then closes the connection.

        Raises:
            TimeoutError: records weren't acknowledged in time. They are dropped.
            SluiceError: the error by which records weren't published.
        """
        if self._is_closed:
            return
        self._is_closed = True
        self._requester.close()
        try:
            pending = [producer for producer in self._producers if producer.backlog]
            if pending and self._link.closed is None:
                async with asyncio.timeout(self._options.close_timeout if timeout is None else timeout):
                    await asyncio.gather(*(producer.flush() for producer in pending))
        finally:
            for attachment in self._link.attachments:
                if isinstance(attachment, Feed):
                    attachment.cancel()
            self._link.shut(closed_error())

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None:
            await self.close()
        else:
            self._is_closed = True
            self._requester.close()
            self._link.shut(closed_error())

    # Used by other modules of the client

    async def open(self) -> Client:
        """Makes the first connection."""
        try:
            await self._link.connect()
        except BaseException:
            self._is_closed = True
            self._link.shut(closed_error())
            raise
        return self

    def open_attachment(self, attachment: Attachment) -> None:
        """Opens a stream, now or on the next connection."""
        self._check()
        self._link.add(attachment)

    def cancel_from_anywhere(self, attachment: Attachment) -> None:
        """Cancels a stream from any thread, as the garbage collector may."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(attachment.cancel)

    def _check(self) -> None:
        if self._is_closed:
            raise closed_error()

    async def _ask(self, name: str, answer: int, /, *, is_reading: bool = False, **values: Any) -> dict[str, Any]:
        topic = values.get("topic")
        request = Request(name, {key.replace("_", " "): value for key, value in values.items()}, answer, topic, is_reading=is_reading)
        self.open_attachment(request)
        try:
            return await request.result
        finally:
            request.cancel()

    async def _pages(
        self, name: str, answer: int, items: str, key: str, after: str | int, /, **values: Any
    ) -> AsyncIterator[dict[str, Any]]:
        """Yields the elements of a list, requested page by page. Each page begins after the ``key`` of the last element."""
        more = 1
        while more:
            page = await self._ask(name, answer, is_reading=True, after=after, limit=_PAGE, **values)
            elements = page[items]
            for element in elements:
                yield element
            if not elements:
                return
            more, after = page["more"], elements[-1][key]


def _setting_fields(settings: Settings) -> list[dict[str, int]]:
    return [{"key": key, "value": value} for key, value in encode_settings(settings)]


class _Connecting:
    """The result of :func:`connect`: awaitable, and an asynchronous context manager."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._client: Client | None = None

    def __await__(self) -> Generator[Any, None, Client]:
        return self._open().__await__()

    async def _open(self) -> Client:
        self._client = Client(self._options)
        return await self._client.open()

    async def __aenter__(self) -> Client:
        return await self._open()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._client is not None:
            await self._client.__aexit__(kind, error, trace)


def connect(
    servers: str | Iterable[str] = "127.0.0.1",
    *,
    name: str = "",
    user: str | None = None,
    password: str | None = None,
    token: TokenSource | None = None,
    tls: bool | ssl.SSLContext = False,
    ca_file: str | None = None,
    certificate: str | None = None,
    certificate_key: str | None = None,
    server_hostname: str | None = None,
    allow_plaintext_credentials: bool = False,
    reconnect: ReconnectPolicy | Literal["default"] | None = "default",
    connect_timeout: float = 10.0,
    keepalive: float = 0.0,
    direct: bool = True,
    close_timeout: float = 5.0,
) -> _Connecting:
    """Connects to a broker, or to any node of a cluster.

    >>> async with sluice.connect("127.0.0.1") as client:
    ...     print((await client.topic_info("orders")).records)
    1

    Args:
        servers: one or several addresses, ``HOST``, ``HOST:PORT`` or ``[IPv6]:PORT``; the port is 7420 by default. They are tried
            in turn.
        name: the name that operators of the broker see.
        user, password: credentials of a user.
        token: a token, or a function (plain or asynchronous) that returns one. It is called for each connection, and before a
            token expires.
        tls: whether to use TLS with the system's authorities, or a context of your own. ``ca_file`` and ``certificate`` imply it.
        ca_file: certificates of the authorities to trust, in PEM.
        certificate, certificate_key: the client's own certificate and key, in PEM.
        server_hostname: the name in the broker's certificate, if it isn't the address.
        allow_plaintext_credentials: whether passwords and tokens are sent without TLS to other machines.
        reconnect: the policy after a lost connection; None ends the client then.
        connect_timeout: seconds for one attempt, handshake included.
        keepalive: seconds of silence after which either side closes the connection; 0 lets the broker choose.
        direct: whether to connect to the node that serves a topic; if not, the client's node relays it.
        close_timeout: seconds that closing waits for acknowledgements.

    Raises:
        ValueError: an argument is out of range.
        ConnectionLostError, AuthenticationError, ProtocolError: from ``await`` or ``async with``.
    """
    addresses = [servers] if isinstance(servers, str) else list(servers)
    if not addresses:
        raise ValueError("connect() takes at least one server")
    if token is not None and user is not None:
        raise ValueError("connect() takes either user= and password=, or token=")
    options = Options(
        servers=tuple(parse_server(address) for address in addresses),
        name=name,
        user=user,
        password=password,
        token=token,
        tls=tls_context(tls, ca_file, certificate, certificate_key),
        server_hostname=server_hostname,
        allow_plaintext_credentials=allow_plaintext_credentials,
        reconnect=ReconnectPolicy() if reconnect == "default" else reconnect,
        connect_timeout=connect_timeout,
        keepalive=keepalive,
        direct=direct,
        close_timeout=close_timeout,
    )
    return _Connecting(options)
