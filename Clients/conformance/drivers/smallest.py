"""The smallest driver, around the smallest client of the protocol's page: an example for your own drivers.

The client subscribes to a topic, publishes, and does nothing else: it keeps one connection, and makes no other when that is lost.
"""

import asyncio
import base64
import json
import struct
import sys

#: The scenarios, or the beginnings of their names, that need a feature that the client lacks.
LACKS = [
    "connection", "credentials", "cursors", "demand/grant-by-bytes", "demand/grants", "demand/left-after-a-cut", "demand/lossless",
    "demand/manual-connect", "demand/random-grants", "demand/without-subscribers", "endless", "errors/connection", "errors/handshake",
    "errors/invalid-topic", "errors/key-required", "errors/reopened", "errors/request", "errors/subscription", "errors/topic-deleted",
    "errors/unreachable", "filters", "groups", "hostile", "lagging", "patterns", "positions/compact", "positions/limited-replay",
    "positions/missing", "positions/producers", "publishing", "records/attributes", "records/cancel", "records/payload", "redirects",
    "requests", "resuming", "tolerance",
]  # fmt: skip
STARTS = {"replay": 0, "earliest": 1, "new": 2, "last": 3, "offset": 4, "since": 5}
ALL_ONES = (1 << 64) - 1


def write(**values):
    print(json.dumps(values), flush=True)


def text(value):
    return struct.pack("<H", len(value.encode())) + value.encode()


class Client:
    """One connection, and its streams by their numbers."""

    async def open(self, address):
        host, _, port = address.rpartition(":")
        self.reader, self.writer = await asyncio.open_connection(host, int(port))
        self.streams = {}
        self.welcomed = asyncio.Event()
        hello = b"SLCE" + struct.pack("<HHQII", 1, 1, 0, 1 << 20, 0) + text("smallest") + b"\0" + text("") + text("")
        self.send(0x01, 0, hello)
        self.task = asyncio.create_task(self.read())
        await self.welcomed.wait()

    def send(self, kind, stream, body):
        self.writer.write(struct.pack("<IBBHI", len(body), kind, 0, 0, stream) + body)

    def begin(self, thing):
        self.streams[len(self.streams) + 1] = thing
        return len(self.streams)

    async def read(self):
        while True:
            length, kind, _, _, stream = struct.unpack("<IBBHI", await self.reader.readexactly(12))
            body = await self.reader.readexactly(length)
            if kind == 0x02:
                self.welcomed.set()
            elif kind == 0x03:
                self.send(0x04, 0, body)
            elif stream in self.streams:
                self.streams[stream].frame(kind, body)


class Subscription:
    def __init__(self, client, name, topic, start):
        self.client, self.name, self.topic, self.granted, self.time = client, name, topic, 0, 0
        self.stream = client.begin(self)
        kind, value = start if isinstance(start, list) else (start, 0)
        fields = struct.pack("<BBBBQQQ", STARTS[kind], 2, 0, 0, value, 0, 0)
        client.send(0x10, self.stream, text(topic) + fields + text("") + struct.pack("<III", 4, 0, 0))

    def request(self, count):
        self.granted += count
        self.client.send(0x12, self.stream, struct.pack("<QQ", self.granted, ALL_ONES))

    def frame(self, kind, body):
        if kind == 0x13:
            self.deliver(body)
        elif kind == 0x14:
            write(on=self.name, event="live", topic=self.topic, next=struct.unpack("<Q", body)[0])
        elif kind == 0x18:
            code, size = struct.unpack_from("<IH", body, 4)
            message = body[10 : 10 + size].decode()
            write(on=self.name, event="failed" if body[0] else "completed", code=code, message=message)
        elif kind == 0x06:
            write(on=self.name, event="error", **error(body))

    def deliver(self, body):
        offset, _ = struct.unpack_from("<QI", body)
        position = 12
        while position < len(body):
            (word,) = struct.unpack_from("<I", body, position)
            item = body[position + 4 : position + 4 + (word & 0x3FFF_FFFF)]
            position += 4 + len(item)
            if word >> 30 == 2:
                (self.time,) = struct.unpack("<q", item)
                continue
            payload = base64.b64encode(item).decode()
            write(on=self.name, event="record", topic=self.topic, offset=offset, time=self.time, payload=payload)
            offset += 1


class Producer:
    def __init__(self, client, topic):
        self.client, self.sent, self.acknowledged, self.granted, self.failed = client, 0, 0, 0, None
        self.changed = asyncio.Event()
        self.stream = client.begin(self)
        client.send(0x20, self.stream, text(topic) + struct.pack("<BBHQQI", 1, 0, 0, 0, 0, 0))

    def frame(self, kind, body):
        if kind == 0x21:
            self.granted = struct.unpack_from("<Q", body, 8)[0]
        elif kind == 0x12:
            self.granted = max(self.granted, struct.unpack_from("<Q", body)[0])
        elif kind == 0x23:
            self.acknowledged = struct.unpack_from("<Q", body)[0]
        elif kind == 0x06:
            self.failed = error(body)
        self.changed.set()

    async def until(self, condition):
        while not condition() and self.failed is None:
            self.changed.clear()
            await self.changed.wait()

    async def publish(self, records):
        for record in records:
            await self.until(lambda: self.sent < self.granted)
            payload = base64.b64decode(record["payload"])
            item = struct.pack("<I", len(payload)) + payload
            self.client.send(0x22, self.stream, struct.pack("<QI", self.sent, 1) + item)
            self.sent += 1

    async def flush(self):
        await self.until(lambda: self.acknowledged == self.sent)

    def end(self, kind, code, message):
        self.client.send(0x18, self.stream, struct.pack("<BxxxI", kind, code) + text(message))


def error(body):
    code, size = struct.unpack_from("<IH", body)
    return {"code": code, "retry": code in (113, 122, 123, 125), "message": body[6 : 6 + size].decode()}


class Driver:
    def __init__(self):
        self.clients, self.opened = {}, {}

    async def handle(self, command):
        match command["do"]:
            case "connect":
                self.clients[command["client"]] = client = Client()
                await client.open(command["servers"][0])
            case "subscribe":
                client = self.clients[command["client"]]
                start = command.get("from", "replay")
                self.opened[command["on"]] = Subscription(client, command["on"], command["topic"], start)
            case "produce":
                self.opened[command["on"]] = Producer(self.clients[command["client"]], command["topic"])
            case "request":
                self.opened[command["on"]].request(command["n"])
            case "publish":
                await self.opened[command["on"]].publish(command["records"])
                if command["wait"]:
                    await self.opened[command["on"]].flush()
            case "flush":
                await self.opened[command["on"]].flush()
            case "complete":
                self.opened[command["on"]].end(0, 0, "")
            case "fail":
                self.opened[command["on"]].end(1, command["code"], command["message"])
            case "reset":
                for client in self.clients.values():
                    client.task.cancel()
                    client.writer.close()
                self.__init__()
        write(id=command["id"])


async def main():
    write(event="ready", client="smallest", lacks=LACKS)
    driver = Driver()
    reader = asyncio.StreamReader(limit=16 << 20)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    tasks = set()
    while line := await reader.readline():
        tasks.add(asyncio.create_task(driver.handle(json.loads(line))))


asyncio.run(main())
