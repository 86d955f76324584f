"""Starts of subscriptions, and the change from replay to live."""

from __future__ import annotations

import asyncio
from typing import Any

from ..stage import Stage, each, scenario


async def filled(stage: Stage, count: int, **settings: Any) -> Any:
    """Returns a client, after ``count`` records were published to the topic, and a producer of the topic."""
    client = await stage.client()
    if settings:
        await client.admin("create", topic=stage.topic, settings=settings)
    producer = await client.producer(stage.topic)
    if count:
        await producer.publish(*(f"{i}" for i in range(count)))
    return client, producer


@scenario(*each("count", 0, 1, 500))
async def replay_to_live(stage: Stage, count: int) -> None:
    """Replay ends with one event after the last replayed record, without demand of its own, and new records follow."""
    client, producer = await filled(stage, count)
    sub = await client.subscribe(stage.topic, prefetch=100)
    await sub.request(count + 2)
    assert [record.text for record in await sub.take(count)] == [f"{i}" for i in range(count)]
    live = await sub.event()
    assert (live["event"], live["next"]) == ("live", count)
    await producer.publish("new", "newer")
    assert [record.text for record in await sub.take(2)] == ["new", "newer"]
    assert not sub.passed, "a second live event came"


@scenario(
    {"name": "replay", "start": "replay", "first": 0},
    {"name": "earliest", "start": "earliest", "first": 0},
    {"name": "new", "start": "new", "first": 10},
    {"name": "last-0", "start": ["last", 0], "first": 10},
    {"name": "last-3", "start": ["last", 3], "first": 7},
    {"name": "last-more-than-there-are", "start": ["last", 99], "first": 0},
    {"name": "offset-0", "start": ["offset", 0], "first": 0},
    {"name": "offset-5", "start": ["offset", 5], "first": 5},
    {"name": "offset-end", "start": ["offset", 10], "first": 10},
    {"name": "time-before-all", "start": ["since", 1], "first": 0},
    {"name": "time-after-all", "start": ["since", 4_000_000_000_000], "first": 10},
)
async def start(stage: Stage, start: Any, first: int) -> None:
    """A subscription begins at the record that its start names, or at the next record that is published."""
    client, producer = await filled(stage, 10)
    sub = await client.subscribe(stage.topic, prefetch=5, **{"from": start})
    if first == 10:
        # The subscription must be open before the next record is published.
        await sub.request(1)
        assert (await sub.event())["event"] == "live"
    await producer.publish("10")
    found = await (sub.take(1) if first == 10 else sub.records(11 - first))
    assert [record.text for record in found] == [f"{i}" for i in range(first, 11)]
    assert found[0].offset == first


@scenario(*each("start", "replay", "earliest", "new"))
async def empty_topic(stage: Stage, start: str) -> None:
    """On a topic without records every start waits for the first record."""
    client, producer = await filled(stage, 0)
    sub = await client.subscribe(stage.topic, **{"from": start})
    await sub.request(1)
    assert (await sub.event())["event"] == "live"
    await producer.publish("first")
    assert (await sub.take(1))[0].offset == 0


@scenario()
async def between_times(stage: Stage) -> None:
    """A start at a time begins with the first record that isn't older."""
    client, producer = await filled(stage, 3)
    await asyncio.sleep(0.02)
    await producer.publish("later")
    time = (await (await client.subscribe(stage.topic)).records(4))[3].time
    assert await (await client.subscribe(stage.topic, **{"from": ["since", time]})).texts(1) == ["later"]


@scenario()
async def beyond_the_end(stage: Stage) -> None:
    """A start beyond the end waits for that record, and gets none before it."""
    client, producer = await filled(stage, 2)
    sub = await client.subscribe(stage.topic, **{"from": ["offset", 4]})
    await sub.request(2)
    await sub.expect("live")
    await producer.publish("2", "3", "4", "5")
    assert [(record.offset, record.text) for record in await sub.take(2)] == [(4, "4"), (5, "5")]


@scenario()
async def limited_replay(stage: Stage) -> None:
    """A late subscriber gets the records that the topic's limit keeps."""
    client, _ = await filled(stage, 50, **{"replay-records": 4})
    assert await (await client.subscribe(stage.topic)).texts(4) == ["46", "47", "48", "49"]


@scenario()
async def compact(stage: Stage) -> None:
    """A late subscriber of a compact topic gets the newest record of each key."""
    client = await stage.client()
    await client.admin("create", topic=stage.topic, settings={"compact": True})
    producer = await client.producer(stage.topic)
    await producer.publish(*((f"{i}", f"k{i % 3}", ()) for i in range(9)))
    sub = await client.subscribe(stage.topic, prefetch=10)
    assert await sub.texts(3) == ["6", "7", "8"]
    await producer.publish(("9", "k0", ()))
    assert await sub.texts(1) == ["9"]


@scenario()
async def producers(stage: Stage) -> None:
    """A subscription that requests it gets the number of the topic's producers, and its changes."""
    client = await stage.client()
    sub = await client.subscribe(stage.topic, producers=True)
    await sub.request(1)
    counts: list[int] = []
    producer = None
    while 1 not in counts:
        event = await sub.event()
        if event["event"] != "producers":
            continue
        counts.append(event["count"])
        producer = producer or await client.producer(stage.topic)
    assert counts == [0, 1]


@scenario()
async def missing(stage: Stage) -> None:
    """A subscription that must not create its topic ends with unknown-topic, and one that may creates it."""
    client = await stage.client()
    sub = await client.subscribe(stage.topic, missing="fail")
    await sub.request(1)
    assert (await sub.error()).code == 102
    await client.subscribe(stage.topic)
    assert stage.topic in await client.admin("topics")
