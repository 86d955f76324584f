"""The driver's process, and handles for its subscriptions, producers and clients. README.md describes its line protocol."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from collections import deque
from pathlib import Path
from typing import Any

#: How long an answer or an event may take, in seconds.
PATIENCE = 10.0


class DriverError(Exception):
    """An error that the client reported."""

    def __init__(self, values: dict[str, Any]) -> None:
        super().__init__(f"code {values.get('code')}, retry {values.get('retry')}: {values.get('message')}")
        self.code: int = values.get("code", 0)
        self.retry: bool = values.get("retry", False)
        self.message: str = values.get("message", "")
        #: Whether the client failed by a mistake of its own, rather than with one of its errors.
        self.is_internal: bool = values.get("internal", False)


class Record:
    """A record, or a delivery of a group, in the form that the driver reported."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.topic: str = values["topic"]
        self.offset: int = values["offset"]
        self.time: int = values["time"]
        self.payload = base64.b64decode(values["payload"])
        key = values.get("key")
        self.key = None if key is None else base64.b64decode(key)
        self.headers = [(name, base64.b64decode(value)) for name, value in values.get("headers", [])]
        self.attempt: int = values.get("attempt", 0)

    @property
    def text(self) -> str:
        return self.payload.decode()


def encoded(value: bytes | str) -> str:
    return base64.b64encode(value.encode() if isinstance(value, str) else value).decode()


def message(record: Any) -> dict[str, Any]:
    """Returns a record for the driver: from a payload, or from a payload, a key and headers."""
    payload, key, headers = record if isinstance(record, tuple) else (record, None, ())
    values: dict[str, Any] = {"payload": encoded(payload)}
    if key is not None:
        values["key"] = encoded(key)
    if headers:
        values["headers"] = [[name, encoded(value)] for name, value in headers]
    return values


