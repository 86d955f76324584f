"""A broker that breaks each rule for brokers: the client reports the right error, and neither hangs nor grows."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial
from typing import Any

from .. import wire
from ..brokers import Peer
from ..driver import DriverError
from ..stage import Stage, check_error, each, fails, scenario

MALFORMED, TOO_LARGE, UNSUPPORTED, UNEXPECTED, INVALID_STREAM = 3, 4, 5, 6, 11
#: A frame on a stream that isn't open, or of a type that the stream doesn't accept, can be either.
MISPLACED = (UNEXPECTED, INVALID_STREAM)
#: A batch that contradicts itself, or the offsets before it.
BATCH = (MALFORMED, 107)

Break = tuple[tuple[int, ...], Callable[[int], bytes]]


def short(name: str, by: int = 1, **values: Any) -> Callable[[int], bytes]:
    """Returns a frame of the stream whose body ends before its fields do."""
    number = wire.FRAMES[name][0]
    return lambda stream: wire.frame(number, stream, wire.body(name, **values)[:-by])


SENT_BY_CLIENTS = ("SUBSCRIBE", "SUBSCRIBE_PATTERN", "JOIN", "CANCEL", "COMMIT", "SETTLE", "PUBLISH_OPEN", "PUBLISH", "TOPIC_CREATE")

#: Frames on an open subscription from offset 0 with demand for one record, and the codes that name the broker's mistake.
SUBSCRIPTION: dict[str, Break] = {
    "unknown-type": ((UNSUPPORTED,), lambda stream: wire.frame(0x7F, stream)),
    "unknown-type-on-stream-0": ((UNSUPPORTED,), lambda stream: wire.frame(0x70, 0)),
    "low-flag": ((UNSUPPORTED,), lambda stream: wire.frame(0x03, 0, bytes(8), 0x01)),
    "low-flag-of-deliver": ((UNSUPPORTED,), lambda stream: wire.deliver(stream, wire.batch(b"x"), flags=0x08)),
    "hello": ((UNEXPECTED,), lambda stream: wire.encode("HELLO", 0, magic=wire.MAGIC)),
    "second-welcome": ((UNEXPECTED,), lambda stream: wire.encode("WELCOME", 0, magic=wire.MAGIC, version=1, longest_frame=1 << 20)),
    **{f"sent-by-clients-{name}": ((UNEXPECTED,), partial(wire.encode, name)) for name in SENT_BY_CLIENTS},
    "ping-on-a-stream": ((INVALID_STREAM,), lambda stream: wire.encode("PING", stream)),
    "goaway-on-a-stream": ((INVALID_STREAM,), lambda stream: wire.encode("GOAWAY", stream, code=8)),
    "live-on-stream-0": ((INVALID_STREAM,), lambda stream: wire.encode("LIVE", 0)),
    "deliver-on-stream-0": ((INVALID_STREAM,), lambda stream: wire.deliver(0, wire.batch(b"x"))),
    "deliver-on-a-free-stream": (MISPLACED, lambda stream: wire.deliver(stream + 5, wire.batch(b"x"))),
    "live-on-a-free-stream": (MISPLACED, lambda stream: wire.encode("LIVE", stream + 5)),
    "error-on-a-free-stream": (MISPLACED, lambda stream: wire.encode("ERROR", stream + 5, code=104)),
    "stream-beyond-the-limit": (MISPLACED, lambda stream: wire.encode("LIVE", 0xFFFF_FFFF)),
    "after-the-end": (MISPLACED, lambda stream: wire.encode("COMPLETE", stream) + wire.encode("LIVE", stream)),
    "frame-too-large": ((TOO_LARGE,), lambda stream: wire.frame(0x13, stream, length=0xFFFF_FFFF)),
    "frame-a-byte-too-large": ((TOO_LARGE,), lambda stream: wire.frame(0x13, stream, length=(1 << 24) + 1)),
    "short-ping": ((MALFORMED,), lambda stream: wire.frame(0x03, 0, bytes(7))),
    "short-pong": ((MALFORMED,), lambda stream: wire.frame(0x04, 0, bytes(7))),
    "short-goaway": ((MALFORMED,), lambda stream: wire.frame(0x05, 0, b"\x08\0\0\0")),
    "short-error": ((MALFORMED,), lambda stream: wire.frame(0x06, 0, bytes(3))),
    "short-error-of-the-stream": ((MALFORMED,), short("ERROR", code=104, message="deleted")),
    "short-live": ((MALFORMED,), short("LIVE")),
    "short-lag": ((MALFORMED,), short("LAG")),
    "short-complete": ((MALFORMED,), short("COMPLETE", message="m")),
    "short-deliver": ((MALFORMED,), lambda stream: wire.frame(0x13, stream, bytes(11))),
    "short-producers": ((MALFORMED,), short("PRODUCERS")),
    "string-beyond-the-body": ((MALFORMED,), lambda stream: wire.frame(0x06, stream, struct.pack("<IH", 104, 60_000) + b"x")),
    "string-not-utf-8": ((MALFORMED,), lambda stream: wire.frame(0x06, stream, struct.pack("<IH", 104, 2) + b"\xff\xfe")),
    "end-of-kind-2": ((MALFORMED,), lambda stream: wire.encode("COMPLETE", stream, kind=2)),
    "more-than-requested": ((108,), lambda stream: wire.deliver(stream, wire.batch(*(b"x",) * 50), 50)),
    "no-record": (BATCH, lambda stream: wire.deliver(stream, b"", 0)),
    "only-a-time-mark": (BATCH, lambda stream: wire.deliver(stream, wire.MARK)),
    "fewer-than-said": (BATCH, lambda stream: wire.deliver(stream, wire.MARK)),
    "more-than-said": (BATCH, lambda stream: wire.deliver(stream, wire.batch(b"x", b"y"), 1)),
    "many-more-than-said": (BATCH, lambda stream: wire.deliver(stream, wire.batch(*(b"",) * 100_000), 1)),
    "record-beyond-the-batch": (BATCH, lambda stream: wire.deliver(stream, wire.MARK + struct.pack("<I", 100) + b"x")),
    "record-of-a-gib": (BATCH, lambda stream: wire.deliver(stream, wire.MARK + struct.pack("<I", (1 << 30) - 1))),
    "word-cut-off": (BATCH, lambda stream: wire.deliver(stream, wire.batch(b"x") + b"\0\0")),
    "item-of-kind-3": (BATCH, lambda stream: wire.deliver(stream, wire.MARK + wire.item(b"x", 3))),
    "time-mark-of-4-bytes": (BATCH, lambda stream: wire.deliver(stream, wire.item(bytes(4), 2) + wire.item(b"x"))),
    "undefined-attribute": (BATCH, lambda stream: wire.deliver(stream, wire.MARK + wire.item(b"\x04x", 1))),
    "empty-attributes": (BATCH, lambda stream: wire.deliver(stream, wire.MARK + wire.item(b"", 1))),
    "key-beyond-the-record": (BATCH, lambda stream: wire.deliver(stream, wire.MARK + wire.item(b"\x01\xff\xffk", 1))),
    "headers-beyond-the-record": (BATCH, lambda stream: wire.deliver(stream, wire.MARK + wire.item(b"\x02\xff\xff", 1))),
    "value-beyond-the-record": (BATCH, lambda stream: wire.deliver(stream, wire.MARK + wire.item(b"\x02\x01\0\x01\0h\xff\xff\xff\x7f", 1))),
    "offset-gap": (BATCH, lambda stream: wire.deliver(stream, wire.batch(b"x"), first=5)),
    "offset-beyond-the-last": (BATCH, lambda stream: wire.deliver(stream, wire.batch(b"x"), first=wire.ALL_ONES)),
    "subscribed-twice": (MISPLACED, lambda stream: wire.encode("SUBSCRIBED", stream, epoch=7)),
    "live-twice": ((UNEXPECTED, MALFORMED), lambda stream: wire.encode("LIVE", stream) * 2),
    "demand": ((UNEXPECTED,), lambda stream: wire.encode("DEMAND", stream, granted=5)),
    "publish-opened": ((UNEXPECTED,), lambda stream: wire.encode("PUBLISH_OPENED", stream, epoch=7)),
    "ack": ((UNEXPECTED,), lambda stream: wire.encode("ACK", stream)),
    "connected": ((UNEXPECTED,), lambda stream: wire.encode("CONNECTED", stream)),
    "matched": ((UNEXPECTED,), lambda stream: wire.encode("MATCHED", stream, number=1, topic="t", epoch=7)),
    "select-topic": ((UNEXPECTED,), lambda stream: wire.encode("SELECT_TOPIC", stream)),
    "deliveries": ((UNEXPECTED,), lambda stream: wire.encode("DELIVERIES", stream, count=1)),
    "done": ((UNEXPECTED,), lambda stream: wire.encode("DONE", stream)),
    "authenticated": ((UNEXPECTED,), lambda stream: wire.encode("AUTHENTICATED", stream)),
    "cancelled-without-cancel": (MISPLACED, lambda stream: wire.encode("CANCELLED", stream)),
}


@scenario(*each("broken", *SUBSCRIPTION))
async def subscription(stage: Stage, broken: str) -> None:
    """If a broker breaks a rule, the client reports the rule's error to the program and the broker, and closes the connection."""
    codes, data = SUBSCRIPTION[broken]
    sent: list[int] = []

    async def script(peer: Peer) -> None:
        await peer.welcome()
        stream, _ = await peer.subscribed()
        await peer.granted(stream, 1)
        # A frame after the stream's end only violates a rule of the connection.
        peer.raw(data(stream))
        sent.append(await peer.error())

    broker = await stage.scripted(script)
    client = await stage.client(broker.address, reconnect=False)
    sub = await client.subscribe(stage.topic)
    # The other subscription fails with the connection, even if the first has ended in order.
    await sub.request(1)
    event = await sub.event()
    while event["event"] in ("live", "record"):
        event = await sub.event()
    if broken == "after-the-end":
        assert event["event"] == "completed"
    else:
        assert event["event"] == "error", event
        check_error(DriverError(event), codes)
    await broker.finished()
    assert sent[0] in codes, f"the client sent ERROR {sent[0]}; {' or '.join(map(str, codes))} is expected"


