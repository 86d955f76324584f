"""All features of a client, with a real broker."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest
from scripted import Proxy

import sluice
from sluice.errors import ErrorCode
from sluice.testing import Broker

_names = itertools.count()


def fresh(prefix: str = "topic") -> str:
    return f"{prefix}.{next(_names)}"


async def publish(client: sluice.Client, topic: str, *payloads: bytes | str, **options: object) -> None:
    async with client.producer(topic) as producer:
        for payload in payloads:
            await producer.send(payload)


async def read(topic: sluice.Topic[sluice.Record], count: int) -> list[sluice.Record]:
    records: list[sluice.Record] = []
    async with topic.subscribe() as subscription:
        async for record in subscription:
            records.append(record)
            if len(records) == count:
                break
    return records


async def subscribed(client: sluice.Client, topic: str) -> None:
    """Waits until the topic has a subscription."""
    while not (await client.topic_info(topic)).subscriptions:  # noqa: ASYNC110
        await asyncio.sleep(0.01)


async def test_records_come_as_they_were_published(broker: Broker) -> None:
    topic = fresh()
    async with sluice.connect(broker.address) as client:
        async with client.producer(topic) as producer:
            assert await producer.publish(b"\x00\xff", key="k", headers={"a": "1", "b": b"\xfe"}) == 0
            assert await producer.publish("é") == 1
        first, second = await read(client.topic(topic, from_="earliest"), 2)
    assert (first.payload, first.key, first.headers) == (b"\x00\xff", b"k", (("a", b"1"), ("b", b"\xfe")))
    assert (second.text, second.key, second.offset) == ("é", None, 1)
    assert second.time >= first.time > 1_600_000_000_000


@pytest.mark.parametrize("prefetch", [0, 1, 3, 1000])
async def test_replay_becomes_live_without_a_gap(broker: Broker, prefetch: int) -> None:
    topic = fresh()
    async with sluice.connect(broker.address) as client:
        await publish(client, topic, *(f"{i}" for i in range(100)))

        async def more() -> None:
            async with client.producer(topic) as producer:
                for i in range(100, 300):
                    await producer.publish(f"{i}")
                await producer.complete()

        task = asyncio.create_task(more())
        received = [record.text async for record in client.topic(topic, from_="earliest", prefetch=prefetch)]
        await task
    assert received == [f"{i}" for i in range(300)]


async def test_start_positions(broker: Broker) -> None:
    topic = fresh()
    async with sluice.connect(broker.address) as client:
        await publish(client, topic, *(f"{i}" for i in range(10)))
        assert (await read(client.topic(topic, from_=sluice.last(3)), 1))[0].offset == 7
        assert (await read(client.topic(topic, from_=sluice.offset(4)), 1))[0].offset == 4
        times = [record.time for record in await read(client.topic(topic), 10)]
        assert (await read(client.topic(topic, from_=sluice.since(times[0])), 1))[0].offset == 0
        with pytest.raises(ValueError, match="from_"):
            client.topic(topic, from_="latest")


async def test_completion_ends_the_loop_and_failure_is_raised(broker: Broker) -> None:
    good, bad = fresh(), fresh()
    async with sluice.connect(broker.address) as client:
        async with client.producer(good) as producer:
            await producer.publish("last")
            await producer.complete()
        async with client.producer(bad) as producer:
            await producer.publish("last")
            await producer.fail(1_234, "out of paper")
        assert [record.text async for record in client.topic(good)] == ["last"]
        received = []
        with pytest.raises(sluice.TopicFailed) as caught:
            async for record in client.topic(bad):
                received.append(record.text)
        assert (received, caught.value.code, caught.value.message) == (["last"], 1_234, "out of paper")
        with pytest.raises(sluice.PublicationError) as ended:
            async with client.producer(good) as producer:
                await producer.publish("too late")
        assert ended.value.code == ErrorCode.TOPIC_ENDED


async def test_batches_have_the_same_records_as_the_loop(broker: Broker) -> None:
    topic = fresh()
    async with sluice.connect(broker.address) as client:
        async with client.producer(topic) as producer:
            for i in range(1_000):
                key = f"k{i}" if i % 7 == 0 else None
                await producer.send(b"x" * (i % 50 if i % 100 > 50 else 16), key=key, headers={"h": "v"} if i % 11 == 0 else None)
            await producer.flush()
            await producer.complete()
        records = [record async for record in client.topic(topic, prefetch=64)]
        batched = [record async for batch in client.topic(topic).batches() for record in batch]
    assert len(records) == 1_000
    assert batched == records


async def test_conditions_are_checked_by_the_broker(broker: Broker) -> None:
    topic = fresh()
    async with sluice.connect(broker.address) as client:
        async with client.producer(topic) as producer:
            for i in range(20):
                await producer.send(f"{i}", key="eu" if i % 2 else "us", headers={"n": f"{i % 5}"})
            await producer.flush()
            await producer.complete()
        wanted = client.topic(topic, where=[sluice.key("eu"), sluice.header("n", "3")])
        assert [record.text async for record in wanted] == ["3", "13"]


async def test_patterns_have_one_demand_for_all_their_topics(broker: Broker) -> None:
    base = fresh("pattern")
    async with sluice.connect(broker.address) as client:
        await publish(client, f"{base}.a", "1", "2")
        events = client.pattern(f"{base}.>", from_="earliest").events()
        seen: list[object] = []
        async for event in events:
            seen.append(event)
            if isinstance(event, sluice.Live):
                break
        await publish(client, f"{base}.b", "3")
        async for event in events:
            seen.append(event)
            if isinstance(event, sluice.Record) and event.text == "3":
                break
        events.cancel()
    assert [event.topic for event in seen if isinstance(event, sluice.Matched)] == [f"{base}.a", f"{base}.b"]
    assert [(event.topic[-1], event.text) for event in seen if isinstance(event, sluice.Record)] == [
        ("a", "1"),
        ("a", "2"),
        ("b", "3"),
    ]


async def test_a_group_shares_records_and_delivers_again_what_is_not_done(broker: Broker) -> None:
    topic, dead = fresh(), fresh()
    async with sluice.connect(broker.address) as client:
        await publish(client, topic, *(f"{i}" for i in range(6)))
        options = {"from_": "earliest", "deliveries": 2, "dead_letters": dead}
        first = client.group(topic, "workers", **options)
        second = client.group(topic, "workers", **options)
        got = [await anext(aiter(first)), await anext(aiter(second))]
        assert [delivery.offset for delivery in got] == [0, 1]
        await got[0].ack()
        await got[1].retry()
        # The returned record has been delivered twice by then, so rejecting it makes it a dead letter.
        again = await anext(first)
        assert (again.offset, again.attempt) == (1, 2)
        await again.reject()
        assert (await read(client.topic(dead), 1))[0].text == "1"
        second.cancel()
        rest = []
        async for delivery in first:
            rest.append(delivery.offset)
            await delivery.ack()
            if len(rest) == 4:
                break
        assert rest == [2, 3, 4, 5]
        await asyncio.sleep(0.1)
        (group,) = [consumer async for consumer in client.consumers(topic)]
        assert (group.kind, group.lag, group.dead_letters) == ("group", 0, 1)


async def test_a_durable_cursor_continues_where_the_last_loop_was(broker: Broker) -> None:
    topic = fresh()
    async with sluice.connect(broker.address) as client:
        await client.create_topic(topic, storage="durable")
        await publish(client, topic, *(f"{i}" for i in range(10)))
        async with client.topic(topic, from_="earliest", cursor="bill").subscribe() as subscription:
            async for record in subscription:
                if record.offset == 4:
                    break
        # The record at which the loop ended isn't committed, since the program may not have finished it.
        assert (await read(client.topic(topic, cursor="bill"), 1))[0].offset == 4
        async with client.topic(topic, cursor="bill").subscribe() as subscription:
            record = await anext(aiter(subscription))
            subscription.commit(record)
        assert (await read(client.topic(topic, cursor="bill"), 1))[0].offset == 5
        await client.move_cursor(topic, "bill", "earliest")
        assert (await read(client.topic(topic, cursor="bill"), 1))[0].offset == 0
        await client.delete_cursor(topic, "bill")
        with pytest.raises(sluice.SluiceError) as caught:
            await client.delete_cursor(topic, "bill")
        assert caught.value.code == ErrorCode.UNKNOWN_CURSOR


async def test_requests_are_answered_and_failures_are_named(broker: Broker) -> None:
    topic = fresh()

    async def handler(request: sluice.Record) -> bytes:
        if request.payload == b"bad":
            raise sluice.ReplyError("no such price")
        if request.payload == b"worse":
            raise KeyError("a secret")
        return b"re: " + request.payload

    async with sluice.connect(broker.address) as client, sluice.connect(broker.address) as service:
        with pytest.raises(sluice.NoRespondersError) as nobody:
            await client.request(topic, "hi")
        assert nobody.value.retry
        async with service.respond(topic, handler):
            await subscribed(service, topic)
            replies = await asyncio.gather(*(client.request(topic, f"{i}") for i in range(50)))
            assert [reply.text for reply in replies] == [f"re: {i}" for i in range(50)]
            with pytest.raises(sluice.ReplyError, match="no such price"):
                await client.request(topic, "bad")
            with pytest.raises(sluice.ReplyError, match="KeyError") as caught:
                await client.request(topic, "worse")
            assert "secret" not in str(caught.value)
        async with client.topic(topic, from_="new").subscribe():
            await asyncio.sleep(0.1)
            with pytest.raises(sluice.RequestTimeoutError):
                await client.request(topic, "hi", timeout=0.1)


async def test_topics_are_administered(broker: Broker) -> None:
    topic = fresh()
    async with sluice.connect(broker.address, name="admin") as client:
        info = await client.create_topic(topic, flow="lossless", buffer_records=5, replay_age=60)
        assert (info.settings["flow"], info.settings["buffer_records"], info.settings["replay_age"]) == ("lossless", 5, 60)
        with pytest.raises(sluice.SluiceError) as caught:
            await client.create_topic(topic, flow="free")
        assert caught.value.code == ErrorCode.TOPIC_EXISTS and not caught.value.retry
        assert (await client.set_topic(topic, replay_age=None)).settings["replay_age"] is None
        assert topic in [summary.name async for summary in client.topics()]
        await publish(client, topic, *"abcd")
        assert (await client.trim_topic(topic, before=1)).floor == 1
        assert (await client.trim_topic(topic, keep_last=1)).records == 1
        assert (await client.purge_topic(topic)).records == 0
        assert "admin" in [connection.client async for connection in client.connections()]
        assert (await client.broker_info()).numbers["topics"] > 0
        await client.delete_topic(topic)
        with pytest.raises(sluice.SluiceError, match="unknown-topic"):
            await client.topic_info(topic)
        with pytest.raises(ValueError, match="replay"):
            await client.create_topic(topic, replay=5)


async def test_a_lossless_topic_holds_the_producer_back(broker: Broker) -> None:
    topic = fresh()
    async with sluice.connect(broker.address) as client:
        await client.create_topic(topic, flow="lossless", buffer_records=10)
        async with client.topic(topic, from_="new").subscribe() as subscription:
            await subscribed(client, topic)
            producer = client.producer(topic, buffer_records=5)
            sent = 0
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5):
                    while True:
                        await producer.send(f"{sent}")
                        sent += 1
            # Ten in the topic's buffer, five in the producer's, and those that each is sending.
            assert 10 <= sent <= 17
            received = []
            async for record in subscription:
                received.append(record.text)
                if len(received) == sent:
                    break
            assert received == [f"{i}" for i in range(sent)]
            await producer.close()


async def test_nothing_is_lost_or_doubled_over_cut_connections(broker: Broker) -> None:
    topic = fresh()
    async with Proxy(broker.port) as proxy:
        policy = sluice.ReconnectPolicy(initial_delay=0.01, maximum_delay=0.05)
        async with sluice.connect(proxy.address, reconnect=policy) as client:
            await client.create_topic(topic, flow="lossless", buffer_records=200)

            async def produce() -> None:
                async with client.producer(topic) as producer:
                    for i in range(5_000):
                        await producer.send(f"{i}")
                        if i % 50 == 0:
                            await asyncio.sleep(0)
                    await producer.complete()

            async def cut() -> None:
                for _ in range(20):
                    await asyncio.sleep(0.03)
                    proxy.cut()

            tasks = [asyncio.create_task(produce()), asyncio.create_task(cut())]
            received = [int(record.payload) async for record in client.topic(topic, from_="earliest", prefetch=100)]
            await asyncio.gather(*tasks)
        assert received == list(range(5_000))
        assert proxy.connections > 5


async def test_nothing_acknowledged_is_lost_when_the_broker_is_killed(own_broker: Broker) -> None:
    policy = sluice.ReconnectPolicy(initial_delay=0.02, maximum_delay=0.2)
    async with sluice.connect(own_broker.address, reconnect=policy) as client:
        await client.create_topic("jobs", storage="durable")

        async def crash() -> None:
            for _ in range(3):
                await asyncio.sleep(0.2)
                own_broker.kill()
                await asyncio.to_thread(own_broker.start)

        crashes = asyncio.create_task(crash())

        async def produce() -> int:
            sent = 0
            async with client.producer("jobs", acknowledge="durable") as producer:
                while not crashes.done() or sent < 500:
                    await producer.send(f"{sent}")
                    sent += 1
                    if sent % 20 == 0:
                        await asyncio.sleep(0.005)
                await producer.flush()
                await producer.complete()
            return sent

        producing = asyncio.create_task(produce())
        received = [int(record.payload) async for record in client.topic("jobs", from_="earliest", prefetch=100)]
        await crashes
        sent = await producing
    assert received == list(range(sent))


async def test_a_refused_record_ends_the_producer_with_the_reason(broker: Broker) -> None:
    topic = fresh()
    async with sluice.connect(broker.address) as client:
        await client.create_topic(topic, compact=True)
        producer = client.producer(topic)
        with pytest.raises(sluice.PublicationError) as caught:
            await producer.publish("without a key")
        assert caught.value.code == ErrorCode.KEY_REQUIRED
        with pytest.raises(sluice.PublicationError):
            await producer.send("another")


async def test_without_acknowledgements_everything_is_sent_before_the_producer_closes(broker: Broker) -> None:
    topic = fresh()
    async with sluice.connect(broker.address) as client:
        async with client.producer(topic, acknowledge="none") as producer:
            for i in range(2_000):
                assert await producer.publish(f"{i}") is None
        assert len(await read(client.topic(topic, prefetch=500), 2_000)) == 2_000


async def test_a_decoder_makes_the_values_of_the_loop(broker: Broker) -> None:
    topic = fresh()
    async with sluice.connect(broker.address) as client:
        async with client.producer(topic) as producer:
            await producer.send('{"n": 1}')
            await producer.flush()
            await producer.complete()
        assert [value async for value in client.topic(topic, decode=sluice.json)] == [{"n": 1}]


async def test_a_closed_client_refuses_calls(broker: Broker) -> None:
    client = await sluice.connect(broker.address)
    await client.close()
    await client.close()
    with pytest.raises(sluice.ClientClosedError):
        await client.topic_info("t")
    with pytest.raises(sluice.ClientClosedError):
        client.producer("t")


async def test_several_servers_are_tried_in_turn(broker: Broker) -> None:
    async with sluice.connect(["127.0.0.1:1", broker.address]) as client:
        assert client.is_connected
    with pytest.raises(sluice.ConnectionLostError, match=r"127\.0\.0\.1:1"):
        await sluice.connect("127.0.0.1:1")
    with pytest.raises(ValueError, match="HOST:PORT"):
        sluice.connect("127.0.0.1:port")


@pytest.mark.parametrize("acknowledge", ["received", "none"])
async def test_a_program_that_starts_over_publishes_each_record_once(broker: Broker, acknowledge: Any) -> None:
    topic = fresh()
    async with sluice.connect(broker.address) as client:
        for run, count in enumerate((10, 25, 25)):
            async with client.producer(topic, producer_id=7, acknowledge=acknowledge) as producer:
                for i in range(count):
                    if run == 1:
                        await producer.publish(f"{i}")
                    else:
                        await producer.send(f"{i}")
        async with client.producer(topic, producer_id=7, first_sequence=20) as producer:
            for i in range(20, 30):
                await producer.send(f"{i}")
        assert [record.text for record in await read(client.topic(topic), 30)] == [f"{i}" for i in range(30)]
        assert (await client.topic_info(topic)).head == 30


async def test_a_producers_number_is_checked(broker: Broker) -> None:
    async with sluice.connect(broker.address) as client:
        wrong: list[dict[str, Any]] = [{"producer_id": 0}, {"producer_id": 1 << 64}, {"first_sequence": 1}]
        for options in [*wrong, {"producer_id": 1, "first_sequence": -1}]:
            with pytest.raises(ValueError, match=r"takes|needs"):
                client.producer(fresh(), **options)
