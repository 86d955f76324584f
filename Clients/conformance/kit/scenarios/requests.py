"""Requests and replies, and requests about topics."""

from __future__ import annotations

import asyncio

from ..brokers import Peer
from ..driver import DriverError
from ..stage import Stage, eventually, fails, scenario


@scenario()
async def reply(stage: Stage) -> None:
    """A request gets its own reply."""
    client, responder = await stage.client(), await stage.client()
    await responder.respond(stage.topic, "echo")
    await asyncio.sleep(0.1)
    assert await client.call(stage.topic, "ACME") == "ACME"


@scenario()
async def concurrent(stage: Stage) -> None:
    """Each of many concurrent requests gets its own reply."""
    client, responder = await stage.client(), await stage.client()
    await responder.respond(stage.topic, "echo")
    await asyncio.sleep(0.1)
    texts = [f"request {i}" for i in range(100)]
    assert await asyncio.gather(*(client.call(stage.topic, text) for text in texts)) == texts


@scenario()
async def no_responders(stage: Stage) -> None:
    """A request to a topic without subscribers fails at once with no-responders."""
    client = await stage.client()
    async with fails(125, retry=True):
        await client.call(stage.topic, "ACME")


@scenario()
async def timeout(stage: Stage) -> None:
    """A request without a reply fails after its timeout, and reports that a retry may help."""
    client = await stage.client()
    await client.respond(stage.topic, "never")
    await asyncio.sleep(0.1)
    async with fails(0, retry=True):
        await client.call(stage.topic, "ACME", timeout=200)


@scenario()
async def error(stage: Stage) -> None:
    """The responder's error reaches the requester."""
    client = await stage.client()
    await client.respond(stage.topic, "error")
    await asyncio.sleep(0.1)
    for _ in range(2):
        async with fails(0, retry=False):
            await client.call(stage.topic, "ACME")


@scenario()
async def after_a_cut(stage: Stage) -> None:
    """Requests and replies work again after lost connections."""
    proxy = await stage.proxy()
    client, responder = await stage.client(proxy.address), await stage.client(proxy.address)
    await responder.respond(stage.topic, "echo")
    await asyncio.sleep(0.1)
    assert await client.call(stage.topic, "1") == "1"
    for _ in range(3):
        proxy.cut()

        async def is_answered() -> bool:
            try:
                return await client.call(stage.topic, "2", timeout=500) == "2"
            except DriverError:
                return False

        await eventually(is_answered)


@scenario()
async def topics(stage: Stage) -> None:
    """Topics are created, changed, listed, trimmed and deleted."""
    client = await stage.client()
    await client.admin("create", topic=stage.topic, settings={"flow": "lossless", "buffer-records": 10, "lag": "fail"})
    await client.admin("create", topic=stage.topic, settings={"flow": "lossless", "buffer-records": 10, "lag": "fail"})
    await client.admin("set", topic=stage.topic, settings={"buffer-records": 100})
    sub = await client.subscribe(stage.topic)
    await sub.request(10)
    producer = await client.producer(stage.topic)
    await producer.publish(*(f"{i}" for i in range(10)))
    await sub.take(10)
    info = await client.admin("info", topic=stage.topic)
    assert (info["floor"], info["head"]) == (0, 10)
    await client.admin("trim", topic=stage.topic, before=4)
    assert (await client.admin("info", topic=stage.topic))["floor"] == 4
    await client.admin("trim", topic=stage.topic, keepLast=1)
    assert (await client.admin("info", topic=stage.topic))["floor"] == 9
    assert stage.topic in await client.admin("topics")
    await client.admin("delete", topic=stage.topic)
    assert stage.topic not in await client.admin("topics")


@scenario(seconds=60)
async def connections(stage: Stage) -> None:
    """A client whose connection an operator closes reconnects, and continues."""
    broker = await stage.broker()
    other = await stage.client(broker.address)
    producer = await other.producer(stage.topic)
    await producer.publish("1")
    sub = await other.subscribe(stage.topic)
    assert await sub.texts(1) == ["1"]
    (connection,) = await other.admin("connections")
    client = await stage.client(broker.address)
    await client.admin("closeConnection", connection=connection)
    await producer.publish("2")
    assert await sub.texts(1) == ["2"]
    assert connection not in await client.admin("connections")


@scenario()
async def reading_again(stage: Stage) -> None:
    """After a lost connection, a request that only reads is sent again; one that changes something fails."""

    async def first(peer: Peer) -> None:
        await peer.welcome()
        await peer.expect("TOPIC_DELETE")
        await peer.cut()

    async def second(peer: Peer) -> None:
        await peer.welcome()
        await peer.expect("TOPIC_SHOW")
        await peer.cut()

    async def third(peer: Peer) -> None:
        await peer.welcome()
        stream, _ = await peer.expect("TOPIC_SHOW")
        peer.send("ERROR", stream, code=102, message="there is no such topic")

    broker = await stage.scripted(first, second, third)
    client = await stage.client(broker.address)
    async with fails(0, retry=True):
        await client.admin("delete", topic=stage.topic)
    async with fails(102, retry=False):
        await client.admin("info", topic=stage.topic)
    await broker.finished()