#: Frames before SUBSCRIBED.
BEFORE: dict[str, Callable[[int], bytes]] = {
    "deliver": lambda stream: wire.deliver(stream, wire.batch(b"x")),
    "live": lambda stream: wire.encode("LIVE", stream),
    "lag": lambda stream: wire.encode("LAG", stream, missed=1, next_offset=1),
}


@scenario(*each("frame", *BEFORE))
async def before_subscribed(stage: Stage, frame: str) -> None:
    """SUBSCRIBED is the first frame on the stream."""

    async def script(peer: Peer) -> None:
        await peer.welcome()
        stream, _ = await peer.expect("SUBSCRIBE")
        await peer.granted(stream, 1)
        peer.raw(BEFORE[frame](stream))
        assert await peer.error() in (*MISPLACED, MALFORMED)

    broker = await stage.scripted(script)
    sub = await (await stage.client(broker.address, reconnect=False)).subscribe(stage.topic)
    await sub.request(1)
    check_error(await sub.error(), (*MISPLACED, MALFORMED))
    await broker.finished()


#: Frames that go back after a record at offset 10.
BACK: dict[str, Callable[[int], bytes]] = {
    "deliver": lambda stream: wire.deliver(stream, wire.batch(b"x"), first=10),
    "deliver-with-gaps": lambda stream: wire.deliver(stream, wire.batch(b"x"), first=3),
    "lag": lambda stream: wire.encode("LAG", stream, missed=1, next_offset=5),
    "live": lambda stream: wire.encode("LIVE", stream, next_offset=4),
}


