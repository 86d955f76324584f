"""A broker that never stops, never answers, or sends noise: the client neither hangs nor grows."""

from __future__ import annotations

import asyncio

from .. import wire
from ..brokers import Peer
from ..driver import DriverError
from ..stage import Stage, each, scenario


@scenario()
async def epoch_changed_for_ever(stage: Stage) -> None:
    """A broker that answers each SUBSCRIBE with epoch-changed doesn't keep the client busy."""
    count = 0

    async def script(peer: Peer) -> None:
        nonlocal count
        await peer.welcome()
        stream, _ = await peer.subscribed()
        await peer.granted(stream, 1)
        peer.deliver(stream, 0, b"x")
        peer.send("ERROR", stream, code=111, message="the topic has another epoch")
        while True:
            stream, _ = await peer.expect("SUBSCRIBE")
            count += 1
            peer.send("ERROR", stream, code=111, message="the topic has another epoch")

    broker = await stage.scripted(script, repeats=True)
    sub = await (await stage.client(broker.address)).subscribe(stage.topic)
    await sub.records(1)
    await sub.request(1)
    await asyncio.sleep(0.4)
    assert count <= 40, f"the client subscribed {count} times"


@scenario(*each("code", 128, 113, 8))
async def refused_for_ever(stage: Stage, code: int) -> None:
    """A client retries a stream that the broker refuses with a transient error, with ever longer pauses."""
    count = 0

    async def script(peer: Peer) -> None:
        nonlocal count
        await peer.welcome()
        stream, _ = await peer.subscribed()
        while True:
            peer.send("ERROR", stream, code=code, message="not now")
            stream, _ = await peer.expect("SUBSCRIBE")
            count += 1

    broker = await stage.scripted(script, repeats=True)
    sub = await (await stage.client(broker.address)).subscribe(stage.topic)
    await sub.request(1)
    await asyncio.sleep(1.0)
    assert count <= 20, f"the client subscribed {count} times in a second"


@scenario()
async def never_answered(stage: Stage) -> None:
    """A client can cancel and close even if the broker never answers its calls."""

    async def script(peer: Peer) -> None:
        await peer.welcome()
        await peer.expect("SUBSCRIBE")

    broker = await stage.scripted(script)
    client = await stage.client(broker.address)
    sub = await client.subscribe(stage.topic)
    other = await client.subscribe(stage.topic)
    await other.request(1)
    asking = asyncio.create_task(client.admin("info", topic=stage.topic))
    await asyncio.sleep(0.1)
    await sub.cancel()
    await client.close()
    try:
        await asking
    except DriverError as error:
        assert not error.is_internal, error
    else:
        raise AssertionError("a request without an answer succeeded")


@scenario(*each("frame", "LAG", "PRODUCERS"), seconds=60)
async def flood(stage: Stage, frame: str) -> None:
    """Events that no demand limits are merged while the program reads none, so that a flood of them needs no memory."""
    total = 50_000

    async def script(peer: Peer) -> None:
        await peer.welcome()
        stream, _ = await peer.subscribed()
        for i in range(1, total + 1):
            peer.send(frame, stream, **({"missed": 1, "next_offset": i} if frame == "LAG" else {"count": i}))
            if i % 1_000 == 0:
                await peer.drain()
        peer.send("PING", 0, token=5)
        await peer.expect("PONG")
        sent.set()
        await peer.granted(stream, 1)
        peer.deliver(stream, total if frame == "LAG" else 0, b"x")

    sent = asyncio.Event()
    broker = await stage.scripted(script)
    sub = await (await stage.client(broker.address, reconnect=False)).subscribe(stage.topic, producers=True)
    await sent.wait()
    await sub.request(1)
    events = []
    while (event := await sub.event())["event"] != "record":
        events.append(event)
    assert len(events) <= 1_000, f"{len(events)} events were kept"
    if frame == "LAG":
        assert sum(event["missed"] for event in events) == total and events[-1]["next"] == total
    else:
        assert events[-1]["count"] == total


