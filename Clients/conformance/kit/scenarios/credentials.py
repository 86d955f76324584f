"""Credentials: how a client presents them, renews them, and reacts to their end."""

from __future__ import annotations

import asyncio
import time

from .. import wire
from ..brokers import Peer
from ..stage import Stage, check_error, fails, scenario


@scenario()
async def password(stage: Stage) -> None:
    """A client sends its name and password in HELLO, and reports wrong ones as authentication-failed."""

    async def right(peer: Peer) -> None:
        hello = await peer.welcome(identity="ann")
        assert (hello["method"], hello["user"], hello["secret"]) == (1, "ann", "right")

    async def wrong(peer: Peer) -> None:
        _, hello = await peer.expect("HELLO")
        assert (hello["method"], hello["user"], hello["secret"]) == (1, "ann", "wrong")
        peer.send("ERROR", 0, code=13, message="the user or the password is wrong")

    broker = await stage.scripted(right, wrong)
    client = await stage.client(broker.address, user="ann", password="right")
    assert await client.admin("identity") == "ann"
    async with fails(13, retry=False):
        await stage.client(broker.address, user="ann", password="wrong")


def in_milliseconds(seconds: float) -> int:
    return int((time.time() + seconds) * 1000)


@scenario()
async def renewal(stage: Stage) -> None:
    """A token is renewed on the connection before it expires, again and again."""

    async def script(peer: Peer) -> None:
        hello = await peer.welcome(identity="ann", expires=in_milliseconds(3.0))
        assert (hello["method"], hello["secret"]) == (2, "one")
        for token in ("two", "three"):
            deadline = time.monotonic() + 3.0
            stream, values = await peer.expect("AUTHENTICATE")
            assert (values["method"], values["secret"]) == (2, token)
            assert time.monotonic() < deadline, "the token is renewed after it has expired"
            peer.send("AUTHENTICATED", stream, identity="ann", expires=in_milliseconds(3.0) if token == "two" else wire.ALL_ONES)

    broker = await stage.scripted(script)
    await stage.client(broker.address, tokens=["one", "two", "three"])
    await broker.finished()


@scenario()
async def refused_renewal(stage: Stage) -> None:
    """When a renewal is refused, the connection stays open, and the client retries with another token."""

    async def script(peer: Peer) -> None:
        await peer.welcome(identity="ann", expires=in_milliseconds(5))
        stream, _ = await peer.subscribed()
        renewal, _ = await peer.expect("AUTHENTICATE")
        peer.send("ERROR", renewal, code=13, message="the token is wrong")
        peer.deliver(stream, 0, b"1")
        _, values = await peer.expect("AUTHENTICATE")
        assert values["secret"] == "three"

    broker = await stage.scripted(script)
    sub = await (await stage.client(broker.address, tokens=["one", "two", "three"])).subscribe(stage.topic)
    await sub.request(1)
    assert [record.text for record in await sub.take(1)] == ["1"]
    await broker.finished()


@scenario()
async def expired(stage: Stage) -> None:
    """When credentials expire, the client reconnects with a new token, and continues."""

    async def first(peer: Peer) -> None:
        hello = await peer.welcome()
        assert hello["secret"] == "one"
        stream, _ = await peer.subscribed()
        await peer.granted(stream, 1)
        peer.deliver(stream, 0, b"1")
        peer.send("ERROR", 0, code=14, message="the token has expired")
        await peer.cut()

    async def second(peer: Peer) -> None:
        hello = await peer.welcome()
        assert hello["secret"] == "two"
        stream, frame = await peer.subscribed(next_offset=1)
        assert frame["start_value"] == 1
        await peer.granted(stream, 1)
        peer.deliver(stream, 1, b"2")

    broker = await stage.scripted(first, second)
    sub = await (await stage.client(broker.address, tokens=["one", "two"])).subscribe(stage.topic)
    assert await sub.texts(2) == ["1", "2"]


@scenario()
async def revoked(stage: Stage) -> None:
    """A client whose identity was removed from the broker's lists doesn't reconnect."""

    async def script(peer: Peer) -> None:
        await peer.welcome()
        await peer.subscribed()
        peer.send("ERROR", 0, code=15, message="ann was taken from the lists")
        await peer.cut()

    broker = await stage.scripted(script)
    sub = await (await stage.client(broker.address, user="ann", password="right")).subscribe(stage.topic)
    await sub.request(1)
    check_error(await sub.error(), (15,), False)
    await asyncio.sleep(0.3)
    assert broker.connections == 1