@scenario(*each("frame", *BACK))
async def going_back(stage: Stage, frame: str) -> None:
    """Offsets never go back within a subscription."""

    async def script(peer: Peer) -> None:
        await peer.welcome()
        stream, _ = await peer.subscribed(next_offset=10, gaps=1 if frame == "deliver-with-gaps" else 0)
        await peer.granted(stream, 1)
        peer.deliver(stream, 10, b"first")
        await peer.granted(stream, 2)
        peer.raw(BACK[frame](stream))
        assert await peer.error() in BATCH

    broker = await stage.scripted(script)
    sub = await (await stage.client(broker.address, reconnect=False)).subscribe(stage.topic)
    await sub.records(1)
    await sub.request(1)
    check_error(await sub.error(), BATCH)
    await broker.finished()


#: Answers to HELLO.
HANDSHAKE: dict[str, tuple[tuple[int, ...], bytes]] = {
    "http": ((1,), b"HTTP/1.1 400 Bad Request\r\n\r\n"),
    "noise": ((1,), bytes(range(200, 256))),
    "other-magic": ((1,), wire.encode("WELCOME", 0, **(wire.WELCOME | {"magic": 1}))),
    "ping": ((1,), wire.encode("PING", 0)),
    "goaway": ((1,), wire.encode("GOAWAY", 0, code=8)),
    "unknown-type": ((1,), wire.frame(0x90, 0)),
    "deliver": ((1,), wire.deliver(1, wire.batch(b"x"))),
    "version-2": ((2, MALFORMED), wire.encode("WELCOME", 0, **(wire.WELCOME | {"version": 2}))),
    "version-0": ((2, MALFORMED), wire.encode("WELCOME", 0, **(wire.WELCOME | {"version": 0}))),
    "other-features": ((MALFORMED,), wire.encode("WELCOME", 0, **(wire.WELCOME | {"features": 2}))),
    "short": ((MALFORMED,), wire.frame(0x02, 0, wire.body("WELCOME", **wire.WELCOME)[:-1])),
    "long": ((TOO_LARGE,), wire.frame(0x02, 0, length=8_193)),
    "on-stream-5": ((1, INVALID_STREAM), wire.encode("WELCOME", 5, **wire.WELCOME)),
    "low-flag": ((1, UNSUPPORTED), wire.frame(0x02, 0, wire.body("WELCOME", **wire.WELCOME), 0x02)),
    "frames-of-less-than-64-kib": ((MALFORMED,), wire.encode("WELCOME", 0, **(wire.WELCOME | {"longest_frame": 65_535}))),
    "no-streams": ((MALFORMED,), wire.encode("WELCOME", 0, **(wire.WELCOME | {"streams": 0}))),
}


