"""One load of a client for Python: prints what was measured as a JSON object. Started by run.py.

python load.py CLIENT LOAD ADDRESS COUNT [TOPIC]
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "Clients/python/src"))

PAYLOAD = b"x" * 128


def memory() -> int:
    """The process's resident memory, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) << 10
    return 0


class Clock:
    """Measures records in a second, and in a second of the client's processor time, which other programs on the machine change less."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.start()

    def start(self) -> None:
        self.begin = time.perf_counter(), time.process_time()

    def result(self) -> dict[str, Any]:
        time_taken, processor = time.perf_counter() - self.begin[0], time.process_time() - self.begin[1]
        return {"rate": self.count / time_taken, "processor": self.count / processor}


# Sluice


async def sluice_fill(address: str, count: int, topic: str) -> dict[str, Any]:
    """Publishes, for other loads."""
    import sluice

    async with sluice.connect(address, close_timeout=600) as client, client.producer(topic) as producer:
        await producer.send_many(PAYLOAD for _ in range(count))
    return {}


async def sluice_iterate(address: str, count: int, topic: str) -> dict[str, Any]:
    import sluice

    clock = Clock(count)
    async with sluice.connect(address) as client:
        left = count
        clock.start()
        async for record in client.topic(topic, from_="earliest", prefetch=10_000):
            if len(record.payload) != 128:
                raise ValueError(f"a record has {len(record.payload)} bytes")
            left -= 1
            if not left:
                return clock.result()
    raise RuntimeError("the topic has ended")


async def sluice_memory(address: str, count: int, topic: str) -> dict[str, Any]:
    """Like sluice_iterate, with the memory after each million."""
    import sluice

    sizes: dict[str, int] = {}
    async with sluice.connect(address) as client:
        taken = 0
        async for _ in client.topic(topic, prefetch=10_000):
            taken += 1
            if taken % 1_000_000 == 0:
                sizes[f"{taken // 1_000_000}"] = memory()
            if taken == count:
                return {"memory": sizes}
    raise RuntimeError("the topic has ended")


async def sluice_batches(address: str, count: int, topic: str) -> dict[str, Any]:
    import sluice

    clock = Clock(count)
    async with sluice.connect(address) as client:
        taken = 0
        clock.start()
        async for batch in client.topic(topic, from_="earliest").batches():
            taken += len(batch)
            if taken >= count:
                return clock.result()
    raise RuntimeError("the topic has ended")


async def sluice_publish(address: str, count: int, topic: str) -> dict[str, Any]:
    import sluice

    clock = Clock(count)
    async with sluice.connect(address) as client, client.producer(topic) as producer:
        clock.start()
        for _ in range(count):
            await producer.send(PAYLOAD)
        await producer.flush()
        return clock.result()


async def sluice_many(address: str, count: int, topic: str) -> dict[str, Any]:
    import sluice

    clock = Clock(count)
    async with sluice.connect(address) as client, client.producer(topic) as producer:
        clock.start()
        await producer.send_many(PAYLOAD for _ in range(count))
        await producer.flush()
        return clock.result()


async def sluice_trip(address: str, count: int, topic: str) -> dict[str, Any]:
    """Publishes a record, and requests and awaits it, with a demand of one."""
    import sluice

    async with (
        sluice.connect(address) as client,
        client.producer(topic) as producer,
        client.topic(topic, from_="new").subscribe() as subscription,
    ):
        while not (await client.topic_info(topic)).subscriptions:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        times = []
        for _ in range(count):
            begin = time.perf_counter()
            await producer.send(PAYLOAD)
            await anext(subscription)
            times.append(time.perf_counter() - begin)
    return {"trip": sorted(times)[count // 2]}


# A bare socket, with messages as long as those of sluice_trip


#: PUBLISH and DEMAND in one direction, DELIVER and ACK in the other.
SENT, ANSWERED = b"p" * 156 + b"d" * 28, b"r" * 156 + b"a" * 28


class Echo(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.left = len(SENT)

    def data_received(self, data: bytes) -> None:
        self.left -= len(data)
        if self.left == 0:
            self.left = len(SENT)
            self.transport.write(ANSWERED)


async def echo_serve(address: str, count: int, topic: str) -> dict[str, Any]:
    host, port = address.split(":")
    server = await asyncio.get_running_loop().create_server(Echo, host, int(port))
    await server.serve_forever()
    return {}


class Asker(asyncio.Protocol):
    answer: asyncio.Future[None]
    left = 0

    def data_received(self, data: bytes) -> None:
        self.left -= len(data)
        if self.left == 0:
            self.answer.set_result(None)


async def echo_trip(address: str, count: int, topic: str) -> dict[str, Any]:
    host, port = address.split(":")
    loop = asyncio.get_running_loop()
    transport, asker = await loop.create_connection(Asker, host, int(port))
    times = []
    for _ in range(count):
        begin = time.perf_counter()
        asker.answer, asker.left = loop.create_future(), len(ANSWERED)
        transport.write(SENT)
        await asker.answer
        times.append(time.perf_counter() - begin)
    transport.close()
    return {"trip": sorted(times)[count // 2]}


# nats-py


async def nats_iterate(address: str, count: int, topic: str) -> dict[str, Any]:
    """Messages that a bare socket publishes, so that the subscriber limits."""
    import nats

    connection = await nats.connect(f"nats://{address}")
    subscription = await connection.subscribe(topic, pending_msgs_limit=10_000_000, pending_bytes_limit=1 << 31)
    await connection.flush()
    host, port = address.split(":")
    _, writer = await asyncio.open_connection(host, int(port))
    writer.write(b'CONNECT {"verbose":false}\r\n')
    clock = Clock(count)

    async def publish() -> None:
        some = b"PUB %s 128\r\n%s\r\n" % (topic.encode(), PAYLOAD) * 1_000
        for _ in range(count // 1_000):
            writer.write(some)
            await writer.drain()

    clock.start()
    publishing = asyncio.create_task(publish())
    left = count
    async for _ in subscription.messages:
        left -= 1
        if not left:
            break
    result = clock.result()
    await publishing
    writer.close()
    await connection.close()
    return result


async def nats_publish(address: str, count: int, topic: str) -> dict[str, Any]:
    import nats

    connection = await nats.connect(f"nats://{address}")
    clock = Clock(count)
    clock.start()
    for _ in range(count):
        await connection.publish(topic, PAYLOAD)
    await connection.flush()
    result = clock.result()
    await connection.close()
    return result


# aio-pika


async def pika_publish(address: str, count: int, topic: str) -> dict[str, Any]:
    import aio_pika

    connection = await aio_pika.connect(f"amqp://guest:guest@{address}/")
    channel = await connection.channel(publisher_confirms=False)
    queue = await channel.declare_queue(topic, durable=False)
    clock = Clock(count)
    clock.start()
    for _ in range(count):
        await channel.default_exchange.publish(aio_pika.Message(PAYLOAD), topic)
    # The answer follows after all published messages.
    await queue.declare()
    result = clock.result()
    await connection.close()
    return result


async def pika_iterate(address: str, count: int, topic: str) -> dict[str, Any]:
    """Reads the messages of pika_publish, without acknowledgements."""
    import aio_pika

    connection = await aio_pika.connect(f"amqp://guest:guest@{address}/")
    channel = await connection.channel()
    await channel.set_qos(prefetch_count=1_000)
    queue = await channel.declare_queue(topic, durable=False)
    clock = Clock(count)
    clock.start()
    left = count
    async with queue.iterator(no_ack=True) as messages:
        async for _ in messages:
            left -= 1
            if not left:
                break
    result = clock.result()
    await connection.close()
    return result


def main() -> None:
    client, load, address, count, *topic = sys.argv[1:]
    run = globals()[f"{client}_{load}"]
    print(json.dumps(asyncio.run(run(address, int(count), topic[0] if topic else ""))))


main()
