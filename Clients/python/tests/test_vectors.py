"""The protocol's test vectors: every frame is decoded and encoded, and invalid frames are rejected."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from sluice import _layout as layout
from sluice._batches import decode_batch, encode_record
from sluice._connection import Connection, Hello
from sluice.errors import ErrorCode, ProtocolError, SluiceError

VECTORS = json.loads((Path(__file__).resolve().parents[3] / "Sources/SluiceWire/SluiceWire.docc/Protocol-vectors.json").read_text())
BATCHES = ("DELIVER", "PUBLISH")


def texts(value: Any) -> Any:
    """Writes integers and bytes in the form of the vectors."""
    if isinstance(value, dict):
        return {key: texts(part) for key, part in value.items() if part is not None}
    if isinstance(value, list):
        return [texts(part) for part in value]
    if isinstance(value, bytes):
        return value.hex()
    return str(value)


def values(part: layout.Field, value: Any) -> Any:
    """Converts the vectors' texts to the values of the codec."""
    if part.kind in ("bytes16", "bytes32"):
        return bytes.fromhex(value)
    if part.kind in ("u8", "u16", "u32", "u64", "i64"):
        return int(value)
    if part.kind == "structure":
        return {inner.name: values(inner, value[inner.name]) for inner in part.parts if inner.name in value}
    if part.kind == "wrapped":
        return values(part.parts[0], value)
    if part.kind == "list":
        return [{inner.name: values(inner, element[inner.name]) for inner in part.parts} for element in value]
    return value


def frames(*, with_batches: bool) -> list[Any]:
    chosen = [frame for frame in VECTORS["frames"] if (frame["frame"] in BATCHES) == with_batches]
    return [pytest.param(frame, id=frame["name"]) for frame in chosen]


@pytest.mark.parametrize("vector", frames(with_batches=False))
def test_frames_are_decoded(vector: dict[str, Any]) -> None:
    body = bytes.fromhex(vector["hex"])[12:]
    assert texts(layout.decode(layout.BY_NAME[vector["frame"]], body)) == texts(vector["fields"])


@pytest.mark.parametrize("vector", frames(with_batches=False))
def test_frames_are_encoded(vector: dict[str, Any]) -> None:
    frame = layout.BY_NAME[vector["frame"]]
    fields = {part.name: values(part, vector["fields"][part.name]) for part in frame.fields if part.name in vector["fields"]}
    data = bytes.fromhex(vector["hex"])
    encoded = layout.encode(frame.name, vector["stream"], data[5] & 0xF0, **fields)
    # A later version may have added fields after the known ones, which the length includes.
    assert data[4:].startswith(encoded[4:])


@pytest.mark.parametrize("vector", frames(with_batches=True))
def test_batches_are_decoded_and_encoded(vector: dict[str, Any]) -> None:
    data = bytes.fromhex(vector["hex"])
    items = vector["fields"]["batch"]
    batch, _ = decode_batch(data, 24, len(data), "t", 0, vector["fields"]["count"], 7)
    records = [item for item in items if "time" not in item]
    assert [record.payload.hex() for record in batch] == [item["payload"] for item in records]
    assert [record.key for record in batch] == [bytes.fromhex(item["key"]) if "key" in item else None for item in records]
    assert [[(name.encode().hex(), value.hex()) for name, value in record.headers] for record in batch] == [
        [(header["name"], header["value"]) for header in item.get("headers", [])] for item in records
    ]
    if len(records) == len(items):
        encoded = b"".join(encode_record(record.payload, record.key, record.headers or None) for record in batch)
        assert encoded == data[24:]


@pytest.mark.parametrize("vector", frames(with_batches=True))
def test_a_batch_that_is_cut_anywhere_is_refused(vector: dict[str, Any]) -> None:
    data = bytes.fromhex(vector["hex"])
    for end in range(24, len(data)):
        with pytest.raises(ProtocolError):
            decode_batch(data, 24, end, "t", 0, vector["fields"]["count"], 7)


@pytest.mark.parametrize("vector", frames(with_batches=False))
def test_a_frame_that_is_cut_anywhere_is_refused(vector: dict[str, Any]) -> None:
    frame = layout.BY_NAME[vector["frame"]]
    body = bytes.fromhex(vector["hex"])[12:]
    known = len(layout.encode(frame.name, 1, **layout.decode(frame, body))) - 12
    for end in range(known):
        try:
            decoded = layout.decode(frame, body[:end])
        except ProtocolError as error:
            assert error.code == ErrorCode.MALFORMED_FRAME or error.code == ErrorCode.NOT_SLUICE
        else:
            # Only fields of later versions, at the end of a structure, may be missing.
            assert any(part.is_optional for outer in frame.fields for part in (outer, *outer.parts)), decoded


MALFORMED = [vector for vector in VECTORS["malformed"] if vector["receiver"] == "client"]


@pytest.mark.parametrize("vector", [pytest.param(vector, id=vector["name"]) for vector in MALFORMED])
def test_what_a_client_must_refuse_is_refused(vector: dict[str, Any]) -> None:
    async def run() -> None:
        ends: list[SluiceError] = []
        connection = Connection(Hello(), lambda _, error: ends.append(error))
        if not vector["opening"]:
            welcome = layout.encode("WELCOME", 0, version=1, longest_frame=65_536, longest_record=1_000, streams=8, expires=layout.U64_MAX)
            connection.data_received(welcome)
            connection.begin(Sink())
        data = bytes.fromhex(vector["hex"])
        for byte in data:
            connection.data_received(bytes([byte]))
        assert ends, "the connection goes on"
        assert ErrorCode(ends[0].code).label == vector["error"]

    asyncio.run(run())


class Sink:
    """A stream that decodes frames as they arrive."""

    def frame(self, number: int, values: dict[str, Any]) -> bool:
        return False

    def deliver(self, data: bytes, start: int, end: int) -> None:
        from sluice._subscription import Position

        Position("t").take(data, start, end)

    def lost(self, error: SluiceError) -> None:
        return

    def writable(self) -> None:
        return
