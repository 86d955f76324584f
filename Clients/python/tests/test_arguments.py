"""Functions that pass on keyword arguments have the same arguments as the functions that take them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import sluice
from sluice import arguments


@pytest.mark.parametrize(
    ("function", "passed"),
    [
        (sluice.connect, arguments.ConnectArguments),
        (sluice.Client.topic, arguments.TopicArguments),
        (sluice.Client.pattern, arguments.PatternArguments),
        (sluice.Client.group, arguments.GroupArguments),
        (sluice.Client.producer, arguments.ProducerArguments),
        (sluice.Client.request, arguments.RequestArguments),
    ],
)
def test_they_are_the_same(function: Callable[..., Any], passed: Any) -> None:
    taken = {
        name: parameter for name, parameter in inspect.signature(function).parameters.items() if parameter.kind is parameter.KEYWORD_ONLY
    }
    hints = {name: hint for kind in passed.__mro__ for name, hint in getattr(kind, "__annotations__", {}).items()}
    assert {name: parameter.annotation for name, parameter in taken.items()} == {
        name: getattr(hint, "__forward_arg__", hint) for name, hint in hints.items()
    }
