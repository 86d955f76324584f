"""Several nodes: redirections, topics that move, relays."""

from __future__ import annotations

import asyncio
import itertools

from ..brokers import Peer, Script, free_port
from ..stage import Stage, each, scenario


def serves(*texts: str) -> Script:
    """Returns a script of a node that serves the subscription."""

    async def script(peer: Peer) -> None:
        await peer.welcome()
        stream, _ = await peer.subscribed()
        for index, text in enumerate(texts):
            await peer.granted(stream, index + 1)
            peer.deliver(stream, index, text.encode())

    return script


def redirects(address: str) -> Script:
    async def script(peer: Peer) -> None:
        hello = await peer.welcome()
        assert hello["features"] & 1, "the client doesn't take redirections"
        stream, _ = await peer.expect("SUBSCRIBE", "PUBLISH_OPEN", "JOIN")
        peer.send("REDIRECT", stream, node="b", address=address)

    return script


@scenario()
async def subscription(stage: Stage) -> None:
    """A redirected subscription is opened at the topic's node."""
    node = await stage.scripted(serves("1", "2"))
    home = await stage.scripted(redirects(node.address))
    sub = await (await stage.client(home.address)).subscribe(stage.topic)
    assert await sub.texts(2) == ["1", "2"]
    await home.finished()


@scenario()
async def publication(stage: Stage) -> None:
    """A redirected publication is opened at the topic's node."""

    async def script(peer: Peer) -> None:
        await peer.welcome()
        stream, _ = await peer.opened()
        await peer.published(1)
        peer.send("ACK", stream, through=1, last_offset=0)

    node = await stage.scripted(script)
    home = await stage.scripted(redirects(node.address))
    assert await (await (await stage.client(home.address)).producer(stage.topic)).publish("1") == [0]


@scenario()
async def same_credentials(stage: Stage) -> None:
    """The client sends a node the same credentials as its broker."""

    async def script(peer: Peer) -> None:
        hello = await peer.welcome()
        assert (hello["method"], hello["user"], hello["secret"]) == (1, "ann", "right")
        await peer.subscribed()

    node = await stage.scripted(script)
    home = await stage.scripted(redirects(node.address))
    sub = await (await stage.client(home.address, user="ann", password="right")).subscribe(stage.topic)
    await sub.request(1)
    await node.finished()


@scenario(*each("address", "nowhere", "not an address"))
async def relay(stage: Stage, address: str) -> None:
    """When the node can't be reached, the client asks its broker again, with the flag relay."""

    async def script(peer: Peer) -> None:
        await redirects(f"127.0.0.1:{free_port()}" if address == "nowhere" else address)(peer)
        stream, _ = await peer.subscribed()
        assert peer.flags & 0x10, "the flag relay isn't set"
        await peer.granted(stream, 1)
        peer.deliver(stream, 0, b"1")

    home = await stage.scripted(script)
    assert await (await (await stage.client(home.address)).subscribe(stage.topic)).texts(1) == ["1"]
    await home.finished()


@scenario()
async def in_circles(stage: Stage) -> None:
    """After several redirections in a row the client requests a relay."""
    flags: list[int] = []
    address = ""

    async def script(peer: Peer) -> None:
        await peer.welcome()
        while True:
            stream, _ = await peer.expect("SUBSCRIBE")
            flags.append(peer.flags)
            if peer.flags & 0x10:
                break
            peer.send("REDIRECT", stream, node="a", address=address)
        peer.send("SUBSCRIBED", stream, epoch=7)
        await peer.granted(stream, 1)
        peer.deliver(stream, 0, b"1")

    home = await stage.scripted(script, repeats=True)
    address = home.address
    assert await (await (await stage.client(home.address)).subscribe(stage.topic)).texts(1) == ["1"]
    assert len(flags) <= 20


