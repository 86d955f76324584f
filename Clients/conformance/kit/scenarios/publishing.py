"""Producers: acknowledgements, exactly once, ends."""

from __future__ import annotations

import asyncio

from ..brokers import Peer
from ..driver import DriverError
from ..stage import Stage, each, eventually, fails, scenario
from ..wire import ALL_ONES

DURABLE = {"storage": "durable"}


@scenario(*each("acknowledge", "none", "received", "durable"))
async def acknowledge(stage: Stage, acknowledge: str) -> None:
    """Records are in the topic with every kind of acknowledgement, and their offsets are the topic's."""
    client = await stage.client()
    producer = await client.producer(stage.topic, acknowledge=acknowledge, settings=DURABLE)
    offsets: list[int | None] = []
    for i in range(5):
        offsets += await producer.publish(f"{i}")
    if acknowledge != "none":
        assert offsets == [0, 1, 2, 3, 4]
    await producer.flush()
    assert await (await client.subscribe(stage.topic)).texts(5) == ["0", "1", "2", "3", "4"]


@scenario(*each("number", 1, 2, 3), seconds=60)
async def once_over_cuts(stage: Stage, number: int) -> None:
    """With connections that are cut at random bytes, each record is in the topic once, in its order."""
    rng = stage.random
    proxy = await stage.proxy()
    proxy.cut_after = [rng.randint(120, 700) + 100 * number for _ in range(8)]
    client = await stage.client(proxy.address)
    producer = await client.producer(stage.topic)
    total = 600
    for begin in range(0, total, 20):
        await producer.send(*(f"{i}" for i in range(begin, begin + 20)))
        if rng.random() < 0.3:
            await producer.flush(20)
        if rng.random() < 0.2:
            proxy.cut()
    await producer.flush(20)
    found = await (await (await stage.client()).subscribe(stage.topic, prefetch=200)).texts(total)
    assert found == [f"{i}" for i in range(total)]
    assert proxy.connections > 1
    assert (await client.admin("info", topic=stage.topic))["head"] == total


@scenario(*each("acknowledge", "received", "durable"), seconds=60)
async def once_over_kills(stage: Stage, acknowledge: str) -> None:
    """With brokers that are killed, each record is in a durable topic once, in its order."""
    broker = await stage.broker()
    client = await stage.client(broker.address)
    producer = await client.producer(stage.topic, acknowledge=acknowledge, settings=DURABLE)
    for part in range(3):
        await producer.send(*(f"{part * 50 + i}" for i in range(50)))
        if part < 2:
            await broker.kill()
            await broker.start()
    await producer.flush(20)
    sub = await client.subscribe(stage.topic, prefetch=50)
    assert await sub.texts(150) == [f"{i}" for i in range(150)]
    assert (await client.admin("info", topic=stage.topic))["head"] == 150


@scenario(*each("known", 0, 2, 5))
async def sequence(stage: Stage, known: int) -> None:
    """A producer that returns with its number sends the records that the topic lacks, from the sequence that the broker expects."""
    number = 0

    async def first(peer: Peer) -> None:
        nonlocal number
        await peer.welcome()
        _, frame = await peer.opened()
        number = frame["producer"]
        assert number != 0 and frame["first_sequence"] == 0
        await peer.published(5)
        await peer.cut()

    async def second(peer: Peer) -> None:
        await peer.welcome()
        stream, frame = await peer.opened(next_sequence=known)
        assert (frame["producer"], frame["first_sequence"]) == (number, 0)
        following = known
        while following < 5:
            _, values = await peer.expect("PUBLISH")
            assert values["first"] == following
            following += values["count"]
        if known < 5:
            peer.send("ACK", stream, through=5, last_offset=4)

    broker = await stage.scripted(first, second)
    producer = await (await stage.client(broker.address)).producer(stage.topic)
    await producer.send("0", "1", "2", "3", "4")
    await producer.flush()
    await broker.finished()