@scenario(*each("broken", *HANDSHAKE))
async def handshake(stage: Stage, broken: str) -> None:
    """A broker that answers HELLO against the rules is rejected."""
    codes, data = HANDSHAKE[broken]

    async def script(peer: Peer) -> None:
        await peer.expect("HELLO")
        peer.raw(data)
        assert await peer.error() in (*codes, 0)

    broker = await stage.scripted(script)
    async with fails(codes, retry=False):
        await stage.client(broker.address)
    await broker.finished()


@scenario(*each("how", "silence", "half-a-frame", "close"))
async def no_handshake(stage: Stage, how: str) -> None:
    """If a broker doesn't answer HELLO in time, the client closes with an error that reports that a retry may help."""

    async def script(peer: Peer) -> None:
        await peer.expect("HELLO")
        if how == "half-a-frame":
            peer.raw(wire.encode("WELCOME", 0, **wire.WELCOME)[:20])
        if how == "close":
            await peer.cut()

    broker = await stage.scripted(script)
    async with fails((0, 10), retry=True):
        await stage.client(broker.address, connectTimeout=400)


#: Frames on an open publication of which the broker has received one record.
PUBLICATION: dict[str, Break] = {
    "ack-beyond": ((MALFORMED,), lambda stream: wire.encode("ACK", stream, through=2, last_offset=1)),
    "opened-twice": (MISPLACED, lambda stream: wire.encode("PUBLISH_OPENED", stream, epoch=7, granted=10, bytes=wire.ALL_ONES)),
    "subscribed": ((UNEXPECTED,), lambda stream: wire.encode("SUBSCRIBED", stream, epoch=7)),
    "deliver": (MISPLACED, lambda stream: wire.deliver(stream, wire.batch(b"x"))),
    "live": ((UNEXPECTED,), lambda stream: wire.encode("LIVE", stream)),
    "lag": ((UNEXPECTED,), lambda stream: wire.encode("LAG", stream)),
    "matched": ((UNEXPECTED,), lambda stream: wire.encode("MATCHED", stream, number=1, topic="t", epoch=7)),
    "connected": ((UNEXPECTED,), lambda stream: wire.encode("CONNECTED", stream)),
    "cancelled-without-cancel": (MISPLACED, lambda stream: wire.encode("CANCELLED", stream)),
    "short-ack": ((MALFORMED,), short("ACK")),
    "short-demand": ((MALFORMED,), short("DEMAND")),
    "end-of-kind-2": ((MALFORMED,), lambda stream: wire.encode("COMPLETE", stream, kind=2)),
    "done": ((UNEXPECTED,), lambda stream: wire.encode("DONE", stream)),
}


