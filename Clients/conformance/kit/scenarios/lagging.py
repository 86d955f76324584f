"""Records that a topic drops before a subscriber requests them."""

from __future__ import annotations

from typing import Any

from ..brokers import Peer
from ..driver import Client, Subscription
from ..stage import Stage, check_error, each, scenario

#: A payload so long that the broker drops the records beyond a limit.
FILLER = b"." * 65_536


async def lagging(stage: Stage, settings: dict[str, Any], **options: Any) -> tuple[Client, Subscription]:
    """Returns a subscription that has received one record, followed by 60 of which the topic keeps 5."""
    client = await stage.client()
    await client.admin("create", topic=stage.topic, settings={"replay-records": 5} | settings)
    producer = await client.producer(stage.topic)
    sub = await client.subscribe(stage.topic, **options)
    await sub.request(1)
    await sub.expect("live")
    await producer.publish("0")
    await sub.take(1)
    for _ in range(6):
        await producer.publish(*(FILLER for _ in range(10)))
    await client.admin("trim", topic=stage.topic, keepLast=5)
    return client, sub


async def after_a_lag(sub: Subscription, last: int) -> None:
    """Checks that the subscription, which has the record at offset 0, gets a lag, and all records after it."""
    await sub.request(5)
    expected, lags = 1, 0
    while expected <= last:
        event = await sub.event()
        if event["event"] == "live":
            continue
        if event["event"] == "lag":
            # The topic may drop more while the subscription is catching up.
            assert event["missed"] == event["next"] - expected > 0, event
            expected, lags = event["next"], lags + 1
            continue
        assert (event["event"], event.get("offset")) == ("record", expected), event
        expected += 1
        await sub.request(1)
    assert lags > 0, "no lag came"


@scenario(*each("how", "option", "setting"))
async def skip(stage: Stage, how: str) -> None:
    """With lag skip, the number of dropped records is reported, and delivery continues after them."""
    _, sub = await lagging(stage, {"lag": "skip"}, **({"lag": "skip"} if how == "option" else {}))
    await after_a_lag(sub, 60)


@scenario(*each("how", "option", "setting"))
async def fail(stage: Stage, how: str) -> None:
    """With lag fail, dropped records end the subscription with lagged."""
    _, sub = await lagging(stage, {"lag": "fail" if how == "setting" else "skip"}, **({"lag": "fail"} if how == "option" else {}))
    await sub.request(1)
    check_error(await sub.error(), (110,), False)


@scenario(*each("lag", "skip", "fail"))
async def start_at_a_dropped_offset(stage: Stage, lag: str) -> None:
    """A start at an offset that was dropped begins with a lag, or fails with lagged."""
    client, _ = await lagging(stage, {}, lag="skip")
    sub = await client.subscribe(stage.topic, lag=lag, **{"from": ["offset", 3]})
    await sub.request(1)
    if lag == "fail":
        check_error(await sub.error(), (110,), False)
        return
    event = await sub.expect("lag")
    assert (event["missed"], event["next"]) == (53, 56)
    assert (await sub.take(1))[0].offset == 56


@scenario()
async def counts_no_demand(stage: Stage) -> None:
    """Dropped records use no demand: after a lag the client grants no more than was requested."""

    async def script(peer: Peer) -> None:
        await peer.welcome()
        stream, _ = await peer.subscribed()
        await peer.granted(stream, 1)
        peer.send("LAG", stream, missed=100, next_offset=100)
        peer.deliver(stream, 100, b"100")
        assert await peer.granted(stream, 2) == 2
        peer.deliver(stream, 101, b"101")

    broker = await stage.scripted(script)
    sub = await (await stage.client(broker.address)).subscribe(stage.topic)
    await sub.request(1)
    assert (await sub.expect("lag"))["missed"] == 100
    assert [record.offset for record in await sub.take(1) + await sub.records(1)] == [100, 101]
    await broker.finished()


@scenario()
async def over_a_cut(stage: Stage) -> None:
    """Records that a topic drops while the connection is lost are reported as a lag."""
    client = await stage.client()
    await client.admin("create", topic=stage.topic, settings={"replay-records": 2})
    producer = await client.producer(stage.topic)
    broker = await stage.proxy()
    sub = await (await stage.client(broker.address, reconnect={"initial": 300})).subscribe(stage.topic, lag="skip")
    await producer.publish("0")
    assert await sub.texts(1) == ["0"]
    broker.cut()
    for _ in range(4):
        await producer.publish(*(FILLER for _ in range(10)))
    await client.admin("trim", topic=stage.topic, keepLast=2)
    await after_a_lag(sub, 40)
