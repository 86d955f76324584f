"""Demand from the view of a scripted broker: exactly the program's requests."""

from __future__ import annotations

import asyncio
import gc

import pytest
from scripted import Peer, ScriptedBroker

import sluice
from sluice.errors import ErrorCode


async def test_each_step_of_the_loop_requests_one_record() -> None:
    grants: list[int] = []

    async def script(peer: Peer) -> None:
        await peer.welcome()
        stream, frame = await peer.subscribed()
        # The loop has requested one record before the subscription is sent, or does so directly after it.
        granted = frame["granted through"]
        sent = 0
        while sent < 3:
            while granted <= sent:
                _, values = await peer.expect("DEMAND")
                granted = values["granted through"]
            grants.append(granted)
            peer.deliver(stream, sent, b"x")
            sent += 1
        _, values = await peer.expect("DEMAND")
        grants.append(values["granted through"])
        peer.send("COMPLETE", stream, kind=0)

    async with ScriptedBroker(script) as broker, sluice.connect(broker.address) as client:
        received = [record.offset async for record in client.topic("t")]
    assert received == [0, 1, 2]
    assert grants == [1, 2, 3, 4]


async def test_a_prefetch_is_the_most_that_is_requested_ahead() -> None:
    async def script(peer: Peer) -> None:
        await peer.welcome()
        stream, frame = await peer.subscribed()
        granted = await peer.granted(frame)
        assert granted == 8
        sent = 0
        while sent < 400:
            while granted <= sent:
                granted = (await peer.expect("DEMAND"))[1]["granted through"]
            # The program has taken at most the records that were sent, so at most that number and the prefetch are requested.
            assert granted <= sent + 8
            peer.deliver(stream, sent, b"x")
            sent += 1
            await asyncio.sleep(0)
        peer.send("COMPLETE", stream, kind=0)

    async with ScriptedBroker(script) as broker, sluice.connect(broker.address) as client:
        count = 0
        async for _ in client.topic("t", prefetch=8):
            count += 1
    assert count == 400


@pytest.mark.parametrize("count", [2, 100])
async def test_a_broker_that_sends_more_than_was_requested_is_refused(count: int) -> None:
    errors: list[int] = []

    async def script(peer: Peer) -> None:
        await peer.welcome()
        stream, frame = await peer.subscribed()
        await peer.granted(frame)
        peer.deliver(stream, 0, *[b"x"] * count)
        errors.append((await peer.expect("ERROR"))[1]["code"])

    async with ScriptedBroker(script) as broker, sluice.connect(broker.address, reconnect=None) as client:
        with pytest.raises(sluice.SluiceError) as caught:
            async for _ in client.topic("t"):
                pass
        assert caught.value.code == ErrorCode.DEMAND_EXCEEDED
        await asyncio.sleep(0.05)
    assert errors == [ErrorCode.DEMAND_EXCEEDED]


async def test_leaving_the_loop_unsubscribes() -> None:
    cancelled = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.welcome()
        stream, frame = await peer.subscribed()
        await peer.granted(frame)
        peer.deliver(stream, 0, b"x")
        assert (await peer.expect("CANCEL"))[0] == stream
        peer.send("CANCELLED", stream)
        cancelled.set()
        # The number can be used again.
        assert (await peer.subscribed())[0] == stream

    async with ScriptedBroker(script) as broker, sluice.connect(broker.address) as client:
        async for _ in client.topic("t"):
            break
        gc.collect()
        await cancelled.wait()
        await asyncio.sleep(0.02)
        async with client.topic("t").subscribe():
            await asyncio.sleep(0.02)


async def test_a_cancelled_task_unsubscribes() -> None:
    cancelled = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.welcome()
        await peer.subscribed()
        while (await peer.read())[0] != "CANCEL":
            pass
        cancelled.set()

    async def read(client: sluice.Client) -> None:
        async with client.topic("t").subscribe() as subscription:
            async for _ in subscription:
                pass

    async with ScriptedBroker(script) as broker, sluice.connect(broker.address) as client:
        task = asyncio.create_task(read(client))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await cancelled.wait()


