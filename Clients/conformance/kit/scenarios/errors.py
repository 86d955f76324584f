"""Errors: each with the protocol's code, and whether a retry can help."""

from __future__ import annotations

from typing import Any

from ..brokers import Peer
from ..stage import Stage, check_error, each, fails, scenario

#: The codes that end a stream, and whether a client should retry according to the protocol's page.
STREAM = {code: code in (113, 122, 123, 125) for code in range(101, 129) if code not in (111, 126, 128)} | {111: False, 9_999: False}
#: The codes that end a connection.
CONNECTION = {code: code in (7, 8, 9, 10, 16, 17, 18, 19) for code in range(1, 20)} | {9_999: False}


@scenario(*each("code", *STREAM))
async def subscription(stage: Stage, code: int) -> None:
    """A subscription that the broker refuses ends with the broker's code and message, and reports whether a retry helps."""

    async def script(peer: Peer) -> None:
        await peer.welcome()
        stream, _ = await peer.expect("SUBSCRIBE")
        peer.send("ERROR", stream, code=code, message="because of the scenario")

    broker = await stage.scripted(script)
    sub = await (await stage.client(broker.address, reconnect=False)).subscribe(stage.topic)
    await sub.request(1)
    error = await sub.error()
    check_error(error, (code,), STREAM[code])
    assert "because of the scenario" in error.message
    await broker.finished()


@scenario(*each("code", *CONNECTION))
async def handshake(stage: Stage, code: int) -> None:
    """A client that the broker refuses reports the broker's code, and whether a retry helps."""

    async def script(peer: Peer) -> None:
        await peer.expect("HELLO")
        peer.send("ERROR", 0, code=code, message="because of the scenario")
        await peer.cut()

    broker = await stage.scripted(script)
    async with fails(code, CONNECTION[code]):
        await stage.client(broker.address)


@scenario(*each("code", 7, 8, 14, 15, 16, 17, 19))
async def connection(stage: Stage, code: int) -> None:
    """If the client doesn't reconnect, an error that ends an open connection ends its subscriptions with that code."""

    async def script(peer: Peer) -> None:
        await peer.welcome()
        await peer.subscribed()
        peer.send("ERROR", 0, code=code, message="because of the scenario")
        await peer.cut()

    broker = await stage.scripted(script)
    sub = await (await stage.client(broker.address, reconnect=False)).subscribe(stage.topic)
    await sub.request(1)
    check_error(await sub.error(), (code,), CONNECTION[code])


@scenario(
    {"name": "empty", "topic": ""},
    {"name": "empty-token", "topic": "a..b"},
    {"name": "wildcard", "topic": "a.*"},
    {"name": "space", "topic": "a b"},
)
async def invalid_topic(stage: Stage, topic: str) -> None:
    """A name that isn't valid is rejected with invalid-topic, for subscribers and producers."""
    client = await stage.client()
    sub = await client.subscribe(topic)
    await sub.request(1)
    check_error(await sub.error(), (101,), False)
    async with fails(101, retry=False):
        await (await client.producer(topic)).publish("1")


@scenario(
    {"name": "unknown-topic", "code": 102, "call": "info", "arguments": {}},
    {"name": "topic-exists", "code": 105, "call": "create", "arguments": {"settings": {"flow": "fastest"}}},
    {"name": "invalid-setting", "code": 112, "call": "set", "arguments": {"settings": {"compact": True}}},
    {"name": "unknown-connection", "code": 127, "call": "closeConnection", "arguments": {"connection": 4_000_000_000}},
    {"name": "trim-beyond", "code": 112, "call": "trim", "arguments": {"before": 1_000}},
)
async def request(stage: Stage, code: int, call: str, arguments: dict[str, Any]) -> None:
    """A request that fails reports the broker's code."""
    client = await stage.client()
    if code != 102:
        await client.admin("create", topic=stage.topic, settings={"flow": "lossless"})
    async with fails(code, retry=False):
        await client.admin(call, topic=stage.topic, **arguments)


@scenario()
async def key_required(stage: Stage) -> None:
    """A record without a key ends a publication to a compact topic with key-required."""
    client = await stage.client()
    await client.admin("create", topic=stage.topic, settings={"compact": True})
    async with fails(119, retry=False):
        await (await client.producer(stage.topic)).publish("1")


@scenario()
async def topic_deleted(stage: Stage) -> None:
    """A topic that is deleted ends subscriptions and publications with topic-deleted."""
    client = await stage.client()
    producer = await client.producer(stage.topic)
    await producer.publish("1")
    sub = await client.subscribe(stage.topic)
    await sub.records(1)
    await sub.request(1)
    await client.admin("delete", topic=stage.topic)
    check_error(await sub.error(), (104,), False)
    async with fails(104, retry=False):
        await producer.publish("2")


@scenario()
async def others_live_on(stage: Stage) -> None:
    """An error of one stream ends that stream only."""
    client = await stage.client()
    producer = await client.producer(stage.topic)
    good = await client.subscribe(stage.topic)
    bad = await client.subscribe("a..b")
    await bad.request(1)
    assert (await bad.error()).code == 101
    await producer.publish("1")
    assert await good.texts(1) == ["1"]


@scenario()
async def reopened(stage: Stage) -> None:
    """An open subscription that ends with a transient error is opened again at its position."""

    async def script(peer: Peer) -> None:
        await peer.welcome()
        stream, frame = await peer.subscribed()
        await peer.granted(stream, 1)
        peer.deliver(stream, 0, b"0")
        peer.send("ERROR", stream, code=113, message="there is no memory left")
        stream, frame = await peer.expect("SUBSCRIBE")
        assert (frame["start"], frame["start_value"], frame["epoch"]) == (4, 1, 7)
        peer.send("SUBSCRIBED", stream, epoch=7, next_offset=1, live_offset=1)
        await peer.granted(stream, 1)
        peer.deliver(stream, 1, b"1")

    broker = await stage.scripted(script)
    sub = await (await stage.client(broker.address)).subscribe(stage.topic)
    assert await sub.texts(2) == ["0", "1"]
    await broker.finished()


@scenario()
async def unreachable(stage: Stage) -> None:
    """If a server can't be reached, the error reports that a retry may help."""
    broker = await stage.scripted()
    await broker.close()
    async with fails(0, retry=True):
        await stage.client(broker.address)