class Driver:
    """A driver in a process of its own. Commands are answered by their number; events belong to a subscription by its name."""

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._next = 0
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._subscriptions: dict[str, Subscription] = {}
        self._ended: BaseException | None = None
        #: Unhandled errors in the driver's program.
        self.faults: list[str] = []
        #: Scenarios, or beginnings of their names, that need a feature that the client lacks.
        self.lacks: tuple[str, ...] = ()

    async def start(self) -> None:
        """Starts the program and waits for its first line."""
        self._process = await asyncio.create_subprocess_exec(
            *self._command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=16 << 20
        )
        assert self._process.stdout is not None
        async with asyncio.timeout(60):
            line = await self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the driver {' '.join(self._command)} ended before its first line")
        ready = json.loads(line)
        if ready.get("event") != "ready":
            raise RuntimeError(f"the driver's first line isn't the event ready: {line!r}")
        self.lacks = tuple(ready.get("lacks", []))
        self._task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self._process.stdout is not None
        try:
            while line := await self._process.stdout.readline():
                values = json.loads(line)
                if values.get("event") == "fault":
                    self.faults.append(values["message"])
                elif "event" in values:
                    subscription = self._subscriptions.get(values.get("on", ""))
                    if subscription is not None:
                        subscription.put(values)
                else:
                    answer = self._answers.pop(values["id"], None)
                    if answer is not None and not answer.done():
                        answer.set_result(values)
            raise RuntimeError("the driver has ended")
        except Exception as error:
            self._ended = error
            for answer in self._answers.values():
                if not answer.done():
                    answer.set_exception(error)
            for subscription in self._subscriptions.values():
                subscription.put({"event": "driver-ended"})

    async def do(self, what: str, /, patience: float = PATIENCE, **arguments: Any) -> dict[str, Any]:
        """Sends a command, and returns its answer.

        Raises:
            DriverError: the client reports an error.
        """
        if self._ended is not None:
            raise self._ended
        self._next += 1
        line = {"id": self._next, "do": what} | {name: value for name, value in arguments.items() if value is not None}
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._answers[self._next] = answer
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(line).encode() + b"\n")
        await self._process.stdin.drain()
        try:
            async with asyncio.timeout(patience):
                values = await answer
        except TimeoutError:
            raise AssertionError(f"the driver did not answer {what} within {patience:g} s") from None
        if "error" in values:
            raise DriverError(values["error"])
        return values

    def watch(self, subscription: Subscription) -> None:
        self._subscriptions[subscription.name] = subscription

    def forget(self) -> None:
        """Forgets all subscriptions, and drops their late events."""
        self._subscriptions.clear()

    @property
    def memory(self) -> int:
        """The bytes of memory that the driver's process uses; 0 if the system doesn't report them."""
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{self._process.pid}/status").read_text().splitlines():
                if line.startswith("VmRSS:"):
                    return int(line.split()[1]) << 10
        return 0

    async def stop(self) -> None:
        """Closes the driver's standard input, and kills the driver if it doesn't end by itself."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            async with asyncio.timeout(2):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        self._task.cancel()


class Subscription:
    """A subscription, a pattern or a membership of a group in the driver."""

    def __init__(self, driver: Driver, name: str) -> None:
        self._driver = driver
        self.name = name
        self._events: deque[dict[str, Any]] = deque()
        self._arrived = asyncio.Event()
        #: The number of requested records, and of those that arrived.
        self.requested = 0
        self.received = 0
        #: Events other than records that `records` has skipped.
        self.passed: list[dict[str, Any]] = []

    def put(self, event: dict[str, Any]) -> None:
        if event["event"] == "record":
            self.received += 1
        self._events.append(event)
        self._arrived.set()

    async def request(self, count: int) -> None:
        """Requests ``count`` more records through the client."""
        self.requested += count
        await self._driver.do("request", on=self.name, n=count)

    async def event(self, patience: float = PATIENCE) -> dict[str, Any]:
        """Returns the next event, of any kind."""
        try:
            async with asyncio.timeout(patience):
                while not self._events:
                    self._arrived.clear()
                    await self._arrived.wait()
        except TimeoutError:
            raise AssertionError(
                f"no event came within {patience:g} s; {self.received} of {self.requested} requested records have come"
            ) from None
        assert self.received <= self.requested, f"the client reported {self.received} records, {self.requested} were requested"
        return self._events.popleft()

    async def expect(self, kind: str, patience: float = PATIENCE) -> dict[str, Any]:
        """Returns the next event of that kind, and skips live, matched and producers before it."""
        while True:
            event = await self.event(patience)
            if event["event"] == kind:
                return event
            assert event["event"] in ("live", "matched", "producers"), f"{shown(event)} came, not {kind}"
            self.passed.append(event)

    async def take(self, count: int, patience: float = PATIENCE) -> list[Record]:
        """Waits for ``count`` records that were requested."""
        return [Record(await self.expect("record", patience)) for _ in range(count)]

    async def records(self, count: int, patience: float = PATIENCE) -> list[Record]:
        """Requests ``count`` records, and waits for them."""
        await self.request(count)
        return await self.take(count, patience)

    async def texts(self, count: int) -> list[str]:
        return [record.text for record in await self.records(count)]

    async def error(self, patience: float = PATIENCE) -> DriverError:
        """Waits for the error that ends the subscription."""
        return DriverError(await self.expect("error", patience))

    async def silent(self, seconds: float = 0.2) -> None:
        """Checks that no record arrives for a time."""
        await asyncio.sleep(seconds)
        records = [event for event in self._events if event["event"] == "record"]
        assert not records, f"{len(records)} records came that weren't requested"

    async def cancel(self) -> None:
        await self._driver.do("cancel", on=self.name)

    async def commit(self, record: Record) -> None:
        await self._driver.do("commit", on=self.name, offset=record.offset)

    async def settle(self, delivery: Record, verdict: str, after: int | None = None) -> None:
        delay = {} if after is None else {"after": after}
        await self._driver.do("settle", on=self.name, offset=delivery.offset, attempt=delivery.attempt, verdict=verdict, **delay)


def shown(event: dict[str, Any]) -> str:
    return json.dumps(event)[:300]


class Producer:
    """A producer in the driver."""

    def __init__(self, driver: Driver, name: str) -> None:
        self._driver = driver
        self.name = name

    async def publish(self, *records: Any, patience: float = PATIENCE) -> list[int | None]:
        """Publishes records and waits for all acknowledgements. Returns the offsets that the client knows."""
        answer = await self._driver.do("publish", patience, on=self.name, records=[message(record) for record in records], wait=True)
        offsets: list[int | None] = answer.get("offsets", [])
        return offsets

    async def send(self, *records: Any, patience: float = PATIENCE) -> None:
        """Publishes records without waiting for acknowledgements; returns when the client has taken them."""
        await self._driver.do("publish", patience, on=self.name, records=[message(record) for record in records], wait=False)

    async def flush(self, patience: float = PATIENCE) -> None:
        await self._driver.do("flush", patience, on=self.name)

    async def complete(self) -> None:
        await self._driver.do("complete", on=self.name)

    async def fail(self, code: int, text: str) -> None:
        await self._driver.do("fail", on=self.name, code=code, message=text)

    async def cancel(self) -> None:
        await self._driver.do("cancel", on=self.name)

    async def connected(self) -> None:
        await self._driver.do("connected", on=self.name)


class Client:
    """A client in the driver."""

    def __init__(self, driver: Driver, name: str) -> None:
        self._driver = driver
        self.name = name
        self._opened = 0

    def _new(self, kind: str) -> str:
        self._opened += 1
        return f"{self.name}.{kind}{self._opened}"

    async def _open(self, what: str, arguments: dict[str, Any]) -> Subscription:
        subscription = Subscription(self._driver, self._new("s"))
        self._driver.watch(subscription)
        await self._driver.do(what, client=self.name, on=subscription.name, **arguments)
        return subscription

    async def subscribe(self, topic: str, **options: Any) -> Subscription:
        return await self._open("subscribe", {"topic": topic} | options)

    async def pattern(self, pattern: str, **options: Any) -> Subscription:
        return await self._open("pattern", {"topic": pattern} | options)

    async def group(self, topic: str, group: str, **options: Any) -> Subscription:
        return await self._open("group", {"topic": topic, "group": group} | options)

    async def producer(self, topic: str, **options: Any) -> Producer:
        name = self._new("p")
        await self._driver.do("produce", client=self.name, on=name, topic=topic, **options)
        return Producer(self._driver, name)

    async def call(self, topic: str, payload: str, **options: Any) -> str:
        """Makes a request and returns the reply."""
        answer = await self._driver.do("call", client=self.name, topic=topic, payload=encoded(payload), **options)
        return base64.b64decode(answer["payload"]).decode()

    async def respond(self, topic: str, reply: str) -> None:
        """Answers requests: ``echo`` with their payload, ``error`` with an error, ``never`` not at all."""
        await self._driver.do("respond", client=self.name, on=self._new("r"), topic=topic, reply=reply)

    async def admin(self, call: str, **arguments: Any) -> Any:
        """Makes a call about topics, cursors or the broker."""
        return (await self._driver.do("admin", client=self.name, call=call, **arguments)).get("value")

    async def close(self) -> None:
        await self._driver.do("close", client=self.name)
