"""The adapter for reactivex."""

from __future__ import annotations

import asyncio

import pytest

import sluice
from sluice.testing import Broker

reactive = pytest.importorskip("sluice.reactive", exc_type=ImportError)


async def test_an_observable_gets_what_was_requested(broker: Broker) -> None:
    async with sluice.connect(broker.address) as client:
        async with client.producer("reactive.numbers") as producer:
            await producer.send_many(f"{i}" for i in range(10))
            await producer.flush()
            await producer.complete()
        received: list[str] = []
        done = asyncio.Event()
        requests = reactive.Requests(3)
        observable = reactive.from_topic(client.topic("reactive.numbers"), requests)
        observable.subscribe(on_next=lambda record: received.append(record.text), on_completed=done.set)
        await asyncio.sleep(0.2)
        assert received == ["0", "1", "2"]
        requests.request(100)
        await done.wait()
        assert received == [f"{i}" for i in range(10)]