@scenario(seconds=60)
async def topics(stage: Stage) -> None:
    """Topics that appear and disappear while the program reads nothing from a pattern need no memory, and aren't reported."""
    total = 20_000

    async def script(peer: Peer) -> None:
        await peer.welcome()
        stream, _ = await peer.expect("SUBSCRIBE_PATTERN")
        peer.send("SUBSCRIBED", stream, epoch=1)
        peer.send("SELECT_TOPIC", stream)
        for i in range(1, total + 1):
            peer.send("MATCHED", stream, number=1, topic=f"t.{i}", epoch=5)
            peer.send("MATCHED", stream, number=2, topic="t.same", epoch=i)
            peer.send("UNMATCHED", stream, number=1)
            peer.send("UNMATCHED", stream, number=2)
            if i % 1_000 == 0:
                await peer.drain()
        peer.send("PING", 0, token=5)
        await peer.expect("PONG")
        sent.set()
        await peer.granted(stream, 1)
        peer.send("MATCHED", stream, number=3, topic="t.last", epoch=5)
        peer.send("SELECT_TOPIC", stream, number=3)
        peer.deliver(stream, 0, b"x")

    sent = asyncio.Event()
    broker = await stage.scripted(script)
    sub = await (await stage.client(broker.address, reconnect=False)).pattern("t.*")
    await sent.wait()
    await sub.request(1)
    events = []
    while (event := await sub.event())["event"] != "record":
        events.append(event)
    assert len(events) <= 1_000, f"{len(events)} events were kept"
    assert events[-1]["event"] == "matched" and event["topic"] == "t.last"


@scenario(seconds=60)
async def pings(stage: Stage) -> None:
    """A broker that sends PING without end and reads no reply doesn't make the client's memory grow."""
    # More than the system's buffers of both directions hold.
    total = 700_000

    async def script(peer: Peer) -> None:
        await peer.welcome()
        some = wire.encode("PING", 0, token=1) * 1_000
        for _ in range(total // 1_000):
            peer.raw(some)
            await peer.drain()
        peer.send("PING", 0, token=2)
        count = 0
        while (await peer.expect("PONG"))[1]["token"] != 2:
            count += 1
        assert count < total, "each of the answers was kept"

    broker = await stage.scripted(script)
    await stage.client(broker.address)
    await broker.finished()


@scenario(seconds=40)
async def cut_frames(stage: Stage) -> None:
    """Random changes to the bytes of a valid session never make the client hang: it continues, or reports an error."""
    rng = stage.random
    for _ in range(25):
        await _changed(stage, rng.getrandbits(32))


async def _changed(stage: Stage, seed: int) -> None:
    stage.random.seed(seed)
    rng = stage.random

    async def script(peer: Peer) -> None:
        await peer.welcome()
        stream, _ = await peer.expect("SUBSCRIBE")
        await peer.granted(stream, 1)
        data = bytearray(
            wire.encode("SUBSCRIBED", stream, epoch=7)
            + wire.encode("LIVE", stream)
            + wire.deliver(stream, wire.MARK + wire.item(b"\x03\x02\0eu\x01\0\x01\0h\x02\0\0\0vvpayload", 1))
            + wire.encode("COMPLETE", stream)
        )
        for _ in range(rng.randint(1, 3)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        peer.raw(bytes(data))
        await peer.drain()
        await asyncio.sleep(0.02)
        await peer.cut()

    broker = await stage.scripted(script)
    client = await stage.client(broker.address, reconnect=False)
    sub = await client.subscribe(stage.topic)
    await sub.request(1)
    while (event := await sub.event())["event"] not in ("completed", "failed", "error"):
        if event["event"] == "record":
            await sub.request(1)
    if event["event"] == "error":
        assert not DriverError(event).is_internal, event
    await client.close()
