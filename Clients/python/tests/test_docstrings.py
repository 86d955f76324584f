"""Runs the examples of all docstrings against a real broker, and compares their output."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import doctest
import importlib
import inspect
import io
import pkgutil
from typing import Any

import pytest

import sluice
from sluice.testing import Broker


def _modules() -> list[Any]:
    pytest.importorskip("reactivex")
    names = [found.name for found in pkgutil.iter_modules(sluice.__path__) if not found.name.startswith("__")]
    return [sluice, *(importlib.import_module(f"sluice.{name}") for name in names)]


def _examples() -> list[doctest.DocTest]:
    finder = doctest.DocTestFinder()
    return [found for module in _modules() for found in finder.find(module, globs={}) if found.examples]


#: Docstrings whose examples block, or have their own event loop.
_BLOCKING = ("sluice", "sluice.sync")


async def _run(test: doctest.DocTest, names: dict[str, Any], address: str) -> None:
    for example in test.examples:
        source = example.source.replace('"127.0.0.1"', repr(address))
        code = compile(source, test.name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            if code.co_flags & inspect.CO_COROUTINE:
                await eval(code, names)
            elif test.name in _BLOCKING:
                await asyncio.to_thread(eval, code, names)
            else:
                eval(code, names)
        assert output.getvalue() == example.want, source


@pytest.mark.parametrize("test", _examples(), ids=lambda test: test.name)
async def test_example(own_broker: Broker, test: doctest.DocTest) -> None:
    async with sluice.connect(own_broker.address) as client:
        if test.name != "sluice":
            async with client.producer("orders") as producer:
                await producer.publish(b"order 1", key="eu")
        names = vars(importlib.import_module("sluice.reactive")) | {"asyncio": asyncio, "client": client, "sluice": sluice}
        await asyncio.wait_for(_run(test, names, own_broker.address), 20)


def test_the_main_calls_have_examples() -> None:
    found = {test.name for test in _examples()}
    calls = ("connect", "Client.topic", "Client.pattern", "Client.group", "Client.request", "Client.create_topic")
    assert {f"sluice.client.{call}" for call in calls} <= found
