"""Consumer groups: deliveries, their settlement, members that join and leave."""

from __future__ import annotations

import asyncio
import struct
import time

from ..brokers import Peer
from ..driver import Client, Producer
from ..stage import Stage, check_error, each, eventually, scenario


async def filled(stage: Stage, *records: object) -> tuple[Client, Producer]:
    client = await stage.client()
    producer = await client.producer(stage.topic)
    if records:
        await producer.publish(*records)
    return client, producer


@scenario(*each("ack", True, False))
async def done(stage: Stage, ack: bool) -> None:
    """Acknowledged records aren't delivered again, to this member or to another."""
    client, _ = await filled(stage, *(f"{i}" for i in range(10)))
    member = await client.group(stage.topic, "g", ack=ack)
    deliveries = await member.records(5)
    assert [(delivery.text, delivery.attempt) for delivery in deliveries] == [(f"{i}", 1) for i in range(5)]
    if ack:
        for delivery in deliveries:
            await member.settle(delivery, "ack")
    await member.cancel()
    other = await client.group(stage.topic, "g", ack=ack)
    assert await other.texts(5) == ["5", "6", "7", "8", "9"]


@scenario()
async def retry(stage: Stage) -> None:
    """A delivery that a member retries is delivered again, with its attempt counted."""
    client, _ = await filled(stage, "1", "2")
    member = await client.group(stage.topic, "g")
    for attempt in (1, 2, 3):
        delivery = (await member.records(1))[0]
        assert (delivery.text, delivery.attempt) == ("1", attempt)
        await member.settle(delivery, "retry" if attempt < 3 else "ack")
    assert await member.texts(1) == ["2"]


@scenario()
async def reject(stage: Stage) -> None:
    """A rejected record goes to the dead-letter topic with the reason, and isn't delivered again."""
    client, _ = await filled(stage, ("bad", "k", [("h", "v")]), "good")
    member = await client.group(stage.topic, "g", deadLetters=f"{stage.topic}.dead")
    await member.settle((await member.records(1))[0], "reject")
    assert await member.texts(1) == ["good"]
    dead = (await (await client.subscribe(f"{stage.topic}.dead")).records(1))[0]
    assert (dead.payload, dead.key, dead.headers[0]) == (b"bad", b"k", ("h", b"v"))
    headers = dict(dead.headers)
    assert headers["sluice-dead-topic"] == stage.topic.encode() and headers["sluice-dead-reason"] == b"rejected"


@scenario()
async def most_deliveries(stage: Stage) -> None:
    """A record that was returned as often as the group allows goes to the dead-letter topic."""
    client, _ = await filled(stage, "bad", "good")
    member = await client.group(stage.topic, "g", deliveries=2, deadLetters=f"{stage.topic}.dead")
    for attempt in (1, 2):
        delivery = (await member.records(1))[0]
        assert (delivery.text, delivery.attempt) == ("bad", attempt)
        await member.settle(delivery, "retry")
    assert await member.texts(1) == ["good"]
    assert await (await client.subscribe(f"{stage.topic}.dead")).texts(1) == ["bad"]


@scenario()
async def deadline(stage: Stage) -> None:
    """A delivery that isn't settled by its deadline goes to another member."""
    client, _ = await filled(stage, "1")
    slow = await client.group(stage.topic, "g", deadline=300)
    await slow.records(1)
    other = await client.group(stage.topic, "g", deadline=300)
    delivery = (await other.records(1))[0]
    assert (delivery.text, delivery.attempt) == ("1", 2)


@scenario()
async def extend(stage: Stage) -> None:
    """A member that is still working can keep its delivery beyond the deadline."""
    client, _ = await filled(stage, "1")
    member = await client.group(stage.topic, "g", deadline=2_000)
    other = await client.group(stage.topic, "g", deadline=2_000)
    delivery = (await member.records(1))[0]
    await other.request(1)
    for _ in range(4):
        await asyncio.sleep(0.7)
        await member.settle(delivery, "extend")
    await other.silent(0.1)
    await member.settle(delivery, "ack")


@scenario()
async def leaving(stage: Stage) -> None:
    """Deliveries that a leaving member hasn't settled go to the others."""
    client, _ = await filled(stage, "1", "2")
    member = await client.group(stage.topic, "g")
    other = await client.group(stage.topic, "g")
    first, second = await member.records(2)
    await member.settle(first, "ack")
    await member.cancel()
    delivery = (await other.records(1))[0]
    assert (delivery.text, delivery.attempt) == (second.text, 2)


