"""The means of a scenario: a driver, a broker, and functions to make others."""

from __future__ import annotations

import asyncio
import random
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .brokers import Proxy, RealBroker, Script, ScriptedBroker
from .driver import Client, Driver, DriverError

#: How much a scenario may let the driver's memory grow. More is unbounded growth.
MOST_GROWTH = 64 << 20


class Stage:
    """The environment of one run of a scenario."""

    def __init__(self, driver: Driver, program: Path, address: str, port: int, seed: int) -> None:
        self.driver = driver
        self.address = address
        self._port = port
        self._program = program
        self.random = random.Random(seed)
        self._stack = AsyncExitStack()
        self._clients = 0
        self._brokers: list[ScriptedBroker] = []
        #: A name for topics that no other scenario uses.
        self.topic = f"t{secrets.token_hex(6)}"

    async def client(self, *servers: str, **options: Any) -> Client:
        """Connects a client to the shared broker, or to ``servers``."""
        self._clients += 1
        name = f"c{self._clients}"
        await self.driver.do("connect", client=name, servers=list(servers) or [self.address], **options)
        return Client(self.driver, name)

    async def scripted(self, *scripts: Script, repeats: bool = False) -> ScriptedBroker:
        broker = ScriptedBroker(*scripts, repeats=repeats)
        await broker.start()
        self._brokers.append(broker)
        self._stack.push_async_callback(broker.close)
        return broker

    @property
    def failures(self) -> list[BaseException]:
        """The errors of the scripted brokers, which are often the reason that the client waits in vain."""
        return [broker.failure for broker in self._brokers if broker.failure is not None]

    async def proxy(self) -> Proxy:
        proxy = Proxy(self._port)
        await proxy.start()
        self._stack.push_async_callback(proxy.close)
        return proxy

    async def broker(self, *options: str) -> RealBroker:
        """Starts a broker that the scenario may kill."""
        broker = RealBroker(self._program, *options)
        self._stack.push_async_callback(broker.close)
        await broker.start()
        return broker

    async def close(self) -> None:
        await self._stack.aclose()


Body = Callable[..., Awaitable[None]]


@dataclass(frozen=True)
class Scenario:
    """One scenario: a function with its arguments."""

    name: str
    about: str
    body: Body
    arguments: dict[str, Any] = field(default_factory=dict)
    #: The longest that the scenario may take, in seconds.
    seconds: float = 30.0


SCENARIOS: list[Scenario] = []


def scenario(*variants: dict[str, Any], seconds: float = 30.0) -> Callable[[Body], Body]:
    """Registers a function as a scenario, once for each of ``variants``. The function's first line of documentation is its description.

    A variant's name is in its key ``name``, else made from its values.
    """

    def register(body: Body) -> Body:
        about = (body.__doc__ or "").strip().splitlines()[0]
        family = body.__module__.rpartition(".")[2]
        base = f"{family}/{body.__name__.replace('_', '-')}"
        for variant in variants or ({},):
            arguments = {key: value for key, value in variant.items() if key != "name"}
            label = variant.get("name") or ",".join(f"{value}" for value in arguments.values())
            name = f"{base}[{label}]" if variant else base
            assert all(known.name != name for known in SCENARIOS), f"two scenarios have the name {name}"
            SCENARIOS.append(Scenario(name, about, body, arguments, seconds))
        return body

    return register


def each(name: str, *values: Any) -> list[dict[str, Any]]:
    """Returns variants that differ in one argument."""
    return [{name: value} for value in values]


@asynccontextmanager
async def fails(code: int | tuple[int, ...], retry: bool | None = None) -> AsyncIterator[None]:
    """Checks that the body ends with this code of the client."""
    codes = (code,) if isinstance(code, int) else code
    try:
        yield
    except DriverError as error:
        check_error(error, codes, retry)
    else:
        raise AssertionError(f"an error with code {code} is expected, and none came")


def check_error(error: DriverError, codes: tuple[int, ...], retry: bool | None = None) -> None:
    assert error.code in codes, f"the error has {error}; code {' or '.join(map(str, codes))} is expected"
    assert not error.is_internal, f"the client failed by a mistake of its own: {error}"
    assert error.message, "the error has no message"
    if retry is not None:
        assert error.retry == retry, f"the error says retry {error.retry}: {error}"


async def eventually(condition: Callable[[], Awaitable[bool]], seconds: float = 10.0) -> None:
    """Waits until a condition holds."""
    async with asyncio.timeout(seconds):
        while not await condition():  # noqa: ASYNC110
            await asyncio.sleep(0.02)
