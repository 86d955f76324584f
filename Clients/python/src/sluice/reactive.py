"""Remote topics as observables of ``reactivex``. Installed with the extra ``sluice-client[reactive]``.

An observable pushes values, so it can't request records. :func:`from_topic` therefore returns an observable with a handle,
:class:`Requests`, whose ``request(n)`` is the demand. The broker sends ``n`` records, and further ones when more are requested.

>>> requests = Requests(10)
>>> observable = from_topic(client.topic("orders"), requests)
>>> subscription = observable.subscribe(on_next=lambda record: print(record.text))
>>> requests.request(10)
>>> await asyncio.sleep(0.5)
order 1
>>> subscription.dispose()
"""

from __future__ import annotations

import asyncio
from typing import TypeVar

import reactivex
from reactivex.abc import DisposableBase, ObserverBase, SchedulerBase
from reactivex.disposable import Disposable

from .errors import SluiceError
from .subscriptions import Topic

__all__ = ["Requests", "from_topic"]

T = TypeVar("T")


class Requests:
    """The demand of an observable. Used from the client's event loop.

    Args:
        initial: how many records are requested at first; None for no limit.
    """

    def __init__(self, initial: int | None = None) -> None:
        self._left = initial
        self._more = asyncio.Event()
        if initial != 0:
            self._more.set()

    def request(self, count: int) -> None:
        """Requests ``count`` more records.

        Raises:
            ValueError: the count isn't positive.
        """
        if count <= 0:
            raise ValueError("request() takes a number of records from 1 up")
        if self._left is not None:
            self._left += count
            self._more.set()

    async def take(self) -> None:
        """Waits until a record may be requested, and counts it."""
        while self._left == 0:
            self._more.clear()
            await self._more.wait()
        if self._left is not None:
            self._left -= 1


def from_topic(topic: Topic[T], requests: Requests | None = None) -> reactivex.Observable[T]:
    """Returns an observable of a topic's values. Each subscription to it subscribes to the topic, on the running event loop.

    ``on_completed`` follows the topic's completion, ``on_error`` gets its failure or the subscription's error. Disposing
    unsubscribes.

    Args:
        topic: the topic to subscribe to; its prefetch applies within the demand.
        requests: the demand; without it, records are requested as fast as the observers handle them.
    """

    def subscribe(observer: ObserverBase[T], scheduler: SchedulerBase | None = None) -> DisposableBase:
        task = asyncio.get_running_loop().create_task(_run(topic, requests or Requests(), observer))
        return Disposable(lambda: (task.cancel(), None)[1])

    return reactivex.create(subscribe)


async def _run(topic: Topic[T], requests: Requests, observer: ObserverBase[T]) -> None:
    async with topic.subscribe() as subscription:
        values = aiter(subscription)
        try:
            while True:
                await requests.take()
                observer.on_next(await anext(values))
        except StopAsyncIteration:
            observer.on_completed()
        except SluiceError as error:
            observer.on_error(error)