@scenario()
async def sharing(stage: Stage) -> None:
    """Members share the records by their demand: each record goes to one of them."""
    _, producer = await filled(stage)
    members = [await (await stage.client()).group(stage.topic, "g") for _ in range(3)]
    for member in members:
        await member.request(10)
    await asyncio.sleep(0.2)
    await producer.publish(*(f"{i}" for i in range(30)))
    found = [await member.take(10) for member in members]
    assert sorted(int(record.text) for records in found for record in records) == list(range(30))


@scenario()
async def by_key(stage: Stage) -> None:
    """In a group that is ordered by key, the next record of a key waits until the one before is acknowledged."""
    client, _ = await filled(stage, ("a1", "a", ()), ("a2", "a", ()), ("b1", "b", ()), ("a3", "a", ()))
    member = await client.group(stage.topic, "g", ordered=True, prefetch=8)
    first, other = await member.records(2)
    assert (first.text, other.text) == ("a1", "b1")
    await member.request(1)
    await member.silent(0.2)
    await member.settle(first, "ack")
    second = (await member.take(1))[0]
    assert second.text == "a2"
    await member.settle(second, "retry")
    again = (await member.records(1))[0]
    assert (again.text, again.attempt) == ("a2", 2)
    await member.settle(again, "ack")
    assert await member.texts(1) == ["a3"]


@scenario(*each("prefetch", 0, 16), seconds=40)
async def cut(stage: Stage, prefetch: int) -> None:
    """After lost connections a member joins again, and every record is acknowledged in the end."""
    client, producer = await filled(stage)
    proxy = await stage.proxy()
    member = await (await stage.client(proxy.address)).group(stage.topic, "g", prefetch=prefetch)
    await producer.publish(*(f"{i}" for i in range(60)))
    seen: set[str] = set()
    count = 0
    while len(seen) < 60:
        delivery = (await member.records(1))[0]
        seen.add(delivery.text)
        count += 1
        # Not at the last one: if its acknowledgement were lost, it would be delivered again after the loop.
        if count in (20, 40):
            proxy.cut()
        await member.settle(delivery, "ack")
    consumers = await client.admin("consumers", topic=stage.topic)
    assert [consumer["name"] for consumer in consumers] == ["g"]

    async def is_done() -> bool:
        return bool((await client.admin("consumers", topic=stage.topic))[0]["next"] == 60)

    await eventually(is_done)


@scenario()
async def settled_while_away(stage: Stage) -> None:
    """A delivery that is settled without a connection is settled on the next one."""

    async def first(peer: Peer) -> None:
        await peer.welcome()
        stream, _ = await peer.expect("JOIN")
        peer.send("SUBSCRIBED", stream, epoch=7, gaps=1)
        peer.send("LIVE", stream)
        await peer.granted(stream, 1)
        peer.send("DELIVERIES", stream, count=3)
        peer.deliver(stream, 4, b"4")
        await peer.cut()

    async def second(peer: Peer) -> None:
        await peer.welcome()
        stream, _ = await peer.expect("JOIN")
        peer.send("SUBSCRIBED", stream, epoch=7, gaps=1)
        peer.send("LIVE", stream)
        found, values = await peer.expect("SETTLE")
        assert (found, values) == (stream, {"verdict": 0, "delivery": 3, "first": 4, "count": 1, "more": b""})

    broker = await stage.scripted(first, second)
    member = await (await stage.client(broker.address, reconnect={"initial": 400})).group(stage.topic, "g")
    delivery = (await member.records(1))[0]
    assert (delivery.offset, delivery.attempt) == (4, 3)
    await asyncio.sleep(0.15)
    await member.settle(delivery, "ack")
    await broker.finished()


@scenario()
async def delayed_retry(stage: Stage) -> None:
    """A delivery that a member retries with a delay waits at the broker, while the member gets other records."""
    client, producer = await filled(stage, "1", "2")
    member = await client.group(stage.topic, "g")
    first = (await member.records(1))[0]
    began = time.monotonic()
    await member.settle(first, "retry", after=1_000)
    second = (await member.records(1))[0]
    assert (second.text, second.attempt) == ("2", 1)
    await member.settle(second, "ack")
    again = (await member.records(1))[0]
    assert (again.text, again.attempt) == ("1", 2)
    assert time.monotonic() - began >= 0.99
    # Without a delay it comes at once, whatever comes meanwhile.
    await member.settle(again, "retry", after=0)
    await producer.publish("3")
    again = (await member.records(1))[0]
    assert (again.text, again.attempt) == ("1", 3)


