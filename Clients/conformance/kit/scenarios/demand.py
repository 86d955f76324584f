"""Demand: a client requests as many records as its program does, and never gets more."""

from __future__ import annotations

import asyncio

from ..brokers import Peer
from ..stage import Stage, each, eventually, scenario


@scenario(*({"prefetch": prefetch, "number": number} for prefetch in (0, 1, 13) for number in (1, 2)), seconds=40)
async def random_grants(stage: Stage, prefetch: int, number: int) -> None:
    """Under random grants every record arrives once, and never without a request."""
    rng = stage.random
    client = await stage.client()
    producer = await client.producer(stage.topic)
    total = 400
    sub = await client.subscribe(stage.topic, prefetch=prefetch)

    async def publish() -> None:
        sent = 0
        while sent < total:
            size = min(rng.randint(1, 60), total - sent)
            await producer.send(*(f"{i}" for i in range(sent, sent + size)))
            sent += size
            await asyncio.sleep(rng.uniform(0, 0.01))

    publishing = asyncio.create_task(publish())
    found: list[str] = []
    while len(found) < total:
        size = min(rng.choice((1, 1, 2, 5, 17, 50)), total - len(found))
        found += await sub.texts(size)
        if rng.random() < 0.1:
            await sub.silent(0.02)
    await publishing
    assert found == [f"{i}" for i in range(total)]


@scenario(*each("prefetch", 0, 1, 7, 100))
async def grants(stage: Stage, prefetch: int) -> None:
    """The client never grants more than its program's requests plus its prefetch."""
    seen: list[int] = []

    async def script(peer: Peer) -> None:
        await peer.welcome()
        stream, _ = await peer.subscribed()
        delivered = 0
        while delivered < 30:
            most = await peer.granted(stream, delivered + 1)
            seen.append(most)
            peer.deliver(stream, delivered, *(b"x" for _ in range(min(most, 30) - delivered)))
            delivered = min(most, 30)

    broker = await stage.scripted(script)
    sub = await (await stage.client(broker.address)).subscribe(stage.topic, prefetch=prefetch)
    for count in (1, 3, 1, 20, 5):
        await sub.records(count)
        assert seen[-1] <= sub.requested + prefetch, f"{seen[-1]} records are granted, {sub.requested} were requested"
    await broker.finished()


@scenario()
async def none_requested(stage: Stage) -> None:
    """Nothing is delivered to a subscription that requests nothing."""
    client = await stage.client()
    sub = await client.subscribe(stage.topic)
    await (await client.producer(stage.topic)).publish("1", "2")
    await sub.silent(0.3)
    assert await sub.texts(1) == ["1"]
    await sub.silent()


@scenario(*each("granted", 3, 10))
async def left_after_a_cut(stage: Stage, granted: int) -> None:
    """After a lost connection the client grants the remaining demand, counted from zero."""

    async def first(peer: Peer) -> None:
        await peer.welcome()
        stream, _ = await peer.subscribed(epoch=9)
        await peer.granted(stream, 1)
        peer.deliver(stream, 0, b"0")
        await peer.cut()

    async def second(peer: Peer) -> None:
        await peer.welcome()
        stream, frame = await peer.subscribed(epoch=9, next_offset=1)
        assert (frame["start"], frame["start_value"], frame["epoch"]) == (4, 1, 9), frame
        given = 0
        while given < granted - 1:
            most = await peer.granted(stream, given + 1)
            assert most <= granted - 1, f"{most} records are granted, {granted - 1} are left"
            peer.deliver(stream, 1 + given, *(f"{1 + given + i}".encode() for i in range(most - given)))
            given = most

    broker = await stage.scripted(first, second)
    sub = await (await stage.client(broker.address)).subscribe(stage.topic)
    assert await sub.texts(granted) == [f"{i}" for i in range(granted)]
    await broker.finished()


@scenario()
async def lossless(stage: Stage) -> None:
    """On a lossless topic a producer gets ahead of its subscriber by the buffers only, and continues with its demand."""
    client = await stage.client()
    await client.admin("create", topic=stage.topic, settings={"flow": "lossless", "buffer-records": 5})
    sub = await client.subscribe(stage.topic)
    await sub.request(1)
    producer = await client.producer(stage.topic, buffer=10)
    sending = asyncio.create_task(producer.send(*(f"{i}" for i in range(100)), patience=20))
    await sub.take(1)
    await asyncio.sleep(0.3)
    head = (await client.admin("info", topic=stage.topic))["head"]
    assert head <= 7 and not sending.done(), f"{head} records are in the topic"
    assert await sub.texts(99) == [f"{i}" for i in range(1, 100)]
    await sending
    await producer.flush()


@scenario()
async def without_subscribers(stage: Stage) -> None:
    """A producer that may not publish before there is a subscriber waits for one, then publishes."""
    client = await stage.client()
    await client.admin("create", topic=stage.topic, settings={"flow": "lossless", "without-subscribers": "hold"})
    producer = await client.producer(stage.topic)
    await producer.send("1", "2")
    await asyncio.sleep(0.2)
    assert (await client.admin("info", topic=stage.topic))["head"] == 0
    assert await (await client.subscribe(stage.topic)).texts(2) == ["1", "2"]


@scenario()
async def grant_by_bytes(stage: Stage) -> None:
    """A producer keeps within the bytes that it was granted: only its last record may end beyond them."""

    async def script(peer: Peer) -> None:
        await peer.welcome()
        stream, _ = await peer.opened(bytes=1_000)
        size = begin = count = 0
        while size < 1_000:
            _, values = await peer.expect("PUBLISH")
            begin = size + len(values["batch"]) - 104
            size += len(values["batch"])
            count += values["count"]
            assert begin < 1_000, "a batch's last record begins beyond the grant"
        assert count == 10, f"{count} records of 104 bytes came for 1,000 bytes"
        peer.send("DEMAND", stream, granted=1_000, bytes=size + 1)
        assert len(await peer.published(1)) == 1
        peer.send("DEMAND", stream, granted=1_000, bytes=1 << 40)
        await peer.published(9)
        peer.send("ACK", stream, through=20, last_offset=19)

    broker = await stage.scripted(script)
    producer = await (await stage.client(broker.address)).producer(stage.topic)
    await producer.send(*(b"x" * 100 for _ in range(20)))
    await producer.flush()
    await broker.finished()


@scenario()
async def manual_connect(stage: Stage) -> None:
    """A source waits until its topic is connected, then publishes."""
    client = await stage.client()
    await client.admin("create", topic=stage.topic, settings={"connect": "manual"})
    producer = await client.producer(stage.topic, source=True)
    waiting = asyncio.create_task(producer.connected())
    await asyncio.sleep(0.2)
    assert not waiting.done()
    await client.admin("connect", topic=stage.topic)
    await waiting
    await producer.publish("1")

    async def is_published() -> bool:
        return bool((await client.admin("info", topic=stage.topic))["head"] == 1)

    await eventually(is_published)
