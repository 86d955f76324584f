"""Compares the kit's codec with the protocol's test vectors."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from kit import wire

ROOT = Path(__file__).resolve().parents[3]
VECTORS = json.loads((ROOT / "Sources/SluiceWire/SluiceWire.docc/Protocol-vectors.json").read_text())
KNOWN: list[dict[str, Any]] = [vector for vector in VECTORS["frames"] if vector["frame"] in wire.FRAMES]


@pytest.mark.parametrize("vector", KNOWN, ids=lambda vector: vector["name"])
def test_frames_have_the_bytes_of_the_vectors(vector: dict[str, Any]) -> None:
    data = bytes.fromhex(vector["hex"])
    length, number, _, stream = wire.header(data[:12])
    name, values = wire.decode(number, data[12:])
    assert (name, stream, length) == (vector["frame"], vector["stream"], len(data) - 12)
    # A later version's fields come after those that the kit knows.
    assert data[12:].startswith(wire.encode(name, stream, **values)[12:])


def test_each_frame_of_the_kit_has_a_vector() -> None:
    assert {vector["frame"] for vector in KNOWN} == set(wire.FRAMES)