async def test_what_is_left_of_the_demand_is_requested_after_a_lost_connection() -> None:
    async def first(peer: Peer) -> None:
        await peer.welcome()
        stream, frame = await peer.subscribed(epoch=9)
        granted = frame["granted through"]
        while granted < 10:
            granted = (await peer.expect("DEMAND"))[1]["granted through"]
        peer.deliver(stream, 0, b"a", b"b", b"c")
        await peer.cut()

    async def second(peer: Peer) -> None:
        await peer.welcome()
        stream, frame = await peer.expect("SUBSCRIBE")
        assert (frame["start"], frame["start value"], frame["epoch"]) == (4, 3, 9)
        # Three of ten were received; taking them may have requested up to three more.
        assert 7 <= frame["granted through"] <= 10
        peer.send("SUBSCRIBED", stream, epoch=9, next_offset=3, live_offset=3)
        peer.deliver(stream, 3, b"d")
        peer.send("COMPLETE", stream, kind=0)

    async with ScriptedBroker(first, second) as broker, sluice.connect(broker.address) as client:
        received = [record.payload async for record in client.topic("t", prefetch=10)]
    assert received == [b"a", b"b", b"c", b"d"]


async def test_a_topic_that_continues_another_epoch_reports_where_the_histories_part() -> None:
    async def first(peer: Peer) -> None:
        await peer.welcome()
        stream, frame = await peer.subscribed(epoch=9)
        while (await peer.expect("DEMAND"))[1]["granted through"] < 2 and frame["granted through"] < 2:
            pass
        peer.deliver(stream, 0, b"a", b"lost")
        await peer.cut()

    async def second(peer: Peer) -> None:
        await peer.welcome()
        stream, frame = await peer.expect("SUBSCRIBE")
        assert (frame["start value"], frame["epoch"]) == (2, 9)
        peer.send("SUBSCRIBED", stream, epoch=10, next_offset=1, live_offset=1, continues=1)
        peer.deliver(stream, 1, b"other")
        peer.send("COMPLETE", stream, kind=0)

    async with ScriptedBroker(first, second) as broker, sluice.connect(broker.address) as client:
        events = [event async for event in client.topic("t", prefetch=4).events()]
    assert [event.payload for event in events if isinstance(event, sluice.Record)] == [b"a", b"lost", b"other"]
    assert sluice.Rewound("t", 10, 1) in events


async def test_a_topic_that_was_made_anew_ends_a_blind_loop_and_is_reported_to_one_that_sees_events() -> None:
    async def first(peer: Peer) -> None:
        await peer.welcome()
        stream, frame = await peer.subscribed(epoch=9)
        await peer.granted(frame)
        peer.deliver(stream, 0, b"a")
        await peer.cut()

    async def refusing(peer: Peer) -> None:
        await peer.welcome()
        stream, _ = await peer.expect("SUBSCRIBE")
        peer.send("ERROR", stream, code=ErrorCode.EPOCH_CHANGED, message="started anew")

    async def restarting(peer: Peer) -> None:
        await peer.welcome()
        stream, _ = await peer.expect("SUBSCRIBE")
        peer.send("ERROR", stream, code=ErrorCode.EPOCH_CHANGED, message="started anew")
        stream, frame = await peer.expect("SUBSCRIBE")
        assert (frame["start"], frame["epoch"]) == (0, 0)
        peer.send("SUBSCRIBED", stream, epoch=11, next_offset=0, live_offset=0)
        peer.send("COMPLETE", stream, kind=0)

    async with ScriptedBroker(first, refusing) as broker, sluice.connect(broker.address) as client:
        with pytest.raises(sluice.SubscriptionError) as caught:
            async for _ in client.topic("t", from_="earliest"):
                pass
        assert caught.value.code == ErrorCode.EPOCH_CHANGED
    async with ScriptedBroker(first, restarting) as broker, sluice.connect(broker.address) as client:
        events = [event async for event in client.topic("t", from_="earliest").events()]
    assert sluice.Restarted("t", 11) in events


async def test_a_silent_broker_is_given_up() -> None:
    async def silent(peer: Peer) -> None:
        await peer.welcome(keepalive=100)
        while True:
            await peer.read()

    async with ScriptedBroker(silent) as broker, sluice.connect(broker.address, reconnect=None) as client:
        with pytest.raises(sluice.ConnectionLostError) as caught:
            async for _ in client.topic("t"):
                pass
    assert caught.value.code == ErrorCode.KEEPALIVE_TIMEOUT


async def test_a_server_that_speaks_http_is_named() -> None:
    async def http(peer: Peer) -> None:
        peer.writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await peer.writer.drain()
        await asyncio.sleep(0.05)

    async with ScriptedBroker(http) as broker:
        with pytest.raises(sluice.ProtocolError, match="HTTP"):
            await sluice.connect(broker.address)