@scenario(*each("broken", *PUBLICATION))
async def publication(stage: Stage, broken: str) -> None:
    """If a broker breaks a rule on a publication, the client reports it, and the record fails."""
    codes, data = PUBLICATION[broken]

    async def script(peer: Peer) -> None:
        await peer.welcome()
        stream, _ = await peer.opened()
        await peer.published(1)
        peer.raw(data(stream))
        sent = await peer.error()
        assert sent in codes, f"the client sent ERROR {sent}; {' or '.join(map(str, codes))} is expected"

    broker = await stage.scripted(script)
    producer = await (await stage.client(broker.address, reconnect=False)).producer(stage.topic)
    async with fails(codes):
        await producer.publish("1")
    await broker.finished()


@scenario(*each("frame", "ACK", "DEMAND"))
async def before_publish_opened(stage: Stage, frame: str) -> None:
    """PUBLISH_OPENED is the first frame on the stream."""

    async def script(peer: Peer) -> None:
        await peer.welcome()
        stream, _ = await peer.expect("PUBLISH_OPEN")
        peer.send(frame, stream, **({"through": 1} if frame == "ACK" else {"granted": 5, "bytes": wire.ALL_ONES}))
        assert await peer.error() in (*MISPLACED, MALFORMED)

    broker = await stage.scripted(script)
    producer = await (await stage.client(broker.address, reconnect=False)).producer(stage.topic)
    async with fails((*MISPLACED, MALFORMED)):
        await producer.publish("1")
    await broker.finished()


@scenario()
async def sequence_goes_back(stage: Stage) -> None:
    """A broker that expects a sequence below the producer's lowest remaining one is rejected."""

    async def first(peer: Peer) -> None:
        await peer.welcome()
        stream, _ = await peer.opened()
        await peer.published(2)
        peer.send("ACK", stream, through=1, last_offset=0)
        peer.send("ERROR", stream, code=128, message="another node serves the topic")
        stream, frame = await peer.opened(next_sequence=0)
        assert frame["first_sequence"] == 1
        assert await peer.error() == MALFORMED

    broker = await stage.scripted(first)
    producer = await (await stage.client(broker.address, reconnect=False)).producer(stage.topic)
    await producer.send("1", "2")
    async with fails(MALFORMED):
        await producer.flush()
    await broker.finished()


