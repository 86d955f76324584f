"""A broker that follows a test's script, frame by frame, and a proxy that cuts connections."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import Awaitable, Callable
from typing import Any

from sluice import _layout as layout


class Peer:
    """The broker's side of one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.is_cut = False

    async def cut(self) -> None:
        """Sends what is queued, gives the client time to read it, and cuts the connection."""
        await self.writer.drain()
        await asyncio.sleep(0.1)
        self.is_cut = True

    async def read(self) -> tuple[str, int, dict[str, Any]]:
        """Returns the next frame: its name, stream and fields."""
        header = await self.reader.readexactly(12)
        length, number, _, _, stream = struct.unpack("<IBBHI", header)
        body = await self.reader.readexactly(length)
        frame = layout.BY_NUMBER[number]
        if frame.name == "PUBLISH":
            first, count = struct.unpack_from("<QI", body)
            return frame.name, stream, {"first sequence": first, "count": count, "batch": body[12:]}
        return frame.name, stream, layout.decode(frame, body)

    async def expect(self, name: str) -> tuple[int, dict[str, Any]]:
        """Returns the stream and the fields of the next frame, which must be of that type."""
        found, stream, values = await self.read()
        assert found == name, f"{found} came, not {name}"
        return stream, values

    def send(self, frame: str, stream: int, /, **values: Any) -> None:
        self.writer.write(layout.encode(frame, stream, **values))

    def deliver(self, stream: int, first: int, *payloads: bytes) -> None:
        batch = struct.pack("<Iq", 2 << 30 | 8, 1_000) + b"".join(struct.pack("<I", len(payload)) + payload for payload in payloads)
        body = struct.pack("<QI", first, len(payloads)) + batch
        self.writer.write(layout.frame_bytes(0x13, stream, body))

    async def welcome(self, keepalive: int = 0, streams: int = 64) -> dict[str, Any]:
        _, hello = await self.expect("HELLO")
        self.send(
            "WELCOME",
            0,
            version=1,
            features=hello["features"],
            longest_frame=1 << 20,
            longest_record=1 << 18,
            streams=streams,
            keepalive=keepalive,
            broker=1,
            software="scripted",
            expires=layout.U64_MAX,
        )
        return hello

    async def subscribed(self, epoch: int = 7, next_offset: int = 0, **values: Any) -> tuple[int, dict[str, Any]]:
        stream, frame = await self.expect("SUBSCRIBE")
        self.send("SUBSCRIBED", stream, epoch=epoch, next_offset=next_offset, live_offset=next_offset, **values)
        return stream, frame

    async def granted(self, frame: dict[str, Any]) -> int:
        """Returns the first grant of a subscription: from its SUBSCRIBE, or from the DEMAND directly after it."""
        return int(frame["granted through"] or (await self.expect("DEMAND"))[1]["granted through"])


class ScriptedBroker:
    """Runs a script for each connection, in the order of the connections."""

    def __init__(self, *scripts: Callable[[Peer], Awaitable[None]]) -> None:
        self._scripts = list(scripts)
        self._tasks: list[asyncio.Task[None]] = []
        self.failures: list[BaseException] = []

    async def __aenter__(self) -> ScriptedBroker:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._scripts:
            writer.close()
            return
        script = self._scripts.pop(0)
        peer = Peer(reader, writer)
        try:
            await script(peer)
            # The client closes first, since closing with unread input would drop bytes that were sent to the client.
            while not peer.is_cut and await reader.read(65_536):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        except BaseException as error:
            self.failures.append(error)
        finally:
            with contextlib.suppress(Exception):
                writer.close()

    async def __aexit__(self, *error: object) -> None:
        self._server.close()
        if error[0] is None:
            assert not self.failures, self.failures


class Proxy:
    """Forwards bytes to a broker, and cuts all connections on request."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._writers: set[asyncio.StreamWriter] = set()
        self.connections = 0

    async def __aenter__(self) -> Proxy:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            upstream_reader, upstream_writer = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError:
            writer.close()
            return
        self.connections += 1
        pair = {writer, upstream_writer}
        self._writers |= pair

        async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
            with contextlib.suppress(OSError):
                while data := await source.read(65_536):
                    target.write(data)
                    await target.drain()
            for end in pair:
                end.close()

        await asyncio.gather(copy(reader, upstream_writer), copy(upstream_reader, writer))
        self._writers -= pair

    def cut(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()

    async def __aexit__(self, *error: object) -> None:
        self._server.close()
        self.cut()
