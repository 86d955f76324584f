"""The course of a connection: keepalive, orderly stops, stream numbers."""

from __future__ import annotations

import asyncio
import time

from .. import wire
from ..brokers import Peer
from ..stage import Stage, check_error, scenario


@scenario()
async def pong(stage: Stage) -> None:
    """The client answers PING with its token, even while its program reads nothing."""

    async def script(peer: Peer) -> None:
        await peer.welcome()
        await peer.subscribed()
        for token in (1, 77, (1 << 64) - 1):
            peer.send("PING", 0, token=token)
            _, values = await peer.expect("PONG")
            assert values["token"] == token

    broker = await stage.scripted(script)
    await (await stage.client(broker.address)).subscribe(stage.topic)
    await broker.finished()


@scenario()
async def ping(stage: Stage) -> None:
    """After half of the keepalive time in silence the client sends PING, and the answers keep the connection open."""

    async def script(peer: Peer) -> None:
        await peer.welcome(keepalive=3_000)
        begin = time.monotonic()
        for _ in range(3):
            _, values = await peer.expect("PING", skipping=())
            assert time.monotonic() - begin < 3, "no PING came for longer than the keepalive time"
            begin = time.monotonic()
            peer.send("PONG", 0, token=values["token"])

    broker = await stage.scripted(script)
    await stage.client(broker.address)
    await broker.finished()


@scenario()
async def silent_broker(stage: Stage) -> None:
    """If the broker is silent for longer than the keepalive time, the client closes with keepalive-timeout and connects again."""

    async def silent(peer: Peer) -> None:
        await peer.welcome(keepalive=300)
        begin = time.monotonic()
        assert await peer.error() in (0, 7)
        assert 0.2 < time.monotonic() - begin < 8

    async def next_one(peer: Peer) -> None:
        await peer.welcome()
        stream, _ = await peer.subscribed()
        await peer.granted(stream, 1)
        peer.deliver(stream, 0, b"1")

    broker = await stage.scripted(silent, next_one)
    sub = await (await stage.client(broker.address)).subscribe(stage.topic)
    assert await sub.texts(1) == ["1"]
    await broker.finished()


@scenario()
async def silent_broker_without_reconnection(stage: Stage) -> None:
    """Without a reconnect policy a silent broker ends the client with keepalive-timeout."""

    async def silent(peer: Peer) -> None:
        await peer.welcome(keepalive=200)
        await peer.error()

    broker = await stage.scripted(silent)
    sub = await (await stage.client(broker.address, reconnect=False)).subscribe(stage.topic)
    await sub.request(1)
    check_error(await sub.error(), (7,), True)


@scenario()
async def slow_frame(stage: Stage) -> None:
    """Every byte shows that the broker is alive: a frame that takes longer than the keepalive time is received."""

    async def script(peer: Peer) -> None:
        await peer.welcome(keepalive=2_500)
        stream, _ = await peer.expect("SUBSCRIBE")
        peer.send("SUBSCRIBED", stream, epoch=7)
        await peer.granted(stream, 1)
        for byte in wire.encode("DELIVER", stream, first=0, count=1, batch=wire.batch(b"slow")):
            peer.raw(bytes([byte]))
            await peer.drain()
            await asyncio.sleep(0.08)

    broker = await stage.scripted(script)
    sub = await (await stage.client(broker.address, reconnect=False)).subscribe(stage.topic)
    assert await sub.texts(1) == ["slow"]


@scenario()
async def byte_by_byte(stage: Stage) -> None:
    """Only frames matter, not how the stream is split: a session that arrives byte by byte is the same."""

    async def script(peer: Peer) -> None:
        await peer.expect("HELLO")
        await dribble(peer, wire.encode("WELCOME", 0, **wire.WELCOME))
        stream, _ = await peer.expect("SUBSCRIBE")
        await dribble(peer, wire.encode("SUBSCRIBED", stream, epoch=7) + wire.encode("PING", 0) + wire.encode("LIVE", stream))
        await peer.granted(stream, 2)
        await dribble(peer, wire.encode("DELIVER", stream, first=0, count=2, batch=wire.batch(b"1", b"")))

    async def dribble(peer: Peer, data: bytes) -> None:
        for byte in data:
            peer.raw(bytes([byte]))
            await peer.drain()
            await asyncio.sleep(0)

    broker = await stage.scripted(script)
    assert await (await (await stage.client(broker.address)).subscribe(stage.topic, prefetch=2)).texts(2) == ["1", ""]