@scenario(*each("how", "lost", "topic-moved"))
async def back_home(stage: Stage, how: str) -> None:
    """When its node is lost, or the topic moves, the client asks its own broker again, and resumes at its position."""

    async def node_script(peer: Peer) -> None:
        await peer.welcome()
        stream, _ = await peer.subscribed(epoch=9)
        await peer.granted(stream, 1)
        peer.deliver(stream, 0, b"1")
        if how == "lost":
            await peer.cut()
        else:
            peer.send("ERROR", stream, code=128, message="another node serves the topic")

    async def home_script(peer: Peer) -> None:
        await redirects(node.address)(peer)
        stream, frame = await peer.subscribed(epoch=9, next_offset=1)
        assert (frame["start"], frame["start_value"], frame["epoch"]) == (4, 1, 9)
        await peer.granted(stream, 1)
        peer.deliver(stream, 1, b"2")

    node = await stage.scripted(node_script)
    home = await stage.scripted(home_script)
    assert await (await (await stage.client(home.address)).subscribe(stage.topic)).texts(2) == ["1", "2"]
    await home.finished()


@scenario(*each("times", 1, 6))
async def moved(stage: Stage, times: int) -> None:
    """A subscription whose topic moves is opened again on the same connection, after a pause that grows."""
    begin: list[float] = []

    async def script(peer: Peer) -> None:
        await peer.welcome()
        loop = asyncio.get_running_loop()
        for _ in range(times):
            stream, _ = await peer.expect("SUBSCRIBE")
            begin.append(loop.time())
            peer.send("ERROR", stream, code=128, message="no node serves the topic at the moment")
        stream, _ = await peer.expect("SUBSCRIBE")
        begin.append(loop.time())
        peer.send("SUBSCRIBED", stream, epoch=7)
        await peer.granted(stream, 1)
        peer.deliver(stream, 0, b"1")

    broker = await stage.scripted(script)
    assert await (await (await stage.client(broker.address)).subscribe(stage.topic)).texts(1) == ["1"]
    await broker.finished()
    pauses = [later - earlier for earlier, later in itertools.pairwise(begin)]
    assert min(pauses) >= 0.002 and sum(pauses) <= 4 and (times == 1 or pauses[-1] > pauses[0]), pauses


@scenario()
async def moved_publication(stage: Stage) -> None:
    """A publication whose topic moves is opened again with its number, and sends its unacknowledged records."""

    async def script(peer: Peer) -> None:
        await peer.welcome()
        stream, frame = await peer.opened()
        await peer.published(2)
        peer.send("ACK", stream, through=1, last_offset=0)
        peer.send("ERROR", stream, code=128, message="another node serves the topic")
        stream, again = await peer.opened()
        assert (again["producer"], again["first_sequence"]) == (frame["producer"], 1)
        assert await peer.published(1) == [b"2"]
        peer.send("ACK", stream, through=2, last_offset=1)

    broker = await stage.scripted(script)
    producer = await (await stage.client(broker.address)).producer(stage.topic)
    await producer.send("1", "2")
    await producer.flush()
    await broker.finished()


@scenario()
async def request_again(stage: Stage) -> None:
    """A request that is answered with topic-moved had no effect. It is sent again, even if it changes something."""

    async def script(peer: Peer) -> None:
        await peer.welcome()
        stream, _ = await peer.expect("TOPIC_DELETE")
        peer.send("ERROR", stream, code=128, message="another node serves the topic")
        stream, _ = await peer.expect("TOPIC_DELETE")
        peer.send("DONE", stream)

    broker = await stage.scripted(script)
    await (await stage.client(broker.address)).admin("delete", topic=stage.topic)
    await broker.finished()


@scenario()
async def indirect(stage: Stage) -> None:
    """A client that may not connect to nodes directly requests a relay."""

    async def script(peer: Peer) -> None:
        await peer.welcome()
        stream, _ = await peer.expect("SUBSCRIBE")
        # A client that doesn't announce the feature gets no REDIRECT.
        if peer.hello["features"] & 1 and not peer.flags & 0x10:
            peer.send("REDIRECT", stream, node="b", address="192.0.2.1:7420")
            stream, _ = await peer.expect("SUBSCRIBE")
            assert peer.flags & 0x10
        peer.send("SUBSCRIBED", stream, epoch=7)

    broker = await stage.scripted(script)
    sub = await (await stage.client(broker.address, direct=False)).subscribe(stage.topic)
    await sub.request(1)
    await broker.finished()