@scenario()
async def backoff(stage: Stage) -> None:
    """A retry without a delay waits as the group's backoff says: twice as long after each delivery, to a limit."""
    client, _ = await filled(stage, "1")
    member = await client.group(stage.topic, "g", retryBackoff=[300, 600])
    began, pause = time.monotonic(), 0.0
    for attempt, longest in ((1, 0.3), (2, 0.6), (3, 0.6), (4, 0.0)):
        delivery = (await member.records(1))[0]
        assert (delivery.text, delivery.attempt) == ("1", attempt)
        assert time.monotonic() - began >= pause
        began, pause = time.monotonic(), longest - 0.01
        await member.settle(delivery, "retry")


@scenario()
async def settlement_frames(stage: Stage) -> None:
    """The frames of a retry with a delay, of one without, and of a group with a backoff."""

    async def play(peer: Peer) -> None:
        await peer.welcome()
        stream, values = await peer.expect("JOIN")
        assert values["more"] == struct.pack("<II", 1_000, 300_000)
        peer.send("SUBSCRIBED", stream, epoch=7, gaps=1)
        peer.send("LIVE", stream)
        for granted, offset in ((1, 4), (2, 6)):
            await peer.granted(stream, granted)
            peer.deliver(stream, offset, b"%d" % offset)
        for first, delay in ((4, 1_500), (6, None)):
            found, values = await peer.expect("SETTLE")
            more = values.pop("more")
            assert (found, values) == (stream, {"verdict": 1, "delivery": 1, "first": first, "count": 1})
            # Without a delay the field is absent, or all ones.
            assert more in ([b"", b"\xff" * 4] if delay is None else [struct.pack("<I", delay)])

    broker = await stage.scripted(play)
    member = await (await stage.client(broker.address)).group(stage.topic, "g", retryBackoff=[1_000, 300_000])
    first, second = await member.records(2)
    await member.settle(first, "retry", after=1_500)
    await member.settle(second, "retry")
    await broker.finished()


@scenario(*each("setting", "deadline", "deliveries", "ordered"))
async def mismatch(stage: Stage, setting: str) -> None:
    """A member whose settings differ from its group's gets group-mismatch."""
    client, _ = await filled(stage, "1")
    member = await client.group(stage.topic, "g")
    await member.records(1)
    other = await client.group(stage.topic, "g", **{setting: True if setting == "ordered" else 5})
    await other.request(1)
    check_error(await other.error(), (121,), False)


@scenario()
async def where(stage: Stage) -> None:
    """A group with conditions delivers the records that meet them."""
    client, _ = await filled(stage, ("1", "a", ()), ("2", "b", ()), ("3", "a", ()))
    member = await client.group(stage.topic, "g", where=[["key", "a"]])
    assert await member.texts(2) == ["1", "3"]


@scenario()
async def end(stage: Stage) -> None:
    """A member gets the topic's end when all records of the group are acknowledged."""
    client, producer = await filled(stage, "1")
    await producer.complete()
    member = await client.group(stage.topic, "g")
    delivery = (await member.records(1))[0]
    await member.request(1)
    await member.silent(0.2)
    await member.settle(delivery, "ack")
    await member.expect("completed")


@scenario(*each("call", "moveCursor", "deleteCursor"))
async def moved(stage: Stage, call: str) -> None:
    """If a group is moved or deleted, its members end with that code."""
    client, _ = await filled(stage, "1")
    member = await client.group(stage.topic, "g")
    await member.records(1)
    await member.request(1)
    await client.admin(call, topic=stage.topic, name="g", to="earliest")
    check_error(await member.error(), (117 if call == "moveCursor" else 118,), False)


@scenario()
async def first_member_chooses(stage: Stage) -> None:
    """A group begins at the start that its first member requests."""
    client, _ = await filled(stage, "0", "1", "2", "3")
    assert await (await client.group(stage.topic, "g", **{"from": ["offset", 2]})).texts(2) == ["2", "3"]
