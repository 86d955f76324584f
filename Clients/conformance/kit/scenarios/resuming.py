"""Subscriptions after lost connections, killed brokers and new epochs."""

from __future__ import annotations

import asyncio

from ..brokers import Peer
from ..stage import Stage, check_error, each, scenario

DURABLE = {"storage": "durable"}


@scenario(*({"cuts": cuts, "prefetch": prefetch} for cuts in (1, 8) for prefetch in (0, 64)), seconds=40)
async def cut(stage: Stage, cuts: int, prefetch: int) -> None:
    """After lost connections a subscription gets every record once and in order, and becomes live once."""
    proxy = await stage.proxy()
    client, other = await stage.client(proxy.address), await stage.client()
    producer = await other.producer(stage.topic)
    sub = await client.subscribe(stage.topic, prefetch=prefetch)
    found: list[str] = []
    for part in range(cuts + 1):
        await producer.publish(*(f"{part * 50 + i}" for i in range(50)))
        found += await sub.texts(30)
        if part < cuts:
            proxy.cut()
    found += await sub.texts((cuts + 1) * 50 - len(found))
    assert found == [f"{i}" for i in range((cuts + 1) * 50)]
    assert [event["event"] for event in sub.passed].count("live") <= 1


@scenario(*({"number": number, "prefetch": prefetch} for number in (1, 2) for prefetch in (0, 200)), seconds=40)
async def cut_in_a_frame(stage: Stage, number: int, prefetch: int) -> None:
    """A frame that a lost connection cuts off has no effect: its records arrive again, once."""
    client = await stage.client()
    await (await client.producer(stage.topic)).publish(*(b"%d" % i + b"." * 300 for i in range(400)))
    proxy = await stage.proxy()
    proxy.cut_after = [stage.random.randint(60, 20_000) for _ in range(6)]
    # A connection may be cut during its handshake.
    proxy.cut_after[0] += 500
    reader = await stage.client(proxy.address)
    records = await (await reader.subscribe(stage.topic, prefetch=prefetch)).records(400, 20)
    assert [record.offset for record in records] == list(range(400))
    assert all(record.text == f"{i}" + "." * 300 for i, record in enumerate(records))


@scenario(seconds=60)
async def killed_broker(stage: Stage) -> None:
    """On a durable topic a subscription continues at the next broker, without gaps or duplicate records."""
    broker = await stage.broker()
    client = await stage.client(broker.address)
    producer = await client.producer(stage.topic, settings=DURABLE)
    sub = await client.subscribe(stage.topic, prefetch=16)
    found: list[str] = []
    for part in range(3):
        await producer.publish(*(f"{part * 20 + i}" for i in range(20)))
        found += await sub.texts(10)
        await broker.kill()
        await broker.start()
    found += await sub.texts(30)
    assert found == [f"{i}" for i in range(60)]


@scenario(seconds=60)
async def restarted_topic(stage: Stage) -> None:
    """After the broker of a memory topic was killed, the subscription reports the restart, and gets the new records from offset 0."""
    broker = await stage.broker()
    client = await stage.client(broker.address)
    producer = await client.producer(stage.topic)
    await producer.publish("1", "2")
    sub = await client.subscribe(stage.topic, **{"from": "earliest"})
    assert await sub.texts(2) == ["1", "2"]
    await sub.request(1)
    await broker.kill()
    await broker.start()
    await sub.expect("restarted")
    await producer.publish("new")
    record = (await sub.take(1))[0]
    assert (record.text, record.offset) == ("new", 0)


@scenario(seconds=60)
async def blind(stage: Stage) -> None:
    """If a program reads records only and began at a position, it doesn't get the records of another epoch."""
    broker = await stage.broker()
    client = await stage.client(broker.address)
    await (await client.producer(stage.topic)).publish("1")
    sub = await client.subscribe(stage.topic, events=False, **{"from": "earliest"})
    assert await sub.texts(1) == ["1"]
    await sub.request(1)
    await broker.kill()
    await broker.start()
    check_error(await sub.error(20), (111,), False)


@scenario(*each("begin", "asked-for", "less", "beyond"))
async def continuation(stage: Stage, begin: str) -> None:
    """If an epoch continues the one before, the client follows it. If it goes back, the client reports from which offset on."""
    next_offset = 2 if begin == "less" else 3

    async def first(peer: Peer) -> None:
        await peer.welcome()
        stream, _ = await peer.subscribed(epoch=5)
        for i in range(3):
            await peer.granted(stream, i + 1)
            peer.deliver(stream, i, f"old{i}".encode())
        await peer.cut()

    async def second(peer: Peer) -> None:
        await peer.welcome()
        stream, frame = await peer.expect("SUBSCRIBE")
        assert (frame["start"], frame["start_value"], frame["epoch"]) == (4, 3, 5)
        peer.send("SUBSCRIBED", stream, epoch=6, next_offset=next_offset, live_offset=next_offset, continues=1)
        if begin == "beyond":
            # A record that the new epoch's retention has dropped.
            peer.send("LAG", stream, missed=2, next_offset=5)
        await peer.granted(stream, 1)
        peer.deliver(stream, 5 if begin == "beyond" else next_offset, b"new")

    broker = await stage.scripted(first, second)
    sub = await (await stage.client(broker.address)).subscribe(stage.topic)
    assert await sub.texts(3) == ["old0", "old1", "old2"]
    await sub.request(1)
    if begin == "less":
        assert (await sub.expect("rewound"))["next"] == 2
    if begin == "beyond":
        lag = await sub.expect("lag")
        assert (lag["missed"], lag["next"]) == (2, 5)
    assert (await sub.take(1))[0].text == "new"
    await broker.finished()


