"""A broker that breaks the protocol: each mistake is an error with its code, and memory doesn't grow."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from scripted import Peer, ScriptedBroker

import sluice
from sluice import _layout as layout
from sluice.errors import ErrorCode

Mistake = Callable[[Peer, int], None]


def lag(peer: Peer, stream: int, next_offset: int, missed: int = 1) -> None:
    peer.send("LAG", stream, missed=missed, next_offset=next_offset)


SUBSCRIPTION: dict[str, tuple[int, Mistake]] = {
    "records left out": (ErrorCode.MALFORMED_FRAME, lambda peer, stream: peer.deliver(stream, 9, b"x")),
    "SUBSCRIBED twice": (ErrorCode.UNEXPECTED_FRAME, lambda peer, stream: peer.send("SUBSCRIBED", stream, epoch=7)),
    "LIVE behind the next offset": (ErrorCode.MALFORMED_FRAME, lambda peer, stream: peer.send("LIVE", stream, next_offset=9)),
    "LAG that goes back": (ErrorCode.MALFORMED_FRAME, lambda peer, stream: lag(peer, stream, 3)),
}


@pytest.mark.parametrize("mistake", SUBSCRIPTION)
async def test_a_mistake_on_a_subscription_ends_it(mistake: str) -> None:
    code, send = SUBSCRIPTION[mistake]
    reported: list[int] = []

    async def script(peer: Peer) -> None:
        await peer.welcome()
        stream, frame = await peer.subscribed(next_offset=5)
        await peer.granted(frame)
        send(peer, stream)
        reported.append((await peer.expect("ERROR"))[1]["code"])

    async with ScriptedBroker(script) as broker, sluice.connect(broker.address, reconnect=None) as client:
        with pytest.raises(sluice.ProtocolError) as caught:
            async for _ in client.topic("t"):
                pass
        await asyncio.sleep(0.05)
    assert (caught.value.code, reported) == (code, [code])


async def test_live_comes_once() -> None:
    async def script(peer: Peer) -> None:
        await peer.welcome()
        stream, _ = await peer.subscribed()
        peer.send("LIVE", stream)
        peer.send("LIVE", stream)
        await peer.cut()

    async with ScriptedBroker(script) as broker, sluice.connect(broker.address, reconnect=None) as client:
        with pytest.raises(sluice.ProtocolError) as caught:
            async for _ in client.topic("t"):
                pass
    assert caught.value.code == ErrorCode.UNEXPECTED_FRAME


async def test_offsets_may_leave_gaps_where_the_broker_says_so() -> None:
    async def script(peer: Peer) -> None:
        await peer.welcome()
        stream, frame = await peer.subscribed(gaps=1)
        await peer.granted(frame)
        peer.deliver(stream, 9, b"x")
        peer.send("COMPLETE", stream)

    async with ScriptedBroker(script) as broker, sluice.connect(broker.address, reconnect=None) as client:
        assert [record.offset async for record in client.topic("t")] == [9]


async def test_records_before_subscribed_are_refused() -> None:
    async def script(peer: Peer) -> None:
        await peer.welcome()
        stream, frame = await peer.expect("SUBSCRIBE")
        await peer.granted(frame)
        peer.deliver(stream, 0, b"x")
        assert (await peer.expect("ERROR"))[1]["code"] == ErrorCode.UNEXPECTED_FRAME

    async with ScriptedBroker(script) as broker, sluice.connect(broker.address, reconnect=None) as client:
        with pytest.raises(sluice.ProtocolError):
            async for _ in client.topic("t"):
                pass


PUBLICATION: dict[str, tuple[int, Mistake]] = {
    "records": (ErrorCode.UNEXPECTED_FRAME, lambda peer, stream: peer.deliver(stream, 0, b"x")),
    "PUBLISH_OPENED twice": (ErrorCode.UNEXPECTED_FRAME, lambda peer, stream: peer.send("PUBLISH_OPENED", stream, epoch=7)),
    "CANCELLED without CANCEL": (ErrorCode.UNEXPECTED_FRAME, lambda peer, stream: peer.send("CANCELLED", stream)),
    "CONNECTED to a producer": (ErrorCode.UNEXPECTED_FRAME, lambda peer, stream: peer.send("CONNECTED", stream)),
}


@pytest.mark.parametrize("mistake", PUBLICATION)
async def test_a_mistake_on_a_publication_fails_its_records(mistake: str) -> None:
    code, send = PUBLICATION[mistake]

    async def script(peer: Peer) -> None:
        await peer.welcome()
        stream, _ = await peer.expect("PUBLISH_OPEN")
        peer.send("PUBLISH_OPENED", stream, epoch=7, granted_through=10, bytes_through=layout.U64_MAX)
        await peer.expect("PUBLISH")
        send(peer, stream)
        assert (await peer.expect("ERROR"))[1]["code"] == code

    async with ScriptedBroker(script) as broker, sluice.connect(broker.address, reconnect=None) as client:
        producer = client.producer("t")
        with pytest.raises(sluice.ProtocolError) as caught:
            await producer.publish("1")
    assert caught.value.code == code


async def test_a_sequence_before_the_one_that_was_named_is_refused() -> None:
    async def script(peer: Peer) -> None:
        await peer.welcome()
        stream, _ = await peer.expect("PUBLISH_OPEN")
        peer.send("PUBLISH_OPENED", stream, epoch=7, granted_through=10, bytes_through=layout.U64_MAX)
        await peer.expect("PUBLISH")
        peer.send("ACK", stream, through=1)
        peer.send("ERROR", stream, code=ErrorCode.TOPIC_MOVED, message="moved")
        stream, frame = await peer.expect("PUBLISH_OPEN")
        assert frame["first sequence"] == 1
        peer.send("PUBLISH_OPENED", stream, epoch=7, granted_through=10, bytes_through=layout.U64_MAX, next_sequence=0)
        assert (await peer.expect("ERROR"))[1]["code"] == ErrorCode.MALFORMED_FRAME

    async with ScriptedBroker(script) as broker, sluice.connect(broker.address, reconnect=None) as client:
        producer = client.producer("t")
        await producer.send_many([b"1", b"2"])
        with pytest.raises(sluice.ProtocolError):
            await producer.flush()


async def test_a_request_that_gets_another_answer_fails() -> None:
    async def script(peer: Peer) -> None:
        await peer.welcome()
        stream, _ = await peer.expect("TOPIC_DELETE")
        peer.send("LIVE", stream)
        assert (await peer.expect("ERROR"))[1]["code"] == ErrorCode.UNEXPECTED_FRAME

    async with ScriptedBroker(script) as broker, sluice.connect(broker.address, reconnect=None) as client:
        with pytest.raises(sluice.ProtocolError):
            await client.delete_topic("t")


@pytest.mark.parametrize("limits", [{"longest_frame": 65_535, "streams": 1}, {"longest_frame": 65_536, "streams": 0}])
async def test_a_broker_with_less_than_the_least_limits_is_refused(limits: dict[str, int]) -> None:
    async def script(peer: Peer) -> None:
        await peer.expect("HELLO")
        peer.send("WELCOME", 0, version=1, longest_record=1, expires=layout.U64_MAX, **limits)
        await peer.cut()

    async with ScriptedBroker(script) as broker:
        with pytest.raises(sluice.ProtocolError) as caught:
            await sluice.connect(broker.address)
    assert caught.value.code == ErrorCode.MALFORMED_FRAME


async def test_epoch_changed_for_a_subscription_that_names_no_epoch_ends_it() -> None:
    async def script(peer: Peer) -> None:
        await peer.welcome()
        stream, _ = await peer.subscribed()
        for _ in range(2):
            peer.send("ERROR", stream, code=ErrorCode.EPOCH_CHANGED, message="another epoch")
            stream = 0
            while stream == 0:
                found, number, _ = await peer.read()
                stream = number if found == "SUBSCRIBE" else 0

    async with ScriptedBroker(script) as broker, sluice.connect(broker.address) as client:
        with pytest.raises(sluice.SubscriptionError) as caught:
            async for _ in client.topic("t").events():
                pass
        assert caught.value.code == ErrorCode.EPOCH_CHANGED
        broker.failures.clear()


async def test_events_that_no_demand_bounds_are_joined() -> None:
    arrived = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.welcome()
        stream, _ = await peer.subscribed()
        for i in range(1, 101):
            lag(peer, stream, 2 * i, 2)
        for i in range(1, 101):
            peer.send("PRODUCERS", stream, count=i)
        peer.send("PING", 0, token=1)
        await peer.expect("PONG")
        arrived.set()
        await peer.expect("DEMAND")
        peer.send("COMPLETE", stream)

    async with ScriptedBroker(script) as broker, sluice.connect(broker.address) as client:
        events = aiter(client.topic("t", watch_producers=True).events())
        await arrived.wait()
        assert [event async for event in events] == [sluice.Lag("t", 200, 200), sluice.Producers("t", 100)]


async def test_of_pings_that_come_while_output_is_blocked_the_last_is_answered() -> None:
    async def script(peer: Peer) -> None:
        await peer.welcome()
        assert (await peer.expect("PONG"))[1]["token"] == 3
        peer.send("PING", 0, token=4)
        assert (await peer.expect("PONG"))[1]["token"] == 4

    async with ScriptedBroker(script) as broker, sluice.connect(broker.address) as client:
        connection = client._link._connection
        assert connection is not None
        connection.pause_writing()
        for token in (1, 2, 3):
            connection.data_received(layout.encode("PING", 0, token=token))
        connection.resume_writing()
        await asyncio.sleep(0.1)


@pytest.mark.parametrize("received", [False, True])
async def test_a_subscription_that_waits_beyond_the_end_names_no_epoch_until_it_has_a_record(received: bool) -> None:
    async def first(peer: Peer) -> None:
        await peer.welcome()
        stream, frame = await peer.subscribed(epoch=5, next_offset=100)
        if received:
            await peer.granted(frame)
            peer.deliver(stream, 100, b"x")
        await peer.cut()

    async def second(peer: Peer) -> None:
        await peer.welcome()
        stream, frame = await peer.expect("SUBSCRIBE")
        assert (frame["start"], frame["start value"], frame["epoch"]) == ((4, 101, 5) if received else (4, 100, 0))
        peer.send("SUBSCRIBED", stream, epoch=5 if received else 6, next_offset=frame["start value"], live_offset=frame["start value"])
        peer.send("COMPLETE", stream)

    async with ScriptedBroker(first, second) as broker, sluice.connect(broker.address) as client:
        events = [event async for event in client.topic("t", from_=sluice.offset(100)).events()]
    # None of the program's records is in doubt, so another epoch is no restart.
    assert [event.offset for event in events if isinstance(event, sluice.Record)] == ([100] if received else [])
    assert not any(isinstance(event, sluice.Restarted) for event in events)
