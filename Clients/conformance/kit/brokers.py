"""The brokers of the scenarios: a real one, a proxy that cuts connections to it, and one that follows a script."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import socket
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from . import wire


def free_port() -> int:
    """Returns a port of 127.0.0.1 on which no program listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


class RealBroker:
    """A ``sluiced`` in a process and a folder of its own."""

    def __init__(self, program: Path, *options: str) -> None:
        self._program = program
        self._options = options
        self._folder = Path(tempfile.mkdtemp(prefix="sluice-conformance-"))
        self._process: asyncio.subprocess.Process | None = None
        self.port = free_port()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Starts the broker, and waits until it accepts connections."""
        with (self._folder / "log").open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                str(self._program), "--listen", self.address, "--admin", "off", "--data", str(self._folder / "data"), *self._options,
                stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        async with asyncio.timeout(30):
            while True:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", self.port)
                    writer.close()
                    return
                except OSError:
                    if self._process.returncode is not None:
                        raise RuntimeError(f"sluiced has ended:\n{(self._folder / 'log').read_text()}") from None
                    await asyncio.sleep(0.02)

    async def kill(self) -> None:
        """Kills the broker, like a crash."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

    async def terminate(self) -> None:
        """Stops the broker in an orderly way."""
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()
            await self._process.wait()

    async def close(self) -> None:
        await self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)


class Proxy:
    """Forwards bytes to a broker, and cuts connections: on request, or after a number of bytes from the broker."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._writers: set[asyncio.StreamWriter] = set()
        self.connections = 0
        #: For each further connection, the number of bytes from the broker after which it is cut.
        self.cut_after: list[int] = []

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            upstream_reader, upstream_writer = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError:
            writer.close()
            return
        self.connections += 1
        room = self.cut_after.pop(0) if self.cut_after else None
        ends = {writer, upstream_writer}
        self._writers |= ends

        async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter, left: int | None) -> None:
            with contextlib.suppress(OSError):
                while data := await source.read(65_536):
                    if left is not None:
                        data, left = data[:left], left - len(data)
                    target.write(data)
                    await target.drain()
                    if left is not None and left <= 0:
                        break
            for end in ends:
                end.close()

        await asyncio.gather(copy(reader, upstream_writer, None), copy(upstream_reader, writer, room))
        self._writers -= ends

    def cut(self) -> None:
        """Cuts all connections."""
        for writer in list(self._writers):
            writer.transport.abort()

    async def close(self) -> None:
        self._server.close()
        self.cut()


class Peer:
    """The scripted broker's side of one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.is_cut = False
        #: The flags of the last frame's header.
        self.flags = 0
        self.hello: dict[str, Any] = {}
        #: The largest grant on each stream since it was opened.
        self.grants: dict[int, int] = {}

    async def read(self) -> tuple[str, int, dict[str, Any]]:
        """Returns the name, the stream and the fields of the client's next frame."""
        length, number, self.flags, stream = wire.header(await self._reader.readexactly(12))
        data = await self._reader.readexactly(length)
        name, values = wire.decode(number, data)
        if "granted" in values:
            assert name != "DEMAND" or stream in self.grants, f"the client sent DEMAND on stream {stream}, which it never opened"
            former = self.grants[stream] if name == "DEMAND" else 0
            self.grants[stream] = max(former, values["granted"])
        return name, stream, values

    async def expect(self, *names: str, skipping: tuple[str, ...] = ("PING", "PONG", "DEMAND")) -> tuple[int, dict[str, Any]]:
        """Returns the stream and the fields of the client's next frame with one of these names. Only frames to skip may precede it."""
        while True:
            found, stream, values = await self.read()
            if found in names:
                return stream, values
            assert found in skipping, f"the client sent {found} where {' or '.join(names)} is expected: {values}"
            if found == "PING":
                self.send("PONG", 0, token=values["token"])

    async def error(self) -> int:
        """Returns the code of the ERROR with which the client closes the connection; 0 if it closes without one."""
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                name, stream, values = await self.read()
                if name == "ERROR":
                    assert stream == 0, "a client sends ERROR on stream 0 only"
                    code: int = values["code"]
                    return code
        return 0

    def raw(self, data: bytes) -> None:
        self._writer.write(data)

    def send(self, name: str, stream: int, /, **values: Any) -> None:
        self._writer.write(wire.encode(name, stream, **values))

    async def drain(self) -> None:
        await self._writer.drain()

    def deliver(self, stream: int, first: int, *payloads: bytes) -> None:
        self.send("DELIVER", stream, first=first, count=len(payloads), batch=wire.batch(*payloads))

    async def welcome(self, **values: Any) -> dict[str, Any]:
        """Answers HELLO, and returns its fields."""
        _, hello = await self.expect("HELLO")
        self.hello = hello
        assert hello["magic"] == wire.MAGIC and hello["lowest"] <= 1 <= hello["highest"] and hello["longest_frame"] >= 65_536
        answer = wire.WELCOME | {"features": hello["features"] & 1, "streams": 64, "broker": 1, "software": "scripted"}
        self.send("WELCOME", 0, **(answer | values))
        return hello

    async def subscribed(self, epoch: int = 7, next_offset: int = 0, **values: Any) -> tuple[int, dict[str, Any]]:
        """Answers SUBSCRIBE, and returns its stream and fields."""
        stream, frame = await self.expect("SUBSCRIBE")
        self.send("SUBSCRIBED", stream, **({"epoch": epoch, "next_offset": next_offset, "live_offset": next_offset} | values))
        return stream, frame

    async def granted(self, stream: int, least: int) -> int:
        """Waits until the client has granted ``least`` records on the stream. Returns the grant."""
        while self.grants[stream] < least:
            _, values = await self.expect("DEMAND")
            assert values["granted"] > 0, "a DEMAND grants nothing"
        return self.grants[stream]

    async def opened(self, granted: int = 1_000, **values: Any) -> tuple[int, dict[str, Any]]:
        """Answers PUBLISH_OPEN, and returns its stream and fields."""
        stream, frame = await self.expect("PUBLISH_OPEN")
        answer = {"epoch": 7, "granted": granted, "bytes": wire.ALL_ONES, "next_sequence": frame["first_sequence"]}
        self.send("PUBLISH_OPENED", stream, **(answer | values))
        return stream, frame

    async def published(self, count: int) -> list[bytes]:
        """Reads PUBLISH until ``count`` records have arrived. Returns their payloads."""
        found: list[bytes] = []
        while len(found) < count:
            _, values = await self.expect("PUBLISH")
            records = wire.payloads(values["batch"])
            assert len(records) == values["count"] > 0, "a PUBLISH has another number of records than it says"
            found += records
        return found

    async def cut(self) -> None:
        """Sends what is queued, gives the client time to read it, and cuts the connection."""
        with contextlib.suppress(ConnectionError):
            await self._writer.drain()
        await asyncio.sleep(0.05)
        self.is_cut = True
        self._writer.transport.abort()


