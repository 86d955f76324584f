"""Finds the broker's program, and runs test functions that are coroutines."""

from __future__ import annotations

import asyncio
import inspect
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sluice.testing import Broker

ROOT = Path(__file__).resolve().parents[3]
_BUILDS = ("strict/debug", "release", "debug")


def _program() -> str | None:
    named = os.environ.get("SLUICED")
    if named:
        return named
    for build in _BUILDS:
        path = ROOT / ".build" / build / "sluiced"
        if path.exists():
            return str(path)
    return shutil.which("sluiced")


@pytest.fixture(scope="session")
def program() -> str:
    found = _program()
    if found is None:
        pytest.skip("sluiced isn't built; run `swift build --product sluiced`, or name it in SLUICED")
    return found


@pytest.fixture(scope="session")
def broker(program: str) -> Iterator[Broker]:
    with Broker(program=program) as running:
        yield running


@pytest.fixture
def own_broker(program: str) -> Iterator[Broker]:
    """A broker that the test may kill."""
    with Broker(program=program) as running:
        yield running


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    function = pyfuncitem.obj
    if not inspect.iscoroutinefunction(function):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    arguments: dict[str, Any] = {name: pyfuncitem.funcargs[name] for name in names}

    async def bounded() -> None:
        async with asyncio.timeout(60):
            await function(**arguments)

    asyncio.run(bounded())
    return True
