"""``python -m sluice``: subscribe, publish and request from a shell."""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

import sluice

from .records import Record


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m sluice", description="A small command-line client for a Sluice broker.")
    parser.add_argument("--server", default=os.environ.get("SLUICE_SERVER", "127.0.0.1"), help="HOST[:PORT] (SLUICE_SERVER)")
    parser.add_argument("--user", default=os.environ.get("SLUICE_USER"), help="user name (SLUICE_USER)")
    parser.add_argument("--password", default=os.environ.get("SLUICE_PASSWORD"), help="password (SLUICE_PASSWORD)")
    parser.add_argument("--token", default=os.environ.get("SLUICE_TOKEN"), help="token (SLUICE_TOKEN)")
    parser.add_argument("--tls", action="store_true", help="use TLS")
    parser.add_argument("--ca-file", help="certificates of the authorities to trust, in PEM; implies --tls")
    parser.add_argument("--version", action="version", version=f"sluice {sluice.__version__}")
    commands = parser.add_subparsers(dest="command", required=True)

    sub = commands.add_parser("sub", help="print the records of a topic, one a line")
    sub.add_argument("topic", help="a topic, or a pattern such as orders.>")
    sub.add_argument("--from", dest="start", default="replay", help="replay, earliest, new, last:N, offset:N")
    sub.add_argument("--count", type=int, help="end after that many records")
    sub.add_argument("--prefetch", type=int, default=256, help="records requested ahead (default: 256)")
    sub.add_argument("--json", action="store_true", help="print each record as a JSON object")

    pub = commands.add_parser("pub", help="publish a record, or each line of standard input")
    pub.add_argument("topic")
    pub.add_argument("payload", nargs="?", help="the payload; without it, each line of standard input is a record")
    pub.add_argument("--key", help="the records' key")
    pub.add_argument("--header", action="append", default=[], metavar="NAME=VALUE", help="a header; may be repeated")
    pub.add_argument("--acknowledge", choices=["none", "received", "durable"], default="received")

    req = commands.add_parser("req", help="publish a request and print the reply")
    req.add_argument("topic")
    req.add_argument("payload", nargs="?", default="")
    req.add_argument("--timeout", type=float, default=5.0, help="seconds to wait (default: 5)")
    return parser


def _start(text: str) -> str | sluice.Start:
    kind, _, value = text.partition(":")
    if kind in ("last", "offset") and value.isascii() and value.isdigit():
        return sluice.last(int(value)) if kind == "last" else sluice.offset(int(value))
    return text


def _line(record: Record, *, as_json: bool) -> bytes:
    if not as_json:
        return record.payload + b"\n"
    fields: dict[str, Any] = {"topic": record.topic, "offset": record.offset, "time": record.time}
    for name, data in (("key", record.key), ("payload", record.payload)):
        if data is not None:
            try:
                fields[name] = data.decode()
            except UnicodeDecodeError:
                fields[f"{name}Base64"] = base64.b64encode(data).decode()
    if record.headers:
        fields["headers"] = {name: value.decode(errors="replace") for name, value in record.headers}
    return json.dumps(fields, ensure_ascii=False).encode(errors="replace") + b"\n"


async def _sub(client: sluice.Client, options: argparse.Namespace) -> None:
    prefetch = options.prefetch if options.count is None else min(options.prefetch, options.count)
    start = _start(options.start)
    is_pattern = "*" in options.topic or options.topic == ">" or options.topic.endswith(".>")
    if is_pattern:
        topic = client.pattern(options.topic, from_=start, prefetch=prefetch)
    else:
        topic = client.topic(options.topic, from_=start, prefetch=prefetch)
    out = sys.stdout.buffer
    count = 0
    if options.count == 0:
        return
    async for record in topic:
        out.write(_line(record, as_json=options.json))
        out.flush()
        count += 1
        if count == options.count:
            return


async def _pub(client: sluice.Client, options: argparse.Namespace) -> None:
    headers = []
    for text in options.header:
        name, separator, value = text.partition("=")
        if not separator:
            raise SystemExit(f"sluice: --header {text}: write NAME=VALUE")
        headers.append((name, os.fsencode(value)))
    key = None if options.key is None else os.fsencode(options.key)
    async with client.producer(options.topic, acknowledge=options.acknowledge) as producer:
        if options.payload is not None:
            await producer.send(os.fsencode(options.payload), key=key, headers=headers)
            return
        while line := await asyncio.to_thread(sys.stdin.buffer.readline):
            await producer.send(line.removesuffix(b"\n"), key=key, headers=headers)


async def _req(client: sluice.Client, options: argparse.Namespace) -> None:
    reply = await client.request(options.topic, os.fsencode(options.payload), timeout=options.timeout)
    sys.stdout.buffer.write(reply.payload + b"\n")
    sys.stdout.buffer.flush()


async def _run(options: argparse.Namespace) -> None:
    action = {"sub": _sub, "pub": _pub, "req": _req}[options.command]
    async with sluice.connect(
        options.server,
        name="python -m sluice",
        user=options.user,
        password=options.password,
        token=options.token,
        tls=options.tls,
        ca_file=options.ca_file,
    ) as client:
        await action(client, options)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command. Returns the exit code: 0, 1 for an error of the broker or the connection, 2 for unusable arguments."""
    options = _parser().parse_args(arguments)
    try:
        asyncio.run(_run(options))
    except ValueError as error:
        print(f"sluice: {error}", file=sys.stderr)
        return 2
    except sluice.SluiceError as error:
        print(f"sluice: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader of the output has exited, like `head`. Otherwise Python would report it again while it exits.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