Script = Callable[[Peer], Awaitable[None]]


class ScriptedBroker:
    """Runs a script for each connection: the first for the first one, and the last for all that follow."""

    def __init__(self, *scripts: Script, repeats: bool = False) -> None:
        self._scripts = list(scripts)
        self._repeats = repeats
        self._tasks: set[asyncio.Task[Any]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._done = asyncio.Event()
        self._left = len(scripts)
        self.connections = 0
        self.failure: BaseException | None = None

    async def start(self) -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        # Small buffers, so that a client soon notices that its answers aren't read, and a script that the client doesn't read.
        for buffer in (socket.SO_RCVBUF, socket.SO_SNDBUF):
            listener.setsockopt(socket.SOL_SOCKET, buffer, 64 << 10)
        self._server = await asyncio.start_server(self._accept, sock=listener)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        if not self._scripts:
            writer.close()
            return
        script = self._scripts[0] if self._repeats and len(self._scripts) == 1 else self._scripts.pop(0)
        self._writers.add(writer)
        task = asyncio.get_running_loop().create_task(self._run(script, reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, script: Script, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(reader, writer)
        try:
            await script(peer)
            self._finished()
            # The client closes first, since closing with unread input would drop bytes that were sent to the client.
            while not peer.is_cut and await reader.read(65_536):
                pass
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            if not self._repeats:
                self._failed(AssertionError(f"the client closed the connection before the script's end: {error!r}"))
        except Exception as error:
            self._failed(error)
        finally:
            self._writers.discard(writer)
            writer.close()

    def _finished(self) -> None:
        self._left -= 1
        if self._left <= 0:
            self._done.set()

    def _failed(self, error: BaseException) -> None:
        self.failure = self.failure or error
        self._done.set()

    async def finished(self) -> None:
        """Waits until all scripts have run, and raises the error of one that failed."""
        await self._done.wait()
        if self.failure is not None:
            raise self.failure

    async def close(self) -> None:
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        for writer in list(self._writers):
            writer.transport.abort()