@scenario(*each("received", False, True))
async def beyond_the_end(stage: Stage, received: bool) -> None:
    """On reconnecting, a client names the epoch, unless it waits beyond the topic's end and has received nothing."""

    async def first(peer: Peer) -> None:
        await peer.welcome()
        stream, frame = await peer.expect("SUBSCRIBE")
        assert (frame["start"], frame["start_value"], frame["epoch"]) == (4, 100, 0)
        peer.send("SUBSCRIBED", stream, epoch=5, next_offset=100, live_offset=100)
        peer.send("LIVE", stream, next_offset=100)
        if received:
            await peer.granted(stream, 1)
            peer.deliver(stream, 100, b"100")
        await peer.cut()

    async def second(peer: Peer) -> None:
        await peer.welcome()
        stream, frame = await peer.expect("SUBSCRIBE")
        expected = (4, 101, 5) if received else (4, 100, 0)
        assert (frame["start"], frame["start_value"], frame["epoch"]) == expected, frame
        peer.send("SUBSCRIBED", stream, epoch=5 if received else 6, next_offset=expected[1], live_offset=expected[1])
        await peer.granted(stream, 1)
        peer.deliver(stream, expected[1], b"next")

    broker = await stage.scripted(first, second)
    sub = await (await stage.client(broker.address)).subscribe(stage.topic, **{"from": ["offset", 100]})
    await sub.request(1)
    if received:
        assert (await sub.take(1))[0].offset == 100
        await sub.request(1)
    assert (await sub.take(1))[0].text == "next"
    await broker.finished()


@scenario(seconds=60)
async def beyond_the_end_of_a_killed_broker(stage: Stage) -> None:
    """A subscription that waits for an offset beyond the end gets that offset of the topic's next epoch."""
    broker = await stage.broker()
    client = await stage.client(broker.address)
    sub = await client.subscribe(stage.topic, **{"from": ["offset", 3]})
    await sub.request(1)
    await sub.expect("live")
    await broker.kill()
    await broker.start()
    await (await client.producer(stage.topic)).publish("0", "1", "2", "3")
    record = (await sub.take(1, 20))[0]
    assert (record.offset, record.text) == (3, "3")


@scenario()
async def other_server(stage: Stage) -> None:
    """If several servers are given, the client uses one that answers."""
    dead = await stage.scripted()
    await dead.close()
    client = await stage.client(dead.address, stage.address)
    await (await client.producer(stage.topic)).publish("1")
    assert await (await client.subscribe(stage.topic)).texts(1) == ["1"]


@scenario()
async def next_server(stage: Stage) -> None:
    """When its broker is lost, the client continues at its next server."""

    async def lost(peer: Peer) -> None:
        await peer.welcome()
        await peer.subscribed()
        await peer.cut()
        await broker.close()

    async def good(peer: Peer) -> None:
        await peer.welcome()
        stream, _ = await peer.subscribed()
        await peer.granted(stream, 1)
        peer.deliver(stream, 0, b"1")

    broker = await stage.scripted(lost)
    other = await stage.scripted(good)
    sub = await (await stage.client(broker.address, other.address)).subscribe(stage.topic)
    assert await sub.texts(1) == ["1"]


@scenario()
async def no_reconnection(stage: Stage) -> None:
    """Without a reconnect policy, a lost connection ends the subscription with an error that reports that a retry may help."""
    proxy = await stage.proxy()
    client = await stage.client(proxy.address, reconnect=False)
    await (await client.producer(stage.topic)).publish("1")
    sub = await client.subscribe(stage.topic)
    assert await sub.texts(1) == ["1"]
    await sub.request(1)
    proxy.cut()
    assert (await sub.error()).retry


@scenario()
async def give_up(stage: Stage) -> None:
    """A client that stops reconnecting after a time ends its subscriptions then."""
    broker = await stage.broker()
    client = await stage.client(broker.address, reconnect={"giveUpAfter": 500})
    sub = await client.subscribe(stage.topic)
    await sub.request(1)
    await sub.expect("live")
    await broker.kill()
    assert (await sub.error()).retry


@scenario()
async def pauses(stage: Stage) -> None:
    """A client pauses between attempts at a broker that closes each connection, so that it doesn't flood it."""

    async def close(peer: Peer) -> None:
        await peer.welcome()
        await peer.cut()

    broker = await stage.scripted(close, repeats=True)
    client = await stage.client(broker.address, reconnect={"initial": 100, "maximum": 1_000})
    sub = await client.subscribe(stage.topic)
    await sub.request(1)
    await asyncio.sleep(1.0)
    assert broker.connections <= 20, f"{broker.connections} connections in a second"