#: Frames on a pattern whose topic t.1 is matched as number 1, without a SELECT_TOPIC before.
PATTERN: dict[str, Break] = {
    "deliver-before-select": ((UNEXPECTED, MALFORMED), lambda stream: wire.deliver(stream, wire.batch(b"x"))),
    "lag-before-select": ((UNEXPECTED, MALFORMED), lambda stream: wire.encode("LAG", stream, missed=1, next_offset=1)),
    "complete-before-select": ((UNEXPECTED, MALFORMED), lambda stream: wire.encode("COMPLETE", stream)),
    "select-of-nothing": ((UNEXPECTED, MALFORMED), lambda stream: wire.encode("SELECT_TOPIC", stream, number=9)),
    "offset-gap": (
        BATCH,
        lambda stream: wire.encode("SELECT_TOPIC", stream, number=1) + wire.deliver(stream, wire.batch(b"x"), first=5),
    ),
    "more-than-requested": (
        (108,),
        lambda stream: wire.encode("SELECT_TOPIC", stream, number=1) + wire.deliver(stream, wire.batch(*(b"x",) * 50), 50),
    ),
    "producers": ((UNEXPECTED,), lambda stream: wire.encode("PRODUCERS", stream, count=1)),
    "deliveries": ((UNEXPECTED,), lambda stream: wire.encode("DELIVERIES", stream, count=1)),
    "short-matched": ((MALFORMED,), short("MATCHED", number=2, topic="t.2", epoch=7)),
    "short-select": ((MALFORMED,), short("SELECT_TOPIC")),
}


@scenario(*each("broken", *PATTERN))
async def pattern(stage: Stage, broken: str) -> None:
    """If a broker breaks a rule on a pattern, the client reports it."""
    codes, data = PATTERN[broken]

    async def script(peer: Peer) -> None:
        await peer.welcome()
        stream, _ = await peer.expect("SUBSCRIBE_PATTERN")
        peer.send("SUBSCRIBED", stream, epoch=1)
        peer.send("MATCHED", stream, number=1, topic="t.1", epoch=7)
        await peer.granted(stream, 1)
        peer.raw(data(stream))
        assert await peer.error() in codes

    broker = await stage.scripted(script)
    sub = await (await stage.client(broker.address, reconnect=False)).pattern("t.*")
    await sub.request(1)
    check_error(await sub.error(), codes)
    await broker.finished()


#: Frames to a member of a group.
GROUP: dict[str, Break] = {
    "matched": ((UNEXPECTED,), lambda stream: wire.encode("MATCHED", stream, number=1, topic="t", epoch=7)),
    "producers": ((UNEXPECTED,), lambda stream: wire.encode("PRODUCERS", stream, count=1)),
    "more-than-requested": ((108,), lambda stream: wire.deliver(stream, wire.batch(*(b"x",) * 50), 50)),
    "fewer-than-said": (BATCH, lambda stream: wire.deliver(stream, wire.batch(b"x"), 2)),
    "short-deliveries": ((MALFORMED,), short("DELIVERIES")),
}


@scenario(*each("broken", *GROUP))
async def group(stage: Stage, broken: str) -> None:
    """If a broker breaks a rule on a group's membership, the client reports it."""
    codes, data = GROUP[broken]

    async def script(peer: Peer) -> None:
        await peer.welcome()
        stream, _ = await peer.expect("JOIN")
        peer.send("SUBSCRIBED", stream, epoch=7, gaps=1)
        peer.send("LIVE", stream)
        await peer.granted(stream, 1)
        peer.raw(data(stream))
        assert await peer.error() in (*codes, 108)

    broker = await stage.scripted(script)
    member = await (await stage.client(broker.address, reconnect=False)).group(stage.topic, "g")
    await member.request(1)
    check_error(await member.error(), (*codes, 108))
    await broker.finished()


@scenario(*each("answer", "LIVE", "AUTHENTICATED", "TOPIC_DELETE"))
async def wrong_answer(stage: Stage, answer: str) -> None:
    """A request that is answered by a wrong frame fails."""

    async def script(peer: Peer) -> None:
        await peer.welcome()
        stream, _ = await peer.expect("TOPIC_DELETE")
        peer.send(answer, stream)
        assert await peer.error() in MISPLACED

    broker = await stage.scripted(script)
    client = await stage.client(broker.address, reconnect=False)
    async with fails(MISPLACED):
        await client.admin("delete", topic=stage.topic)
    await broker.finished()
