"""The front without ``await``."""

from __future__ import annotations

import threading

import pytest

import sluice
import sluice.sync
from sluice.testing import Broker


@pytest.mark.parametrize("prefetch", [0, 100])
def test_records_come_in_order(broker: Broker, prefetch: int) -> None:
    with sluice.sync.connect(broker.address) as client:
        topic = f"sync.{prefetch}"
        with client.producer(topic) as producer:
            assert producer.publish("0") == 0
            producer.send_many(f"{i}" for i in range(1, 500))
            producer.flush()
            producer.complete()
        assert [record.text for record in client.topic(topic, prefetch=prefetch)] == [f"{i}" for i in range(500)]
        assert sum(len(batch) for batch in client.topic(topic).batches()) == 500
        assert client.topic_info(topic).state == "completed"


def test_groups_requests_and_errors(broker: Broker) -> None:
    with sluice.sync.connect(broker.address) as client:
        with client.producer("sync.jobs") as producer:
            producer.publish("job")
        with client.group("sync.jobs", "workers", from_="earliest") as group:
            delivery = next(group)
            assert (delivery.text, delivery.attempt) == ("job", 1)
            delivery.ack()
        with client.respond("sync.service", lambda request: request.payload.upper()):
            while not client.topic_info("sync.service").subscriptions:
                pass
            assert client.request("sync.service", "hi").text == "HI"
        with pytest.raises(sluice.SluiceError, match="unknown-topic"):
            client.topic_info("sync.missing")


def test_several_threads_share_a_client(broker: Broker) -> None:
    with sluice.sync.connect(broker.address) as client, client.producer("sync.threads") as producer:
        threads = [threading.Thread(target=lambda: [producer.send("x") for _ in range(100)]) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        producer.flush()
        assert client.topic_info("sync.threads").records == 800
