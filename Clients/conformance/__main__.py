"""Runs a client for Sluice through the scenarios. ``scripts/conformance.sh`` starts it."""

from __future__ import annotations

import argparse
import asyncio
import importlib
import os
import pkgutil
import sys
import time
import traceback
from pathlib import Path

from kit import scenarios
from kit.brokers import RealBroker
from kit.driver import Driver
from kit.stage import MOST_GROWTH, SCENARIOS, Scenario, Stage


def load() -> None:
    for module in sorted(found.name for found in pkgutil.iter_modules(scenarios.__path__)):
        importlib.import_module(f"kit.scenarios.{module}")


class Run:
    """All scenarios, run by a few workers, each with a driver of its own."""

    def __init__(self, command: list[str], program: Path, chosen: list[Scenario], seed: int, show_errors: bool) -> None:
        self._command = command
        self._program = program
        self._left = list(reversed(chosen))
        self._seed = seed
        self._show_errors = show_errors
        self.passed: list[str] = []
        self.skipped: list[str] = []
        self.failed: list[str] = []

    async def run(self, workers: int) -> None:
        broker = RealBroker(self._program)
        try:
            await broker.start()
            async with asyncio.TaskGroup() as group:
                for _ in range(workers):
                    group.create_task(self._work(broker))
        finally:
            await broker.close()

    async def _work(self, broker: RealBroker) -> None:
        driver: Driver | None = None
        while self._left:
            scenario = self._left.pop()
            if driver is None:
                driver = Driver(self._command)
                await driver.start()
            if scenario.name.startswith(driver.lacks):
                self.skipped.append(scenario.name)
                continue
            if not await self._try(scenario, driver, broker):
                # Remains of a failed scenario must not disturb the next one.
                await driver.stop()
                driver = None
        if driver is not None:
            await driver.stop()

    async def _try(self, scenario: Scenario, driver: Driver, broker: RealBroker) -> bool:
        stage = Stage(driver, self._program, broker.address, broker.port, self._seed)
        begin = time.monotonic()
        memory = driver.memory
        try:
            async with asyncio.timeout(scenario.seconds):
                await scenario.body(stage, **scenario.arguments)
            grown = driver.memory - memory
            assert grown <= MOST_GROWTH, f"the driver's memory has grown by {grown >> 20} MiB"
            await driver.do("reset")
            driver.forget()
            assert not driver.faults, f"an error that nothing handles: {driver.faults[0]}"
        except Exception as error:
            what = f"took more than {scenario.seconds:g} s" if type(error) is TimeoutError else f"{error or type(error).__name__}"
            print(f"FAILED  {scenario.name} ({time.monotonic() - begin:.1f} s): {what}\n        {scenario.about}", flush=True)
            for failure in stage.failures:
                if failure is not error:
                    print(f"        the scripted broker: {failure or type(failure).__name__}")
            if self._show_errors:
                traceback.print_exception(error)
            self.failed.append(scenario.name)
            return False
        finally:
            await stage.close()
        self.passed.append(scenario.name)
        if self._show_errors:
            print(f"passed  {scenario.name} ({time.monotonic() - begin:.1f} s)", flush=True)
        return True


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/conformance.sh", description=__doc__)
    parser.add_argument("--name", default="client", help="the client's name in the report")
    parser.add_argument("--program", type=Path, help="the program sluiced")
    parser.add_argument("--seed", type=int, default=None, help="repeats the random choices of a run")
    parser.add_argument("--only", default="", metavar="TEXT", help="only scenarios whose names contain this text; more with commas")
    parser.add_argument("--workers", type=int, default=4, help="how many scenarios run at a time")
    parser.add_argument("--list", action="store_true", help="prints the scenarios, and ends")
    parser.add_argument("--verbose", action="store_true", help="prints scenarios that pass, and where others failed")
    parser.add_argument("command", nargs="*", help="the driver's command line")
    options = parser.parse_args()
    load()
    texts = options.only.split(",")
    chosen = [scenario for scenario in SCENARIOS if any(text in scenario.name for text in texts)]
    if options.list:
        for scenario in chosen:
            print(f"{scenario.name:58} {scenario.about}")
        print(f"{len(chosen)} scenarios")
        return 0
    if not options.command or options.program is None:
        parser.error("a driver's command line and --program are needed")
    if not chosen:
        parser.error(f"no scenario's name contains {options.only!r}; --list prints all")
    seed = options.seed if options.seed is not None else int.from_bytes(os.urandom(4), "little")
    run = Run(options.command, options.program.resolve(), chosen, seed, options.verbose)
    begin = time.monotonic()
    asyncio.run(run.run(max(options.workers, 1)))
    skipped = f", {len(run.skipped)} skipped (features that the driver lacks)" if run.skipped else ""
    print(
        f"conformance: {options.name}: {len(run.passed)} of {len(chosen)} scenarios passed, {len(run.failed)} failed{skipped}"
        f" in {time.monotonic() - begin:.0f} s (seed {seed})",
        flush=True,
    )
    return 1 if run.failed else 0


if __name__ == "__main__":
    sys.exit(main())
