"""``python -m sluice``."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from sluice.testing import Broker


def run(broker: Broker, *arguments: str, input: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "sluice", "--server", broker.address, *arguments]
    return subprocess.run(command, input=input, capture_output=True, timeout=60, check=False)


def test_lines_are_published_and_printed(broker: Broker) -> None:
    assert run(broker, "pub", "cli.lines", "--key", "k", "--header", "a=b", input=b"one\n\xff\nthree").returncode == 0
    plain = run(broker, "sub", "cli.lines", "--from", "earliest", "--count", "3")
    assert plain.stdout == b"one\n\xff\nthree\n"
    lines = run(broker, "sub", "cli.lines", "--count", "2", "--json").stdout.splitlines()
    first, second = map(json.loads, lines)
    assert (first["payload"], first["key"], first["headers"], first["offset"]) == ("one", "k", {"a": "b"}, 0)
    assert second["payloadBase64"] == "/w=="


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["req", "cli.nobody", "hi"], 1, b"no-responders"),
        (["sub", "cli.x", "--from", "latest"], 2, b"'earliest'"),
        (["pub", "bad..name", "x"], 1, b"invalid-topic"),
    ],
)
def test_errors_are_named(broker: Broker, arguments: list[str], code: int, message: bytes) -> None:
    result = run(broker, *arguments)
    assert (result.returncode, message in result.stderr) == (code, True), result.stderr