@scenario()
async def acknowledged_before_a_cut(stage: Stage) -> None:
    """Acknowledged records aren't sent again."""

    async def first(peer: Peer) -> None:
        await peer.welcome()
        stream, _ = await peer.opened()
        await peer.published(5)
        peer.send("ACK", stream, through=3, last_offset=2)
        await peer.cut()

    async def second(peer: Peer) -> None:
        await peer.welcome()
        stream, frame = await peer.opened()
        assert frame["first_sequence"] == 3
        following = 3
        while following < 5:
            _, values = await peer.expect("PUBLISH")
            assert values["first"] == following
            following += values["count"]
        peer.send("ACK", stream, through=5, last_offset=4)

    broker = await stage.scripted(first, second)
    producer = await (await stage.client(broker.address)).producer(stage.topic)
    await producer.send("0", "1", "2", "3", "4")
    await producer.flush()
    await broker.finished()


@scenario()
async def without_acknowledgement(stage: Stage) -> None:
    """A producer without acknowledgements, with a number or without, sends nothing again after a lost connection."""

    async def first(peer: Peer) -> None:
        await peer.welcome()
        _, frame = await peer.opened()
        assert frame["acknowledgement"] == 0
        await peer.published(3)
        await peer.cut()

    async def second(peer: Peer) -> None:
        await peer.welcome()
        _, frame = await peer.opened()
        _, values = await peer.expect("PUBLISH")
        assert (values["first"], values["count"]) == (frame["first_sequence"], 1), values

    broker = await stage.scripted(first, second)
    producer = await (await stage.client(broker.address)).producer(stage.topic, acknowledge="none")
    await producer.send("0", "1", "2")
    await producer.flush()

    async def is_connected_again() -> bool:
        return broker.connections == 2

    await eventually(is_connected_again)
    await producer.send("3")
    await broker.finished()


@scenario()
async def batches(stage: Stage) -> None:
    """A batch is no longer than the broker's longest frame."""

    async def script(peer: Peer) -> None:
        await peer.welcome(longest_frame=65_536, longest_record=60_000)
        stream, _ = await peer.opened()
        count = 0
        while count < 100:
            _, values = await peer.expect("PUBLISH")
            assert len(values["batch"]) + 12 <= 65_536
            assert values["first"] == count
            count += values["count"]
        peer.send("ACK", stream, through=100, last_offset=99)

    broker = await stage.scripted(script)
    producer = await (await stage.client(broker.address)).producer(stage.topic)
    await producer.send(*(b"x" * 10_000 for _ in range(100)))
    await producer.flush()
    await broker.finished()


@scenario()
async def completed_again(stage: Stage) -> None:
    """A producer whose connection is lost before its end was answered ends the topic again."""

    async def first(peer: Peer) -> None:
        await peer.welcome()
        stream, _ = await peer.opened()
        await peer.published(1)
        peer.send("ACK", stream, through=1, last_offset=0)
        await peer.expect("COMPLETE")
        await peer.cut()

    async def second(peer: Peer) -> None:
        await peer.welcome()
        await peer.opened()
        stream, values = await peer.expect("COMPLETE")
        assert values["kind"] == 0
        peer.send("CANCELLED", stream)

    broker = await stage.scripted(first, second)
    producer = await (await stage.client(broker.address)).producer(stage.topic)
    await producer.publish("1")
    await producer.complete()
    await broker.finished()


@scenario()
async def ended_by_another(stage: Stage) -> None:
    """If another producer has ended the topic, a producer fails with topic-ended."""
    client = await stage.client()
    one, other = await client.producer(stage.topic), await client.producer(stage.topic)
    await one.publish("1")
    await other.publish("2")
    await other.complete()
    async with fails(103, retry=False):
        await one.publish("3")
    async with fails(103, retry=False):
        await (await client.producer(stage.topic)).publish("4")


