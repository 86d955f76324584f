"""A pytest plug-in with a broker for tests.

Installed with the extra ``sluice-client[testing]``; pytest finds it by its entry point. The fixture ``sluice_broker`` starts
``sluiced`` on a free port of 127.0.0.1, once for a test session, and stops it afterwards::

    async def test_orders(sluice_broker):
        async with sluice.connect(sluice_broker.address) as client:
            ...

The program is given by ``SLUICED``, or is ``sluiced`` on the PATH.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType

import pytest

__all__ = ["Broker", "sluice_broker"]


class Broker:
    """A broker in its own process.

    Args:
        options: further options of ``sluiced``.
        program: the program; by default the variable ``SLUICED``, or ``sluiced`` on the PATH.
        tls: whether it listens with TLS; the options must then contain ``--tls-cert`` and ``--tls-key``.

    Attributes:
        address: the address for clients, ``127.0.0.1:PORT``.
        directory: a temporary folder, which is removed with the broker; durable topics are in it.
    """

    def __init__(self, *options: str, program: str | None = None, tls: bool = False) -> None:
        found = program or os.environ.get("SLUICED") or shutil.which("sluiced")
        if found is None:
            raise RuntimeError("sluiced isn't on the PATH; install it, or name it in the variable SLUICED")
        self._program = found
        self._options: Sequence[str] = options
        self._temporary = tempfile.TemporaryDirectory(prefix="sluice-test-")
        self.directory = Path(self._temporary.name)
        self._tls = tls
        self.port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self, timeout: float = 30.0) -> None:
        """Starts the broker and waits until it accepts connections.

        Raises:
            RuntimeError: it ends, or accepts none within ``timeout`` seconds.
        """
        listen = f"tls://{self.address}" if self._tls else self.address
        data = str(self.directory / "data")
        command = [self._program, "--listen", listen, "--admin", "off", "--data", data, *self._options]
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + timeout
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"sluiced doesn't take connections:\n{self.log}") from None
                time.sleep(0.02)

    @property
    def log(self) -> str:
        """The broker's log."""
        return (self.directory / "log").read_text(errors="replace")

    def kill(self) -> None:
        """Kills the broker, like a crash. :meth:`start` starts it again on the same port."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """Stops the broker in an orderly way."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()
            self._process = None

    def close(self) -> None:
        """Stops the broker and removes its folder."""
        self.stop()
        self._temporary.cleanup()

    def __enter__(self) -> Broker:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@pytest.fixture(scope="session")
def sluice_broker() -> Iterator[Broker]:
    """A broker that runs for the whole test session."""
    with Broker() as broker:
        yield broker
