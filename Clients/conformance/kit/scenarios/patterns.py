"""Subscriptions to all topics whose names match."""

from __future__ import annotations

from ..brokers import Peer
from ..stage import Stage, scenario


@scenario(
    {"name": "one-token", "pattern": "*", "matched": ("a", "b")},
    {"name": "all", "pattern": ">", "matched": ("a", "b", "a.x", "a.y", "b.x.y")},
    {"name": "in-the-middle", "pattern": "*.x", "matched": ("a.x",)},
    {"name": "below", "pattern": "a.>", "matched": ("a.x", "a.y")},
)
async def names(stage: Stage, pattern: str, matched: tuple[str, ...]) -> None:
    """A pattern's topics are those whose names match, and their records arrive in each topic's order."""
    client = await stage.client()
    topics = ("a", "b", "a.x", "a.y", "b.x.y")
    for topic in topics:
        await (await client.producer(f"{stage.topic}.{topic}")).publish(f"{topic}1", f"{topic}2")
    sub = await client.pattern(f"{stage.topic}.{pattern}", prefetch=4)
    records = await sub.records(2 * len(matched))
    assert {record.topic for record in records} == {f"{stage.topic}.{topic}" for topic in matched}
    for topic in matched:
        assert [record.text for record in records if record.topic == f"{stage.topic}.{topic}"] == [f"{topic}1", f"{topic}2"]
    await sub.request(1)
    await sub.expect("live")
    assert {event["topic"] for event in sub.passed if event["event"] == "matched"} == {f"{stage.topic}.{topic}" for topic in matched}


@scenario()
async def created_later(stage: Stage) -> None:
    """A topic that is created later is matched, and its records arrive from the first one on."""
    client = await stage.client()
    sub = await client.pattern(f"{stage.topic}.>", **{"from": "new"})
    await sub.request(2)
    await sub.expect("live")
    await (await client.producer(f"{stage.topic}.a")).publish("1", "2")
    assert [(record.text, record.offset) for record in await sub.take(2)] == [("1", 0), ("2", 1)]


@scenario()
async def deleted(stage: Stage) -> None:
    """A topic that is deleted is unmatched, and matched again when it is created again."""
    client = await stage.client()
    topic = f"{stage.topic}.a"
    await (await client.producer(topic)).publish("1")
    sub = await client.pattern(f"{stage.topic}.*")
    assert await sub.texts(1) == ["1"]
    await sub.request(1)
    await client.admin("delete", topic=topic)
    assert (await sub.expect("unmatched"))["topic"] == topic
    await (await client.producer(topic)).publish("2")
    record = (await sub.take(1))[0]
    assert (record.text, record.offset) == ("2", 0)


@scenario()
async def demand(stage: Stage) -> None:
    """Demand is shared by all topics."""
    client = await stage.client()
    for topic in "abc":
        await (await client.producer(f"{stage.topic}.{topic}")).publish(*(f"{topic}{i}" for i in range(20)))
    sub = await client.pattern(f"{stage.topic}.*")
    found = await sub.texts(6)
    await sub.silent()
    found += await sub.texts(54)
    assert sorted(found) == sorted(f"{topic}{i}" for topic in "abc" for i in range(20))


@scenario()
async def where(stage: Stage) -> None:
    """Conditions apply to each topic of a pattern."""
    client = await stage.client()
    for topic in "ab":
        await (await client.producer(f"{stage.topic}.{topic}")).publish(("1", "x", ()), ("2", "y", ()))
    sub = await client.pattern(f"{stage.topic}.*", where=[["key", "y"]])
    assert await sub.texts(2) == ["2", "2"]


@scenario()
async def many(stage: Stage) -> None:
    """A pattern with hundreds of topics gets the records of all of them."""
    client = await stage.client()
    for i in range(200):
        await (await client.producer(f"{stage.topic}.n{i}")).send(f"{i}")
    sub = await client.pattern(f"{stage.topic}.*", prefetch=32)
    assert sorted(int(text) for text in await sub.texts(200)) == list(range(200))


@scenario(seconds=40)
async def cut(stage: Stage) -> None:
    """After lost connections a pattern continues in each topic, including those that were created in between."""
    other = await stage.client()
    proxy = await stage.proxy()
    producers = [await other.producer(f"{stage.topic}.{name}") for name in "abcd"]
    sub = await (await stage.client(proxy.address)).pattern(f"{stage.topic}.*", prefetch=8)
    seen: dict[str, list[str]] = {}
    for part in range(4):
        for producer in producers[: part + 1]:
            await producer.publish(*(f"{part}{i}" for i in range(10)))
        for record in await sub.records(10 * (part + 1)):
            seen.setdefault(record.topic[-1], []).append(record.text)
        proxy.cut()
    for index, name in enumerate("abcd"):
        assert seen[name] == [f"{part}{i}" for part in range(index, 4) for i in range(10)], (name, seen[name])


