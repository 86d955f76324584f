"""Measures the clients for Python and Node beside others, in turns, and prints medians. Started by scripts/bench-clients.sh.

Everything listens on loopback, on ports of its own; what was started is ended by its process number.
"""

from __future__ import annotations

import argparse
import contextlib
import glob
import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "Clients/python/src"))

#: The measured loads: a name, what the figure is, and how many records or trips.
LOADS: dict[str, list[tuple[str, str, int]]] = {
    "python": [
        ("sluice iterate", "rate", 1_000_000), ("sluice batches", "rate", 1_000_000), ("nats iterate", "rate", 200_000),
        ("pika iterate", "rate", 50_000), ("sluice publish", "rate", 500_000), ("sluice many", "rate", 1_000_000),
        ("nats publish", "rate", 200_000), ("pika publish", "rate", 50_000), ("sluice trip", "trip", 3_000), ("echo trip", "trip", 3_000),
    ],
    "node": [
        ("sluice iterate", "rate", 1_000_000), ("mqtt iterate", "rate", 200_000), ("sluice publish", "rate", 1_000_000),
        ("mqtt publish", "rate", 200_000), ("sluice trip", "trip", 3_000), ("echo trip", "trip", 3_000),
    ],
}  # fmt: skip


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def say(text: str) -> None:
    print(f"bench-clients: {text}", file=sys.stderr, flush=True)


