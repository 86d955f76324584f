"""Frames and fields that a later version of the protocol may send, and those without a meaning."""

from __future__ import annotations

import struct
from collections.abc import Callable

from .. import wire
from ..brokers import Peer
from ..stage import Stage, each, scenario

#: Frames and fields that a client must accept, since the protocol is extended this way, or since they have no meaning.
TOLERATED: dict[str, Callable[[int], bytes]] = {
    "unknown-type-from-0x80-on": lambda stream: wire.frame(0x80, 0, b"later"),
    "unknown-type-on-a-free-stream": lambda stream: wire.frame(0xFF, 0xFFFF_FFFF, bytes(60_000), 0xFF),
    "high-flags": lambda stream: wire.frame(0x03, 0, bytes(8), 0xF0),
    "high-flags-of-live": lambda stream: wire.frame(0x14, stream, bytes(8), 0xF0),
    "longer-live": lambda stream: wire.frame(0x14, stream, bytes(8) + b"a later field"),
    "longer-ping": lambda stream: wire.frame(0x03, 0, bytes(8) + b"a later field"),
    "unasked-pong": lambda stream: wire.encode("PONG", 0, token=99),
    "unasked-producers": lambda stream: wire.encode("PRODUCERS", stream, count=3),
    "goaway-twice": lambda stream: wire.encode("GOAWAY", 0, code=8) * 2,
    "reserved-bytes": lambda stream: wire.encode("PING", 0)[:6] + b"\xff\xff" + wire.encode("PING", 0)[8:],
    "lag-of-nothing": lambda stream: wire.encode("LAG", stream, missed=0, next_offset=0),
}


@scenario(*each("sent", *TOLERATED))
async def tolerated(stage: Stage, sent: str) -> None:
    """Frames and fields of later versions, and those without a meaning, have no effect."""

    async def script(peer: Peer) -> None:
        await peer.welcome()
        stream, _ = await peer.expect("SUBSCRIBE")
        peer.raw(wire.frame(0x11, stream, wire.body("SUBSCRIBED", epoch=7) + b"a later field"))
        await peer.granted(stream, 1)
        peer.raw(TOLERATED[sent](stream))
        marks = wire.item(struct.pack("<q", 5), 2) * 3
        peer.raw(wire.deliver(stream, marks + wire.item(b"x"), flags=0xF0))

    broker = await stage.scripted(script)
    sub = await (await stage.client(broker.address, reconnect=False)).subscribe(stage.topic)
    await sub.request(1)
    event = await sub.event()
    while event["event"] in ("live", "producers", "lag"):
        event = await sub.event()
    assert event["event"] == "record" and event["time"] == 5, event


@scenario()
async def tolerated_grants(stage: Stage) -> None:
    """A grant that is smaller than one before, and a repeated acknowledgement, have no effect."""

    async def script(peer: Peer) -> None:
        await peer.welcome()
        stream, _ = await peer.opened(granted=2)
        peer.send("DEMAND", stream, granted=1, bytes=5)
        await peer.published(2)
        for through in (1, 1, 0, 2, 2):
            peer.send("ACK", stream, through=through, last_offset=max(through, 1) - 1)
        peer.send("DEMAND", stream, granted=3, bytes=wire.ALL_ONES)
        await peer.published(1)
        peer.send("ACK", stream, through=3, last_offset=2)

    broker = await stage.scripted(script)
    producer = await (await stage.client(broker.address, reconnect=False)).producer(stage.topic)
    await producer.send("1", "2", "3")
    await producer.flush()
    await broker.finished()