@scenario()
async def goaway(stage: Stage) -> None:
    """After GOAWAY open streams continue, and new ones wait for the next connection."""

    async def leaving(peer: Peer) -> None:
        await peer.welcome()
        stream, _ = await peer.subscribed()
        peer.send("GOAWAY", 0, code=8, message="the broker is stopping")
        await peer.granted(stream, 1)
        peer.deliver(stream, 0, b"1")
        is_released.set()
        await asyncio.sleep(0.2)
        await peer.cut()

    async def next_one(peer: Peer) -> None:
        await peer.welcome()
        opened = set()
        for _ in range(2):
            stream, frame = await peer.expect("SUBSCRIBE")
            opened.add(frame["topic"])
            peer.send("SUBSCRIBED", stream, epoch=7, next_offset=frame["start_value"], live_offset=frame["start_value"])
        assert opened == {stage.topic, "other"}

    is_released = asyncio.Event()
    broker = await stage.scripted(leaving, next_one)
    client = await stage.client(broker.address)
    sub = await client.subscribe(stage.topic)
    assert await sub.texts(1) == ["1"]
    await is_released.wait()
    other = await client.subscribe("other")
    await other.request(1)
    await broker.finished()


@scenario()
async def refused_by_a_stopping_broker(stage: Stage) -> None:
    """A stream that a stopping broker refuses is opened on the next connection."""

    async def stopping(peer: Peer) -> None:
        await peer.welcome()
        stream, _ = await peer.expect("SUBSCRIBE")
        peer.send("ERROR", stream, code=8, message="the broker is stopping")
        await peer.cut()

    async def next_one(peer: Peer) -> None:
        await peer.welcome()
        await peer.subscribed()

    broker = await stage.scripted(stopping, next_one)
    await (await stage.client(broker.address)).subscribe(stage.topic)
    await broker.finished()


@scenario(seconds=60)
async def orderly_stop(stage: Stage) -> None:
    """After an orderly stop of a real broker, a durable topic's records are published exactly once."""
    broker = await stage.broker()
    client = await stage.client(broker.address)
    producer = await client.producer(stage.topic, settings={"storage": "durable"})
    await producer.send(*(f"{i}" for i in range(50)))
    await broker.terminate()
    await producer.send(*(f"{i}" for i in range(50, 100)))
    await broker.start()
    await producer.flush(20)
    assert await (await client.subscribe(stage.topic, prefetch=50)).texts(100) == [f"{i}" for i in range(100)]


@scenario()
async def streams(stage: Stage) -> None:
    """A client uses no stream number above the broker's limit: further streams fail with limit-reached."""

    async def script(peer: Peer) -> None:
        await peer.welcome(streams=2)
        for _ in range(2):
            stream, _ = await peer.subscribed()
            assert 1 <= stream <= 2
        stream, _ = await peer.expect("CANCEL", skipping=("DEMAND",))
        peer.send("CANCELLED", stream)
        again, _ = await peer.expect("SUBSCRIBE")
        assert again == stream, "the number that is free again isn't used"

    broker = await stage.scripted(script)
    client = await stage.client(broker.address)
    first = await client.subscribe("a")
    await client.subscribe("b")
    third = await client.subscribe("c")
    await third.request(1)
    check_error(await third.error(), (113,), True)
    await first.cancel()
    await asyncio.sleep(0.1)
    await client.subscribe("d")
    await broker.finished()


@scenario()
async def number_of_a_cancelled_stream(stage: Stage) -> None:
    """The number of a cancelled stream is used again only after CANCELLED, and frames before that are ignored."""

    async def script(peer: Peer) -> None:
        await peer.welcome()
        stream, _ = await peer.subscribed()
        await peer.expect("CANCEL")
        peer.deliver(stream, 0, b"late")
        peer.send("COMPLETE", stream)
        other, _ = await peer.expect("SUBSCRIBE")
        assert other != stream, "the number is used before CANCELLED has come"
        peer.send("CANCELLED", stream)
        peer.send("SUBSCRIBED", other, epoch=7)

    broker = await stage.scripted(script)
    client = await stage.client(broker.address)
    sub = await client.subscribe(stage.topic)
    await sub.request(1)
    await asyncio.sleep(0.1)
    await sub.cancel()
    await client.subscribe(stage.topic)
    await broker.finished()