@scenario()
async def positions(stage: Stage) -> None:
    """After a lost connection the client sends a position for each topic that it knows, and its remaining demand."""

    async def first(peer: Peer) -> None:
        await peer.welcome()
        stream, frame = await peer.expect("SUBSCRIBE_PATTERN")
        assert (frame["start"], frame["positions"], frame["more"]) == (1, [], 0)
        peer.send("SUBSCRIBED", stream, epoch=1)
        for number in (1, 2):
            peer.send("MATCHED", stream, number=number, topic=f"t.{number}", epoch=10 + number)
        peer.send("SELECT_TOPIC", stream)
        peer.send("LIVE", stream)
        await peer.granted(stream, 1)
        peer.send("SELECT_TOPIC", stream, number=2)
        peer.deliver(stream, 0, b"first")
        await peer.cut()

    async def second(peer: Peer) -> None:
        await peer.welcome()
        stream, frame = await peer.expect("SUBSCRIBE_PATTERN")
        assert (frame["start"], frame["start_value"]) == (4, 0), frame
        places = sorted((place["topic"], place["epoch"], place["next_offset"]) for place in frame["positions"])
        assert places == [("t.1", 11, 0), ("t.2", 12, 1)], places
        peer.send("SUBSCRIBED", stream, epoch=1)
        peer.send("MATCHED", stream, number=1, topic="t.2", epoch=12, next_offset=1)
        # The other topic was deleted in between.
        peer.send("SELECT_TOPIC", stream)
        peer.send("SELECT_TOPIC", stream, number=1)
        await peer.granted(stream, 1)
        peer.deliver(stream, 1, b"second")

    broker = await stage.scripted(first, second)
    sub = await (await stage.client(broker.address)).pattern("t.*", **{"from": "earliest"})
    assert await sub.texts(1) == ["first"]
    await sub.request(1)
    assert (await sub.expect("unmatched"))["topic"] == "t.1"
    assert [record.text for record in await sub.take(1)] == ["second"]
    await broker.finished()


@scenario()
async def many_positions(stage: Stage) -> None:
    """Positions that don't fit one frame are sent in several."""
    names = [f"t.{'x' * 200}{i}" for i in range(600)]

    async def first(peer: Peer) -> None:
        await peer.welcome()
        stream, _ = await peer.expect("SUBSCRIBE_PATTERN")
        peer.send("SUBSCRIBED", stream, epoch=1)
        for number, name in enumerate(names, 1):
            peer.send("MATCHED", stream, number=number, topic=name, epoch=5)
        peer.send("SELECT_TOPIC", stream)
        peer.send("LIVE", stream)
        await peer.cut()

    async def second(peer: Peer) -> None:
        await peer.welcome(longest_frame=65_536)
        _, frame = await peer.expect("SUBSCRIBE_PATTERN")
        found = [place["topic"] for place in frame["positions"]]
        while frame["more"]:
            _, frame = await peer.expect("POSITIONS")
            found += [place["topic"] for place in frame["positions"]]
        assert sorted(found) == sorted(names)

    broker = await stage.scripted(first, second)
    sub = await (await stage.client(broker.address)).pattern("t.*")
    await sub.request(1)
    await broker.finished()


@scenario()
async def continuation(stage: Stage) -> None:
    """A pattern also reports an epoch that goes back, and restarts a topic whose new epoch doesn't continue the old one."""

    async def first(peer: Peer) -> None:
        await peer.welcome()
        stream, _ = await peer.expect("SUBSCRIBE_PATTERN")
        peer.send("SUBSCRIBED", stream, epoch=1)
        for number in (1, 2):
            peer.send("MATCHED", stream, number=number, topic=f"t.{number}", epoch=10 + number)
        peer.send("SELECT_TOPIC", stream)
        for number in (1, 2):
            await peer.granted(stream, number)
            peer.send("SELECT_TOPIC", stream, number=number)
            peer.deliver(stream, 0, b"x")
        await peer.cut()

    async def second(peer: Peer) -> None:
        await peer.welcome()
        stream, _ = await peer.expect("SUBSCRIBE_PATTERN")
        peer.send("SUBSCRIBED", stream, epoch=1)
        peer.send("MATCHED", stream, number=1, topic="t.1", epoch=21, continues=1)
        peer.send("MATCHED", stream, number=2, topic="t.2", epoch=22)
        peer.send("SELECT_TOPIC", stream)

    broker = await stage.scripted(first, second)
    sub = await (await stage.client(broker.address)).pattern("t.*")
    await sub.records(2)
    await sub.request(1)
    event = await sub.expect("rewound")
    assert (event["topic"], event["next"]) == ("t.1", 0)
    assert (await sub.expect("restarted"))["topic"] == "t.2"
    await broker.finished()
