"""Durable cursors, which the broker stores."""

from __future__ import annotations

from ..driver import Client
from ..stage import Stage, check_error, each, eventually, fails, scenario


async def filled(stage: Stage) -> Client:
    client = await stage.client()
    await (await client.producer(stage.topic)).publish(*(f"{i}" for i in range(10)))
    return client


async def committed(client: Client, topic: str, offset: int) -> None:
    """Waits until the cursor is at an offset."""

    async def is_there() -> bool:
        return [cursor["next"] for cursor in await client.admin("consumers", topic=topic)] == [offset]

    await eventually(is_there)


@scenario(*each("prefetch", 0, 8))
async def commit(stage: Stage, prefetch: int) -> None:
    """A subscription with a cursor continues after the committed record: later records arrive again."""
    client = await filled(stage)
    sub = await client.subscribe(stage.topic, cursor="c", prefetch=prefetch)
    records = await sub.records(5)
    await sub.commit(records[2])
    await committed(client, stage.topic, 3)
    await sub.cancel()
    assert await (await client.subscribe(stage.topic, cursor="c", prefetch=prefetch)).texts(2) == ["3", "4"]


@scenario()
async def commit_on_cancel(stage: Stage) -> None:
    """The last commit is sent when the subscription is cancelled."""
    client = await filled(stage)
    sub = await client.subscribe(stage.topic, cursor="c")
    await sub.commit((await sub.records(4))[3])
    await sub.cancel()
    await committed(client, stage.topic, 4)


@scenario()
async def only_forward(stage: Stage) -> None:
    """A commit below an earlier one has no effect."""
    client = await filled(stage)
    sub = await client.subscribe(stage.topic, cursor="c")
    records = await sub.records(6)
    await sub.commit(records[4])
    await sub.commit(records[1])
    await committed(client, stage.topic, 5)


@scenario()
async def start(stage: Stage) -> None:
    """The start is used for a cursor that is created, and not for one that exists."""
    client = await filled(stage)
    sub = await client.subscribe(stage.topic, cursor="c", **{"from": ["offset", 6]})
    await sub.commit((await sub.records(1))[0])
    await committed(client, stage.topic, 7)
    await sub.cancel()
    assert await (await client.subscribe(stage.topic, cursor="c", **{"from": "earliest"})).texts(1) == ["7"]


@scenario()
async def cut(stage: Stage) -> None:
    """After lost connections a subscription with a cursor continues at its position, and commits keep their effect."""
    client = await filled(stage)
    proxy = await stage.proxy()
    sub = await (await stage.client(proxy.address)).subscribe(stage.topic, cursor="c", prefetch=4)
    found = []
    for _ in range(5):
        records = await sub.records(2)
        found += [record.text for record in records]
        await sub.commit(records[-1])
        proxy.cut()
    assert found == [f"{i}" for i in range(10)]
    await committed(client, stage.topic, 10)


@scenario(seconds=60)
async def killed_broker(stage: Stage) -> None:
    """A cursor of a durable topic survives a restart of the broker."""
    broker = await stage.broker()
    client = await stage.client(broker.address)
    await (await client.producer(stage.topic, settings={"storage": "durable"})).publish(*(f"{i}" for i in range(10)))
    sub = await client.subscribe(stage.topic, cursor="c")
    await sub.commit((await sub.records(5))[4])
    await committed(client, stage.topic, 5)
    await sub.cancel()
    await broker.terminate()
    await broker.start()
    assert await (await client.subscribe(stage.topic, cursor="c")).texts(2) == ["5", "6"]


@scenario()
async def taken(stage: Stage) -> None:
    """A subscription whose cursor is taken over by another one ends with cursor-taken."""
    client = await filled(stage)
    sub = await client.subscribe(stage.topic, cursor="c")
    await sub.records(1)
    await sub.request(10)
    await sub.take(9)
    other = await client.subscribe(stage.topic, cursor="c")
    await other.records(1)
    check_error(await sub.error(), (116,), False)


@scenario(*each("call", "moveCursor", "deleteCursor"))
async def moved(stage: Stage, call: str) -> None:
    """A subscription whose cursor is moved or deleted ends with that code."""
    client = await filled(stage)
    sub = await client.subscribe(stage.topic, cursor="c")
    await sub.records(10)
    await sub.request(1)
    await client.admin(call, topic=stage.topic, name="c", to=["offset", 2])
    check_error(await sub.error(), (117 if call == "moveCursor" else 118,), False)
    expected = "2" if call == "moveCursor" else "0"
    assert await (await client.subscribe(stage.topic, cursor="c")).texts(1) == [expected]


@scenario()
async def name_of_a_group(stage: Stage) -> None:
    """A cursor with a group's name is rejected."""
    client = await filled(stage)
    await (await client.group(stage.topic, "g")).records(1)
    sub = await client.subscribe(stage.topic, cursor="g")
    await sub.request(1)
    check_error(await sub.error(), (121,), False)


@scenario()
async def unknown(stage: Stage) -> None:
    """Deleting a cursor that doesn't exist fails with unknown-cursor."""
    client = await filled(stage)
    async with fails(120, retry=False):
        await client.admin("deleteCursor", topic=stage.topic, name="c")
