"""Records arrive as they were published: order, contents, times."""

from __future__ import annotations

import asyncio

from ..stage import Stage, each, scenario


@scenario(*({"count": count, "prefetch": prefetch} for count, prefetch in ((1, 0), (200, 0), (200, 1), (2_000, 16), (5_000, 1_000))))
async def order(stage: Stage, count: int, prefetch: int) -> None:
    """Records arrive in the order in which they were published, each once, at the offsets from 0 on."""
    client = await stage.client()
    producer = await client.producer(stage.topic)
    await producer.send(*(f"{i}" for i in range(count)))
    await producer.flush()
    records = await (await client.subscribe(stage.topic, prefetch=prefetch, **{"from": "earliest"})).records(count, 20)
    assert [record.text for record in records] == [f"{i}" for i in range(count)]
    assert [record.offset for record in records] == list(range(count))


@scenario(
    {"name": "empty", "payload": b""},
    {"name": "all-bytes", "payload": bytes(range(256))},
    {"name": "64-kib", "payload": b"\x80" * 65_536},
    {"name": "700-kib", "payload": b"ab" * 358_400},
)
async def payload(stage: Stage, payload: bytes) -> None:
    """A payload arrives as it was published, with any bytes and any length."""
    client = await stage.client()
    await (await client.producer(stage.topic)).publish(payload, b"next")
    found = await (await client.subscribe(stage.topic, prefetch=2)).records(2)
    assert [record.payload for record in found] == [payload, b"next"]


@scenario(
    {"name": "none", "key": None, "headers": []},
    {"name": "key", "key": b"eu", "headers": []},
    {"name": "empty-key", "key": b"", "headers": []},
    {"name": "headers", "key": None, "headers": [("kind", b"new"), ("kind", b""), ("größe", bytes(range(256)))]},
    {"name": "both", "key": b"\x00\xff" * 500, "headers": [(f"h{i}", b"v" * i) for i in range(200)]},
)
async def attributes(stage: Stage, key: bytes | None, headers: list[tuple[str, bytes]]) -> None:
    """Key and headers arrive as they were published: an empty key differs from no key, and names may repeat."""
    client = await stage.client()
    await (await client.producer(stage.topic)).publish(("with", key, headers), "without")
    with_attributes, without = await (await client.subscribe(stage.topic)).records(2)
    assert (with_attributes.text, with_attributes.key, with_attributes.headers) == ("with", key, headers)
    assert (without.text, without.key, without.headers) == ("without", None, [])


@scenario()
async def times(stage: Stage) -> None:
    """Each record has the time at which the broker received it, and times never decrease."""
    client = await stage.client()
    producer = await client.producer(stage.topic)
    for i in range(4):
        await producer.publish(f"{i}")
        await asyncio.sleep(0.01)
    found = [record.time for record in await (await client.subscribe(stage.topic)).records(4)]
    assert found == sorted(found) and found[0] < found[-1] and found[0] > 1_600_000_000_000


@scenario()
async def two_producers(stage: Stage) -> None:
    """With two producers on a topic, the records of each keep their order."""
    first, second = await stage.client(), await stage.client()
    producers = [await first.producer(stage.topic), await second.producer(stage.topic)]
    await asyncio.gather(*(producer.send(*(f"{name}{i}" for i in range(300))) for producer, name in zip(producers, "ab", strict=True)))
    await asyncio.gather(*(producer.flush() for producer in producers))
    found = await (await first.subscribe(stage.topic, prefetch=64)).texts(600)
    for name in "ab":
        assert [text for text in found if text[0] == name] == [f"{name}{i}" for i in range(300)]


@scenario()
async def two_subscribers(stage: Stage) -> None:
    """Two subscribers get the same records, each at its own pace."""
    client = await stage.client()
    await (await client.producer(stage.topic)).publish(*(f"{i}" for i in range(100)))
    slow = await client.subscribe(stage.topic)
    fast = await client.subscribe(stage.topic, prefetch=50)
    assert await fast.texts(100) == [f"{i}" for i in range(100)]
    assert await slow.texts(3) == ["0", "1", "2"]
    await slow.silent()
    assert await slow.texts(97) == [f"{i}" for i in range(3, 100)]


@scenario(*each("how", "completed", "failed"))
async def end(stage: Stage, how: str) -> None:
    """The end of a topic arrives after its last record: completion, or the producer's code and message."""
    client = await stage.client()
    sub = await client.subscribe(stage.topic, prefetch=10)
    producer = await client.producer(stage.topic)
    await producer.send("1", "2")
    await (producer.complete() if how == "completed" else producer.fail(1_234, "out of paper"))
    for subscription in (sub, await client.subscribe(stage.topic)):
        await subscription.request(3)
        assert [record.text for record in await subscription.take(2)] == ["1", "2"]
        event = await subscription.expect(how)
        assert how == "completed" or (event["code"], event["message"]) == (1_234, "out of paper")


@scenario()
async def cancel(stage: Stage) -> None:
    """A cancelled subscription leaves the topic, and its stream number can be used again."""
    client = await stage.client()
    await (await client.producer(stage.topic)).publish("1", "2", "3")
    for _ in range(20):
        sub = await client.subscribe(stage.topic, prefetch=2)
        assert await sub.texts(1) == ["1"]
        await sub.cancel()
    assert await (await client.subscribe(stage.topic)).texts(3) == ["1", "2", "3"]
    assert (await client.admin("info", topic=stage.topic))["subscriptions"] <= 2
