"""Requests and replies over topics.

A request is a record with two headers: ``reply-to``, the topic for its reply, and ``correlation-id``. The reply is a record in that
topic with the same ``correlation-id``, and with ``reply-error`` if the request couldn't be answered.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from .errors import ReplyError, RequestTimeoutError, SluiceError
from .records import Headers, HeadersLike, Payload, Record, header_pairs

if TYPE_CHECKING:
    from .client import Client
    from .publishing import Producer
    from .subscriptions import Subscription

__all__ = ["Handler", "Responder"]

REPLY_TO: Final = "reply-to"
CORRELATION: Final = "correlation-id"
REPLY_ERROR: Final = "reply-error"
#: How many producers for requests and replies stay open.
_MOST_PRODUCERS: Final = 64

#: Answers a request: returns the reply's payload, or a pair of payload and headers.
Handler: TypeAlias = Callable[[Record], Awaitable["Payload | tuple[Payload, HeadersLike]"]]


class Producers:
    """The most recently used producers, by topic."""

    def __init__(self, client: Client, role: str) -> None:
        self._client = client
        self._role = role
        self._producers: dict[str, Producer] = {}

    def use(self, topic: str) -> Producer:
        producer = self._producers.pop(topic, None)
        if producer is None or producer._publication.error is not None:
            producer = self._client.open_producer(topic, role=self._role)
        self._producers[topic] = producer
        if len(self._producers) > _MOST_PRODUCERS:
            oldest = next(iter(self._producers))
            former = self._producers.pop(oldest)
            if former.backlog == 0:
                former._publication.cancel()
                self._client.forget_producer(former)
            else:
                self._producers[oldest] = former
        return producer


class Requester:
    """The requests of a client that wait for their replies, and the inbox in which those arrive."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._producers = Producers(client, "requester")
        self._waiting: dict[str, asyncio.Future[Record]] = {}
        self._inbox: str | None = None
        self._task: asyncio.Task[None] | None = None
        self._subscription: Subscription[Record] | None = None
        self._next = 0

    async def request(self, topic: str, payload: Payload, key: Payload | None, headers: HeadersLike | None, timeout: float) -> Record:
        inbox = self._open_inbox()
        self._next += 1
        correlation = f"{self._next:x}"
        future: asyncio.Future[Record] = asyncio.get_running_loop().create_future()
        self._waiting[correlation] = future
        pairs = [*header_pairs(headers or ()), (REPLY_TO, inbox), (CORRELATION, correlation)]
        try:
            async with asyncio.timeout(timeout):
                publishing = asyncio.ensure_future(self._producers.use(topic).publish(payload, key=key, headers=pairs))
                try:
                    waiting: set[asyncio.Future[Any]] = {publishing, future}
                    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                    if publishing.done():
                        publishing.result()
                    reply = await future
                finally:
                    publishing.cancel()
        except TimeoutError:
            raise RequestTimeoutError(
                f"no reply came within {timeout:g} s; does a subscriber of topic {topic} reply to requests?",
                topic=topic,
                retry=True,
            ) from None
        finally:
            del self._waiting[correlation]
        failure = reply.header(REPLY_ERROR)
        if failure is not None:
            text = failure.decode(errors="replace")
            raise ReplyError(f"the request couldn't be answered: {text}", topic=topic)
        return reply

    def _open_inbox(self) -> str:
        if self._inbox is None or self._task is None or self._task.done():
            self._inbox = f"_inbox.{secrets.token_hex(16)}"
            self._subscription = self._client.topic(self._inbox, from_="new", lag="skip", prefetch=256).subscribe()
            # The subscription is sent before any request.
            aiter(self._subscription)
            self._task = asyncio.get_running_loop().create_task(self._read(self._subscription))
        return self._inbox

    async def _read(self, subscription: Subscription[Record]) -> None:
        error: SluiceError = SluiceError("the inbox for replies was ended by another client")
        try:
            async for record in subscription:
                correlation = (record.header(CORRELATION) or b"").decode(errors="replace")
                future = self._waiting.get(correlation)
                if future is not None and not future.done():
                    future.set_result(record)
        except SluiceError as failure:
            error = failure
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(error)

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
        if self._subscription is not None:
            self._subscription.cancel()


class Responder:
    """Answers the requests that are published to a topic. Made by :meth:`Client.respond`; ends by :meth:`cancel`."""

    def __init__(self, client: Client, topic: str, handler: Handler, concurrent: int) -> None:
        self._subscription = client.topic(topic, from_="new", prefetch=concurrent).subscribe()
        self._producers = Producers(client, "producer")
        self._handler = handler
        self._free = asyncio.Semaphore(concurrent)
        self._tasks: set[asyncio.Task[None]] = set()
        aiter(self._subscription)
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        async for request in self._subscription:
            await self._free.acquire()
            task = asyncio.get_running_loop().create_task(self._answer(request))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _answer(self, request: Record) -> None:
        try:
            payload: Payload = b""
            headers: list[tuple[str, Payload]] = []
            try:
                answer = await self._handler(request)
                if isinstance(answer, tuple):
                    payload = answer[0]
                    headers = header_pairs(answer[1])
                else:
                    payload = answer
            except asyncio.CancelledError:
                raise
            except Exception as error:
                # A program can choose the text by raising ReplyError. Otherwise only the error's type is sent.
                text = error.message if isinstance(error, ReplyError) else type(error).__name__
                headers = [(REPLY_ERROR, " ".join(text.split())[:1000])]
            await self._reply(request, payload, headers)
        finally:
            self._free.release()

    async def _reply(self, request: Record, payload: Payload, headers: list[tuple[str, Payload]]) -> None:
        address = request.header(REPLY_TO)
        if address is None:
            return
        correlation: Headers = tuple(pair for pair in request.headers if pair[0] == CORRELATION)[:1]
        try:
            producer = self._producers.use(address.decode())
            await producer.send(payload, headers=[*headers, *correlation])
        except (SluiceError, UnicodeDecodeError):
            # The requester has left, or its address isn't a topic's name.
            return

    async def wait(self) -> None:
        """Waits until the topic has ended or the responder is cancelled, and raises the error that ended it."""
        await self._task

    def cancel(self) -> None:
        """Ends the subscription and the running handlers, without further replies."""
        self._subscription.cancel()
        self._task.cancel()
        for task in list(self._tasks):
            task.cancel()

    async def __aenter__(self) -> Responder:
        return self

    async def __aexit__(self, *error: object) -> None:
        self.cancel()