class Servers:
    """The brokers, each started when a load needs it."""

    def __init__(self, options: argparse.Namespace, directory: Path, stack: contextlib.ExitStack) -> None:
        self._options = options
        self._directory = directory
        self._stack = stack
        self._addresses: dict[str, str] = {}

    def address(self, name: str, language: str) -> str:
        """The address of the server that a client's loads are for."""
        key = f"echo-{language}" if name == "echo" else name
        if key not in self._addresses:
            self._addresses[key] = getattr(self, f"_start_{name}")(language)
        return self._addresses[key]

    def _started(self, command: list[str], port: int, seconds: float = 60.0, **variables: str) -> str:
        log = (self._directory / f"{Path(command[0]).name}-{port}.log").open("wb")
        process = subprocess.Popen(command, stdout=log, stderr=log, env=os.environ | variables, start_new_session=True)
        self._stack.callback(end, process)
        deadline = time.monotonic() + seconds
        while process.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.2):
                return f"127.0.0.1:{port}"
            time.sleep(0.1)
        raise SystemExit(f"bench-clients: {command[0]} takes no connections; see {log.name}")

    def _start_sluice(self, _: str) -> str:
        port, mqtt = free_port(), free_port()
        self._addresses["mqtt"] = f"127.0.0.1:{mqtt}"
        listen = ["--listen", f"127.0.0.1:{port}", "--listen", f"mqtt://127.0.0.1:{mqtt}"]
        return self._started([self._options.sluiced, *listen, "--admin", "off"], port)

    def _start_mqtt(self, language: str) -> str:
        self.address("sluice", language)
        return self._addresses["mqtt"]

    def _start_echo(self, language: str) -> str:
        port = free_port()
        return self._started([*loader(language), "echo", "serve", f"127.0.0.1:{port}", "0"], port)

    def _start_nats(self, _: str) -> str:
        port = free_port()
        return self._started([self._options.nats, "--addr", "127.0.0.1", "--port", f"{port}"], port)

    def _start_pika(self, _: str) -> str:
        port, home = free_port(), self._directory / "rabbitmq"
        home.mkdir()
        (home / "plugins").write_text("[].")
        (home / "rabbitmq.conf").write_text(f"listeners.tcp.1 = 127.0.0.1:{port}\n")
        programs = sorted(glob.glob("/usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmq-server"))
        if shutil.which("epmd"):
            # Of its own, so that it ends with the run.
            epmd = free_port()
            self._started(["epmd", "-address", "127.0.0.1", "-port", f"{epmd}"], epmd)
        else:
            epmd = 4369
        return self._started(
            [programs[-1]], port, HOME=f"{home}", RABBITMQ_NODENAME="bench-clients@localhost", ERL_EPMD_PORT=f"{epmd}",
            RABBITMQ_DIST_PORT=f"{free_port()}", RABBITMQ_CONF_ENV_FILE=f"{home}/none", RABBITMQ_CONFIG_FILE=f"{home}/rabbitmq.conf",
            RABBITMQ_ENABLED_PLUGINS_FILE=f"{home}/plugins", RABBITMQ_MNESIA_BASE=f"{home}/mnesia", RABBITMQ_LOG_BASE=f"{home}/log",
            RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="-kernel inet_dist_use_interface {127,0,0,1}",
        )  # fmt: skip


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends a server and what it has started: they have a session of their own."""
    for number, seconds in ((signal.SIGTERM, 15), (signal.SIGKILL, 5)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
            return


def loader(language: str) -> list[str]:
    return [sys.executable, f"{HERE}/load.py"] if language == "python" else ["node", f"{HERE}/load.mjs"]


def run(command: list[str]) -> dict[str, Any]:
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if result.returncode:
        raise SystemExit(f"bench-clients: {' '.join(command)} failed:\n{result.stderr[-2000:]}")
    values: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    return values


class Bench:
    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self._number = 0

    def fresh(self) -> str:
        self._number += 1
        return f"bench{self._number}"

    def sluice(self, load: str, count: int, topic: str) -> None:
        run([*loader("python"), "sluice", load, self._servers.address("sluice", "python"), f"{count}", topic])

    @contextlib.contextmanager
    def topic(self, **settings: Any) -> Iterator[str]:
        """A topic of Sluice for one load."""
        import sluice.sync

        topic = self.fresh()
        with sluice.sync.connect(self._servers.address("sluice", "python")) as client:
            client.create_topic(topic, **settings)
            yield topic
            with contextlib.suppress(sluice.SluiceError):
                client.delete_topic(topic)

    def measure(self, language: str, client: str, load: str, count: int) -> dict[str, Any]:
        address = self._servers.address(client, language)
        command = [*loader(language), client, load, address, f"{count}"]
        if client == "mqtt" and load == "iterate":
            return self._mqtt(command, count)
        if client in ("sluice", "mqtt"):
            kept = {"replay_records": count} if load in ("iterate", "batches") else {"replay_records": 0}
            with self.topic(replay_bytes=None, **kept) as topic:
                if load in ("iterate", "batches"):
                    self.sluice("fill", count, topic)
                return run([*command, topic])
        if client == "pika" and load == "iterate":
            topic = self.fresh()
            run([*loader(language), client, "publish", address, f"{count}", topic])
            return run([*command, topic])
        return run([*command, self.fresh()])

    def _mqtt(self, command: list[str], count: int) -> dict[str, Any]:
        """The subscriber is there first: MQTT has no positions."""
        with self.topic(flow="lossless", replay_records=0) as topic:
            process = subprocess.Popen([*command, topic], stdout=subprocess.PIPE, text=True)
            assert process.stdout is not None
            try:
                assert process.stdout.readline() == "ready\n", "MQTT.js can't subscribe"
                self.sluice("fill", count, topic)
                values: dict[str, Any] = json.loads(process.stdout.readline())
            finally:
                process.kill()
                process.wait()
        return values

    def memory(self, language: str, count: int) -> dict[str, int]:
        """A lossless topic, whose producer waits for the subscriber."""
        with self.topic(flow="lossless", replay_records=0, without_subscribers="hold", buffer_records=20_000) as topic:
            address = self._servers.address("sluice", language)
            filling = subprocess.Popen([*loader("python"), "sluice", "fill", address, f"{count}", topic], stdout=subprocess.DEVNULL)
            try:
                sizes: dict[str, int] = run([*loader(language), "sluice", "memory", address, f"{count}", topic])["memory"]
            finally:
                filling.kill()
                filling.wait()
        return sizes


def shown(kind: str, values: list[dict[str, float]]) -> str:
    """The medians of a load's figures."""
    value = statistics.median(figure[kind] for figure in values)
    if kind == "trip":
        return f"{value * 1e6:10.0f} µs"
    processor = statistics.median(figure["processor"] for figure in values)
    return f"{value / 1e3:10,.0f} k/s{processor / 1e3:10,.0f} k in a second of the client's processor time"


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench-clients.sh", description=__doc__)
    parser.add_argument("--sluiced", required=True)
    parser.add_argument("--nats")
    parser.add_argument("--without", default="", help="clients that can't be had here, with commas")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="only loads whose names match this expression, such as 'python sluice'")
    parser.add_argument("--scale", type=float, default=1.0, help="the part of the records that is used")
    parser.add_argument("--memory", type=int, default=10, help="how many million records memory is measured over; 0 for none")
    options = parser.parse_args()
    # Debian's modules for Node, among them MQTT.js.
    os.environ["NODE_PATH"] = "/usr/share/nodejs"
    # Exits by an exception, so that started processes are stopped in this case, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    without = set(filter(None, options.without.split(",")))
    chosen = [
        (language, *name.split(), kind, max(int(count * options.scale), 1_000))
        for language, loads in LOADS.items()
        for name, kind, count in loads
        if language not in without and name.split()[0] not in without and re.search(options.only, f"{language} {name}")
    ]
    figures: dict[tuple[str, str, str, str], list[dict[str, float]]] = {}
    with tempfile.TemporaryDirectory(prefix="bench-clients.") as directory, contextlib.ExitStack() as stack:
        bench = Bench(Servers(options, Path(directory), stack))
        for number in range(options.rounds):
            for language, client, load, kind, count in chosen:
                value = bench.measure(language, client, load, count)
                say(f"round {number + 1}: {language} {client} {load}: {shown(kind, [value]).strip()}")
                figures.setdefault((language, client, load, kind), []).append(value)
        print(f"medians of {options.rounds} rounds, 128 B")
        for (language, client, load, kind), values in figures.items():
            print(f"{language:8}{client:8}{load:9}{shown(kind, values)}")
        for language in LOADS:
            if options.memory and language not in without and re.search(options.only, f"{language} memory"):
                sizes = bench.memory(language, options.memory * 1_000_000)
                points = [point for point in ("1", "5", f"{options.memory}") if point in sizes]
                print(
                    f"{language:8}memory after millions of records: " + ", ".join(f"{point}: {sizes[point] >> 20} MiB" for point in points)
                )


main()