@scenario()
async def full_store(stage: Stage) -> None:
    """A producer whose publication ends with a transient error opens it again, and loses nothing."""

    async def script(peer: Peer) -> None:
        await peer.welcome()
        stream, _ = await peer.opened()
        assert await peer.published(2) == [b"1", b"2"]
        peer.send("ACK", stream, through=1, last_offset=0)
        peer.send("ERROR", stream, code=122, message="the disk is full")
        stream, frame = await peer.opened()
        assert frame["first_sequence"] == 1
        assert await peer.published(1) == [b"2"]
        peer.send("ACK", stream, through=2, last_offset=1)

    broker = await stage.scripted(script)
    producer = await (await stage.client(broker.address)).producer(stage.topic)
    await producer.send("1", "2")
    await producer.flush()
    await broker.finished()


@scenario(*each("code", 115, 104, 106, 107, 108))
async def ended_by_an_error(stage: Stage, code: int) -> None:
    """When a publication ends with an error, its unacknowledged records fail with that code; acknowledged ones don't."""

    async def script(peer: Peer) -> None:
        await peer.welcome()
        stream, _ = await peer.opened()
        await peer.published(1)
        peer.send("ACK", stream, through=1, last_offset=0)
        await peer.published(1)
        peer.send("ERROR", stream, code=code, message="because of the scenario")

    broker = await stage.scripted(script)
    producer = await (await stage.client(broker.address)).producer(stage.topic)
    assert await producer.publish("1") == [0]
    async with fails(code, retry=False):
        await producer.publish("2")
    await broker.finished()


@scenario()
async def bounded_buffer(stage: Stage) -> None:
    """A producer without grants accepts as many records as its buffer holds, then blocks its program."""

    async def script(peer: Peer) -> None:
        await peer.welcome()
        stream, _ = await peer.opened(granted=0)
        await asyncio.sleep(0.3)
        peer.send("DEMAND", stream, granted=100, bytes=ALL_ONES)
        count = 0
        while count < 100:
            count += len(await peer.published(1))
            peer.send("ACK", stream, through=count, last_offset=count - 1)

    broker = await stage.scripted(script)
    producer = await (await stage.client(broker.address)).producer(stage.topic, buffer=10)
    sending = asyncio.create_task(producer.send(*(f"{i}" for i in range(100))))
    await asyncio.sleep(0.2)
    assert not sending.done(), "100 records are taken by a buffer of 10, without a grant"
    await sending
    await producer.flush()
    await broker.finished()


@scenario()
async def close_flushes(stage: Stage) -> None:
    """Closing the client publishes the records that its producers still buffer."""
    client = await stage.client()
    producer = await client.producer(stage.topic)
    await producer.send(*(f"{i}" for i in range(500)))
    await client.close()
    found = await (await (await stage.client()).subscribe(stage.topic, prefetch=100)).texts(500)
    assert found == [f"{i}" for i in range(500)]


@scenario()
async def close_in_time(stage: Stage) -> None:
    """Closing the client doesn't wait for ever for a broker that acknowledges nothing."""

    async def script(peer: Peer) -> None:
        await peer.welcome()
        await peer.opened()
        await peer.published(1)

    broker = await stage.scripted(script)
    client = await stage.client(broker.address, closeTimeout=300)
    producer = await client.producer(stage.topic)
    await producer.send("1")
    await broker.finished()
    try:
        await client.close()
    except DriverError as error:
        assert not error.is_internal, error


@scenario()
async def record_too_large(stage: Stage) -> None:
    """A record that is longer than the broker's limit fails with record-too-large."""
    client = await stage.client()
    producer = await client.producer(stage.topic)
    await producer.publish("1")

    async def script(peer: Peer) -> None:
        await peer.welcome(longest_record=1_000)
        stream, _ = await peer.opened()
        await peer.published(1)
        peer.send("ACK", stream, through=1, last_offset=0)
        found, stream, _ = await peer.read()
        if found == "PUBLISH":
            peer.send("ERROR", stream, code=106, message="a record is longer than the broker's limit")

    broker = await stage.scripted(script)
    small = await (await stage.client(broker.address)).producer(stage.topic)
    await small.publish("1")
    async with fails(106, retry=False):
        await small.publish(b"x" * 1_001)
