"""Drives the client for Python: commands as JSON lines on standard input, answers and events on standard output."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python/src"))

import sluice

_DURATIONS = {"replay-age", "sync", "when-producer-lost"}
_CONDITIONS: dict[str, Callable[..., sluice.Condition]] = {
    "hasKey": sluice.has_key,
    "key": sluice.key,
    "keyPrefix": sluice.key_prefix,
    "hasHeader": sluice.has_header,
    "header": sluice.header,
    "headerPrefix": sluice.header_prefix,
}


_STARTS: dict[str, Callable[..., sluice.Start]] = {"last": sluice.last, "offset": sluice.offset, "since": sluice.since}


def write(**values: Any) -> None:
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def failure(error: BaseException) -> dict[str, Any]:
    if isinstance(error, sluice.SluiceError):
        return {"code": int(error.code), "retry": error.retry, "message": error.message}
    is_known = isinstance(error, (TimeoutError, ValueError))
    return {"code": 0, "retry": False, "message": f"{type(error).__name__}: {error}", "internal": not is_known}


def settings(values: dict[str, Any] | None) -> dict[str, Any]:
    return {
        name.replace("-", "_"): value / 1000 if name in _DURATIONS and not isinstance(value, str) else value
        for name, value in (values or {}).items()
    }


def start(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    kind, number = value
    return _STARTS[kind](number)


def reading(command: dict[str, Any]) -> dict[str, Any]:
    """The options that all subscriptions have in common."""
    options: dict[str, Any] = {"prefetch": command.get("prefetch", 0)}
    if "from" in command:
        options["from_"] = start(command["from"])
    if "where" in command:
        options["where"] = [_CONDITIONS[kind](*values) for kind, *values in command["where"]]
    return options


class Reader:
    """A subscription that is iterated as far as records are requested."""

    def __init__(self, name: str, subscription: Any) -> None:
        self._name = name
        self.subscription = subscription
        self._wanted = 0
        self._more = asyncio.Event()
        self.taken: dict[tuple[int, int], Any] = {}
        aiter(subscription)
        self._task = asyncio.get_running_loop().create_task(self._run())

    def request(self, count: int) -> None:
        self._wanted += count
        self._more.set()

    def cancel(self) -> None:
        self._task.cancel()
        self.subscription.cancel()

    async def _run(self) -> None:
        try:
            while True:
                while self._wanted == 0:
                    self._more.clear()
                    await self._more.wait()
                self._report(await anext(self.subscription))
        except StopAsyncIteration:
            write(on=self._name, event="completed")
        except sluice.TopicFailed as error:
            write(on=self._name, event="failed", code=int(error.code), message=error.message)
        except Exception as error:
            write(on=self._name, event="error", **failure(error))

    def _report(self, event: Any) -> None:
        match event:
            case sluice.Record():
                self._wanted -= 1
                attempt = getattr(event, "attempt", 0)
                self.taken[event.offset, attempt] = event
                write(
                    on=self._name, event="record", topic=event.topic, offset=event.offset, time=event.time, attempt=attempt,
                    payload=encoded(event.payload), key=None if event.key is None else encoded(event.key),
                    headers=[[name, encoded(value)] for name, value in event.headers],
                )  # fmt: skip
            case sluice.Live():
                write(on=self._name, event="live", topic=event.topic, next=event.next_offset)
            case sluice.Lag():
                write(on=self._name, event="lag", topic=event.topic, missed=event.missed, next=event.next_offset)
            case sluice.Restarted():
                write(on=self._name, event="restarted", topic=event.topic)
            case sluice.Rewound():
                write(on=self._name, event="rewound", topic=event.topic, next=event.next_offset)
            case sluice.Matched():
                write(on=self._name, event="matched", topic=event.topic)
            case sluice.Unmatched():
                write(on=self._name, event="unmatched", topic=event.topic)
            case sluice.Producers():
                write(on=self._name, event="producers", count=event.count)


class Driver:
    def __init__(self) -> None:
        self._clients: dict[str, sluice.Client] = {}
        self._open: dict[str, Any] = {}

    async def handle(self, command: dict[str, Any]) -> None:
        name = command["do"]
        number = command["id"]
        try:
            answer = await getattr(self, f"do_{name}")(command)
            write(id=number, **(answer or {}))
        except Exception as error:
            write(id=number, error=failure(error))

    async def do_connect(self, command: dict[str, Any]) -> None:
        options: dict[str, Any] = {name: command[name] for name in ("user", "password", "direct") if name in command}
        if "tokens" in command:
            left = list(command["tokens"])
            options["token"] = lambda: left.pop(0) if len(left) > 1 else left[0]
        for name, option in (("keepalive", "keepalive"), ("connectTimeout", "connect_timeout"), ("closeTimeout", "close_timeout")):
            if name in command:
                options[option] = command[name] / 1000
        policy = command.get("reconnect", {})
        options["reconnect"] = (
            None
            if policy is False
            else sluice.ReconnectPolicy(
                initial_delay=policy.get("initial", 20) / 1000,
                maximum_delay=policy.get("maximum", 200) / 1000,
                give_up_after=policy["giveUpAfter"] / 1000 if "giveUpAfter" in policy else None,
            )
        )
        self._clients[command["client"]] = await sluice.connect(command["servers"], **options)

    async def do_close(self, command: dict[str, Any]) -> None:
        await self._clients.pop(command["client"]).close()

    async def do_reset(self, command: dict[str, Any]) -> None:
        opened, self._open = self._open, {}
        clients, self._clients = self._clients, {}
        for thing in opened.values():
            if isinstance(thing, (Reader, sluice.Responder)):
                thing.cancel()
        for client in clients.values():
            with contextlib.suppress(Exception):
                await client.close(timeout=0.05)

    async def do_subscribe(self, command: dict[str, Any]) -> None:
        options = reading(command) | {name: command[name] for name in ("lag", "cursor", "missing") if name in command}
        if "settings" in command:
            options["settings"] = settings(command["settings"])
        if "producers" in command:
            options["watch_producers"] = command["producers"]
        topic = self._clients[command["client"]].topic(command["topic"], **options)
        blind = command.get("events") is False
        self._open[command["on"]] = Reader(command["on"], topic.subscribe() if blind else topic.events())

    async def do_pattern(self, command: dict[str, Any]) -> None:
        options = reading(command) | {name: command[name] for name in ("lag",) if name in command}
        pattern = self._clients[command["client"]].pattern(command["topic"], **options)
        self._open[command["on"]] = Reader(command["on"], pattern.events())

    async def do_group(self, command: dict[str, Any]) -> None:
        options = reading(command)
        options |= {name: command[name] for name in ("ack", "deliveries", "missing") if name in command}
        if "deadline" in command:
            options["deadline"] = command["deadline"] / 1000
        if "deadLetters" in command:
            options["dead_letters"] = command["deadLetters"]
        if "retryBackoff" in command:
            first, longest = command["retryBackoff"]
            options["retry_backoff"] = (first / 1000, longest / 1000)
        if "ordered" in command:
            options["ordered_by_key"] = command["ordered"]
        group = self._clients[command["client"]].group(command["topic"], command["group"], **options)
        self._open[command["on"]] = Reader(command["on"], group)

    async def do_request(self, command: dict[str, Any]) -> None:
        self._open[command["on"]].request(command["n"])

    async def do_settle(self, command: dict[str, Any]) -> None:
        delivery = self._open[command["on"]].taken[command["offset"], command["attempt"]]
        delay = {"after": command["after"] / 1000} if "after" in command else {}
        await getattr(delivery, command["verdict"])(**delay)

    async def do_commit(self, command: dict[str, Any]) -> None:
        reader = self._open[command["on"]]
        reader.subscription.commit(reader.taken[command["offset"], 0])

    async def do_cancel(self, command: dict[str, Any]) -> None:
        thing = self._open.pop(command["on"])
        if isinstance(thing, sluice.Producer):
            await thing.close()
        else:
            thing.cancel()

    async def do_produce(self, command: dict[str, Any]) -> None:
        options: dict[str, Any] = {name: command[name] for name in ("acknowledge", "source") if name in command}
        if "settings" in command:
            options["settings"] = settings(command["settings"])
        if "buffer" in command:
            options["buffer_records"] = command["buffer"]
        self._open[command["on"]] = self._clients[command["client"]].producer(command["topic"], **options)

    async def do_publish(self, command: dict[str, Any]) -> dict[str, Any]:
        producer = self._open[command["on"]]
        records = []
        for record in command["records"]:
            key = base64.b64decode(record["key"]) if "key" in record else None
            headers = [(name, base64.b64decode(value)) for name, value in record.get("headers", [])]
            records.append((base64.b64decode(record["payload"]), key, headers))
        if command["wait"]:
            calls = (producer.publish(payload, key=key, headers=headers) for payload, key, headers in records)
            return {"offsets": await asyncio.gather(*calls)}
        for payload, key, headers in records:
            await producer.send(payload, key=key, headers=headers)
        return {}

    async def do_flush(self, command: dict[str, Any]) -> None:
        await self._open[command["on"]].flush()

    async def do_complete(self, command: dict[str, Any]) -> None:
        await self._open[command["on"]].complete()

    async def do_fail(self, command: dict[str, Any]) -> None:
        await self._open[command["on"]].fail(command["code"], command["message"])

    async def do_connected(self, command: dict[str, Any]) -> None:
        await self._open[command["on"]].wait_connected()

    async def do_call(self, command: dict[str, Any]) -> dict[str, Any]:
        timeout = command.get("timeout", 5_000) / 1000
        reply = await self._clients[command["client"]].request(command["topic"], base64.b64decode(command["payload"]), timeout=timeout)
        return {"payload": encoded(reply.payload)}

    async def do_respond(self, command: dict[str, Any]) -> None:
        kind = command["reply"]

        async def handler(request: sluice.Record) -> bytes:
            if kind == "error":
                raise sluice.ReplyError("out of stock")
            if kind == "never":
                await asyncio.sleep(60)
            return request.payload

        self._open[command["on"]] = self._clients[command["client"]].respond(command["topic"], handler)

    async def do_admin(self, command: dict[str, Any]) -> dict[str, Any]:
        client = self._clients[command["client"]]
        topic = command.get("topic", "")
        values = settings(command.get("settings"))
        match command["call"]:
            case "create":
                await client.create_topic(topic, **values)
            case "set":
                await client.set_topic(topic, **values)
            case "info":
                info = await client.topic_info(topic)
                return {"value": {"head": info.head, "floor": info.floor, "state": info.state, "subscriptions": info.subscriptions}}
            case "topics":
                return {"value": [found.name async for found in client.topics()]}
            case "trim":
                await client.trim_topic(topic, before=command.get("before"), keep_last=command.get("keepLast"))
            case "delete":
                await client.delete_topic(topic)
            case "connect":
                await client.connect_topic(topic)
            case "disconnect":
                await client.disconnect_topic(topic)
            case "consumers":
                return {"value": [{"name": found.name, "next": found.next_offset} async for found in client.consumers(topic)]}
            case "moveCursor":
                await client.move_cursor(topic, command["name"], start(command["to"]))
            case "deleteCursor":
                await client.delete_cursor(topic, command["name"])
            case "connections":
                return {"value": [found.id async for found in client.connections()]}
            case "closeConnection":
                await client.close_connection(command["connection"])
            case "identity":
                return {"value": client.identity}
            case call:
                raise ValueError(f"there is no call {call}")
        return {}


async def main() -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: write(event="fault", message=repr(context.get("exception") or context["message"])))
    reader = asyncio.StreamReader(limit=16 << 20)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    driver = Driver()
    tasks: set[asyncio.Task[None]] = set()
    write(event="ready", client="python", lacks=[])
    while line := await reader.readline():
        task = loop.create_task(driver.handle(json.loads(line)))
        tasks.add(task)
        task.add_done_callback(tasks.discard)


asyncio.run(main())
